"""`sonant align` over a babbling driver: what it reads, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from babble import Babbler
from babbling import TEXT, BabblingDriver
from click.testing import CliRunner, Result

import sonant.cli.align
from sonant.audio.wav import write_wav
from sonant.cli.main import main
from sonant.engine.synthesizer import Synthesizer


@pytest.fixture(autouse=True)
def recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """a.wav says TEXT; the true starts of its words."""
    synth = Synthesizer("babble", BabblingDriver(Babbler()))
    monkeypatch.setattr(sonant.cli.align, "load_model", lambda **_: synth)
    monkeypatch.chdir(tmp_path)
    said = Synthesizer("other", BabblingDriver(Babbler(pace=1.2, jitter=0.2))).speak(TEXT)
    write_wav("a.wav", said.samples, said.sample_rate)
    return [w.start_s for w in said.words]


def align(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["align", *arguments], input=given)


def test_times_as_json_on_standard_output(recording: list[float]) -> None:
    result = align("a.wav", TEXT)
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["word_source"], found["sample_rate"]) == ("align", 24_000)
    assert found["word_match"] > 0.3
    np.testing.assert_allclose([w["start_s"] for w in found["words"]], recording, atol=0.08)


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("a.json", "{"),
        ("a.srt", "1\n00:00:00,"),
        ("a.vtt", "WEBVTT\n"),
        ("a.lrc", "[00:00."),
        ("a.TextGrid", 'File type = "ooTextFile"'),
    ],
)
def test_the_suffix_says_the_format(name: str, begin: str) -> None:
    assert align("a.wav", TEXT, "-o", name).exit_code == 0
    assert Path(name).read_text(encoding="utf-8").startswith(begin)


def test_the_format_may_be_given() -> None:
    assert align("a.wav", TEXT, "-o", "times.txt", "--format", "srt").exit_code == 0
    assert Path("times.txt").read_text().startswith("1\n")
    assert align("a.wav", TEXT, "--format", "vtt").stdout.startswith("WEBVTT\n")


def test_text_from_a_file_and_from_standard_input() -> None:
    Path("book.txt").write_text(TEXT, encoding="utf-8")
    wanted = align("a.wav", TEXT).stdout
    assert align("a.wav", "-f", "book.txt").stdout == wanted
    assert align("a.wav", "-", given=TEXT).stdout == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.wav", TEXT), "cannot read none.wav"),
        (("a.wav", TEXT, "-o", "a.doc"), "unknown format 'doc'"),
        (("a.wav", TEXT, "--format", "jsn"), "unknown format 'jsn'; did you mean 'json'?"),
        (("a.wav", TEXT, "-o", "nowhere/a.json"), "there is no folder nowhere"),
        (("a.wav", ""), "the text makes no sound"),
        (("a.wav", "the"), "it is not (only) this text"),
        (("a.wav", TEXT, "-f", "book.txt"), "both TEXT and --file"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = align(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_doubtful_match_is_said_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sonant.cli.align, "DOUBTFUL_MATCH", 1.1)
    result = align("a.wav", TEXT)
    assert result.exit_code == 0
    assert result.stderr.startswith("sonant: is this what is said? The match is 0.")
    assert json.loads(result.stdout)
