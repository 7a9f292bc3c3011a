"""`sonant say` over the driver of the engine's tests: what it writes, prints and exits with."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import wave
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result
from counting import CountingDriver

import sonant.cli.say
from sonant.cli.main import main
from sonant.cli.progress import Progress
from sonant.engine.synthesizer import Synthesizer

TESTS = Path(__file__).parents[1]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CountingDriver:
    made = CountingDriver()
    made.sample_rate = 8000  # a rate that every format has
    monkeypatch.setattr(sonant.cli.say, "load_model", lambda **_: Synthesizer("counting", made))
    monkeypatch.chdir(tmp_path)
    return made


def say(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["say", *arguments], input=given)


def frames(path: str) -> int:
    with wave.open(path) as file:
        return file.getnframes()


def test_a_text_into_a_file_and_all_captions(driver: CountingDriver) -> None:
    captions = [a for kind in ("words", "srt", "vtt", "lrc", "textgrid") for a in (f"--{kind}", f"a.{kind}")]
    result = say("One two. Three", "-o", "a.wav", *captions, "--karaoke")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "a.wav: 0.04 s, 3 words\n"
    assert frames("a.wav") == 300
    assert [w["text"] for w in json.loads(Path("a.words").read_text())["words"]] == ["One", "two.", "Three"]
    assert "One two.\n" in Path("a.srt").read_text()
    assert Path("a.vtt").read_text().startswith("WEBVTT\n\n00:00:00.")
    assert "[00:00" in Path("a.lrc").read_text()
    assert 'name = "words"' in Path("a.textgrid").read_text()


def test_text_from_a_file_and_from_standard_input(driver: CountingDriver) -> None:
    Path("book.txt").write_bytes("\ufeffeins zwei drei".encode())
    for arguments, given in (
        (("--file", "book.txt"), None),
        (("-",), "a b c"),
        ((), "a b c"),
        (("-f", "-"), "a b c"),
    ):
        assert say(*arguments, "-o", "a.wav", given=given).exit_code == 0
        assert frames("a.wav") == 300


def test_raw_samples_and_streamed_formats_to_a_pipe(driver: CountingDriver) -> None:
    raw = say("a b", "-o", "-", "--peak", "0")
    assert raw.stdout_bytes == b"\0\0" * 100 + b"\xff\x7f" * 100
    assert raw.stderr == "standard output: 0.03 s, 2 words\n"
    streamed = say("a b", "-o", "-", "--format", "wav", "-q")
    assert streamed.stdout_bytes[4:8] == b"\xff\xff\xff\xff"
    assert len(streamed.stdout_bytes) == 44 + 400
    assert streamed.stderr == ""
    assert len(say("a b", "-o", "-", "--encoding", "mulaw").stdout_bytes) == 200


def test_json_says_what_was_made(driver: CountingDriver) -> None:
    result = say("a b", "-o", "a.wav", "--srt", "a.srt", "--json")
    found = json.loads(result.stdout)
    assert found.pop("wall_s") >= 0
    assert found.pop("ttfa_ms") >= 0
    assert found == {
        "output": "a.wav",
        "format": "wav",
        "encoding": "int16",
        "sample_rate": 8000,
        "duration_s": 0.025,
        "words": 2,
        "word_source": "duration",
        "captions": {"srt": "a.srt"},
        "complete": True,
    }


def test_captions_alone_and_on_standard_output(driver: CountingDriver) -> None:
    assert say("a b", "--srt", "-", "--word-cues").stdout.count("-->") == 2


def test_lines_into_numbered_files(driver: CountingDriver) -> None:
    result = say("--lines", "-", "-o", "o-{:03}.wav", "--srt", "{}.srt", "--json", given="a b\n\n \nc d e\nf")
    assert result.exit_code == 0
    assert [frames(f"o-{n:03}.wav") for n in (1, 2, 3)] == [200, 300, 100]
    assert sorted(p.name for p in Path().glob("*.srt")) == ["1.srt", "2.srt", "3.srt"]
    assert [json.loads(line)["output"] for line in result.stdout.splitlines()] == [
        "o-001.wav",
        "o-002.wav",
        "o-003.wav",
    ]


def test_nothing_to_say_is_a_valid_file(driver: CountingDriver) -> None:
    result = say("  ", "-o", "a.wav", "--vtt", "a.vtt", "--json")
    assert frames("a.wav") == 0
    assert Path("a.vtt").read_text() == "WEBVTT\n"
    assert json.loads(result.stdout)["ttfa_ms"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hi",), "nowhere to put the speech: give -o FILE"),
        (("hi", "-f", "x", "-o", "a.wav"), "both TEXT and --file"),
        (("-f", "none.txt", "-o", "a.wav"), "cannot read none.txt: No such file"),
        (("hi", "-o", "a.mp4"), "unknown audio format 'mp4'; did you mean 'mp3'?"),
        (("hi", "-o", "a"), "cannot tell the audio format of 'a'"),
        (("hi", "-o", "a.wav", "--format", "wave"), "unknown audio format 'wave'; did you mean 'wav'?"),
        (("hi", "-o", "a.wav", "--encoding", "pcm16"), "unknown encoding of wav 'pcm16'"),
        (("hi", "-o", "a.wav", "--rate", "1"), "sample rate is 1; wanted whole hertz"),
        (("hi", "-o", "a.wav", "--loudness", "3"), "loudness is 3.0; wanted LUFS from -50 to -5"),
        (("hi", "-o", "a.wav", "--srt", "a.srt", "--max-chars", "0"), "max_chars is 0"),
        (("hi", "-o", "-", "--json"), "standard output can take one thing"),
        (("hi", "-o", "-", "--srt", "-"), "standard output can take one thing"),
        (("hi", "-o", "a.wav", "--srt", "no/a.srt"), "there is no folder no"),
        (("hi", "--lines", "-o", "a.wav"), "--lines needs a number in every file name"),
        (("hi", "--lines", "-o", "{}.wav", "--srt", "a.srt"), "--lines needs a number in every file name"),
        (("hi", "-o", "a.wav", "--speed", "9"), "speed is 9.0"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(
    driver: CountingDriver, arguments: tuple[str, ...], message: str
) -> None:
    result = say(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert message in result.stderr
    assert driver.spoken == []
    assert list(Path().iterdir()) == []


def test_a_wrong_voice_does_not_cost_an_earlier_file(driver: CountingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.wav").write_text("earlier")
    assert say("bad", "-o", "a.wav").exit_code == 1
    assert Path("a.wav").read_text() == "earlier"


def test_a_failure_half_way_is_a_failure_and_keeps_what_was_made(driver: CountingDriver) -> None:
    result = say("a b bad d", "-o", "a.wav", "--words", "a.json")
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)  # a bug keeps its traceback
    assert frames("a.wav") == 200
    assert "a.wav: 0.03 s, 2 words (incomplete)" in result.stderr
    assert len(json.loads(Path("a.json").read_text())["words"]) == 2


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_leaves_valid_files_of_what_was_made(driver: CountingDriver) -> None:
    pressed: list[float] = []
    before = signal.getsignal(signal.SIGINT)  # ignored where the tests run in the background

    def press() -> None:
        driver.is_slow.wait(5)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    result = say("a b slow d", "-o", "a.wav", "--srt", "a.srt", "--json")
    assert time.monotonic() - pressed[0] < 0.5
    assert driver.stopped.is_set()
    assert result.exit_code == 130
    assert result.stderr == "a.wav: 0.03 s, 2 words (incomplete)\nsonant: interrupted\n"
    assert frames("a.wav") == 200
    assert "a b" in Path("a.srt").read_text()
    assert json.loads(result.stdout)["complete"] is False
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_before_the_first_sound_writes_nothing(driver: CountingDriver) -> None:
    def press() -> None:
        driver.is_slow.wait(5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    result = say("slow", "-o", "a.wav")
    assert (result.exit_code, result.stderr) == (130, "sonant: interrupted\n")
    assert not Path("a.wav").exists()


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(TESTS / 'engine')!r}]; import sonant.cli.say, sonant.cli.main;"
        "from counting import CountingDriver; from sonant.engine.synthesizer import Synthesizer;"
        "sonant.cli.say.load_model = lambda **_: Synthesizer('c', CountingDriver());"
        "sonant.cli.main.main()"
    )
    command = [sys.executable, "-c", code, "say", "a " * 20_000, "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(1000)) == 1000
        process.stdout.close()
        assert process.wait(20) == 1
        assert b"Traceback" not in process.stderr.read()


def test_playing(driver: CountingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[np.ndarray] = []
    events: list[str] = []

    class OutputStream:
        def __init__(self, samplerate: int, channels: int, dtype: str) -> None:
            assert (samplerate, channels, dtype) == (8000, 1, "float32")

        def start(self) -> None:
            events.append("start")

        def write(self, column: np.ndarray) -> None:
            assert column.ndim == 2
            played.append(column[:, 0])

        def stop(self) -> None:
            events.append("stop")

        def close(self) -> None:
            events.append("close")

    fake = SimpleNamespace(OutputStream=OutputStream, PortAudioError=RuntimeError)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)  # type: ignore[arg-type]
    result = say("a b c", "--play")
    assert (result.exit_code, result.stderr) == (0, "played: 0.04 s, 3 words\n")
    np.testing.assert_array_equal(np.concatenate(played), np.repeat([0, 1, 2], 100))
    assert events == ["start", "stop", "close"]

    def no_device(**_: object) -> None:
        raise RuntimeError("Error querying device -1")

    fake.OutputStream = no_device
    result = say("a", "--play")
    assert result.exit_code == 1
    assert "no audio device can play 8000 Hz (Error querying device -1); write a file with -o" in result.stderr
    monkeypatch.setitem(sys.modules, "sounddevice", None)  # type: ignore[arg-type]
    assert "playing needs an optional package: pip install 'sonant[play]'" in say("a", "--play").stderr


def test_progress_is_for_terminals_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        progress = Progress("2/3", stream=stream)
        progress.show(0.0, 0.0)
        progress.show(0.25, 61.0)
        progress.clear()
    assert pipe.getvalue() == ""
    assert "\r2/3   25%  1:01 of speech  0:00 left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
    quiet = Terminal()
    Progress(enabled=False, stream=quiet).show(0.5, 1.0)
    assert quiet.getvalue() == ""


def test_shell_completion_knows_the_formats() -> None:
    from click.shell_completion import ShellComplete

    found = ShellComplete(main, {}, "sonant", "_SONANT_COMPLETE").get_completions(["say", "--format"], "o")
    assert [item.value for item in found] == ["ogg", "opus"]
