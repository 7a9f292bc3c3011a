"""Values that the public API hands out: speech, chunks, word times, voices."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class WordTiming:
    """One word of the original text and when it sounds.

    `text` is the word as written, `text[char_start:char_end]` of what was spoken from. Times are seconds in the
    delivered samples; a word that makes no sound (an emoji, a lone dash) has start_s == end_s.
    """

    text: str
    start_s: float
    end_s: float
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A stretch of a stream: mono float32 `samples`, the words that sound in it (times from the start of the
    stream)."""

    samples: np.ndarray
    sample_rate: int
    start_s: float
    words: tuple[WordTiming, ...]


@dataclass(frozen=True)
class Speech:
    """A whole utterance: mono float32 `samples` [S] in −1…1, and its words in order."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int
    words: tuple[WordTiming, ...]
    word_source: str
    """Where the word times come from: `duration` (the model's own durations)."""

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.sample_rate

    def save(self, path: str | os.PathLike[str], *, encoding: str = "int16") -> Path:
        """Write a WAV file; `encoding` is int16 or float32."""
        from sonant.audio.wav import write_wav

        return write_wav(path, self.samples, self.sample_rate, encoding=encoding)

    def to_json(self) -> str:
        """Sample rate, duration and the words, as one JSON object."""
        return json.dumps(
            {
                "sample_rate": self.sample_rate,
                "duration_s": round(self.duration_s, 6),
                "word_source": self.word_source,
                "words": [asdict(w) for w in self.words],
            },
            ensure_ascii=False,
            indent=1,
        )


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A voice that a model has by name. `language` is BCP-47, `gender` female or male; None where not known."""

    name: str
    language: str | None
    gender: str | None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a family can do, declared by the family."""

    languages: tuple[str, ...]
    named_voices: bool
    voice_blending: bool
    cloning: bool
    speed: bool
    streaming_grain: str
    """The smallest stretch that is emitted at once: `piece` or `frame`."""
    word_source: str
    licence: str
