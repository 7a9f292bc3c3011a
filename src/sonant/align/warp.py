"""The warp: which frame of a recording belongs to which frame of the reference, by dynamic programming.

Every step goes one frame on in one of the two or in both and costs the distance of the frames that it meets; a step in
both costs twice, so that all ways from the first pair to the last are worth the same. Standing still costs more, but a
recording may pause between two words, and where the reference pauses it need not.

Long recordings are warped coarsely first (the means of several frames), then finely near the coarse warp, so memory
and time grow with the length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STILL_COST = 4.0
"""Added to a step in one of the two alone."""
PAUSE_COST = 0.3
"""A frame of silence between two words, in a recording that pauses where the reference does not, or the other way."""
COARSE = 8
"""Frames whose mean is one coarse frame."""
CELLS = 1 << 26
"""Pairs of frames that are looked at without a coarser warp first: a byte each."""
REACH = 16
"""How many coarse frames the fine warp may leave the coarse one."""
_BLOCK_ROWS = 64
_BOTH, _RECORDING, _REFERENCE = 0, 1, 2

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Track:
    """One side of the warp: features [F, K], and bool [F]: is the frame silent, may a pause be put in there?"""

    features: Array
    silent: Mask
    joint: Mask

    def coarse(self) -> Track:
        edges = np.arange(0, len(self.features), COARSE)
        counts = np.diff(np.append(edges, len(self.features)))[:, None]
        return Track(
            (np.add.reduceat(self.features, edges, axis=0) / counts).astype(np.float32),
            np.logical_and.reduceat(self.silent, edges),
            np.logical_or.reduceat(self.joint, edges),
        )


@dataclass(frozen=True)
class Path:
    """Pairs (reference frame, recording frame) from (0, 0) to the last of both, and the cost of all steps."""

    reference: NDArray[np.int64]
    recording: NDArray[np.int64]
    cost: float


def warp(reference: Track, recording: Track) -> Path:
    """The cheapest path from the first pair of frames to the last."""
    rows, columns = len(reference.features), len(recording.features)
    if rows * columns <= CELLS:
        low, high = np.zeros(rows, np.int64), np.full(rows, columns, np.int64)
    else:
        low, high = _band(warp(reference.coarse(), recording.coarse()), rows, columns)
    return _search(reference, recording, low, high)


def _band(path: Path, rows: int, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns [low, high) of every row, growing, near a coarse path."""
    coarse_rows = int(path.reference[-1]) + 1
    first, last = np.full(coarse_rows, columns), np.zeros(coarse_rows, np.int64)
    np.minimum.at(first, path.reference, path.recording)
    np.maximum.at(last, path.reference, path.recording)
    # A path may also leave the coarse one in the rows.
    first = np.concatenate([np.zeros(REACH, np.int64), first[:-REACH]])[:coarse_rows]
    last = np.concatenate([last[REACH:], np.full(REACH, last[-1])])[:coarse_rows]
    low = np.maximum(first - REACH, 0) * COARSE
    high = np.minimum((last + REACH + 1) * COARSE, columns)
    return np.repeat(low, COARSE)[:rows], np.repeat(high, COARSE)[:rows]


def _search(reference: Track, recording: Track, low: NDArray[np.int64], high: NDArray[np.int64]) -> Path:
    rows = len(reference.features)
    at = np.concatenate([[0], np.cumsum(high - low)])  # rows are as long as their part of the band: a pause is wide
    steps = np.zeros(at[-1], np.uint8)
    above, above_low = np.full(1, np.inf), 0  # the costs of the row above, and the column of the first
    for first in range(0, rows, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, rows)
        left, right = int(low[first]), int(high[last - 1])
        apart = _distances(reference.features[first:last], recording.features[left:right])
        for i in range(first, last):
            a, b = int(low[i]), int(high[i])
            entry = _overlap(above, above_low, a, b) if i else np.append(0.0, np.full(b - a, np.inf))
            above, steps[at[i] : at[i + 1]] = _row(
                reference, recording, i, a, apart[i - first, a - left : b - left], entry
            )
            above_low = a
    return _back(steps, at - np.append(low, 0), int(high[-1]) - 1, float(above[-1]))


def _overlap(above: np.ndarray, above_low: int, a: int, b: int) -> np.ndarray:
    """The costs above columns [a - 1, b), infinite where the row above has none."""
    out = np.full(b - a + 1, np.inf)
    first, last = max(a - 1, above_low), min(b, above_low + len(above))
    out[first - a + 1 : last - a + 1] = above[first - above_low : last - above_low]
    return out


def _row(
    reference: Track, recording: Track, i: int, a: int, apart: Array, above: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The costs of row `i` from column `a` on, and the step that led to each. `above` begins one column earlier."""
    still = apart + STILL_COST
    pause = np.minimum(still, PAUSE_COST)
    down = above[1:] + (pause if reference.silent[i] else still)
    both = above[:-1] + 2 * apart
    cost = np.minimum(both, down)
    along = np.where(recording.silent[a : a + len(apart)], pause, still) if reference.joint[i] else still
    # cost[j] = min(cost[j], cost[j - 1] + along[j]), for all j at once.
    sums = np.cumsum(along, dtype=np.float64)
    reached = np.minimum.accumulate(cost - sums) + sums
    steps = np.where(reached < cost - 1e-6, _RECORDING, np.where(down < both, _REFERENCE, _BOTH))
    return np.minimum(reached, cost), steps


def _distances(x: Array, y: Array) -> Array:
    """Euclidean, [len(x), len(y)]."""
    squares = np.square(x).sum(1)[:, None] + np.square(y).sum(1) - 2 * (x @ y.T)
    out: Array = np.sqrt(np.maximum(squares, 0))
    return out


def _back(steps: np.ndarray, start: NDArray[np.int64], last: int, cost: float) -> Path:
    """From the last pair of frames to the first; the step to (i, j) is steps[start[i] + j]."""
    i, j = len(start) - 2, last
    pairs = [(i, j)]
    while i or j:
        step = steps[start[i] + j]
        i, j = i - int(step != _RECORDING), j - int(step != _REFERENCE)
        pairs.append((i, j))
    path = np.array(pairs[::-1], np.int64)
    return Path(path[:, 0], path[:, 1], cost)
