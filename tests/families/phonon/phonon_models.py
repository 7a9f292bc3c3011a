"""The tiny models of the golden figures: configurations and tensors, written as checkpoint files and read back."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np

from sonant.checkpoint.safetensors import write_safetensors
from sonant.families.latent.source import folder_of
from sonant.families.phonon.config import PhononConfig
from sonant.families.phonon.weights import LAYOUT

DATA = Path(__file__).parent / "data"
VOICE, FRAMES, CODEC_FRAMES = 9, 4, 20
SEED, TEMPERATURE = (7, 2), 0.3
TEXT = (11, 12, 13, 14, 15, 16)
DELTA = 0.25
HEADS = ((0, 1), (1, 0))
"""Layer and head; those that the transformers figures have attention of."""

CONFIG: dict[str, Any] = {
    "flow_lm": {"d_model": 64, "num_heads": 2, "num_layers": 2, "dim_feedforward": 96, "max_period": 10000.0,
                "n_bins": 4000, "lut_dim": 64, "flow_dim": 48, "flow_depth": 2, "ldim": 8, "time_rms_norm": "rms"},
    "mimi": {"channels": 1, "sample_rate": 24000, "frame_rate": 12.5, "dimension": 32, "quantizer_dimension": 8,
             "quantizer_output_dimension": 32, "n_filters": 4, "n_residual_layers": 1, "ratios": [6, 5, 4],
             "kernel_size": 7, "last_kernel_size": 3, "residual_kernel_size": 3, "dilation_base": 2, "compress": 2,
             "transformer_d_model": 32, "transformer_num_heads": 2, "transformer_num_layers": 2,
             "transformer_layer_scale": 0.01, "transformer_context": 250, "transformer_max_period": 10000.0,
             "transformer_dim_feedforward": 48},
    "temp": 0.3, "lsd_decode_steps": 1, "eos_threshold": 4.0,
    "fuser": {"sum": ["num_speakers", "duration_delta"], "prepend": ["speaker_wavs", "transcript_in_segment"]},
    "conditioners": [
        {"name": "num_speakers", "type": "lut",
         "lut": {"n_bins": 31, "dim": 16, "possible_values": [str(i) for i in range(31)], "tokenizer": "noop"}},
        {"name": "duration_delta", "type": "continuous",
         "continuous": {"dim": 128, "scale_factor": 1000.0, "max_period": 10000.0}},
    ],
}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "steps": {"lsd_decode_steps": 4},
    "variance": {"time_rms_norm": "rms_var"},
    "guided": {"cfg_null_audio_empty": True, "cfg_null_text_empty": True},
    "padded": {"cfg_null_audio_empty": True},
    "faster": {},
}
"""What each waveform's config.json changes; GUIDANCE and DELTAS beside it are arguments of the run."""
LENGTHS = {"plain": 30}
SHORT = 4
"""Frames of a waveform that are compared: a rounding error grows tenfold in three to ten frames, in either engine. 30
frames go beyond the window of the codec."""

GUIDANCE = {"guided": 2.0, "padded": 2.0}
DELTAS = {"faster": -0.45}

SENTENCES = ("Hello there my friend how are you today.", "Hello there my friend.", "Hi.",
             "One two three four five six.")
THRESHOLDS = (1.537, 1.719, 1.855, 1.991, 2.127, 2.173)
"""Every pair of the two is one run whose frames are counted."""

PORT: dict[str, Any] = {
    "vocab_size": 41, "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 96,
    "latent_dim": 8, "audio_prompt_dim": 24, "duration_delta": DELTA,
    "flow_head_config": {"hidden_size": 48, "num_hidden_layers": 2, "condition_dim": 64, "latent_dim": 8},
}
PORT_CODEC: dict[str, Any] = {
    "hidden_size": 32, "num_filters": 4, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 4,
    "latent_dim": 8, "sliding_window": 251, "upsample_groups": 32, "hidden_act": "gelu",
}


def config(name: str) -> dict[str, Any]:
    """config.json of a variant."""
    out = copy.deepcopy(CONFIG)
    for key, value in VARIANTS[name].items():
        (out["flow_lm"] if key == "time_rms_norm" else out)[key] = value
    return out


@dataclass(frozen=True)
class Sizes:
    """Of a checkpoint: the tiny one's, if not said otherwise."""

    width: int = 64
    inner: int = 96
    layers: int = 2
    flow: int = 48
    depth: int = 2
    latent: int = 8
    codec: int = 32
    codec_inner: int = 48
    filters: int = 4


FULL = Sizes(width=512, inner=2048, layers=6, flow=512, depth=6, latent=32, codec=512, codec_inner=2048, filters=64)
"""The 31M release."""


