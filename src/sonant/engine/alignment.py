"""Word times by alignment: a voice whose word times are known says the text, and that is laid over the sound."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sonant.align.words import Placed, place_words
from sonant.audio.formats import RATE_RANGE_HZ
from sonant.audio.reader import Recording
from sonant.backends.backend import CancelFlag
from sonant.errors import InputError
from sonant.families.family import Driver, PieceAudio
from sonant.options import ALIGNED, SpeakOptions
from sonant.types import Speech, VoiceInfo, WordTiming

if TYPE_CHECKING:
    from sonant.engine.synthesizer import Synthesizer

LEAST_MATCH = 0.1
"""Below, a recording does not hold its text, as measured (docs/align.md)."""
_LOG = logging.getLogger("sonant.align")


def align_recording(samples: np.ndarray, sample_rate: int, spoken: Speech) -> Speech:
    """The recording f32 [S] with the times of the words of `spoken`, which is its text in another voice.

    Raises InputError where the two do not fit.
    """
    if not spoken.words or not len(spoken.samples):
        raise InputError("the text makes no sound: there is nothing to align")
    placed = place_words(spoken.words, spoken.samples, spoken.sample_rate, samples, sample_rate)
    if placed.match < LEAST_MATCH:
        raise InputError(
            f"the text does not fit the recording (match {placed.match:.2f}, wanted {LEAST_MATCH} and more): check "
            "that it is what is said there, all of it and nothing else"
        )
    return Speech(samples, sample_rate, placed.words, ALIGNED, spoken.text, placed.match)


class AlignedDriver:
    """A family's driver whose words are placed by a voice with times of its own; a piece is one stretch.

    reference: brings up that voice, when the first piece needs it.
    """

    def __init__(self, driver: Driver, reference: Callable[[], Synthesizer]) -> None:
        self._driver, self._reference = driver, reference
        self.sample_rate = driver.sample_rate
        self.capabilities = replace(driver.capabilities, word_source=ALIGNED, streaming_grain="piece")

    def voices(self) -> list[VoiceInfo]:
        return self._driver.voices()

    def clone(self, name: str, recording: Recording, *, keep: Path | None = None,
              cancel: CancelFlag | None = None) -> None:
        self._driver.clone(name, recording, keep=keep, cancel=cancel)

    def pieces(self, text: str, options: SpeakOptions) -> Iterable[Any]:
        return self._driver.pieces(text, options)

    def stream_piece(
        self, piece: Any, index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        """Raises InputError where the sound is not that of the words: silence, or far too short or long."""
        with closing(self._driver.stream_piece(piece, index, options, cancel)) as stretches:
            parts = list(stretches)
        samples = np.concatenate([p.samples for p in parts]) if parts else np.zeros(0, np.float32)
        words = tuple(w for p in parts for w in p.words)
        yield PieceAudio(samples, self._placed(words, samples, options, cancel))

    def _placed(
        self, words: tuple[WordTiming, ...], samples: np.ndarray, options: SpeakOptions, cancel: CancelFlag
    ) -> tuple[WordTiming, ...]:
        text, starts = _in_a_line(words)
        if not any(map(str.isalnum, text)):  # a piece of pauses: nothing to place
            return words
        spoken = self._reference().speak(
            text, cancel=cancel, markup="off", language=options.language, lexicon=options.lexicon
        )
        placed = place_words(spoken.words, spoken.samples, spoken.sample_rate, samples, self.sample_rate)
        if placed.match < LEAST_MATCH:
            _LOG.warning("the sound hardly fits %r (match %.2f): its word times are doubtful", text, placed.match)
        return _onto(words, starts, placed)


def _in_a_line(words: Iterable[WordTiming]) -> tuple[str, list[int]]:
    """The words in a line, and where each begins there; those without sound as well, they may carry a pause."""
    starts, text = [], ""
    for word in words:
        text += " " if text else ""
        starts.append(len(text))
        text += word.text
    return text, starts


def _onto(words: tuple[WordTiming, ...], starts: list[int], placed: Placed) -> tuple[WordTiming, ...]:
    """The family's words with the times of what was spoken for them; a word with a space inside is several there."""
    parts: list[list[WordTiming]] = [[] for _ in words]
    for part in placed.words:
        parts[bisect_right(starts, part.char_start) - 1].append(part)
    timed = []
    for word, found in zip(words, parts, strict=True):
        heard = [part for part in found if part.end_s > part.start_s] or found
        phonemes = tuple(phoneme for part in heard for phoneme in part.phonemes)
        timed.append(replace(word, start_s=heard[0].start_s, end_s=heard[-1].end_s, phonemes=phonemes))
    return tuple(timed)


def mono(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """float32 [S]. InputError for anything but finite floats [S] or [S, channels] at a rate that sound has."""
    given = np.asarray(samples)
    low, high = RATE_RANGE_HZ
    if given.dtype.kind != "f" or given.ndim not in (1, 2) or (given.ndim == 2 and not 1 <= given.shape[1] <= 64):
        raise InputError(
            f"samples are {given.dtype} {list(given.shape)}; wanted floats in −1…1, [S] or [S, channels] "
            "(divide 16-bit integers by 32768)"
        )
    if not (isinstance(sample_rate, (int, np.integer)) and low <= sample_rate <= high):
        raise InputError(f"sample_rate is {sample_rate!r}; wanted a whole number from {low} to {high}")
    if not np.isfinite(given).all():
        raise InputError("samples hold values that are no finite numbers")
    joined: np.ndarray = np.ascontiguousarray(given if given.ndim == 1 else given.mean(1), np.float32)
    return joined
