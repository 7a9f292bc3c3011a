"""The engine over a driver of its own, so that what is tested is the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from sonant.backends.backend import CancelFlag
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import InputError
from sonant.families.family import PieceAudio
from sonant.options import SpeakOptions
from sonant.types import Capabilities, VoiceInfo, WordTiming

RATE = 1000


class CountingDriver:
    """One piece per word, 100 samples each, whose value is the index of the piece."""

    sample_rate = RATE
    capabilities = Capabilities(
        languages=("en-US",),
        named_voices=True,
        voice_blending=False,
        cloning=False,
        speed=True,
        streaming_grain="piece",
        word_source="duration",
        licence="none",
    )

    def __init__(self) -> None:
        self.spoken: list[int] = []
        self.cancel: CancelFlag | None = None

    def voices(self) -> list[VoiceInfo]:
        return [VoiceInfo("one", "en-US", None)]

    def pieces(self, text: str, options: SpeakOptions) -> Sequence[str]:
        return text.split()

    def speak_piece(self, piece: str, index: int, options: SpeakOptions, cancel: CancelFlag) -> PieceAudio:
        self.spoken.append(index)
        self.cancel = cancel
        return PieceAudio(np.full(100, index, np.float32), (WordTiming(piece, 0.01, 0.09, 0, len(piece)),))


@pytest.fixture
def driver() -> CountingDriver:
    return CountingDriver()


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
    stream.close()  # type: ignore[attr-defined]
    assert driver.spoken == [0]
    assert driver.cancel is not None
    assert driver.cancel.is_set


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0}, "speed is 0; wanted a number from 0.25 to 4"),
        ({"speed": float("nan")}, "speed is nan"),
        ({"speed": "fast"}, "speed is 'fast'"),
        ({"seed": -1}, "seed is -1; wanted a whole number"),
        ({"seed": 1.5}, "seed is 1.5"),
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
