from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.families.latent.loudness import PEAK_AHEAD_STEPS, Loudness

RATE = 8000


def sound(*levels: float) -> np.ndarray:
    """A constant level for each step of 10 ms."""
    return np.repeat(np.array(levels, np.float32), RATE // 100)


def heard(samples: np.ndarray, rate: int = RATE) -> Loudness:
    loudness = Loudness(rate)
    loudness.add(samples)
    loudness.finish()
    return loudness


def test_silence_is_far_below_the_loudest_until_then() -> None:
    loud = heard(sound(*[0.5] * 10, *[0.5 * 10 ** (-46 / 20)] * 3, *[0.5 * 10 ** (-44 / 20)] * 3)).loud
    assert loud.tolist() == [True] * 10 + [False] * 3 + [True] * 3


def test_noise_before_the_first_word_is_silence() -> None:
    loud = heard(sound(*[0.0009] * 40, *[0.001 * 10 ** (1 / 20)] * 10)).loud
    assert loud.tolist() == [False] * 40 + [True] * 10


def test_what_comes_much_later_changes_nothing() -> None:
    quiet = [0.01] * 30
    assert heard(sound(*quiet, 1.0, 1.0)).loud[: 30 - PEAK_AHEAD_STEPS].all()
    assert heard(sound(*quiet, *[0.005] * 2)).loud.all()


@given(cuts=st.lists(st.integers(0, 4000), max_size=8).map(sorted), seed=st.integers(0, 99))
def test_cuts_change_nothing(cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = (10 ** rng.uniform(-5, 0, 40).repeat(103)[:4033] * rng.standard_normal(4033)).astype(np.float32)
    loudness = Loudness(RATE)
    for part in np.split(samples, cuts):
        loudness.add(part)
        known = loudness.loud.copy()
        assert (known == heard(samples).loud[: len(known)]).all()
    loudness.finish()
    assert (loudness.loud == heard(samples).loud).all()
    assert loudness.duration_s == 4033 / RATE


def test_known_after_a_fixed_time() -> None:
    loudness = Loudness(RATE)
    loudness.add(sound(*[0.5] * 30))
    assert len(loudness.loud) == 30 - PEAK_AHEAD_STEPS
    assert loudness.known_to(0.14)
    assert not loudness.known_to(0.15)
    loudness.finish()
    assert loudness.known_to(99.0)


def test_onsets() -> None:
    loudness = heard(sound(*[0] * 5, *[0.5] * 10, *[0] * 2, *[0.5] * 10, *[0] * 8, *[0.5] * 10))
    assert loudness.onset_near(0.1, 0.12, -1.0) == pytest.approx(0.05)
    assert loudness.onset_near(0.1, 0.04, -1.0) is None
    assert loudness.onset_near(0.17, 0.1, -1.0) is None  # two quiet steps are no silence
    assert loudness.onset_near(0.3, 0.3, 0.05) == pytest.approx(0.35)
    assert loudness.onsets(0.05).tolist() == pytest.approx([0.05, 0.35])
    assert loudness.onsets(0.08).tolist() == pytest.approx([0.35])
    assert heard(sound(0.5, 0.5)).onsets(0.08).tolist() == []


def test_first_and_last_sound() -> None:
    loudness = heard(sound(*[0] * 5, *[0.5] * 10, *[0] * 20))
    assert loudness.first_loud(0.0) == pytest.approx(0.05)
    assert loudness.first_loud(0.103) == pytest.approx(0.103)
    assert loudness.first_loud(0.15) is None
    assert loudness.sound_end(0.0, 0.3) == pytest.approx(0.15)
    assert loudness.sound_end(0.0, 0.1) == pytest.approx(0.1)
    assert loudness.sound_end(0.2, 0.3) is None
    assert loudness.is_loud(0.1)
    assert not loudness.is_loud(0.2)
    assert not loudness.is_loud(9.0)


def test_a_rate_whose_hundredth_is_not_whole() -> None:
    loudness = heard(np.full(22050, 0.5, np.float32), 22050)
    assert loudness.step_s == 220 / 22050
    assert loudness.sound_end(0.0, 2.0) == 1.0


def test_nothing() -> None:
    loudness = heard(np.zeros(0, np.float32))
    assert (loudness.duration_s, len(loudness.loud)) == (0.0, 0)
    assert loudness.first_loud(0.0) is None
