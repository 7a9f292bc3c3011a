"""The configuration of a Pocket TTS checkpoint: a YAML file of the pocket_tts package, or a transformers config.json.

The released weights come without their configuration; data/models.json has those of pocket_tts 4.0.1 by name,
as what differs from one of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonant.errors import CheckpointError, UnknownName
from sonant.families.latent import port
from sonant.families.latent.fields import Fields
from sonant.families.latent.prepare import PocketRules
from sonant.families.latent.stated import Stated
from sonant.layers.flow import TIMES, FlowShape
from sonant.layers.mimi import MimiShape
from sonant.layers.seanet import SeanetShape
from sonant.layers.transformer import TransformerShape

MODELS = Path(__file__).parent / "data" / "models.json"
LEAST_EULER_STEPS = 16
"""Of flow_matching heads; the others were trained for one step."""


@dataclass(frozen=True)
class PocketConfig:
    """Sizes, and the defaults of sampling. text_rank: width of the factored text table, None where it is whole.
    bos_row: the row of the text table that stands before a voice, where it is not a tensor of its own.
    frames_after_eos: how many frames follow the one that ends the speech, None to go by the length of the text."""

    lm: TransformerShape
    flow: FlowShape
    decoder: MimiShape
    encoder: MimiShape
    text_rows: int
    text_rank: int | None
    z_width: int | None
    bos_before_voice: bool
    bos_row: int | None
    sample_rate: int
    frame_rate_hz: float
    temperature: float
    eos_threshold: float
    rules: PocketRules
    frames_after_eos: int | None = None

    def __post_init__(self) -> None:
        for side in (self.decoder, self.encoder):
            if side.frame_samples * self.frame_rate_hz != self.sample_rate:
                raise CheckpointError(f"a frame of {side.frame_samples} samples at {self.sample_rate} Hz is not "
                                      f"{self.frame_rate_hz} Hz")


def released(name: str) -> Stated:
    """The configuration of a released model, by its name in pocket_tts."""
    known = json.loads(MODELS.read_text("utf-8"))
    if name not in known["models"]:
        raise UnknownName("Pocket TTS configuration", name, known["models"])
    return Stated(_changed(known["base"], known["models"][name]))


def parse(stated: Stated, where: str) -> PocketConfig:
    """The configuration that was stated, in whichever of the two layouts. Raises CheckpointError."""
    fields = Fields(stated.model, where)
    if stated.codec is None:
        return _pocket(fields)
    fields.must_be("model_type", "pocket_tts")
    return _transformers(fields, Fields(stated.codec, f"{where}, codec"))


def _changed(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`base` with the values of `change`, inside the maps that both have too."""
    inner = {k: _changed(base[k], v) for k, v in change.items()
             if isinstance(v, dict) and isinstance(base.get(k), dict) and k != "replace_characters"}
    return {**base, **change, **inner}


def _pocket(fields: Fields) -> PocketConfig:
    lm, mimi = fields.sub("flow_lm"), fields.sub("mimi")
    table, latent = lm.sub("lookup_table"), mimi.sub("quantizer").size("dimension")
    layers = _lm_shape(lm.sub("transformer"))
    table.must_be("dim", layers.width)
    z_width = lm.size("z_dim") if lm.has("z_dim") else None
    after = "model_recommended_frames_after_eos"
    return PocketConfig(
        lm=layers,
        flow=_flow_shape(lm.sub("flow"), latent, z_width or layers.width),
        decoder=_codec_shape(mimi, "decoder_", latent),
        encoder=_codec_shape(mimi, "", mimi.size("inner_dim", mimi.sub("seanet").size("dimension"))),
        text_rows=table.size("n_bins") + 1,
        text_rank=table.size("rank") if table.has("rank") else None,
        z_width=z_width,
        bos_before_voice=lm.flag("insert_bos_before_voice", False),
        bos_row=None,
        sample_rate=mimi.size("sample_rate"),
        frame_rate_hz=mimi.number("frame_rate"),
        temperature=fields.number("default_temperature", 0.3),
        eos_threshold=fields.number("default_eos_threshold", -4.0),
        rules=_rules(fields),
        frames_after_eos=fields.size(after) if fields.has(after) else None,
    )