def shapes(sizes: Sizes | None = None) -> dict[str, tuple[int, ...]]:
    """Gradium's names and torch's shapes: what ptts 0.4.2 reads without a complaint."""
    s, at = sizes or Sizes(), "flow_lm.condition_provider.conditioners"
    d, c, w = s.width, s.codec, s.flow
    out: dict[str, tuple[int, ...]] = {
        f"{at}.transcript_in_segment.embed.weight": (4001, d),
        f"{at}.transcript_in_segment.learnt_padding": (1, 1, d),
        f"{at}.speaker_wavs.output_proj.weight": (d, c), f"{at}.speaker_wavs.learnt_padding": (1, 1, d),
        f"{at}.num_speakers.embed.weight": (32, 16), f"{at}.num_speakers.output_proj.weight": (d, 16),
        f"{at}.num_speakers.learnt_padding": (1, 1, d),
        f"{at}.duration_delta.output_proj.weight": (d, 128), f"{at}.duration_delta.learnt_padding": (1, 1, d),
        "flow_lm.input_linear.weight": (d, s.latent), "flow_lm.bos_emb": (s.latent,),
        "flow_lm.emb_mean": (s.latent,), "flow_lm.emb_std": (s.latent,),
        **_both("flow_lm.out_norm", (d,)), **_both("flow_lm.out_eos", (1, d)),
        **_both("flow_lm.flow_net.cond_embed", (w, d)), **_both("flow_lm.flow_net.input_proj", (w, s.latent)),
        **_both("flow_lm.flow_net.final_layer.linear", (s.latent, w)),
        **_both("flow_lm.flow_net.final_layer.adaLN_modulation.1", (2 * w, w)),
        "mimi.quantizer.output_proj.weight": (c, s.latent, 1), "mimi.upsample.convtr.convtr.weight": (c, 1, 32),
    }
    for i in range(s.layers):
        out |= _layer(f"flow_lm.transformer.layers.{i}", d, s.inner)
    for i in range(s.depth):
        block = f"flow_lm.flow_net.res_blocks.{i}"
        out |= _both(f"{block}.in_ln", (w,)) | _both(f"{block}.adaLN_modulation.1", (3 * w, w))
        out |= _both(f"{block}.mlp.0", (w, w)) | _both(f"{block}.mlp.2", (w, w))
    for i in range(2):
        out |= _layer(f"mimi.decoder_transformer.transformer.layers.{i}", c, s.codec_inner)
        out |= {f"mimi.decoder_transformer.transformer.layers.{i}.layer_scale_{n}.scale": (c,) for n in (1, 2)}
        time = f"flow_lm.flow_net.time_embed.{i}"
        out |= {f"{time}.freqs": (128,), f"{time}.mlp.3.alpha": (w,)}
        out |= _both(f"{time}.mlp.0", (w, 256)) | _both(f"{time}.mlp.2", (w, w))
    n = 8 * s.filters
    out |= _both("mimi.decoder.model.0.conv", (n, c, 7))
    for i, stride in enumerate((6, 5, 4)):
        n //= 2
        up, res = f"mimi.decoder.model.{2 + 3 * i}.convtr", f"mimi.decoder.model.{3 + 3 * i}.block"
        out |= {f"{up}.weight": (2 * n, n, 2 * stride), f"{up}.bias": (n,)}
        out |= _both(f"{res}.1.conv", (n // 2, n, 3)) | _both(f"{res}.3.conv", (n, n // 2, 1))
    return out | _both("mimi.decoder.model.11.conv", (1, n, 3))


def _both(path: str, weight: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {f"{path}.weight": weight, f"{path}.bias": weight[:1]}


def _layer(path: str, width: int, inner: int) -> dict[str, tuple[int, ...]]:
    return {f"{path}.self_attn.in_proj.weight": (3 * width, width), f"{path}.self_attn.out_proj.weight": (width, width),
            f"{path}.linear1.weight": (inner, width), f"{path}.linear2.weight": (width, inner),
            **_both(f"{path}.norm1", (width,)), **_both(f"{path}.norm2", (width,))}


def voice() -> np.ndarray:
    """Projected rows [VOICE, 64]."""
    return golden.random_array("voice", (VOICE, 64), 0.3)


def recorded(name: str) -> dict[str, np.ndarray]:
    return dict(np.load(DATA / f"golden_{name}.npz"))


def text_of(array: np.ndarray) -> Any:
    return json.loads(array.tobytes())


def write(folder: Path, tensors: Mapping[str, Any], stated: Mapping[str, Any]) -> Path:
    """config.json and model.safetensors with the random weights of the golden figures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(stated))
    write_safetensors(folder / "model.safetensors", {
        name: golden.random_tensor(name, tuple(shape)) for name, shape in tensors.items()
        if not name.endswith("num_updates")})
    return folder


def read(name: str, folder: Path) -> tuple[PhononConfig, dict[str, np.ndarray]]:
    """A variant, or the transformers port of one, from files in `folder`."""
    if name != "port":
        return LAYOUT.read(*folder_of(write(folder, shapes(), config(name))))
    figures = recorded("port")
    write(folder / "audio_tokenizer", text_of(figures["codec_shapes"]), text_of(figures["codec_config"]))
    return LAYOUT.read(*folder_of(write(folder, text_of(figures["shapes"]), text_of(figures["config"]))))
