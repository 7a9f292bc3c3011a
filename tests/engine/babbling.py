"""A driver that babbles: a family whose true word times are known, and which may keep them to itself."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from babble import Babbler
from counting import CountingDriver

from sonant.backends.backend import CancelFlag
from sonant.errors import Cancelled
from sonant.families.family import PieceAudio
from sonant.options import SpeakOptions

TEXT = "the birch canoe slid on smooth planks. and glue holds the dark blue sheet."


class BabblingDriver(CountingDriver):
    """A sentence is a piece, in stretches of 100 ms; with `timed` off the words come with no times."""

    sample_rate = 24_000

    def __init__(self, babbler: Babbler, *, timed: bool = True) -> None:
        super().__init__()
        self.babbler, self.timed = babbler, timed
        self.texts: list[str] = []
        source = "duration" if timed else "none"
        self.capabilities = replace(CountingDriver.capabilities, word_source=source, streaming_grain="frame")

    def pieces(self, text: str, options: SpeakOptions) -> list[tuple[str, int]]:
        self.texts.append(text)
        ends = [i + 1 for i, c in enumerate(text) if c == "."] or [len(text)]
        starts = [0, *ends[:-1]]
        return [(text[a:b], a) for a, b in zip(starts, ends, strict=True) if text[a:b].strip()]

    def stream_piece(
        self, piece: tuple[str, int], index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        if cancel.is_set:
            raise Cancelled("stopped")
        text, at = piece
        samples, words = self.babbler.say(text)
        words = tuple(replace(w, char_start=w.char_start + at, char_end=w.char_end + at) for w in words)
        if not self.timed:
            words = tuple(replace(w, start_s=0.0, end_s=0.0) for w in words)
        for first in range(0, len(samples), 2400):
            last = first + 2400 >= len(samples)
            yield PieceAudio(samples[first : first + 2400], words if last else ())
