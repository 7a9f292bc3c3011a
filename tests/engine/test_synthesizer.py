"""The engine over a driver of its own, so that what is tested is the engine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from counting import CountingDriver

from sonant.backends.backend import CancelFlag
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import Cancelled, InputError


def test_speech_is_the_stream_joined(driver: CountingDriver) -> None:
    synth = Synthesizer("counting", driver)
    speech, chunks = synth.speak("a b c"), list(synth.stream("a b c"))
    np.testing.assert_array_equal(speech.samples, np.concatenate([c.samples for c in chunks]))
    assert speech.words == tuple(w for c in chunks for w in c.words)
    assert [round(w.start_s, 3) for w in speech.words] == [0.01, 0.11, 0.21]
    assert [c.start_s for c in chunks] == [0.0, 0.1, 0.2]


def test_nothing_to_say_is_an_empty_speech(driver: CountingDriver) -> None:
    speech = Synthesizer("counting", driver).speak("  ")
    assert (len(speech.samples), speech.words, speech.duration_s) == (0, (), 0.0)
    assert json.loads(speech.to_json())["words"] == []


def test_closing_a_stream_stops_the_work(driver: CountingDriver) -> None:
    stream = Synthesizer("counting", driver).stream("a b c d")
    next(stream)
    stream.close()
    assert driver.spoken == [0]
    assert driver.cancel is not None
    assert driver.cancel.is_set


def test_a_piece_in_stretches_is_the_same_speech() -> None:
    whole = Synthesizer("counting", CountingDriver()).speak("a b")
    driver = CountingDriver(grain=30)
    synth = Synthesizer("counting", driver)
    chunks = list(synth.stream("a b"))
    assert [len(c.samples) for c in chunks] == [30, 30, 30, 10] * 2
    assert [c.start_s for c in chunks] == [0.0, 0.03, 0.06, 0.09, 0.1, 0.13, 0.16, 0.19]
    assert [[w.text for w in c.words] for c in chunks] == [[], [], ["a"], [], [], [], ["b"], []]
    speech = synth.speak("a b")
    np.testing.assert_array_equal(speech.samples, whole.samples)
    assert speech.words == whole.words


def test_closing_a_stream_ends_the_piece_it_is_in() -> None:
    driver = CountingDriver(grain=10)
    stream = Synthesizer("counting", driver).stream("a b")
    next(stream)
    assert driver.closed == []
    stream.close()
    assert driver.closed == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0}, "speed is 0; wanted a number from 0.25 to 4"),
        ({"speed": float("nan")}, "speed is nan"),
        ({"speed": "fast"}, "speed is 'fast'"),
        ({"seed": -1}, "seed is -1; wanted a whole number"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"sped": 1.5}, r"unknown option 'sped'; did you mean 'speed'.*\?"),
        ({"markup": "of"}, "unknown markup 'of'; did you mean 'off'"),
    ],
)
def test_bad_options_are_named_before_any_work(
    driver: CountingDriver, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Synthesizer("counting", driver).stream("a", **options)  # type: ignore[arg-type]
    assert driver.spoken == []


def test_text_must_be_text(driver: CountingDriver) -> None:
    with pytest.raises(InputError, match="text is a bytes; wanted a str"):
        Synthesizer("counting", driver).speak(b"a")  # type: ignore[arg-type]


def test_a_speech_knows_its_text(driver: CountingDriver) -> None:
    speech = Synthesizer("counting", driver).speak("a  bc d")
    assert [speech.text[w.char_start : w.char_end] for w in speech.words] == [w.text for w in speech.words]


def test_a_flag_of_the_caller_stops_the_work_and_stays_theirs(driver: CountingDriver) -> None:
    synth, flag = Synthesizer("counting", driver), CancelFlag()
    assert len(list(synth.stream("a b", cancel=flag))) == 2
    assert not flag.is_set
    stream = synth.stream("a b c", cancel=flag)
    next(stream)
    flag.set()
    with pytest.raises(Cancelled):
        next(stream)
    with pytest.raises(Cancelled):
        synth.speak("slow", cancel=flag)
