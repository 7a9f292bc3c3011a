"""A tiny Pocket TTS stored in q8, and spoken beside its floats. What it shares with Phonon is tested there."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import sonant
from sonant.backends.backend import CancelFlag
from sonant.checkpoint.quantize import open_weights
from sonant.engine import quantize as engine
from sonant.hub.catalog import CATALOG
from sonant.options import SpeakOptions

ENTRY, OPTIONS = CATALOG["pocket-tts-en-cloning"], SpeakOptions(seed=3)
make_folder = runpy.run_path(str(Path(__file__).with_name("test_driver.py")))["make_folder"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = make_folder(tmp_path_factory.mktemp("pocket"))
    return made


def test_from_a_folder_to_a_file_and_back(folder: Path, tmp_path: Path) -> None:
    cache, target = tmp_path / "cache", tmp_path / "q8" / "pocket.safetensors"
    target.parent.mkdir()
    found = engine.plan(ENTRY, folder, cache)
    assert found.voices == folder / "voices"
    done = engine.store(found, target)
    assert {t.name for t in done.tensors} == found.matrices
    assert not [name for name in found.matrices if name.startswith("mimi.encoder")]  # voices are made in floats
    assert open_weights(target).precision == "q8"
    given = {"voices": found.voices, "cache": cache, "threads": 1}
    takes = []
    for weights, precision in ((folder, "q8"), (target, "auto")):
        synth = sonant.load(ENTRY.name, weights=weights, precision=precision, **given)
        takes.append(synth._driver.takes("Yes.", OPTIONS, CancelFlag())[0])  # type: ignore[attr-defined]
    np.testing.assert_array_equal(takes[0].latents, takes[1].latents, strict=True)


def test_quality_in_the_models_own_voice(folder: Path, tmp_path: Path) -> None:
    """The q8 file lies elsewhere than the voices."""
    cache, target = tmp_path / "cache", tmp_path / "pocket.safetensors"
    found = engine.plan(ENTRY, folder, cache)
    engine.store(found, target)
    (one,) = engine.compare(ENTRY, folder, found, target, ["Yes."], options=OPTIONS, threads=1, cache=cache)
    # 8 bits in a random model: a per cent or two of the latents
    assert 1e-4 < one.latent_share < 0.1
