"""A voice for tests: every letter is a sound of its own, so what is said when is known exactly."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sonant.types import WordTiming

VOWELS = "aeiou"


@dataclass(frozen=True)
class Babbler:
    """pitch_hz: of its vowels. pace: 2 is twice as fast. jitter: how far single sounds depart from their usual length.
    stretch: of all resonances, as a longer or shorter throat has it. lead_s: silence at both ends."""

    sample_rate: int = 24_000
    pitch_hz: float = 120.0
    pace: float = 1.0
    jitter: float = 0.0
    stretch: float = 1.0
    lead_s: float = 0.2
    seed: int = 0
    pauses: Mapping[int, float] = field(default_factory=dict)
    """Seconds of silence before the word of this number."""

    def say(self, text: str) -> tuple[np.ndarray, tuple[WordTiming, ...]]:
        """Samples f32 [S] and the words with their exact times."""
        rng = np.random.default_rng(self.seed)
        parts = [np.zeros(round(self.lead_s * self.sample_rate))]
        words, at = [], 0
        for n, word in enumerate(text.split()):
            parts.append(np.zeros(round(self.pauses.get(n, 0.0) * self.sample_rate)))
            at = text.index(word, at)
            start_s = sum(map(len, parts)) / self.sample_rate
            parts += [self._sound(c, rng) for c in word.lower() if c.isalpha()]
            words.append(WordTiming(word, start_s, sum(map(len, parts)) / self.sample_rate, at, at + len(word)))
            at += len(word)
        parts.append(np.zeros(round(self.lead_s * self.sample_rate)))
        return np.concatenate(parts).astype(np.float32), tuple(words)

    def _sound(self, letter: str, rng: np.random.Generator) -> np.ndarray:
        usual = 0.12 if letter in VOWELS else 0.08
        count = round(usual / self.pace * np.exp(self.jitter * rng.uniform(-1, 1)) * self.sample_rate)
        own = np.random.default_rng(zlib.crc32(letter.encode()))
        hz = np.fft.rfftfreq(count, 1 / self.sample_rate)
        peaks = self.stretch * (own.uniform(250, 3400, 2) if letter in VOWELS else own.uniform(500, 3600, 1))
        shape = sum(1 / (1 + np.square((hz - peak) / 120)) for peak in peaks)
        if letter in VOWELS:
            source = np.zeros(count)
            source[:: round(self.sample_rate / self.pitch_hz)] = 1.0
        else:
            source = 0.03 * rng.standard_normal(count)
        sound = np.fft.irfft(np.fft.rfft(source) * shape, count)
        edge = np.minimum(1, np.minimum(np.arange(count), np.arange(count)[::-1]) / (0.005 * self.sample_rate))
        out: np.ndarray = 0.2 * sound / max(np.abs(sound).max(), 1e-9) * edge * (1.0 if letter in VOWELS else 0.4)
        return out
