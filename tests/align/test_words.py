"""Words of one babble laid over another, where every time is known exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from babble import Babbler
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.align.words import place_words
from sonant.errors import InputError
from sonant.types import PhonemeTiming, WordTiming

TEXT = "the birch canoe slid on smooth planks and glue holds the dark blue sheet"
REFERENCE = Babbler()
SPOKEN, WORDS = REFERENCE.say(TEXT)


def place(samples: np.ndarray, rate: int = 24_000, words: tuple[WordTiming, ...] = WORDS) -> tuple[WordTiming, ...]:
    return place_words(words, SPOKEN, 24_000, samples, rate).words


def starts_apart_s(found: tuple[WordTiming, ...], truth: tuple[WordTiming, ...]) -> np.ndarray:
    return np.abs([f.start_s - t.start_s for f, t in zip(found, truth, strict=True)])


@pytest.mark.parametrize(
    "speaker",
    [
        Babbler(),
        Babbler(pitch_hz=210, stretch=1.08),
        Babbler(pace=1.7, jitter=0.3),
        Babbler(pace=0.6, jitter=0.3),
        Babbler(lead_s=4.0),
        Babbler(lead_s=0.0),
        Babbler(pauses={3: 1.5, 4: 0.4, 9: 2.0}),
        Babbler(sample_rate=8000),
        Babbler(sample_rate=44_100, pitch_hz=90),
    ],
    ids=["same", "higher", "faster", "slower", "late", "at once", "pausing", "telephone", "studio"],
)
def test_words_are_found_in_another_babble(speaker: Babbler) -> None:
    """A frame is 10 ms, its window 25 ms."""
    samples, truth = speaker.say(TEXT)
    found = place(samples, speaker.sample_rate)
    apart = starts_apart_s(found, truth)
    assert np.median(apart) <= 0.015
    assert apart.max() <= 0.06


def test_words_end_before_a_pause_and_start_after_it() -> None:
    samples, truth = Babbler(pauses={5: 1.0}).say(TEXT)
    found = place(samples)
    assert found[4].end_s == pytest.approx(truth[4].end_s, abs=0.025)
    assert found[5].start_s == pytest.approx(truth[5].start_s, abs=0.025)


def test_noise_is_stood() -> None:
    samples, truth = Babbler(pace=1.2, jitter=0.2).say(TEXT)
    noise = np.random.default_rng(5).standard_normal(len(samples)).astype(np.float32)
    loud = samples[np.abs(samples) > 0.02]
    noisy = samples + noise * np.sqrt(np.mean(loud**2)) * 10 ** (-10 / 20)  # 10 dB below the speech
    assert np.median(starts_apart_s(place(noisy), truth)) <= 0.03


@settings(max_examples=15)  # two warps each
@given(
    st.floats(0.4, 2.2),
    st.floats(0, 0.5),
    st.floats(0, 1),
    st.dictionaries(st.integers(1, 13), st.floats(0, 1.5), max_size=4),
    st.integers(0, 1000),
)
def test_every_word_once_in_order_and_inside(
    pace: float, jitter: float, lead_s: float, pauses: dict[int, float], seed: int
) -> None:
    samples, _ = Babbler(pace=pace, jitter=jitter, lead_s=lead_s, pauses=pauses, seed=seed).say(TEXT)
    found = place(samples)
    assert [(w.text, w.char_start, w.char_end) for w in found] == [(w.text, w.char_start, w.char_end) for w in WORDS]
    times = [t for w in found for t in (w.start_s, w.end_s)]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= len(samples) / 24_000


def test_a_word_without_sound_keeps_its_place() -> None:
    dash = WordTiming("–", WORDS[2].end_s, WORDS[2].end_s, 15, 16)
    samples, _ = Babbler(pace=1.3).say(TEXT)
    found = place(samples, words=(*WORDS[:3], dash, *WORDS[3:]))
    assert found[3].text == "–"
    assert found[3].start_s == found[3].end_s == found[2].end_s


def test_phonemes_go_with_their_word() -> None:
    words = tuple(
        replace(
            w,
            phonemes=(
                PhonemeTiming("x", w.start_s, (w.start_s + w.end_s) / 2),
                PhonemeTiming("y", (w.start_s + w.end_s) / 2, w.end_s),
            ),
        )
        for w in WORDS
    )
    samples, truth = Babbler(pace=0.7).say(TEXT)
    for word, true in zip(place(samples, words=words), truth, strict=True):
        first, second = word.phonemes
        assert (first.start_s, first.end_s, second.end_s) == (word.start_s, second.start_s, word.end_s)
        assert first.end_s == pytest.approx((true.start_s + true.end_s) / 2, abs=0.06)


def test_what_was_said_matches_and_what_was_not_does_not() -> None:
    said, _ = Babbler(pace=1.2, jitter=0.3, pitch_hz=180).say(TEXT)
    other, _ = Babbler().say("four hours of steady work faced us when a zebra jumped quickly over my fox")
    assert place_words(WORDS, SPOKEN, 24_000, said, 24_000).match > 0.4
    assert place_words(WORDS, SPOKEN, 24_000, other, 24_000).match < 0.1


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(24_000, np.float32), "the recording is silent"),
        (np.zeros(0, np.float32), "the recording is silent"),
        (Babbler().say("the")[0], r"holds 0\.\d s of sound, the text takes about \d\.\d s"),
        (np.tile(SPOKEN, 6), r"cut the recording or complete the text"),
    ],
)
def test_a_recording_that_cannot_hold_the_text_is_refused(samples: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        place(samples)


def test_a_text_without_sound_is_refused() -> None:
    with pytest.raises(InputError, match="the text makes no sound"):
        place_words((), np.zeros(100, np.float32), 24_000, SPOKEN, 24_000)
