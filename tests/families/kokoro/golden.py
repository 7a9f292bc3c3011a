"""Golden figures of the official Kokoro package: what they hold, and the random weights they were recorded with.

`tools/record_kokoro_golden.py` runs the official package and writes data/golden_*.npz; the tests run sonant and
compare. A stage is kept as its shape, its largest magnitude, and its values at SAMPLES fixed pseudo-random positions.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data"
SAMPLES = 200
BINS = 11
STAGES = ("dur_enc", "F0", "N", "text_encoder", "magnitude", "audio")
"""dur_enc and text_encoder channels-last; magnitude [120T+1, 11] of the excitation, its noise switched off; audio with
`injected_spectrum` in the place of the model's own, whose angles are ill-defined where a bin is all but silent."""
LOGMEL_TEXTS = 3
"""Of so many texts the log-mel of the audio with the model's own spectrum (noise off) is kept as well."""


def tiny_config(official: Mapping[str, Any]) -> dict[str, Any]:
    """The official config with a small ALBERT; the decoder's widths are fixed in the official code."""
    config = json.loads(json.dumps(official))
    config["plbert"].update(hidden_size=64, num_attention_heads=4, intermediate_size=96, num_hidden_layers=2)
    config["n_layer"] = 2
    return config


def random_tensor(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """f32 weights that depend on nothing but the official name and shape."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith("duration_proj.linear_layer.bias"):
        return np.full(shape, -2.75, np.float32)  # durations of about three frames
    if name.endswith("F0_proj.bias"):
        return np.full(shape, 150.0, np.float32)  # a voiced pitch
    if name.endswith("conv_post.bias"):
        return np.full(shape, -3.0, np.float32)
    if name.endswith((".norm.weight", ".norm.bias")):  # an InstanceNorm affine, which the published file does not have
        return np.full(shape, name.endswith("weight"), np.float32)
    if len(shape) >= 2 and not name.endswith(("weight_g", "original0")) and "alpha" not in name:
        return (rng.standard_normal(shape) * 0.7 / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    about_one = name.endswith(("weight", "gamma", "weight_g", "original0")) or "alpha" in name
    return (rng.standard_normal(shape) * 0.05 + about_one).astype(np.float32)


def sample(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """The kept form of one stage."""
    at = positions(name, array.size)
    return {
        f"{name}.shape": np.array(array.shape),
        f"{name}.peak": np.abs(array).max().astype(np.float32),
        f"{name}.values": array.ravel()[at].astype(np.float32),
    }


def positions(name: str, size: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(name.encode())).integers(0, size, SAMPLES)


def relative_error(name: str, array: np.ndarray, golden: Mapping[str, np.ndarray]) -> float:
    """The largest difference at the kept positions, as a part of the stage's largest magnitude."""
    assert tuple(golden[f"{name}.shape"]) == array.shape, (name, array.shape)
    found = array.ravel()[positions(name.split("/")[-1], array.size)]
    return float(np.abs(found - golden[f"{name}.values"]).max() / golden[f"{name}.peak"])


def injected_spectrum(length: int) -> np.ndarray:
    """f32 [length, 22]: magnitudes and angles that look like nothing in particular."""
    rng = np.random.default_rng(11)
    magnitude = np.abs(rng.standard_normal((length, BINS))) * 0.2
    return np.concatenate([magnitude, rng.uniform(-np.pi, np.pi, (length, BINS))], axis=1).astype(np.float32)


def log_mel_db(audio: np.ndarray) -> np.ndarray:
    """f32 [frames, 80] in dB: Hann 1200, hop 300, triangular filters on the HTK mel scale, floor at -100 dB."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(audio, 600), 1200)[::300] * np.hanning(1200)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 12000 / 700), 82) / 2595) - 1)
    bins = np.arange(601) * 20.0
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    mel = power @ np.clip(np.minimum(rising, falling), 0, None).T
    return (10 * np.log10(np.maximum(mel, 1e-10))).astype(np.float32)
