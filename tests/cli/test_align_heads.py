"""`sonant align-heads`, run as a user runs it, on a checkpoint that is not there and a driver with made-up heads."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from sonant.cli import align_heads as command
from sonant.cli.main import main
from sonant.engine import align_heads as engine
from sonant.families.latent.heads import AlignmentHeads, find_heads, parse_heads

made_up = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "engine" / "test_align_heads.py")))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    recorder = made_up.Recorder({(3, 0): made_up.follower(lead=-2.0), (1, 1): made_up.spread})
    monkeypatch.setattr(command, "load_model", lambda **given: SimpleNamespace(_driver=recorder))
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["align-heads", *arguments])


def heads_of(folder: Path) -> AlignmentHeads | None:
    return find_heads(folder, {}, None)


def test_prints_and_keeps(folder: Path) -> None:
    result = run("phonon-31m-en", "--weights", str(folder))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["layer", "head", "correlation", "monotone", "peak", "score"]
    assert lines[1].split()[:2] == ["3", "0"]
    assert len(lines) == 1 + 10 + 3
    assert lines[-3].startswith("chosen: layer 3 head 0, score 0.")
    assert lines[-2].startswith("lead: -")
    assert lines[-2].endswith("words after pauses)")
    assert lines[-1] == str(folder / "heads.json")
    kept = heads_of(folder)
    assert kept is not None
    assert kept.heads == ((3, 0),)
    assert kept.lead_frames == pytest.approx(-2.0, abs=0.3)


def test_by_the_aligner(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    recorder = made_up.Recorder({(3, 0): made_up.follower(lead=-2.0)})

    def load(**given: object) -> SimpleNamespace:
        loaded.append(str(given["model"]))
        return SimpleNamespace(_driver=recorder)

    monkeypatch.setattr(command, "load_model", load)
    monkeypatch.setattr(engine, "aligner", lambda speaker: recorder.reference)
    result = run("phonon-31m-en", "--weights", str(folder), "--aligner")
    assert result.exit_code == 0, result.output
    assert loaded == ["phonon-31m-en", "kokoro-82m"]
    assert "words of the aligner)" in result.output
    kept = heads_of(folder)
    assert kept is not None
    assert kept.lead_source == "aligner"


def test_elsewhere(folder: Path) -> None:
    assert run("phonon-31m-en", "--weights", str(folder), "-o", str(folder / "other.json")).exit_code == 0
    assert heads_of(folder) is None
    assert parse_heads((folder / "other.json").read_text(), "").heads == ((3, 0),)


def test_a_place_that_is_not_there(folder: Path) -> None:
    result = run("phonon-31m-en", "--weights", str(folder), "-o", str(folder / "no" / "heads.json"))
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr


def test_dry_run(folder: Path) -> None:
    assert run("phonon-31m-en", "--weights", str(folder), "--dry-run").exit_code == 0
    assert heads_of(folder) is None


def test_texts_of_ones_own(folder: Path) -> None:
    texts = folder / "texts.txt"
    texts.write_text("\nword\n", "utf-8")
    result = run("phonon-31m-en", "--weights", str(folder), "--texts", str(texts))
    assert result.exit_code == 2
    assert "nothing was spoken" in result.stderr


def test_other_models(folder: Path) -> None:
    assert run("kokoro-82m").exit_code == 2
    assert "sonant models pull phonon-31m-en" in run("phonon-31m-en").stderr
