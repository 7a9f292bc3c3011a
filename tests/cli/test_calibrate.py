"""`sonant calibrate-speed`, run as a user runs it, on a checkpoint that is not there and a synthesizer that counts."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sonant.cli import calibrate as command
from sonant.cli.main import main
from sonant.families.phonon.speed import read_map

speaker = runpy.run_path(str(Path(__file__).parents[1] / "engine" / "test_calibrate.py"))["Speaker"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "load_model", lambda **given: speaker())
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["calibrate-speed", *arguments])


def test_prints_and_keeps(folder: Path) -> None:
    result = run("phonon-31m-en", "--weights", str(folder))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["duration_delta", "speed"]
    assert lines[4].split() == ["0", "1.000", "±0.0", "%"]
    assert lines[-1] == str(folder / "speed.json")
    assert read_map(folder).slowest == pytest.approx(0.787, abs=0.03)


def test_a_file_has_it_beside_itself(folder: Path) -> None:
    assert run("phonon-31m-en", "--weights", str(folder / "model.safetensors")).exit_code == 0
    assert (folder / "speed.json").is_file()


def test_dry_run(folder: Path) -> None:
    assert run("phonon-31m-en", "--weights", str(folder), "--dry-run").exit_code == 0
    assert not (folder / "speed.json").exists()


def test_texts_of_ones_own(folder: Path) -> None:
    texts = folder / "texts.txt"
    texts.write_text("\n.\n\n", "utf-8")
    result = run("phonon-31m-en", "--weights", str(folder), "--texts", str(texts))
    assert result.exit_code == 2
    assert "nothing was said of '.'" in result.stderr


def test_not_here(folder: Path) -> None:
    result = run("phonon-31m-en")
    assert result.exit_code == 3
    assert "sonant models pull phonon-31m-en" in result.stderr


def test_other_families(folder: Path) -> None:
    assert run("kokoro-82m").exit_code == 2
