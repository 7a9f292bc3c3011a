"""Golden figures of the official packages for Phonon and Pocket TTS: the random weights they were recorded with, and
the form in which they are kept.

The tools tools/record_{phonon,pocket}_golden.py run the official packages and write data/golden*.npz; the tests run
sonant and compare. An array is kept as its shape, its largest magnitude and its values at SAMPLES pseudo-random places.
"""

from __future__ import annotations

import json
import string
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sonant.backends.numpy import random

SAMPLES = 160
NOISE_SITE = 1
TABLES = (".embed.weight", "speakers_embed.weight", "embed_tokens.weight", "bos_before_voice")
RESIDUAL = ("out_proj.weight", "o_proj.weight", "linear2.weight", "fc2.weight")
"""What is added to the residual stream: half as large, or a rounding error doubles from one frame to the next."""


def random_tensor(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """f32 weights that depend on nothing but name and shape, scaled so that no stage vanishes or blows up."""
    seed = name + "266" if name == "flow_lm.out_eos.weight" else name  # speech that ends at many different frames
    normal = np.random.default_rng(zlib.crc32(seed.encode())).standard_normal(shape)
    if name.endswith("freqs"):
        return np.exp(-np.log(10_000.0) * np.arange(shape[0]) / shape[0]).astype(np.float32)
    if "layer_scale" in name:
        return (0.3 + 0.05 * normal).astype(np.float32)
    if name.endswith(("emb_std", "latent_std")):
        return (0.5 + 0.3 * np.abs(normal)).astype(np.float32)
    if name.endswith(TABLES):
        return (0.5 * normal).astype(np.float32)
    if name.endswith(("bos_emb", "bos_latent")):
        return normal.astype(np.float32)
    if len(shape) == 1:
        about_one = name.endswith(("norm1.weight", "norm2.weight", "norm.weight", "ln.weight", "alpha"))
        return (about_one + 0.1 * normal).astype(np.float32)
    if shape[-1] == 32 and shape[1] == 1:  # depthwise upsampling
        return (0.7 * normal).astype(np.float32)
    gain = 0.3 if "adaLN" in name or "adaln" in name else 0.5 if name.endswith(RESIDUAL) else 1.0
    fan_in = 2 * shape[0] if "convtr" in name else np.prod(shape[1:])
    return (gain * normal / np.sqrt(fan_in)).astype(np.float32)


def random_array(name: str, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """An input, f32, that depends on name and shape alone."""
    return (scale * np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)).astype(np.float32)


def noise(seed: tuple[int, int], frames: int, channels: int) -> np.ndarray:
    """[frames, channels]: what the step Programs draw, before the temperature."""
    key = np.array([seed], np.uint32).view(np.int32)
    return random.randn(key, np.zeros(1, np.int32), frames, channels, NOISE_SITE)[0].astype(np.float32)


def sample(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """The kept form of one array."""
    return {
        f"{name}.shape": np.array(array.shape),
        f"{name}.peak": np.abs(array).max().astype(np.float32),
        f"{name}.values": array.ravel()[positions(name, array.size)].astype(np.float32),
    }


def positions(name: str, size: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(name.encode())).integers(0, size, min(SAMPLES, size))


def error(name: str, array: np.ndarray, golden: Mapping[str, np.ndarray]) -> float:
    """The largest difference at the kept places, as a part of the array's largest magnitude."""
    assert tuple(golden[f"{name}.shape"]) == array.shape, (name, array.shape, golden[f"{name}.shape"])
    found = array.ravel()[positions(name, array.size)]
    return float(np.abs(found - golden[f"{name}.values"]).max() / golden[f"{name}.peak"])


def write_tokenizer(folder: Path, n_pieces: int) -> None:
    """tokenizer.json of a Unigram model of bytes, letters with and without the mark of a word, and made-up pieces."""
    pieces = ["<unk>", "<s>", "</s>", "<pad>", *(f"<0x{i:02X}>" for i in range(256)), "▁"]
    for c in string.ascii_letters + string.digits + ".,!?'-:;()":
        pieces += [c, f"▁{c}"]
    pieces += [f"▁zz{i}" for i in range(n_pieces - len(pieces))]
    scores = [0.0 if i < 4 else -30.0 if p.startswith("<0x") else 2.0 * len(p.replace("▁", "")) - 12.0
              for i, p in enumerate(pieces)]
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": list(zip(pieces, scores, strict=True))}
    made = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "pre_tokenizer": None,
            "normalizer": {"type": "Sequence", "normalizers": [space, {"type": "Prepend", "prepend": "▁"}]},
            "post_processor": None, "decoder": None, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
