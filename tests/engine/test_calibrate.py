"""Measuring the pace, on a synthesizer whose true pace is known."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest

from sonant.engine import calibrate
from sonant.errors import InputError
from sonant.families.phonon.speed import BUILT_IN, delta_of, read_map


class Speaker:
    """Takes speeds by the built-in map, and is really slower at its ends; a seed makes a text 5 % longer or shorter."""

    def speak(self, text, *, voice, speed, seed):
        delta = delta_of(speed)
        true = math.exp(-0.4 * delta)
        length_s = sum(map(str.isalpha, text)) / 15 * (1.05 if seed % 2 else 0.95) / true
        return SimpleNamespace(duration_s=round(length_s * 12.5) / 12.5)


def test_the_true_pace_is_found():
    paces = calibrate.measure(Speaker(), BUILT_IN, ["a" * 400, "b" * 150, "c" * 900], seeds=2)
    assert [p.duration_delta for p in paces] == sorted(calibrate.DELTAS)
    for pace in paces:
        # frames of 80 ms in texts of 10 s and more: at most 0.4 % a length
        assert pace.speed == pytest.approx(math.exp(-0.4 * pace.duration_delta), rel=5e-3)
        assert pace.error < 5e-3
    assert next(p for p in paces if p.duration_delta == 0).error == 0


def test_progress_is_told():
    told = []
    calibrate.measure(Speaker(), BUILT_IN, ["some text"], deltas=(0.0, 0.6), seeds=3, done=lambda *at: told.append(at))
    assert [round(fraction, 3) for fraction, _ in told] == [0.167, 0.333, 0.5, 0.667, 0.833, 1.0]
    assert told[-1][1] > told[0][1] > 0


@pytest.mark.parametrize("given", [{"deltas": (0.1, 0.2)}, {"texts": []}, {"seeds": 0}])
def test_nothing_to_compare_with(given):
    given = {"texts": ["text"]} | given
    with pytest.raises(InputError, match="calibration needs"):
        calibrate.measure(Speaker(), BUILT_IN, given.pop("texts"), **given)


def test_a_text_without_speech():
    with pytest.raises(InputError, match=r"nothing was said of '\.'"):
        calibrate.measure(Speaker(), BUILT_IN, ["."])


def test_it_is_kept_beside_the_checkpoint(tmp_path):
    place = calibrate.Place(tmp_path, "en", BUILT_IN)
    paces = calibrate.measure(Speaker(), BUILT_IN, ["a" * 900])
    path = calibrate.keep(place, "phonon-31m-en", paces, n_texts=1, seeds=2, voice=None)
    assert json.loads(path.read_bytes())["measured"][0]["duration_delta"] == -0.45
    assert delta_of(1.1, read_map(tmp_path)) == pytest.approx(-math.log(1.1) / 0.4, abs=0.02)


def test_another_family(tmp_path):
    with pytest.raises(InputError, match="kokoro-82m is of the family kokoro; only Phonon's pace"):
        calibrate.place_of("kokoro-82m", None, tmp_path)
