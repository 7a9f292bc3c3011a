"""Word times from Kokoro's durations and the energy of its samples.

A word starts where its sound begins and, within a phrase, ends where the next one starts. Every token id has a whole
number of 25 ms frames, so a word is the sum of its phonemes; the network lets a phoneme sound before its frames begin,
a consonant earlier than a vowel. Before and after a pause the sound itself says where a word starts and ends.
docs/families/kokoro.md has the measurements behind every figure.
"""

from __future__ import annotations

import numpy as np

from sonant.families.kokoro.model import SAMPLE_RATE
from sonant.text.english import Piece, PieceWord
from sonant.types import PhonemeTiming, WordTiming

SAMPLES_PER_FRAME = 600
FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE
LEAD_CONSONANT_S, LEAD_VOWEL_S = 0.070, 0.045
VOWELS = frozenset("AIOQWYaæɑɐɒəɚɛɜeiɪɨoɔuʊʌøyɯɤᵊᵻ")
STRESS = "ˈˌ"
PAUSE_S = 0.080
"""A gap between the frames of two words longer than a space: a pause, or at least a comma."""
STEP_SAMPLES = 120
STEP_S = STEP_SAMPLES / SAMPLE_RATE
"""Energy is looked at every 5 ms."""
SILENCE_DB = -40.0
"""So far below the loudest step of the piece counts as silence."""
QUIET_STEPS = 6
"""30 ms of silence before an onset; the closure of a stop inside a word is shorter or comes later."""
ONSET_REACH_S = 0.12


def word_timings(piece: Piece, frames: np.ndarray, samples: np.ndarray) -> tuple[WordTiming, ...]:
    """The words of `piece`, times from its first sample. `frames` i64 [P] with both ends, `samples` f32 [S]."""
    sounding = [w for w in piece.words if w.phoneme_end > w.phoneme_start]
    edges = np.concatenate([[0], np.cumsum(frames)]) * FRAME_S  # where the frames of each id begin
    spans = iter(_spans(piece.phonemes, sounding, edges, samples))
    timings, now = [], 0.0
    for word in piece.words:
        start, end, sounds = now, now, ""
        if word.phoneme_end > word.phoneme_start:
            start, end = next(spans)
            sounds = piece.phonemes[word.phoneme_start : word.phoneme_end]
        inner = _phoneme_timings(sounds, edges[word.phoneme_start + 1 :], start, end)
        timings.append(WordTiming(word.text, start, end, word.start, word.end, inner))
        now = end
    return tuple(timings)


def _phoneme_timings(sounds: str, edges: np.ndarray, start: float, end: float) -> tuple[PhonemeTiming, ...]:
    """The phonemes of one word from its start to its end; the frames of a stress mark belong to what it stresses."""
    symbols: list[tuple[str, float]] = []  # with where each begins
    mark = ""
    for i, symbol in enumerate(sounds):
        if symbol in STRESS:
            mark += symbol
            continue
        symbols.append((mark + symbol, float(edges[i - len(mark)]) - _lead_s(symbol)))
        mark = ""
    begins = np.maximum.accumulate(np.clip([start, *(begin for _, begin in symbols[1:])], start, end)).tolist()
    ends = [*begins[1:], end]
    return tuple(PhonemeTiming(s, b, e) for (s, _), b, e in zip(symbols, begins, ends, strict=False))


def _spans(phonemes: str, words: list[PieceWord], edges: np.ndarray, samples: np.ndarray) -> list[tuple[float, float]]:
    """(start_s, end_s) of every sounding word, in order, inside the samples and never overlapping."""
    total = len(samples) / SAMPLE_RATE
    loud = _loud_steps(samples)
    starts, after_pause = [], []
    for i, word in enumerate(words):
        begin = edges[word.phoneme_start + 1]
        pause = i == 0 or begin - edges[words[i - 1].phoneme_end + 1] >= PAUSE_S
        expected = begin - _lead_s(phonemes[word.phoneme_start : word.phoneme_end])
        starts.append(_onset(loud, expected) if pause else expected)
        after_pause.append(pause)
    floor = [0.0, *np.maximum.accumulate(np.clip(starts, 0.0, total))[:-1]] if starts else []
    starts = [float(min(max(s, f), total)) for s, f in zip(starts, floor, strict=True)]
    spans = []
    for i, start in enumerate(starts):
        following = starts[i + 1] if i + 1 < len(starts) else total
        joined = i + 1 < len(starts) and not after_pause[i + 1]
        spans.append((start, following if joined else _sound_end(loud, start, following)))
    return spans


def _lead_s(phonemes: str) -> float:
    return LEAD_VOWEL_S if phonemes.lstrip(STRESS)[:1] in VOWELS else LEAD_CONSONANT_S


def _loud_steps(samples: np.ndarray) -> np.ndarray:
    """bool per 5 ms: is it louder than silence?"""
    steps = len(samples) // STEP_SAMPLES
    energy = np.square(samples[: steps * STEP_SAMPLES], dtype=np.float32).reshape(steps, STEP_SAMPLES).mean(1)
    loud: np.ndarray = energy > energy.max(initial=0.0) * 10 ** (SILENCE_DB / 10)
    return loud


def _onset(loud: np.ndarray, expected: float) -> float:
    """Where sound sets in after silence, nearest to `expected`; `expected` itself where none does within reach."""
    first = max(0, round((expected - ONSET_REACH_S) / STEP_S))
    found = [
        i * STEP_S
        for i in range(first, min(len(loud), round((expected + ONSET_REACH_S) / STEP_S) + 1))
        if loud[i] and not loud[max(0, i - QUIET_STEPS) : i].any()
    ]
    return min(found, key=lambda t: abs(t - expected)) if found else expected


def _sound_end(loud: np.ndarray, start: float, following: float) -> float:
    """Where the sound that begins at `start` falls silent for good before `following`."""
    first, last = round(start / STEP_S), round(following / STEP_S)
    sounding = np.flatnonzero(loud[first:last])
    return float(min((first + sounding[-1] + 1) * STEP_S, following)) if len(sounding) else start
