"""A loaded model that speaks. `speak` is `stream` joined: one code path, the same cuts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.families.family import Driver
from sonant.options import SpeakOptions
from sonant.types import AudioChunk, Capabilities, Speech, VoiceInfo, WordTiming


class Synthesizer:
    """Made by `sonant.load`. Safe to use from several threads; each call has its own workspace."""

    def __init__(self, name: str, driver: Driver) -> None:
        self.name, self._driver = name, driver

    @property
    def sample_rate(self) -> int:
        return self._driver.sample_rate

    @property
    def capabilities(self) -> Capabilities:
        return self._driver.capabilities

    def voices(self) -> list[VoiceInfo]:
        """The voices it has by name."""
        return self._driver.voices()

    def speak(
        self, text: str, *, voice: str | None = None, speed: float = 1.0, seed: int = 0, language: str | None = None
    ) -> Speech:
        """The whole text as one Speech. Text without anything to say gives an empty one.

        voice: a name or a blend such as `af_heart:0.7,am_michael:0.3`. speed: 0.25 to 4. seed: the same seed gives the
        same audio. language: BCP-47, by default the voice's own. Raises InputError (unknown voice, bad option, not
        text).
        """
        options = SpeakOptions(voice=voice, speed=speed, seed=seed, language=language)
        chunks = list(self._play(text, options))
        samples = np.concatenate([c.samples for c in chunks]) if chunks else np.zeros(0, np.float32)
        return Speech(
            samples, self.sample_rate, tuple(w for c in chunks for w in c.words), self.capabilities.word_source
        )

    def stream(
        self, text: str, *, voice: str | None = None, speed: float = 1.0, seed: int = 0, language: str | None = None
    ) -> Iterator[AudioChunk]:
        """The same audio as `speak`, chunk by chunk as it is made; options as there, checked at once.

        Closing the iterator early stops the computation.
        """
        options = SpeakOptions(voice=voice, speed=speed, seed=seed, language=language)
        pieces = self._pieces(text, options)
        return self._chunks(pieces, options)

    def _play(self, text: str, options: SpeakOptions) -> Iterator[AudioChunk]:
        return self._chunks(self._pieces(text, options), options)

    def _pieces(self, text: str, options: SpeakOptions) -> list[Any]:
        if not isinstance(text, str):
            from sonant.errors import InputError

            raise InputError(f"text is a {type(text).__name__}; wanted a str")
        return list(self._driver.pieces(text, options))

    def _chunks(self, pieces: list[Any], options: SpeakOptions) -> Iterator[AudioChunk]:
        cancel = CancelFlag()
        delivered = 0
        try:
            for index, piece in enumerate(pieces):
                audio = self._driver.speak_piece(piece, index, options, cancel)
                start_s = delivered / self.sample_rate
                delivered += len(audio.samples)
                yield AudioChunk(audio.samples, self.sample_rate, start_s, _shifted(audio.words, start_s))
        finally:
            cancel.set()


def _shifted(words: tuple[WordTiming, ...], by_s: float) -> tuple[WordTiming, ...]:
    return tuple(WordTiming(w.text, w.start_s + by_s, w.end_s + by_s, w.char_start, w.char_end) for w in words)
