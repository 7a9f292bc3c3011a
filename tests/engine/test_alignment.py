"""Alignment in the engine: a recording with its text, and `words="align"` for families without times of their own."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from babble import Babbler
from babbling import TEXT, BabblingDriver

from sonant.backends.backend import CancelFlag
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import Cancelled, InputError, UnknownName
from sonant.families.family import PieceAudio
from sonant.options import SpeakOptions
from sonant.types import Speech, WordTiming


@pytest.fixture
def reference() -> BabblingDriver:
    return BabblingDriver(Babbler())


def truth(babbler: Babbler, text: str = TEXT) -> Speech:
    return Synthesizer("truth", BabblingDriver(babbler)).speak(text)


def assert_near(found: tuple[WordTiming, ...], wanted: tuple[WordTiming, ...]) -> None:
    """A frame is 10 ms."""
    assert [(w.text, w.char_start, w.char_end) for w in found] == [(w.text, w.char_start, w.char_end) for w in wanted]
    apart = np.abs([f.start_s - w.start_s for f, w in zip(found, wanted, strict=True)])
    assert np.median(apart) <= 0.02
    assert apart.max() <= 0.08


def test_a_recording_gets_the_times_of_its_words(reference: BabblingDriver) -> None:
    wanted = truth(Babbler(pace=1.3, jitter=0.3, pitch_hz=200))
    found = Synthesizer("babble", reference).align(wanted.samples, 24_000, TEXT)
    assert (found.word_source, found.text, found.sample_rate) == ("align", TEXT, 24_000)
    assert found.word_match is not None
    assert found.word_match > 0.3
    assert '"word_match": 0.' in found.to_json()
    np.testing.assert_array_equal(found.samples, wanted.samples)
    assert_near(found.words, wanted.words)


def test_stereo_and_float64_are_taken(reference: BabblingDriver) -> None:
    wanted = truth(Babbler(pace=0.8))
    stereo = np.stack([wanted.samples, 0 * wanted.samples], axis=1).astype(np.float64)
    found = Synthesizer("babble", reference).align(stereo, 24_000, TEXT)
    assert (found.samples.dtype, found.samples.shape) == (np.float32, wanted.samples.shape)
    assert_near(found.words, wanted.words)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (np.zeros(10, np.int16), 24_000, r"samples are int16 \[10\]; wanted floats.*divide 16-bit"),
        (np.zeros((2, 3, 4), np.float32), 24_000, r"samples are float32 \[2, 3, 4\]"),
        (np.zeros((2, 48_000), np.float32), 24_000, r"\[2, 48000\]; wanted floats in −1…1, \[S\] or \[S, channels\]"),
        (np.full(10, np.nan, np.float32), 24_000, "no finite numbers"),
        (np.zeros(10, np.float32), 24_000.5, "sample_rate is 24000.5; wanted a whole number from 4000"),
        (np.zeros(10, np.float32), 100, "sample_rate is 100; wanted a whole number from 4000"),
    ],
)
def test_what_is_no_recording_is_refused_before_any_work(
    reference: BabblingDriver, samples: np.ndarray, rate: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Synthesizer("babble", reference).align(samples, rate, TEXT)
    assert reference.texts == []


def test_a_text_that_is_not_said_is_refused(reference: BabblingDriver) -> None:
    other = truth(Babbler(), "four hours of steady work faced us when a zebra jumped over my fox")
    with pytest.raises(InputError, match=r"the text does not fit the recording \(match 0\.0"):
        Synthesizer("babble", reference).align(other.samples, 24_000, TEXT)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(reference: BabblingDriver, text: str) -> None:
    with pytest.raises(InputError, match="the text makes no sound"):
        Synthesizer("babble", reference).align(np.ones(5000, np.float32), 24_000, text)


def test_a_family_without_times_gets_them(reference: BabblingDriver) -> None:
    babbler = Babbler(pace=0.8, jitter=0.3, pitch_hz=180)
    brought: list[str] = []

    def bring() -> Synthesizer:
        brought.append("reference")
        return Synthesizer("reference", reference)

    synth = Synthesizer("babble", BabblingDriver(babbler, timed=False), reference=bring)
    native = synth.speak(TEXT)
    assert (native.word_source, brought) == ("none", [])
    speech = synth.speak(TEXT, words="align")
    assert (speech.word_source, brought) == ("align", ["reference"])
    np.testing.assert_array_equal(speech.samples, native.samples)
    assert_near(speech.words, truth(babbler).words)
    chunks = list(synth.stream(TEXT, words="align"))
    assert len(chunks) == 2  # one a piece
    assert tuple(w for c in chunks for w in c.words) == speech.words
    assert brought == ["reference"]


def test_sessions_align_too(reference: BabblingDriver) -> None:
    babbler = Babbler(pace=0.8)
    synth = Synthesizer(
        "babble", BabblingDriver(babbler, timed=False), reference=lambda: Synthesizer("reference", reference)
    )
    with synth.session(words="align", commit="manual") as session:
        session.feed(TEXT)
        session.end()
        words = tuple(w for chunk in session for w in chunk.words)
    assert all(w.end_s > w.start_s for w in words)
    assert len(words) == len(TEXT.split())


def test_a_word_with_spaces_inside_is_one(reference: BabblingDriver) -> None:
    class Joining(BabblingDriver):
        def stream_piece(
            self, piece: tuple[str, int], index: int, options: SpeakOptions, cancel: CancelFlag
        ) -> Generator[PieceAudio, None, None]:
            *parts, last = super().stream_piece(piece, index, options, cancel)
            yield from parts
            a, b, c, *rest = last.words
            yield PieceAudio(last.samples, (a, replace(b, text="birch canoe", char_end=c.char_end), *rest))

    text = TEXT[:38]
    synth = Synthesizer(
        "babble", Joining(Babbler(pace=1.2), timed=False), reference=lambda: Synthesizer("r", reference)
    )
    words = synth.speak(text, words="align").words
    wanted = truth(Babbler(pace=1.2), text).words
    assert [w.text for w in words][:3] == ["the", "birch canoe", "slid"]
    assert words[1].start_s == pytest.approx(wanted[1].start_s, abs=0.05)
    assert words[1].end_s == pytest.approx(wanted[2].end_s, abs=0.05)


def test_doubtful_times_are_said(reference: BabblingDriver, caplog: pytest.LogCaptureFixture) -> None:
    class Mumbling(BabblingDriver):
        def stream_piece(
            self, piece: tuple[str, int], index: int, options: SpeakOptions, cancel: CancelFlag
        ) -> Generator[PieceAudio, None, None]:
            *_, last = super().stream_piece(piece, index, options, cancel)
            noise = np.random.default_rng(1).standard_normal(24_000 * 4).astype(np.float32)
            yield PieceAudio(0.1 * noise * np.repeat(np.random.default_rng(2).random(96), 1000), last.words)

    synth = Synthesizer("babble", Mumbling(Babbler()), reference=lambda: Synthesizer("r", reference))
    synth._driver.capabilities = replace(synth.capabilities, word_source="none")
    with caplog.at_level(logging.WARNING, "sonant.align"):
        speech = synth.speak(TEXT[:38], words="align")
    assert "hardly fits 'the birch canoe" in caplog.text
    assert [w.text for w in speech.words] == TEXT[:38].split()


def test_bad_values_and_a_missing_voice_are_named(reference: BabblingDriver) -> None:
    synth = Synthesizer("babble", BabblingDriver(Babbler(), timed=False))
    with pytest.raises(UnknownName, match="unknown words 'aligned'; did you mean 'align'"):
        synth.speak(TEXT, words="aligned")
    with pytest.raises(InputError, match="babble has no exact word times of its own and was given no voice"):
        synth.speak(TEXT, words="align")


def test_aligning_can_be_cancelled(reference: BabblingDriver) -> None:
    flag = CancelFlag()
    flag.set()
    with pytest.raises(Cancelled):
        Synthesizer("babble", reference).align(np.ones(5000, np.float32), 24_000, TEXT, cancel=flag)


def test_the_snippet_of_the_page_runs(reference: BabblingDriver) -> None:
    page = (Path(__file__).parents[2] / "docs" / "align.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {
        "synth": Synthesizer("babble", reference),
        "samples": truth(Babbler()).samples,
        "sample_rate": 24_000,
        "text": TEXT,
    }
    exec(snippet, names)
