"""Where the speech of `sonant say` goes: an audio file or a pipe, the loudspeaker, caption files, a summary."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sonant.cli.reading import check_writable
from sonant.errors import InputError

if TYPE_CHECKING:
    from sonant.audio.formats import AudioSpec
    from sonant.audio.play import Player
    from sonant.audio.writer import AudioWriter
    from sonant.engine.synthesizer import Synthesizer
    from sonant.types import AudioChunk, WordTiming

STDOUT = "-"
CAPTIONS = ("words", "srt", "vtt", "lrc", "textgrid")
_NUMBER = re.compile(r"\{(:0?\d{1,2})?\}")


@dataclass(frozen=True, kw_only=True)
class Places:
    """audio: a path, "-" for standard output, or None. captions: what kind goes to which path (or "-")."""

    audio: str | None
    captions: dict[str, str]
    play: bool
    summary: bool

    def numbered(self, n: int) -> Places:
        """The n-th of many: `{}` or `{:03}` in every path is n."""
        audio = None if self.audio is None else _numbered(self.audio, n)
        return replace(self, audio=audio, captions={kind: _numbered(p, n) for kind, p in self.captions.items()})

    def check(self, *, many: bool) -> None:
        """Raises InputError for what can be told before the work."""
        if self.audio is None and not self.captions and not self.play:
            raise InputError("nowhere to put the speech: give -o FILE, a caption file such as --srt FILE, or --play")
        paths = self._paths()
        to_stdout = [p for p in paths if p == STDOUT] + ["--json"] * self.summary
        if len(to_stdout) > 1:
            raise InputError("standard output can take one thing: the audio (-o -), one kind of captions, or --json")
        for path in paths:
            if many and (path == STDOUT or not _NUMBER.search(path)):
                raise InputError(f"--lines needs a number in every file name, such as out-{{:03}}.wav; got {path!r}")
        if self.audio == STDOUT and sys.stdout.isatty():
            raise InputError("standard output is a terminal, which cannot play audio; pipe it, or give -o FILE")
        check_writable(*(self.numbered(1) if many else self)._files())

    def _paths(self) -> list[str]:
        return [*([self.audio] if self.audio is not None else []), *self.captions.values()]

    def _files(self) -> Iterator[Path]:
        return (Path(p) for p in self._paths() if p != STDOUT)


def _numbered(path: str, n: int) -> str:
    return _NUMBER.sub(lambda found: format(n, (found[1] or ":")[1:]), path)


@dataclass(frozen=True, kw_only=True)
class Form:
    """How audio and captions are written; None leaves it to the file name or the format."""

    format: str | None
    encoding: str | None
    rate: int | None
    loudness: float | None
    peak: float | None
    karaoke: bool
    word_cues: bool
    cues: dict[str, Any]

    def check(self, places: Places) -> None:
        """Raises InputError for a format, a level or a cue size that cannot be, before a model is loaded."""
        if places.audio is not None:
            from sonant.audio.formats import find_format
            from sonant.audio.writer import check_levels

            find_format(None if places.audio == STDOUT else places.audio, self.format)
            check_levels(self.loudness, self.peak)
        if places.captions:
            from sonant.captions.cues import CueOptions

            CueOptions(**self.cues)


class Outputs:
    """Takes the chunks of one speech. `close` makes valid files of whatever came until then."""

    def __init__(self, places: Places, form: Form, synth: Synthesizer, text: str) -> None:
        self._places, self._form, self._synth, self._text = places, form, synth, text
        self.words: list[WordTiming] = []
        self._samples = 0
        self._began_s = time.monotonic()
        self._first_s: float | None = None
        self._spec = self._wanted_spec()
        self._writer: AudioWriter | None = None
        self._player: Player | None = None
        if places.play:
            from sonant.audio.play import Player

            self._player = Player(synth.sample_rate)

    def _wanted_spec(self) -> AudioSpec | None:
        path, form = self._places.audio, self._form
        if path is None:
            return None
        from sonant.audio.formats import audio_spec

        return audio_spec(
            None if path == STDOUT else path,
            source_rate=self._synth.sample_rate,
            format=form.format,
            encoding=form.encoding,
            sample_rate=form.rate,
        )

    def _open(self) -> None:
        """When there is something to write, so that a wrong voice name does not cost an earlier file."""
        if self._writer is None and self._spec is not None and self._places.audio is not None:
            from sonant.audio.writer import open_audio

            self._writer = open_audio(
                sys.stdout.buffer if self._places.audio == STDOUT else self._places.audio,
                self._spec,
                source_rate=self._synth.sample_rate,
                loudness_lufs=self._form.loudness,
                peak_dbfs=self._form.peak,
            )

    @property
    def duration_s(self) -> float:
        return self._samples / self._synth.sample_rate

    @property
    def fraction(self) -> float:
        """How much of the text has been spoken."""
        return self.words[-1].char_end / len(self._text) if self.words else 0.0

    def write(self, chunk: AudioChunk) -> None:
        if self._first_s is None:
            self._first_s = time.monotonic() - self._began_s
        self._open()
        self._samples += len(chunk.samples)
        self.words += chunk.words
        if self._writer is not None:
            self._writer.write(chunk.samples)
        if self._player is not None:
            self._player.write(chunk.samples)

    def stop(self) -> None:
        """Let the loudspeaker be quiet; a signal handler may call it."""
        if self._player is not None:
            self._player.stop()

    def close(self, *, complete: bool, quiet: bool) -> None:
        """End the audio, write the captions, say what was made. Nothing is written when it ended before any sound."""
        wall_s = time.monotonic() - self._began_s
        anything = complete or self._first_s is not None
        try:
            if anything:
                self._open()
            if self._writer is not None:
                self._writer.close()
            for kind, path in self._places.captions.items() if anything else ():
                self._write_text(path, self._captions(kind))
        finally:
            if self._player is not None:
                self._player.close()
        if anything and self._places.summary:
            click.echo(json.dumps(self._summary(wall_s, complete), ensure_ascii=False))
        if anything and not quiet:
            self._say_what_was_made(complete)

    def _say_what_was_made(self, complete: bool) -> None:
        paths = [self._places.audio] if self._places.audio is not None else list(self._places.captions.values())
        name = ", ".join("standard output" if p == STDOUT else p for p in paths) or "played"
        cut = "" if complete else " (incomplete)"
        click.echo(f"{name}: {self.duration_s:.2f} s, {len(self.words)} words{cut}", err=True)

    def _captions(self, kind: str) -> str:
        if kind == "words":
            from sonant.types import words_json

            rate = self._spec.sample_rate if self._spec is not None else self._synth.sample_rate
            return words_json(self.words, rate, self.duration_s, self._synth.capabilities.word_source) + "\n"
        from sonant.captions.cues import CueOptions
        from sonant.captions.render import render

        return render(
            kind,
            self.words,
            self.duration_s,
            source=self._text,
            options=CueOptions(**self._form.cues),
            by_word=self._form.word_cues or kind == "lrc",
            karaoke=self._form.karaoke,
        )

    def _write_text(self, path: str, text: str) -> None:
        if path == STDOUT:
            return click.echo(text, nl=False)
        try:
            Path(path).write_text(text, encoding="utf-8", newline="\n")
        except OSError as e:
            raise InputError(f"cannot write {path}: {e.strerror or e}") from e

    def _summary(self, wall_s: float, complete: bool) -> dict[str, Any]:
        spec = self._spec
        return {
            "output": self._places.audio,
            "format": spec.format.name if spec else None,
            "encoding": spec.encoding if spec else None,
            "sample_rate": spec.sample_rate if spec else self._synth.sample_rate,
            "duration_s": round(self.duration_s, 6),
            "words": len(self.words),
            "word_source": self._synth.capabilities.word_source,
            "captions": self._places.captions,
            "ttfa_ms": None if self._first_s is None else round(self._first_s * 1000, 1),
            "wall_s": round(wall_s, 3),
            "complete": complete,
        }
