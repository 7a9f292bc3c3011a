"""The words of a reference, whose times are known, laid over a recording of the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sonant.align.features import STEP_S, backwards, bands, highest_hz, matched, silence_db
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

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Placed:
    """Words with their times in the recording. `match` says how well the two fit; match.py has its meaning."""

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
    reference, recording = bands(spoken, spoken_rate, top_hz), bands(samples, sample_rate, top_hz)
    quiet_db = silence_db(recording)
    x, y = matched(reference, recording)
    sounding = [w for w in words if w.end_s > w.start_s]
    starts, ends = (np.array([getattr(w, at) for w in sounding]) for at in ("start_s", "end_s"))
    one = Track(x, reference.level_db() < quiet_db, _joints(starts, ends, len(x)))
    other = Track(y, recording.level_db() < quiet_db, np.zeros(len(y), bool))
    _check_pace(one, other)
    path = warp(one, other)
    at = _Clock(path)
    duration_s = len(samples) / sample_rate
    spans = _spans(starts, ends, at, _pauses(path, other.silent, starts, ends, len(x)), duration_s)
    nothing = warp(Track(backwards(x), one.silent[::-1], one.joint[::-1]), other)
    return Placed(_timings(words, spans, at), max(0.0, 1 - path.cost / nothing.cost))


class _Clock:
    """From seconds of the reference to seconds of the recording."""

    def __init__(self, path: Path) -> None:
        self._rows, first, counts = np.unique(path.reference, return_index=True, return_counts=True)
        self._columns = np.add.reduceat(path.recording, first) / counts

    def __call__(self, seconds: Times) -> Times:
        out: Times = np.interp(np.asarray(seconds) / STEP_S, self._rows, self._columns) * STEP_S
        return out


def _joints(starts: Times, ends: Times, frames: int) -> NDArray[np.bool_]:
    """bool [frames]: between two words, before the first or after the last, or nearly so."""
    joints = np.zeros(frames, bool)
    for end, start in zip([0.0, *ends], [*starts, frames * STEP_S], strict=True):
        joints[max(0, int(end / STEP_S) - JOINT_FRAMES) : int(start / STEP_S) + JOINT_FRAMES + 1] = True
    return joints


def _check_pace(reference: Track, recording: Track) -> None:
    said, heard = (float((~track.silent).sum() * STEP_S) for track in (reference, recording))
    if said == 0 or heard == 0:
        what = "the recording is silent" if said else "the text makes no sound"
        raise InputError(f"{what}: there is nothing to align")
    if not SLOWEST <= said / heard <= FASTEST:
        raise InputError(
            f"the recording holds {heard:.1f} s of sound, the text takes about {said:.1f} s to say: it is not (only) "
            "this text; cut the recording or complete the text"
        )


def _pauses(
    path: Path, silent: NDArray[np.bool_], starts: Times, ends: Times, frames: int
) -> dict[int, tuple[float, float]]:
    """Pauses of the recording (from, to, in seconds) by the word that follows; len(starts) follows the last one."""
    turns = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]))).reshape(-1, 2)
    left, right = np.concatenate([[0.0], ends]), np.concatenate([starts, [frames * STEP_S]])
    found: dict[int, tuple[float, float]] = {}
    for begin, end in turns[turns[:, 1] - turns[:, 0] >= PAUSE_FRAMES] * STEP_S:
        first, last = np.searchsorted(path.recording * STEP_S, [begin, end - STEP_S])
        at = path.reference[(first + last) // 2] * STEP_S
        away = np.maximum(np.maximum(left - at, at - right), 0)
        word = int(away.argmin())
        longest = word not in found or end - begin > found[word][1] - found[word][0]
        # The first word starts after the last of several, the text ends before the first of several.
        if away[word] <= PAUSE_REACH_S and (word == 0 or (longest and word < len(starts)) or word not in found):
            found[word] = (float(begin), float(end))
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