def _lm_shape(fields: Fields) -> TransformerShape:
    width, heads = fields.size("d_model"), fields.size("num_heads")
    return TransformerShape(width, fields.size("num_layers"), heads, fields.size("num_kv_heads", heads),
                            fields.size("attn_dim", width) // heads,
                            fields.size("dim_feedforward", width * fields.size("hidden_scale")),
                            theta=fields.number("max_period"))


def _flow_shape(fields: Fields, latent: int, condition: int) -> FlowShape:
    kind = fields.choice("type", tuple(TIMES), "lsd")
    return FlowShape(kind, latent, condition, fields.size("dim"), fields.size("depth"),
                     steps=LEAST_EULER_STEPS if kind == "flow_matching" else 1)


def _codec_shape(mimi: Fields, side: str, latent: int) -> MimiShape:
    """One direction; the decoder's own sizes where they are stated."""
    ends = mimi.sub(f"{side}seanet" if mimi.has(f"{side}seanet") else "seanet")
    layers = mimi.sub(f"{side}transformer" if mimi.has(f"{side}transformer") else "transformer")
    mimi.must_be("channels", 1)
    ends.must_be("pad_mode", "constant")
    width, heads, dimension = layers.size("d_model"), layers.size("num_heads"), ends.size("dimension")
    layers.must_be("input_dimension", width)
    layers.must_be("output_dimensions", [width])
    ends.must_be("dimension", width)
    if side:
        mimi.sub("quantizer").must_be("output_dimension", width)
        mimi.must_be("outer_dim", width, width)
    seanet = SeanetShape(dimension, ends.size("n_filters"), ends.sizes("ratios"), ends.size("kernel_size"),
                         ends.size("last_kernel_size"), ends.size("residual_kernel_size"),
                         ends.size("n_residual_layers"), ends.size("dilation_base"), ends.size("compress"))
    hop = 1
    for ratio in seanet.ratios:
        hop *= ratio
    stride = round(mimi.size("sample_rate") / hop / mimi.number("frame_rate"))
    inner = TransformerShape(width, layers.size("num_layers"), heads, heads, width // heads,
                             layers.size("dim_feedforward"), theta=layers.number("max_period", 10_000.0),
                             window=layers.size("context"), layer_scale=True)
    return MimiShape(latent, stride, inner, seanet)


def _rules(fields: Fields) -> PocketRules:
    replaced = fields.sub("replace_characters").values if fields.has("replace_characters") else {}
    if not all(isinstance(v, str) for v in replaced.values()):
        raise CheckpointError(f"{fields.where}: replace_characters must map characters to strings")
    return PocketRules(
        replace_characters=replaced,
        remove_semicolons=fields.flag("remove_semicolons", False),
        append_terminal_punctuation=fields.flag("append_terminal_punctuation", True),
        capitalize_first_letter=fields.flag("capitalize_first_letter", True),
        pad_with_spaces_for_short_inputs=fields.flag("pad_with_spaces_for_short_inputs", False),
    )


def _transformers(fields: Fields, codec: Fields) -> PocketConfig:
    """The port has no place for small models; what it does not state is as in the released large ones."""
    both = port.codec_shape(codec)
    return PocketConfig(
        lm=port.lm_shape(fields),
        flow=port.flow_shape(fields, ("lsd", "drifting")),
        decoder=both,
        encoder=both,
        text_rows=fields.size("vocab_size"),
        text_rank=None,
        z_width=None,
        bos_before_voice=True,
        bos_row=fields.size("audio_prompt_bos_token_id"),
        sample_rate=codec.size("sampling_rate"),
        frame_rate_hz=fields.number("frame_rate"),
        temperature=0.3,
        eos_threshold=-4.0,
        rules=PocketRules(replace_characters={"’": "'", "‘": "'"}),
    )
