"""Word times from Kokoro's durations.

Every token id has a whole number of 25 ms frames, so a word is the sum of its phonemes. Measured on the official
weights, the network lets a phoneme sound a little before its frames begin: LEAD_S is subtracted
(docs/families/kokoro.md has the figures). The end of a word before a pause is where its sound ends, since the duration
of the last phoneme holds its decay.
"""

from __future__ import annotations

import numpy as np

from sonant.text.english import Piece
from sonant.types import WordTiming

SAMPLE_RATE, SAMPLES_PER_FRAME = 24_000, 600
FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE
LEAD_S = 0.050
PAUSE_S = 0.080
"""A gap to the next word at least this long is a pause."""
ENERGY_STEP = 120
"""Samples per energy value, 5 ms."""
SILENCE_DB = -40.0
"""Below the loudest 5 ms of the piece by this much counts as silence."""


def word_timings(piece: Piece, frames: np.ndarray, samples: np.ndarray) -> tuple[WordTiming, ...]:
    """The words of `piece`, times from its first sample. `frames` i64 [P] with both ends, `samples` f32 [S]."""
    starts = np.concatenate([[0], np.cumsum(frames)]) * FRAME_S - LEAD_S
    total = len(samples) / SAMPLE_RATE
    spans = [
        (starts[w.phoneme_start + 1], starts[w.phoneme_end + 1]) if w.phoneme_end > w.phoneme_start else None
        for w in piece.words
    ]
    sounding = [s for s in spans if s is not None]
    following = iter([*(s[0] for s in sounding[1:]), total])
    loud = _loud_steps(samples)
    timings, now = [], 0.0
    for word, span in zip(piece.words, spans, strict=True):
        start = end = now
        if span is not None:
            start = min(max(span[0], now), total)
            end = _sound_end(loud, start, min(max(span[1], start), total), next(following))
        timings.append(WordTiming(word.text, float(start), float(end), word.start, word.end))
        now = end
    return tuple(timings)


def _loud_steps(samples: np.ndarray) -> np.ndarray:
    """bool per 5 ms: is it louder than silence?"""
    steps = len(samples) // ENERGY_STEP
    energy = np.square(samples[: steps * ENERGY_STEP], dtype=np.float32).reshape(steps, ENERGY_STEP).mean(1)
    loud: np.ndarray = energy > energy.max(initial=0.0) * 10 ** (SILENCE_DB / 10)
    return loud


def _sound_end(loud: np.ndarray, start: float, end: float, following: float) -> float:
    """`end`, or where the sound ends if a pause follows."""
    if following - end < PAUSE_S:
        return end
    first, last = round(start * SAMPLE_RATE / ENERGY_STEP), round(following * SAMPLE_RATE / ENERGY_STEP)
    sounding = np.flatnonzero(loud[first:last])
    return (
        end if not len(sounding) else max(start, min((first + sounding[-1] + 1) * ENERGY_STEP / SAMPLE_RATE, following))
    )
