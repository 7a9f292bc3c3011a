"""`sonant live`: standard input is spoken while it is still being written."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from sonant.cli.interrupt import Interrupt
from sonant.cli.loading import load_model, model_options
from sonant.cli.outputs import STDOUT, Form, Outputs, Places
from sonant.cli.speaking import form_options, speaking_options, take_speaking
from sonant.errors import Cancelled, InputError
from sonant.options import SessionOptions, SpeakOptions

if TYPE_CHECKING:
    from sonant.engine.session import Session
    from sonant.types import AudioChunk

_READ_BYTES = 65_536
_AHEAD_FRAMES = 25
"""Chunks of a few frames are short: so many of them cover for a slow moment."""
_PATH = click.Path(dir_okay=True, allow_dash=True)


@click.command()
@click.option("-o", "--output", type=_PATH, help="Audio file; - is standard output (raw PCM).")
@click.option("--play", is_flag=True, help="Play it; the default when neither -o nor --words is given.")
@click.option("--words", type=_PATH, help="The words as they are known, a JSON object a line; - is standard output.")
@click.option("--commit", default="auto", show_default=True, help="When text is spoken: auto, sentence or manual.")
@click.option("--idle-ms", type=float, help="auto: speak what seems finished after so long; 500 by default.")
@click.option("-q", "--quiet", is_flag=True, help="No closing line.")
@speaking_options
@form_options
@model_options
def live(output: str | None, play: bool, words: str | None, **given: Any) -> None:
    """Speak standard input as it comes: from a program that is writing, or from the keyboard line by line.

    With --commit manual text waits for an empty line. Ctrl-C stops at once, and leaves valid files of what was made.
    """

    def take(*names: str) -> dict[str, Any]:
        return {name: given.pop(name) for name in names}

    captions = {} if words is None else {"words": words}
    play = play or (output is None and words is None)
    Places(audio=output, captions=captions, play=play, summary=False).check(many=False)
    places = Places(audio=output, captions={}, play=play, summary=False)
    form = Form(**take("format", "encoding", "rate"), loudness=None, peak=None, karaoke=False, word_cues=False, cues={})
    form.check(places)
    speaking, committing, quiet = take_speaking(given), take("commit", "idle_ms"), given.pop("quiet")
    SessionOptions(**committing)  # what is wrong is named before a model is loaded
    SpeakOptions(**speaking)
    synth = load_model(**given)
    ahead = _AHEAD_FRAMES if synth.capabilities.streaming_grain == "frame" else 2
    session = synth.session(ahead=ahead, **committing, **speaking)
    with _lines(words) as word_lines:
        _speak(session, Outputs(places, form, synth, ""), word_lines, quiet=quiet, commit=committing["commit"])


def _speak(session: Session, outputs: Outputs, words: TextIO | None, *, quiet: bool, commit: str) -> None:
    """To the end of standard input, or to Ctrl-C. What was made is kept whatever happens."""
    complete = False
    try:
        with session, Interrupt() as interrupt:
            interrupt.calls(session.cancel, outputs.stop)
            source = _Source(session, commit)
            try:
                for chunk in session:
                    outputs.write(chunk)
                    _write_words(words, chunk)
            except Cancelled:
                if source.error is not None:
                    raise source.error from None
                if not interrupt.came:
                    raise
        complete = not interrupt.came
    finally:
        outputs.close(complete=complete, quiet=quiet)
    if not complete:
        raise KeyboardInterrupt


class _Source:
    """Standard input into the session, by a thread of its own: reading may wait for ever."""

    def __init__(self, session: Session, commit: str) -> None:
        self._session = session
        self._flush_lines = commit == "auto" and sys.stdin.isatty()
        self._flush_blank_lines = commit == "manual"
        self._line = ""
        self.error: InputError | None = None
        threading.Thread(target=self._run, name="sonant-stdin", daemon=True).start()

    def _run(self) -> None:
        try:
            self._feed_all()
        except UnicodeDecodeError as e:
            self._fail(f"standard input is not UTF-8 (byte {e.object[e.start]:#04x}); convert it first")
        except OSError as e:
            self._fail(f"cannot read standard input: {e.strerror or e}")
        except BaseException:  # noqa: BLE001 - the session has failed, and raises where its chunks are taken
            return

    def _fail(self, message: str) -> None:
        self.error = InputError(message)
        self._session.cancel()

    def _feed_all(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        # Not sys.stdin.read: a daemon thread that holds its lock would break the end of the interpreter.
        while data := os.read(sys.stdin.fileno(), _READ_BYTES):
            self._feed(decoder.decode(data))
        self._feed(decoder.decode(b"", final=True))
        self._session.end()

    def _feed(self, text: str) -> None:
        if not (self._flush_lines or self._flush_blank_lines):
            return self._session.feed(text)
        for part in re.findall(r"[^\n]*\n|[^\n]+", text):
            self._session.feed(part)
            self._line += part
            if part.endswith("\n"):
                if self._flush_lines or not self._line.strip():
                    self._session.flush()
                self._line = ""


@contextmanager
def _lines(path: str | None) -> Iterator[TextIO | None]:
    if path is None or path == STDOUT:
        yield None if path is None else sys.stdout
        return
    try:
        file = Path(path).open("w", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed below
    except OSError as e:
        raise InputError(f"cannot write {path}: {e.strerror or e}") from e
    with file:
        yield file


def _write_words(file: TextIO | None, chunk: AudioChunk) -> None:
    if file is None or not chunk.words:
        return
    for word in chunk.words:
        file.write(json.dumps(asdict(word), ensure_ascii=False) + "\n")
    file.flush()
