"""Kokoro against the official package, stage by stage, on tiny random weights and on the real ones.

Tolerance 1e-4 of a stage's largest magnitude: f32 sums in another order through some forty layers; measured 1e-6 to
2e-5. The excitation's magnitude alone has a wider one: the official phase is an f32 sum that reaches 1e4 rad for every
second, where one rounding is 1e-3 rad; ours is exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import golden
import numpy as np
import pytest

from sonant.backends.native import NativeBackend
from sonant.backends.numpy import NumpyBackend
from sonant.checkpoint.name_map import ConstantRule, map_tensors
from sonant.checkpoint.tensor import LazyTensor
from sonant.families.kokoro import model
from sonant.families.kokoro.config import KokoroConfig
from sonant.families.kokoro.programs import official_config
from sonant.families.kokoro.text import token_ids
from sonant.families.kokoro.voices import VoiceCatalog
from sonant.families.kokoro.weights import kokoro_tensors
from sonant.program.passes.rebuild import rebuild
from sonant.program.program import Node, Program

STAGE_TOLERANCE = 1e-4
MAGNITUDE_TOLERANCE = 2e-2
OWN_SPECTRUM_DB = 1.0
"""Mean |Δ log-mel|: the angles of near-silent bins are rounding noise in both engines."""

BENCHMARK_PHONEMES = json.loads((golden.DATA / "benchmark_phonemes.json").read_text(encoding="utf-8"))


def without_noise(program: Program) -> Program:
    """The source Program with its normal draws replaced by zeros, as the golden figures were recorded."""
    zero = program.constant(0.0)
    nodes = [
        Node("expand", (zero,), {"shape": n.outputs[0].shape}, n.outputs) if n.op == "randn" else n
        for n in program.nodes
    ]
    return rebuild(program, nodes)


class Stages:
    """The four Programs on one backend."""

    def __init__(self, config: KokoroConfig, weights: Mapping[str, np.ndarray], backend: Any) -> None:
        self.half = config.style_dim
        self.text = backend.load(model.text_program(config), weights)
        self.prosody = backend.load(model.prosody_program(config), weights)
        self.source = backend.load(without_noise(model.source_program(config)), weights)
        self.decoder = backend.load(model.decoder_program(config), weights)

    def run(self, ids: np.ndarray, style: np.ndarray) -> dict[str, np.ndarray]:
        acoustic, prosodic = np.ascontiguousarray(style[:, : self.half]), np.ascontiguousarray(style[:, self.half :])
        frames, encoding, text = self.text.run({"ids": ids, "style": prosodic, "speed": np.ones(1, np.float32)})
        whole = np.maximum(np.rint(frames[0]), 1).astype(int)
        index = np.repeat(np.arange(ids.shape[1], dtype=np.int32), whole)[None]
        f0, energy = self.prosody.run({"encoding": encoding, "index": index, "style": prosodic})
        (spectrum,) = self.source.run({"f0_hz": f0, "seed": np.zeros((1, 2), np.int32)})
        injected = golden.injected_spectrum(spectrum.shape[1])[None]
        given = {"text": text, "index": index, "f0_hz": f0, "energy": energy, "style": acoustic}
        (audio,) = self.decoder.run({**given, "spectrum": injected})
        (own,) = self.decoder.run({**given, "spectrum": spectrum})
        return {
            "frames": whole,
            "dur_enc": encoding[0],
            "text_encoder": text[0],
            "F0": f0.ravel(),
            "N": energy.ravel(),
            "magnitude": np.ascontiguousarray(spectrum[0, :, : golden.BINS]),
            "audio": audio[0],
            "own_audio": own[0],
        }


def assert_golden(found: dict[str, np.ndarray], recorded: Mapping[str, np.ndarray], prefix: str = "") -> None:
    np.testing.assert_array_equal(found["frames"], recorded[f"{prefix}frames"])
    errors = {}
    for name in golden.STAGES:
        kept = {f"{name}.{part}": recorded[f"{prefix}{name}.{part}"] for part in ("shape", "peak", "values")}
        errors[name] = golden.relative_error(name, found[name], kept)
    assert errors.pop("magnitude") <= MAGNITUDE_TOLERANCE
    assert max(errors.values()) <= STAGE_TOLERANCE, errors


def tiny() -> tuple[KokoroConfig, dict[str, np.ndarray]]:
    """The tiny random model: official names and layouts, brought in through the real name map."""
    data = Path(golden.DATA.parents[3] / "src/sonant/families/kokoro/data/config.json")
    config = KokoroConfig.from_json(golden.tiny_config(json.loads(data.read_text(encoding="utf-8"))))
    shapes = json.loads((golden.DATA / "tiny_shapes.json").read_text(encoding="utf-8"))
    tensors = {
        name: LazyTensor(tuple(shape), lambda n=name, s=tuple(shape): golden.random_tensor(n, s))
        for name, shape in shapes.items()
    }
    unused = ("bert.pooler.{parameter}",)
    constants = (ConstantRule("{path*}.norm.weight", 1.0), ConstantRule("{path*}.norm.bias", 0.0))
    return config, dict(map_tensors(kokoro_tensors(config), tensors, "tiny", unused, constants))


@pytest.mark.parametrize("make", [NumpyBackend, lambda: NativeBackend(threads=2)], ids=["numpy", "native"])
def test_tiny_random_weights(make: Any) -> None:
    recorded = np.load(golden.DATA / "golden_tiny.npz")
    style = golden.random_tensor("style", (1, 256)) * 3
    found = Stages(*tiny(), make()).run(recorded["ids"].astype(np.int32)[None], style)
    assert_golden(found, recorded)


@pytest.fixture(scope="module")
def real(kokoro_weights: Mapping[str, np.ndarray]) -> Stages:
    return Stages(official_config(), kokoro_weights, NativeBackend(threads=2))


@pytest.mark.weights
@pytest.mark.parametrize("number", range(len(BENCHMARK_PHONEMES)))
def test_real_weights(real: Stages, number: int) -> None:
    recorded, phonemes = np.load(golden.DATA / "golden_real.npz"), BENCHMARK_PHONEMES[number]
    style = VoiceCatalog().get("af_heart").style(len(phonemes))[None]
    found = real.run(token_ids(phonemes, official_config().vocab), style)
    assert_golden(found, recorded, f"{number}/")
    if number < golden.LOGMEL_TEXTS:
        difference = np.abs(golden.log_mel_db(found["own_audio"]) - recorded[f"{number}/log_mel"].astype(np.float32))
        assert difference.mean() <= OWN_SPECTRUM_DB
