"""The configuration of a Phonon checkpoint: Gradium's config.json, or that of its transformers port."""

from __future__ import annotations

from dataclasses import dataclass

from sonant.errors import CheckpointError
from sonant.families.latent import port
from sonant.families.latent.fields import Fields
from sonant.families.latent.stated import Stated
from sonant.layers.flow import FlowShape
from sonant.layers.mimi import MimiShape
from sonant.layers.seanet import SeanetShape
from sonant.layers.transformer import TransformerShape

TIME_NORMS = {"rms": "mean_square", "rms_var": "variance"}


@dataclass(frozen=True)
class SpeakersCondition:
    """How many speak: the table [rows, width] of num_speakers, and the row in use."""

    rows: int
    width: int
    row: int


@dataclass(frozen=True)
class DeltaCondition:
    """How long the speech takes: the sinusoidal embedding of duration_delta."""

    width: int
    scale: float
    max_period: float


@dataclass(frozen=True)
class PhononConfig:
    """Sizes, and the defaults of sampling. speakers, delta: what is added to every frame, None where a model has no
    such condition. null_audio_empty, null_text_empty: what guidance compares with."""

    lm: TransformerShape
    flow: FlowShape
    codec: MimiShape
    speakers: SpeakersCondition | None
    delta: DeltaCondition | None
    text_rows: int
    voice_width: int
    time_norm: str
    sample_rate: int
    frame_rate_hz: float
    temperature: float
    eos_threshold: float
    null_audio_empty: bool = False
    null_text_empty: bool = False

    def __post_init__(self) -> None:
        if self.codec.frame_samples * self.frame_rate_hz != self.sample_rate:
            raise CheckpointError(
                f"a frame of {self.codec.frame_samples} samples at {self.sample_rate} Hz is not {self.frame_rate_hz} Hz"
            )


def parse(stated: Stated, where: str) -> PhononConfig:
    """The configuration that was stated, in whichever of the two layouts. Raises CheckpointError."""
    fields = Fields(stated.model, where)
    if stated.codec is None:
        return _gradium(fields)
    fields.must_be("model_type", "gradium_phonon_tts")
    return _transformers(fields, Fields(stated.codec, f"{where}, codec"))


def _gradium(fields: Fields) -> PhononConfig:
    """What Gradium's runtime need not find in it has that runtime's default (time_rms_norm: rms_var)."""
    lm, mimi = fields.sub("flow_lm"), fields.sub("mimi")
    conditioners = _gradium_conditioners(fields)
    width, heads = lm.size("d_model"), lm.size("num_heads")
    codec = _gradium_codec(mimi)
    lm.must_be("lut_dim", width)
    return PhononConfig(
        lm=TransformerShape(width, lm.size("num_layers"), heads, heads, width // heads, lm.size("dim_feedforward"),
                            theta=lm.number("max_period")),
        flow=FlowShape("lsd", lm.size("ldim"), width, lm.size("flow_dim"), lm.size("flow_depth"),
                       steps=fields.size("lsd_decode_steps")),
        codec=codec,
        speakers=_gradium_speakers(conditioners.get("num_speakers")),
        delta=_gradium_delta(conditioners.get("duration_delta")),
        text_rows=lm.size("n_bins") + 1,
        voice_width=mimi.size("dimension"),
        time_norm=TIME_NORMS[lm.choice("time_rms_norm", tuple(TIME_NORMS), "rms_var")],
        sample_rate=mimi.size("sample_rate"),
        frame_rate_hz=mimi.number("frame_rate"),
        temperature=fields.number("temp", 0.3),
        eos_threshold=fields.number("eos_threshold"),
        null_audio_empty=fields.flag("cfg_null_audio_empty", False),
        null_text_empty=fields.flag("cfg_null_text_empty", False),
    )


def _gradium_codec(mimi: Fields) -> MimiShape:
    width, heads = mimi.size("transformer_d_model"), mimi.size("transformer_num_heads")
    mimi.must_be("channels", 1)
    mimi.must_be("quantizer_output_dimension", width)
    mimi.must_be("dimension", width)
    mimi.must_be("decoder_dimension", width, width)
    ratios = mimi.sizes("ratios")
    seanet = SeanetShape(width, mimi.size("n_filters"), ratios, mimi.size("kernel_size"), mimi.size("last_kernel_size"),
                         mimi.size("residual_kernel_size"), mimi.size("n_residual_layers"), mimi.size("dilation_base"),
                         mimi.size("compress"))
    fast_hz, slow_hz = mimi.size("sample_rate"), mimi.number("frame_rate")
    for ratio in ratios:
        fast_hz //= ratio
    # Gradium's runtime lets a query see keys of age 0 to transformer_context: one more than pocket_tts does.
    layers = TransformerShape(width, mimi.size("transformer_num_layers"), heads, heads, width // heads,
                              mimi.size("transformer_dim_feedforward"), theta=mimi.number("transformer_max_period"),
                              window=mimi.size("transformer_context") + 1, layer_scale=True)
    return MimiShape(mimi.size("quantizer_dimension"), round(fast_hz / slow_hz), layers, seanet)


def _gradium_conditioners(fields: Fields) -> dict[str, Fields]:
    """By name. Raises CheckpointError for one that is not known, whose value nobody would give."""
    listed = fields.values.get("conditioners") or []
    if not isinstance(listed, list) or not all(isinstance(c, dict) for c in listed):
        raise CheckpointError(f"{fields.where}: conditioners must be a list of objects")
    found = {str(c.get("name")): Fields(c, f"{fields.where}: conditioner {c.get('name')!r:.40}") for c in listed}
    unknown = sorted(set(found) - {"num_speakers", "duration_delta"})
    if unknown:
        raise CheckpointError(f"{fields.where}: conditioner {unknown[0]!r:.40} is not known to this engine")
    return found


def _gradium_speakers(fields: Fields | None) -> SpeakersCondition | None:
    """One speaker."""
    if fields is None:
        return None
    lut = fields.sub("lut")
    values = lut.strings("possible_values")
    if "1" not in values:
        raise CheckpointError(f"{lut.where}: it cannot be '1', only {', '.join(values)}")
    return SpeakersCondition(lut.size("n_bins") + 1, lut.size("dim"), values.index("1"))


def _gradium_delta(fields: Fields | None) -> DeltaCondition | None:
    if fields is None:
        return None
    inner = fields.sub("continuous")
    return DeltaCondition(inner.size("dim"), inner.number("scale_factor"), inner.number("max_period"))


def _transformers(fields: Fields, codec: Fields) -> PhononConfig:
    """The port states no sampling: temperature 0.3, threshold 4 and one step are Gradium's for these models."""
    return PhononConfig(
        lm=port.lm_shape(fields),
        flow=port.flow_shape(fields, ("lsd",)),
        codec=port.codec_shape(codec),
        speakers=SpeakersCondition(fields.size("num_speakers_vocab_size", 32),
                                   fields.size("num_speakers_embedding_dim", 16), fields.size("num_speakers", 1)),
        delta=DeltaCondition(fields.size("duration_delta_embedding_dim", 128),
                             fields.number("duration_delta_scale", 1000.0),
                             fields.number("duration_delta_max_period", 10_000.0)),
        text_rows=fields.size("vocab_size"),
        voice_width=fields.size("audio_prompt_dim", 512),
        time_norm="mean_square",
        sample_rate=codec.size("sampling_rate"),
        frame_rate_hz=fields.number("frame_rate"),
        temperature=0.3,
        eos_threshold=4.0,
    )
