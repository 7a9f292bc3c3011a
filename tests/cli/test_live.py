"""`sonant live` in processes of its own, with text that comes slowly through real pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

import sonant
from sonant.cli.main import main

TESTS = Path(__file__).parents[1]
LIVE = f"""
import sys
sys.path[:0] = [{str(TESTS / "engine")!r}, {str(Path(sonant.__file__).parents[1])!r}]
import sonant.cli.live, sonant.cli.main
from counting import CountingDriver
from sonant.engine.synthesizer import Synthesizer
class Driver(CountingDriver):
    sample_rate = 8000
sonant.cli.live.load_model = lambda **_: Synthesizer("counting", Driver())
sonant.cli.main.main()
"""
PLAYED = """
import sys, types, numpy
class OutputStream:
    def __init__(self, samplerate, channels, dtype): assert (samplerate, channels, dtype) == (8000, 1, "float32")
    def start(self): pass
    def write(self, column): sys.stdout.buffer.write(bytes(column[:1, 0].astype("u1"))); sys.stdout.flush()
    def stop(self): sys.stdout.buffer.write(b"stop")
    def abort(self): sys.stdout.buffer.write(b"abort")
    def close(self): sys.stdout.flush()
sys.modules["sounddevice"] = types.SimpleNamespace(OutputStream=OutputStream, PortAudioError=RuntimeError)
"""
LIMIT_S = 60


@contextmanager
def running(*arguments: str, code: str = LIVE) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, "live", *arguments]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def write(process: subprocess.Popen[bytes], data: bytes) -> None:
    stdin = _pipe(process.stdin)
    stdin.write(data)
    stdin.flush()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def words_of(*lines: bytes) -> list[str]:
    return [json.loads(line)["text"] for line in lines]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_words_come_while_the_text_is_still_written() -> None:
    with running("-o", "a.wav", "--words", "-", "--idle-ms", "60000") as process:
        stdout = _pipe(process.stdout)
        write(process, b"Hello ther")
        write(process, b"e. How ")
        assert words_of(stdout.readline(), stdout.readline()) == ["Hello", "there."]
        write(process, b"are \xc3")  # half of an e with an accent
        time.sleep(0.05)
        write(process, b"\xa9 you? I")
        assert words_of(*(stdout.readline() for _ in range(4))) == ["How", "are", "é", "you?"]
        rest, errors = process.communicate(timeout=LIMIT_S)
        (last,) = map(json.loads, rest.splitlines())
        assert (last["text"], last["char_start"], last["char_end"]) == ("I", 28, 29)
        assert last["start_s"] == pytest.approx(6 * 100 / 8000 + 0.01)
        assert (process.returncode, errors) == (0, b"a.wav: 0.09 s, 7 words\n")
    with wave.open("a.wav") as file:
        assert file.getnframes() == 700


def test_samples_and_words_go_where_they_should() -> None:
    with running("-o", "-", "--words", "w.jsonl", "--commit", "sentence", "-q") as process:
        found, errors = process.communicate(b"\xef\xbb\xbfOne.\nTwo", timeout=LIMIT_S)
    assert (found, errors) == (b"\0\0" * 100 + b"\xff\x7f" * 100, b"")
    assert words_of(*Path("w.jsonl").read_bytes().splitlines()) == ["One.", "Two"]


def test_waiting_speaks() -> None:
    with running("--words", "-", "--idle-ms", "50") as process:
        write(process, b"No end.")
        assert words_of(_pipe(process.stdout).readline()) == ["No"]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_line_from_the_keyboard_is_spoken_when_it_is_entered() -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", LIVE, "live", "--words", "-", "--idle-ms", "60000"]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE) as process:
        try:
            os.write(ours, b"A line of more than forty letters and no stop\n")
            stdout = _pipe(process.stdout)
            assert words_of(*(stdout.readline() for _ in range(10)))[-1] == "stop"
            os.write(ours, b"\x04")  # the end of the input
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)


def test_manual_waits_for_an_empty_line() -> None:
    with running("--words", "-", "--commit", "manual") as process:
        write(process, b"One. Two.\nThree")
        write(process, b".\n \nFour. ")
        stdout = _pipe(process.stdout)
        assert words_of(*(stdout.readline() for _ in range(3))) == ["One.", "Two.", "Three."]
        rest, _ = process.communicate(timeout=LIMIT_S)
        assert words_of(*rest.splitlines()) == ["Four."]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_stops_at_once_and_leaves_valid_files() -> None:
    with running("-o", "a.wav", "--words", "-") as process:
        write(process, b"Hello. Slow slow next. A")
        assert words_of(_pipe(process.stdout).readline(), _pipe(process.stdout).readline()) == ["Hello.", "Slow"]
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 130
        assert time.monotonic() - began < 2  # the computation alone would take ten seconds
        errors = _pipe(process.stderr).read()
        assert errors == b"a.wav: 0.03 s, 2 words (incomplete)\nsonant: interrupted\n"
    with wave.open("a.wav") as file:
        assert file.getnframes() == 200


def test_a_failure_is_a_failure() -> None:
    with running("-o", "a.wav") as process:
        _, errors = process.communicate(b"One. bad", timeout=LIMIT_S)
    assert process.returncode == 1
    assert b"a.wav: 0.01 s, 1 words (incomplete)" in errors
    assert b"RuntimeError: the computation failed" in errors  # a bug keeps its traceback


def test_what_is_not_text_is_refused() -> None:
    with running("-o", "a.wav") as process:
        _, errors = process.communicate(b"One. T\xff", timeout=LIMIT_S)
    assert process.returncode == 2
    assert b"sonant: standard input is not UTF-8 (byte 0xff); convert it first" in errors


def test_a_reader_that_goes_away_ends_it() -> None:
    with running("-o", "-") as process:
        _pipe(process.stdout).close()
        write(process, b"One. Two. Three. F")
        assert process.wait(LIMIT_S) == 1
        assert b"Traceback" not in _pipe(process.stderr).read()


def test_playing() -> None:
    with running(code=PLAYED + LIVE) as process:
        found, errors = process.communicate(b"One. Two", timeout=LIMIT_S)
    assert (found, errors) == (b"\0\1stop", b"played: 0.03 s, 2 words\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "-", "--words", "-"], "standard output can take one thing"),
        (["-o", "a.mp4"], "unknown audio format 'mp4'"),
        (["--words", "none/w.jsonl"], "there is no folder none"),
        (["-o", "a.wav", "--commit", "line"], "unknown commit 'line'"),
        (["-o", "a.wav", "--commit", "manual", "--idle-ms", "5"], "idle_ms goes with commit='auto'"),
        (["-o", "a.wav", "--speed", "9"], "speed is 9.0"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["live", *arguments])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert message in result.stderr
    assert list(Path().iterdir()) == []
