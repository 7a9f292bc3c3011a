"""The words of a reference, whose times are known, laid over a recording of the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sonant.align.features import STEP_S, Bands, backwards, bands, highest_hz, matched, silence_db
from sonant.align.warp import Path, Track, warp
from sonant.errors import InputError
from sonant.types import WordTiming

JOINT_FRAMES = 3
"""A recording may pause this near to where one word ends and the next one starts."""
PAUSE_FRAMES = 12
"""A silence as long as this is a pause; the closure of a stop is shorter."""
PAUSE_REACH_S = 0.15
"""A pause is between the two words that are nearest to it; farther from both it is inside a word."""
EARLY_S = 0.007
"""Kokoro's words are given so much before their sound, within phrases (docs/families/kokoro.md)."""
SLOWEST, FASTEST = 0.25, 4.0
"""The pace of a recording against the reference, sound against sound; beyond, it says something else."""
SAME_PACE = (0.8, 1.25)
"""Within, the reference is left as it is: what noise hides of the sound makes the pace uncertain."""

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Placed:
    """Words with their times in the recording. `match` says how well the two fit: docs/align.md."""

    words: tuple[WordTiming, ...]
    match: float


def place_words(
    words: Sequence[WordTiming], spoken: np.ndarray, spoken_rate: int, samples: np.ndarray, sample_rate: int
) -> Placed:
    """Where `words`, timed in mono `spoken` [S], sound in mono `samples` [S] at its own rate.

    Every word comes back once and in order, with its text and span; times never decrease, and the last word ends by
    the end of the recording. Raises InputError where one of the two is silent or far longer than the other.
    """
    top_hz = highest_hz(spoken_rate, sample_rate)
    recording = bands(samples, sample_rate, top_hz)
    step_s = STEP_S * _pace(bands(spoken, spoken_rate, top_hz), recording)
    reference = bands(spoken, spoken_rate, top_hz, step_s)
    quiet_db = silence_db(recording)
    x, y = matched(reference, recording)
    sounding = [w for w in words if w.end_s > w.start_s]
    starts, ends = (np.array([getattr(w, at) for w in sounding]) for at in ("start_s", "end_s"))
    gaps = _gaps(starts, ends, len(spoken) / spoken_rate)
    one = Track(x, reference.level_db() < quiet_db, _joints(gaps, len(x), step_s))
    other = Track(y, recording.level_db() < quiet_db, np.zeros(len(y), bool))
    path = warp(one, other)
    at = _Clock(path, step_s)
    duration_s = len(samples) / sample_rate
    spans = _spans(starts, ends, at, _pauses(path, other.silent, gaps, step_s), duration_s)
    nothing = warp(Track(backwards(x), one.silent[::-1], one.joint[::-1]), other)
    saved = 1 - path.cost / nothing.cost if nothing.cost > 0 else 0.0
    return Placed(_timings(words, spans, at), max(0.0, saved))


def _pace(reference: Bands, recording: Bands) -> float:
    """How much faster the recording is, sound against sound; 1 when nearly as fast."""
    quiet_db = silence_db(recording)
    said, heard = (float((b.level_db() >= quiet_db).sum() * STEP_S) for b in (reference, recording))
    if said == 0 or heard == 0:
        what = "the recording is silent" if said else "the text makes no sound"
        raise InputError(f"{what}: there is nothing to align")
    if not SLOWEST <= said / heard <= FASTEST:
        raise InputError(
            f"the recording holds {heard:.1f} s of sound, the text takes about {said:.1f} s to say: it is not (only) "
            "this text; cut the recording or complete the text"
        )
    pace = said / heard
    return 1.0 if SAME_PACE[0] <= pace <= SAME_PACE[1] else pace


class _Clock:
    """From seconds of the reference to seconds of the recording."""

    def __init__(self, path: Path, step_s: float) -> None:
        rows, first, counts = np.unique(path.reference, return_index=True, return_counts=True)
        self._here_s = rows * step_s
        self._there_s = np.add.reduceat(path.recording, first) / counts * STEP_S

    def __call__(self, seconds: Times) -> Times:
        out: Times = np.interp(seconds, self._here_s, self._there_s)
        return out


def _gaps(starts: Times, ends: Times, duration_s: float) -> Times:
    """From where to where [words + 1, 2] nothing is said before each word and after the last, in seconds."""
    return np.stack([np.append(0.0, ends), np.append(starts, duration_s)], axis=1)


def _joints(gaps: Times, frames: int, step_s: float) -> NDArray[np.bool_]:
    """bool [frames]: in a gap between words, or nearly so."""
    joints = np.zeros(frames, bool)
    for first, last in np.floor(gaps / step_s).astype(int):
        joints[max(0, first - JOINT_FRAMES) : last + JOINT_FRAMES + 1] = True
    return joints


def _pauses(path: Path, silent: NDArray[np.bool_], gaps: Times, step_s: float) -> dict[int, tuple[float, float]]:
    """Pauses of the recording (from, to, in seconds) by the number of the gap."""
    turns = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]))).reshape(-1, 2)
    found: dict[int, tuple[float, float]] = {}
    for begin, end in turns[turns[:, 1] - turns[:, 0] >= PAUSE_FRAMES]:
        first, last = np.searchsorted(path.recording, [begin, end - 1])
        at = path.reference[(first + last) // 2] * step_s
        away = np.maximum(np.maximum(gaps[:, 0] - at, at - gaps[:, 1]), 0)
        gap = int(away.argmin())
        longest = gap not in found or (end - begin) * STEP_S > found[gap][1] - found[gap][0]
        # Of several silences the last one is before the first word, and the first one after the last word.
        if away[gap] <= PAUSE_REACH_S and (gap == 0 or (longest and gap < len(gaps) - 1) or gap not in found):
            found[gap] = (float(begin * STEP_S), float(end * STEP_S))
    return found


def _spans(
    starts: Times, ends: Times, at: _Clock, pauses: dict[int, tuple[float, float]], duration_s: float
) -> list[tuple[float, float]]:
    """(start_s, end_s) of every sounding word in the recording, in order and never overlapping."""
    begin, end = at(starts) + EARLY_S, at(ends)
    for word, (quiet_s, loud_s) in pauses.items():
        if word > 0:
            end[word - 1] = quiet_s
        if word < len(begin):
            begin[word] = loud_s
    begin = np.maximum.accumulate(np.clip(begin, 0.0, duration_s))
    limit = np.append(begin[1:], duration_s)
    meets = np.append(ends[:-1] >= starts[1:], False)  # the next word follows at once
    meets[[word - 1 for word in pauses if 0 < word < len(begin)]] = False
    end = np.where(meets, limit, np.clip(end, begin, limit))
    return list(zip(begin.tolist(), end.tolist(), strict=True))


def _timings(words: Sequence[WordTiming], spans: Sequence[tuple[float, float]], at: _Clock) -> tuple[WordTiming, ...]:
    """The words and their phonemes at their new times; one without sound has the end of the word before it."""
    placed, now, following = [], 0.0, iter(spans)
    for word in words:
        start, end = next(following) if word.end_s > word.start_s else (now, now)
        inner = np.clip(at(np.array([p.start_s for p in word.phonemes[1:]])), start, end).tolist()
        edges = [start, *inner, end]
        phonemes = tuple(
            replace(p, start_s=a, end_s=b) for p, a, b in zip(word.phonemes, edges, edges[1:], strict=False)
        )
        placed.append(replace(word, start_s=start, end_s=end, phonemes=phonemes))
        now = end
    return tuple(placed)
