"""duration_delta as a speed, and back; maps that were measured."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.errors import CheckpointError, InputError
from sonant.families.phonon.speed import BUILT_IN, SpeedMap, delta_of, fit, read_map, speed_of, write_map


@pytest.mark.parametrize(("delta", "speed"), [(0.6, 0.77), (0.0, 1.0), (-0.45, 1.3)])
def test_the_known_points(delta, speed):
    assert delta_of(speed) == pytest.approx(delta, abs=1e-12)
    assert speed_of(delta) == pytest.approx(speed, rel=1e-12)


def test_the_models_own_pace_is_exactly_zero():
    assert delta_of(1.0) == 0.0


def test_halfway_in_the_logarithm():
    assert delta_of(math.sqrt(1.3)) == pytest.approx(-0.225)
    assert delta_of(math.sqrt(0.77)) == pytest.approx(0.3)


@given(st.floats(0.77, 1.3), st.floats(0.77, 1.3))
def test_there_and_back_and_falling(one, other):
    assert speed_of(delta_of(one)) == pytest.approx(one, rel=1e-12)
    if one < other * (1 - 1e-9):
        assert delta_of(one) > delta_of(other)


@given(st.floats(-0.45, 0.6))
def test_back_and_there(delta):
    assert delta_of(speed_of(delta)) == pytest.approx(delta, abs=1e-12)


@pytest.mark.parametrize("speed", [0.769, 1.301, 0.0, -1.0, math.nan, math.inf])
def test_outside_says_the_range(speed):
    with pytest.raises(InputError, match=r"0\.77 to 1\.3 times its own pace"):
        delta_of(speed)


@pytest.mark.parametrize("delta", [-0.46, 0.61, math.nan])
def test_a_delta_outside(delta):
    with pytest.raises(InputError, match=r"-0\.45 to 0\.6 are known"):
        speed_of(delta)


@pytest.mark.parametrize(
    "points",
    [
        (),
        ((0.0, 1.0),),
        ((-0.5, 1.2), (0.5, 0.8)),  # without (0, 1)
        ((0.0, 1.0), (0.5, 1.1)),  # rises
        ((0.5, 0.8), (0.0, 1.0)),  # in the wrong order
        ((0.0, 1.0), (0.5, 1.0)),  # flat: no inverse
        ((0.0, 1.0), (0.5, -0.5)),
        ((0.0, 1.0), (math.nan, 0.5)),
    ],
)
def test_points_that_are_no_map(points):
    with pytest.raises(InputError, match="the speed falling"):
        SpeedMap(points)


def assert_points(found: SpeedMap, wanted: list[tuple[float, float]]) -> None:
    np.testing.assert_allclose(found.points, wanted, rtol=1e-12, atol=1e-15)  # rounding of log and exp


class TestFit:
    def test_points_that_fall_are_kept(self):
        assert_points(fit([(0.6, 0.8), (-0.3, 1.2), (0.0, 1.0)]), [(-0.3, 1.2), (0.0, 1.0), (0.6, 0.8)])

    def test_speeds_count_against_that_at_zero(self):
        found = fit([(-0.3, 1.26), (0.0, 1.05), (0.6, 0.84)])
        assert_points(found, [(-0.3, 1.2), (0.0, 1.0), (0.6, 0.8)])

    def test_neighbours_that_do_not_fall_become_one(self):
        found = fit([(-0.4, 1.2), (-0.2, 1.25), (0.0, 1.0), (0.2, 0.8), (0.4, 0.81), (0.6, 0.7)])
        assert_points(found, [(-0.3, math.sqrt(1.2 * 1.25)), (0.0, 1.0), (0.3, math.sqrt(0.8 * 0.81)), (0.6, 0.7)])

    def test_zero_stays_the_own_pace(self):
        found = fit([(-0.4, 1.2), (0.0, 1.0), (0.05, 1.002), (0.6, 0.7)])
        assert_points(found, [(-0.4, 1.2), (0.0, 1.0), (0.6, 0.7)])

    @pytest.mark.parametrize("measured", [[(-0.3, 1.2), (0.3, 0.8)], [(0.0, 1.0), (0.0, 1.1)], []])
    def test_without_zero_or_twice(self, measured):
        with pytest.raises(InputError, match="wanted each once, 0 among them"):
            fit(measured)

    @pytest.mark.parametrize("speeds", [(0.9, 1.0, 1.1), (1.0, 1.0, 1.0)])
    def test_a_model_that_does_not_listen(self, speeds):
        with pytest.raises(InputError, match=r"at duration_delta -0\.3, 0, 0\.3: they do not fall"):
            fit(list(zip((-0.3, 0.0, 0.3), speeds, strict=True)))

    @given(st.lists(st.floats(0.5, 2), min_size=5, max_size=5))
    def test_whatever_was_measured_falls_or_is_refused(self, speeds):
        deltas = (-0.4, -0.2, 0.0, 0.2, 0.4)
        try:
            found = fit(list(zip(deltas, speeds, strict=True)))
        except InputError:
            return
        assert speed_of(delta_of(found.fastest, found), found) == pytest.approx(found.fastest)


class TestFile:
    def test_there_and_back(self, tmp_path):
        mine = SpeedMap(((-0.5, 1.4), (0.0, 1.0), (0.6, 0.7)))
        path = write_map(tmp_path, mine, {"model": "phonon-31m-en", "n_texts": 3})
        assert read_map(tmp_path) == mine
        assert json.loads(path.read_bytes())["model"] == "phonon-31m-en"
        assert delta_of(1.35, read_map(tmp_path)) < delta_of(1.3, read_map(tmp_path))

    def test_none_is_the_built_in_one(self, tmp_path):
        assert read_map(tmp_path) is BUILT_IN
        assert read_map(None) is BUILT_IN

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"[]",
            b'{"format": "sonant-speed-1"}',
            b'{"format": "sonant-speed-9", "points": []}',
            b'{"format": "sonant-speed-1", "points": [{"duration_delta": 0, "speed": 1}]}',
            b'{"format": "sonant-speed-1", "points": [{"duration_delta": 0, "speed": "x"}]}',
            b'{"format": "sonant-speed-1", "points": [[0, 1], [1, 0.5]]}',
        ],
    )
    def test_a_damaged_file_is_no_silent_default(self, tmp_path, raw):
        (tmp_path / "speed.json").write_bytes(raw)
        with pytest.raises(CheckpointError, match=r"speed\.json.*measure again"):
            read_map(tmp_path)
