"""The warp against a plain dynamic programme, and against maps that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sonant.align.warp as module
from sonant.align.warp import PAUSE_COST, STILL_COST, Path, Track, warp


def track(features: np.ndarray, silent: np.ndarray | None = None, joint: np.ndarray | None = None) -> Track:
    nowhere = np.zeros(len(features), bool)
    return Track(
        features.astype(np.float32), nowhere if silent is None else silent, nowhere if joint is None else joint
    )


def walk(frames: int, seed: int) -> np.ndarray:
    """A smooth path through 8 dimensions that does not come back."""
    return 3 * np.cumsum(np.random.default_rng(seed).standard_normal((frames, 8)), axis=0)


def step_cost(a: Track, b: Track, i: int, j: int, di: int, dj: int) -> float:
    apart = float(np.linalg.norm(a.features[i].astype(float) - b.features[j]))
    if di and dj:
        return 2 * apart
    pause = a.silent[i] if di else a.joint[i] and b.silent[j]
    return min(apart + STILL_COST, PAUSE_COST) if pause else apart + STILL_COST


def plain_cost(a: Track, b: Track) -> float:
    """The same definition, pair by pair."""
    best = np.full((len(a.features), len(b.features)), np.inf)
    for i, j in np.ndindex(*best.shape):
        if i == j == 0:
            best[0, 0] = step_cost(a, b, 0, 0, 1, 1)
            continue
        came = [(di, dj) for di, dj in ((1, 1), (1, 0), (0, 1)) if i >= di and j >= dj]
        best[i, j] = min(best[i - di, j - dj] + step_cost(a, b, i, j, di, dj) for di, dj in came)
    return float(best[-1, -1])


def path_cost(a: Track, b: Track, path: Path) -> float:
    steps = zip(np.diff(path.reference), np.diff(path.recording), path.reference[1:], path.recording[1:], strict=True)
    return step_cost(a, b, 0, 0, 1, 1) + sum(step_cost(a, b, i, j, di, dj) for di, dj, i, j in steps)


def assert_whole(path: Path, rows: int, columns: int) -> None:
    for at, frames in ((path.reference, rows), (path.recording, columns)):
        assert (at[0], at[-1]) == (0, frames - 1)
        assert set(np.diff(at)) <= {0, 1}
    assert (np.diff(path.reference) + np.diff(path.recording)).min(initial=1) >= 1


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_no_path_is_cheaper(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (track(rng.standard_normal((n, 3)) * 3, rng.random(n) < 0.4, rng.random(n) < 0.4) for n in (rows, columns))
    path = warp(a, b)
    assert_whole(path, rows, columns)
    # Distances are f32, by the difference of squares.
    assert path.cost == pytest.approx(plain_cost(a, b), abs=1e-3)
    assert path_cost(a, b, path) == pytest.approx(path.cost, abs=1e-3)


def test_a_track_lies_on_itself() -> None:
    x = track(walk(300, 1))
    path = warp(x, x)
    np.testing.assert_array_equal(path.reference, np.arange(300))
    np.testing.assert_array_equal(path.recording, np.arange(300))


@given(st.integers(0, 2**32 - 1))
def test_a_known_warp_is_found(seed: int) -> None:
    """The recording runs at 0.6 to 1.6 times the pace of the reference, changing all the time."""
    rng = np.random.default_rng(seed)
    x = walk(400, seed)
    pace = np.interp(np.arange(400), np.arange(0, 401, 50), rng.uniform(0.6, 1.6, 9))
    truth = np.cumsum(1 / pace) - 1 / pace[0]
    columns = np.arange(int(truth[-1]) + 1)
    y = np.stack([np.interp(columns, truth, x[:, k]) for k in range(8)], axis=1)
    path = warp(track(x), track(y))
    found = np.interp(np.arange(400), path.reference, path.recording)
    assert np.median(np.abs(found - truth)) <= 1
    assert np.abs(found - truth).max() <= 4


def test_the_recording_may_pause_between_words_only() -> None:
    x, silence = walk(200, 2), np.full((60, 8), 500.0)
    y = np.concatenate([x[:100], silence, x[100:]])
    silent = np.zeros(260, bool)
    silent[100:160] = True
    joint = np.zeros(200, bool)
    joint[98:103] = True
    pausing = warp(track(x, joint=joint), track(y, silent))
    assert pausing.cost == pytest.approx(60 * PAUSE_COST, rel=0.2)
    at = pausing.reference[np.searchsorted(pausing.recording, 130)]
    assert 98 <= at <= 102
    assert warp(track(x), track(y, silent)).cost > 100 * pausing.cost


def test_a_pause_of_the_reference_may_be_left_out() -> None:
    x = walk(200, 3)
    silent = np.zeros(260, bool)
    silent[100:160] = True
    path = warp(track(np.concatenate([x[:100], np.full((60, 8), 500.0), x[100:]]), silent), track(x))
    assert path.cost == pytest.approx(60 * PAUSE_COST, rel=0.2)


def spy_on_bands(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs of frames every search looked at."""
    pairs: list[int] = []
    search = module._search

    def spy(a: Track, b: Track, low: np.ndarray, high: np.ndarray) -> Path:
        pairs.append(int((high - low).sum()))
        return search(a, b, low, high)

    monkeypatch.setattr(module, "_search", spy)
    return pairs


def test_a_long_warp_is_found_in_a_band(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two levels of coarse warps give the path of one fine one."""
    x = walk(6000, 4)
    y = np.stack([np.interp(np.arange(0, 5999, 1.3), np.arange(6000), x[:, k]) for k in range(8)], axis=1)
    whole = warp(track(x), track(y))
    monkeypatch.setattr(module, "CELLS", 100_000)
    pairs = spy_on_bands(monkeypatch)
    banded = warp(track(x), track(y))
    assert len(pairs) == 3
    assert pairs[-1] < 6000 * 1000
    assert_whole(banded, 6000, len(y))
    np.testing.assert_array_equal(banded.reference, whole.reference)
    np.testing.assert_array_equal(banded.recording, whole.recording)


def test_a_long_pause_does_not_widen_the_whole_band(monkeypatch: pytest.MonkeyPatch) -> None:
    x = walk(4000, 5)
    y = np.concatenate([x[:2000], np.full((8000, 8), 500.0), x[2000:]])
    silent = np.zeros(12_000, bool)
    silent[2000:10_000] = True
    joint = np.zeros(4000, bool)
    joint[1990:2010] = True
    monkeypatch.setattr(module, "CELLS", 1_000_000)
    pairs = spy_on_bands(monkeypatch)
    path = warp(track(x, joint=joint), track(y, silent))
    assert pairs[-1] < 4000 * 12_000 / 5
    # Features this far from zero leave some 0.03 of f32 rounding in the distance of equal frames.
    assert path.cost == pytest.approx(8000 * PAUSE_COST, rel=0.15)
