"""`sonant quantize`, run as a user runs it, on a file of two tensors; its engine is tested in tests/engine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.cli.main import main
from sonant.engine import quantize as engine


@pytest.fixture
def converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of the catalogue whose converted file is this one; its texts are measured by nobody."""
    path = tmp_path / "model.safetensors"
    rng = np.random.default_rng(0)
    write_safetensors(path, {name: rng.standard_normal((4, 64)).astype(np.float32) for name in ("w", "table")})
    found = engine.Plan(path, frozenset({"w"}), (), path, None)
    monkeypatch.setattr(engine, "plan", lambda entry, weights, root: found)
    quality = engine.TextQuality("A rather long text that goes on and on.", ((20, 21),), ((18, 19),), 0.02, 0.01)
    monkeypatch.setattr(engine, "compare", lambda *a, **k: [quality] * len(a[4]))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["quantize", *arguments])


def test_writes_prints_and_reports(converted: Path, tmp_path: Path) -> None:
    target, texts = tmp_path / "q8.safetensors", tmp_path / "texts.txt"
    texts.write_text("one\n\ntwo\n", "utf-8")
    result = run("phonon-31m-en", "-o", str(target), "--texts", str(texts))
    assert result.exit_code == 0, result.output
    assert open_safetensors(target).dtype("w") == "i8"
    report = json.loads((tmp_path / "q8.report.json").read_text("utf-8"))
    assert [len(report["tensors"]), len(report["texts"])] == [1, 2]
    lines = result.output.splitlines()
    assert lines[0].split() == ["tensor", "error", "worst", "block"]
    assert lines[1].startswith("w ")
    assert f"{report['tensors'][0]['rms']:.2%}" in lines[1]
    assert lines[2].startswith("1 tensors in q8, error 0.")
    assert lines[4] == "'A rather long text that goes on and on.': latents 0.02 off (-40.0 dB), frames 20 → 21 (+1)"
    assert lines[-2:] == [str(target), str(tmp_path / "q8.report.json")]


def test_without_texts_nothing_is_spoken(converted: Path, tmp_path: Path) -> None:
    assert run("phonon-31m-en", "-o", str(tmp_path / "q8.safetensors")).exit_code == 0
    assert json.loads((tmp_path / "q8.report.json").read_text("utf-8"))["texts"] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "x.safetensors", "--to", "q4"], "can be stored in q8, not in 'q4'"),
        (["-o", "x.bin"], r"wanted a name that ends in .safetensors"),
        (["-o", "no/such/x.safetensors"], "there is no folder"),
    ],
)
def test_refused(converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, says) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("phonon-31m-en", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not list(tmp_path.glob("x.*"))


def test_the_source_is_not_overwritten(converted: Path) -> None:
    before = converted.read_bytes()
    result = run("phonon-31m-en", "-o", str(converted))
    assert result.exit_code == 2
    assert "is what it is made from" in result.stderr
    assert converted.read_bytes() == before


def test_kokoro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path))
    result = run("kokoro-82m", "-o", str(tmp_path / "q8.safetensors"))
    assert result.exit_code == 2
    assert "kokoro-82m cannot be stored in q8: its family, kokoro, multiplies in floats only" in result.stderr
