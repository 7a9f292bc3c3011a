"""The tiny models of golden_*.npz: one for each kind of release, and what they are made to say."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np

from sonant.families.pocket.config import released

DATA = Path(__file__).parent / "data"
TEMPERATURE = 0.3
SEED = (7, 2)
TEXT = (11, 12, 13, 14, 15, 16)
VOICE, FRAMES, CODEC_FRAMES = 7, 4, 20
"""Rows of the voice, frames that are made (a rounding error doubles from one to the next), frames of the codec: 320
positions, beyond every window."""

STEPS = {"lsd4": 4, "flow_matching": 16}
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "large": ("english", {}),
    "lsd4": ("english", {}),
    "inner": ("english_2026-01", {"inner_dim": 32}),
    "flow_matching": ("english", {"type": "flow_matching"}),
    "drifting": ("english_drifting_26-09", {}),
    "18m": ("english_18m_2026-10", {}),
    "7m": ("english_7m_2026-10", {"attn_dim": 64, "num_kv_heads": 2, "rank": 16}),
    "2m": ("english_2m_2026-10", {"attn_dim": 48, "num_kv_heads": 1, "rank": 12}),
}
"""Of each variant: the released configuration that it shrinks, and values of its own."""

STOPS = [(threshold, after, cap) for threshold in (-4.0, -0.5, -0.1, 0.1, 0.4, 9.0)
         for after, cap in ((3, 30), (5, 30), (3, 9), (5, 5))]
"""Threshold, what the official loop counts after the end (one more than it keeps), cap."""

PORT: dict[str, Any] = {
    "vocab_size": 44, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
    "latent_dim": 8, "audio_prompt_token_id": 40, "audio_latent_token_id": 41, "audio_prompt_bos_token_id": 42,
    "audio_bos_token_id": 43, "pad_token_id": 3,
    "flow_head_config": {"hidden_size": 48, "num_hidden_layers": 2, "condition_dim": 64, "latent_dim": 8},
}
PORT_HEADS = ((0, 1), (1, 0), (1, 3))
PORT_CODEC: dict[str, Any] = {
    "hidden_size": 32, "num_filters": 4, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 4,
    "latent_dim": 8, "sliding_window": 250, "upsample_groups": 32,
}


def config(name: str, *, official: bool = False) -> dict[str, Any]:
    """The configuration of a variant; official: with what pocket_tts wants beside it."""
    base, change = CHANGES[name]
    out = copy.deepcopy(dict(released(base).model))
    lm, mimi = out["flow_lm"], out["mimi"]
    small = bool(mimi.get("decoder_seanet"))
    heads, width = (3 if change.get("num_kv_heads") == 1 else 4), (40 if small else 64)
    lm["transformer"].update(d_model=width, num_heads=heads, num_layers=2)
    if lm["transformer"].get("dim_feedforward"):
        lm["transformer"]["dim_feedforward"] = 24
    lm["flow"].update(dim=48, depth=2)
    lm["lookup_table"].update(dim=width, n_bins=40)
    if lm.get("z_dim"):
        lm["z_dim"] = 24
    mimi["seanet"].update(dimension=32, n_filters=4)
    mimi["transformer"].update(d_model=32, num_heads=2, num_layers=2, dim_feedforward=48, input_dimension=32,
                               output_dimensions=[32])
    mimi.update(inner_dim=8, outer_dim=16 if small else 32)
    mimi["quantizer"].update(dimension=8, output_dimension=16 if small else 32)
    if small:
        mimi["decoder_seanet"].update(dimension=16, n_filters=2)
        mimi["decoder_transformer"].update(d_model=16, num_heads=2, num_layers=3, dim_feedforward=24,
                                           input_dimension=16, output_dimensions=[16])
    for key, value in change.items():
        place = {"inner_dim": mimi, "type": lm["flow"], "rank": lm["lookup_table"]}.get(key, lm["transformer"])
        place[key] = value
    if official:
        lm["lookup_table"]["tokenizer_path"] = "none"
        out = _without_nulls(out)
    return out


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {k: _without_nulls(v) if isinstance(v, dict) else v for k, v in value.items() if v is not None}


def clip() -> np.ndarray:
    """1.3 s at 24 kHz that end in the quiet: what a voice is cloned from, before it is cut at a pause."""
    t = np.arange(31_200) / 24_000
    loud = np.sin(2 * np.pi * 180 * t) * np.clip(1.0 - t, 0, 1) + 0.001 * np.sin(2 * np.pi * 50 * t)
    return (0.5 * loud).astype(np.float32)
