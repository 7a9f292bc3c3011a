"""What `sonant quantize` measures and stores, without a model; with one: tests/families/phonon/test_quantized.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sonant.engine import quantize as engine
from sonant.errors import InputError
from sonant.families.latent.takes import Take
from sonant.hub.catalog import CATALOG
from sonant.options import SpeakOptions
from sonant.program import ops
from sonant.program.program import Program


class Fixed:
    """Chunks of fixed lengths that end two frames before their last; every latent has one value."""

    def __init__(self, lengths: Sequence[int], value: float = 1.0) -> None:
        self.lengths, self.value = lengths, value

    def takes(self, text, options, cancel, *, led_by=None):
        lengths = self.lengths if led_by is None else [len(one) for one in led_by]
        return [Take(np.full((n, 2), self.value, np.float32), n - 2) for n in lengths]


def test_frames_and_ends_are_paired():
    found = engine.measure(Fixed([5, 9]), Fixed([6, 7], 1.01), "x", SpeakOptions())
    assert found.frames == ((5, 6), (9, 7))
    assert found.eos_frames == ((3, 4), (7, 5))
    assert found.frames_longer == -1
    assert found.latent_rms == pytest.approx(0.01, rel=1e-5)
    assert found.latent_db == pytest.approx(-40, abs=1e-3)


def test_nothing_said():
    with pytest.raises(InputError, match="nothing was said of 'x'"):
        engine.measure(Fixed([]), Fixed([]), "x", SpeakOptions())


def test_texts_are_spoken_with_both_files(monkeypatch):
    asked = []

    def load(name, **given):
        asked.append((name, given["weights"], given["precision"], given["voices"]))
        return SimpleNamespace(_driver=Fixed([4 + len(asked)], 1 + 0.1 * len(asked)))

    monkeypatch.setattr(engine, "load", load)
    entry, target, voices = CATALOG["phonon-31m-en"], Path("q8.safetensors"), Path("voices")
    found = engine.Plan(Path("f32"), frozenset(), (), Path("source"), voices)
    given = {"options": SpeakOptions(), "threads": 1, "cache": Path("c")}
    assert list(engine.compare(entry, None, found, target, [], **given)) == []
    assert asked == []
    one, other = engine.compare(entry, None, found, target, ["a", "b"], **given)
    assert asked == [("phonon-31m-en", None, "f32", voices), ("phonon-31m-en", target, "q8", voices)]
    assert (one.text, one.frames, other.text) == ("a", ((5, 6),), "b")
    assert one.latent_share == pytest.approx(0.1 / 1.1)


def test_matrices_are_what_programs_declare_in_q8():
    p = Program("x")
    x = p.input("x", (1, "T", 32))
    w, exact = p.weight("w", (4, 32), "q8"), p.weight("exact", (3, 4))
    p.outputs = [ops.linear(ops.linear(x, w), exact)]
    assert engine.matrices_of([p, p]) == {"w"}


@pytest.mark.parametrize("name", ["kokoro-82m"])
def test_a_family_of_floats(tmp_path, name):
    with pytest.raises(InputError, match=rf"{name} cannot be stored in q8: .*f32, f16 or bf16.*phonon-31m-en"):
        engine.plan(CATALOG[name], None, tmp_path)
