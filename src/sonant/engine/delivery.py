"""Pieces → chunks: numbered, placed in time and in the text, over one text or over several that follow each other."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.engine.background import check
from sonant.families.family import Driver
from sonant.options import SpeakOptions
from sonant.types import AudioChunk, WordTiming


class Delivery:
    """One stream: the number of its next piece, and how many samples came before."""

    def __init__(self, driver: Driver, options: SpeakOptions, cancel: CancelFlag) -> None:
        self._driver, self._options, self._cancel = driver, options, cancel
        self._pieces = self._samples = 0

    def chunks(
        self, pieces: Iterable[Any], *, shift: int = 0, pause_s: float = 0.0
    ) -> Generator[AudioChunk, None, None]:
        """The chunks of the next pieces. Closing the iterator ends the work. Raises Cancelled once the flag is set.

        shift: added to the places of the words in the text. pause_s: silence before the first piece, if there is one.
        """
        for piece in pieces:
            check(self._cancel)
            yield from self._piece(piece, shift, round(pause_s * self._driver.sample_rate))
            pause_s = 0.0

    def _piece(self, piece: Any, shift: int, pause_samples: int) -> Generator[AudioChunk, None, None]:
        index, rate = self._pieces, self._driver.sample_rate
        self._pieces += 1
        piece_s = (self._samples + pause_samples) / rate
        silence = np.zeros(pause_samples, np.float32)
        with closing(self._driver.stream_piece(piece, index, self._options, self._cancel)) as stretches:
            for audio in stretches:
                samples = np.concatenate([silence, audio.samples]) if len(silence) else audio.samples
                silence = silence[:0]
                words = tuple(_moved(word, piece_s, shift) for word in audio.words)
                start_s = self._samples / rate
                self._samples += len(samples)
                yield AudioChunk(samples, rate, start_s, words)


def _moved(word: WordTiming, by_s: float, shift: int) -> WordTiming:
    later = word.shifted(by_s)
    return replace(later, char_start=word.char_start + shift, char_end=word.char_end + shift) if shift else later
