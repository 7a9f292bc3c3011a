"""Pauses, speeds and given phonemes on their way from the text to the samples."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.backends.backend import CancelFlag
from sonant.families.kokoro.driver import KokoroDriver
from sonant.options import SpeakOptions
from sonant.text import foreign

RATE = 24_000
FRAMES = 4


class FlatDriver(KokoroDriver):
    """Text and times are real; a piece sounds as ones, four frames for every phoneme."""

    def __init__(self) -> None:
        self.speeds: list[float] = []

    def speak_phonemes(self, phonemes, voice, speed, seed, cancel=None):
        self.speeds.append(speed)
        frames = np.full(len(phonemes) + 2, FRAMES, np.int64)
        return np.ones(600 * int(frames.sum()), np.float32), frames

    def _voice(self, options):
        return None


def spoken(text: str, **options: object):
    driver = FlatDriver()
    chosen = SpeakOptions(language="en-US", **options)
    pieces = driver.pieces(text, chosen)
    audio = [next(driver.stream_piece(piece, i, chosen, CancelFlag())) for i, piece in enumerate(pieces)]
    return driver, audio


def silences(samples: np.ndarray) -> list[int]:
    """Lengths of the runs of exact zeros."""
    edges = np.flatnonzero(np.diff(np.concatenate([[1], samples != 0, [1]]).astype(int)))
    return [int(b - a) for a, b in edges.reshape(-1, 2)]


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("Hello. [pause 1s] Bye.", [24_000]),
        ("[pause 1s]Hello.", [24_000]),
        ("Hello. [pause 333ms]", [7_992]),
        ("One.\n\nTwo.\n\n\nThree.", [7_200, 7_200]),
        ("One.\nTwo.", []),
        ("[pause 250ms]", [6_000]),
    ],
)
def test_silence_is_exact(text, lengths):
    _, audio = spoken(text)
    assert silences(np.concatenate([a.samples for a in audio])) == lengths


def test_words_move_with_the_silence():
    _, plain = spoken("Hello.")
    _, later = spoken("[pause 1s]Hello.")
    assert later[0].words[0].start_s == pytest.approx(plain[0].words[0].start_s + 1)
    assert later[0].words[0].end_s == pytest.approx(plain[0].words[0].end_s + 1)
    assert (later[0].words[0].char_start, later[0].words[0].text) == (10, "Hello.")


def test_words_without_sound_in_a_pause_are_kept():
    _, (audio,) = spoken("[pause 1s] 🎉")
    assert [w.text for w in audio.words] == ["🎉"]
    assert audio.words[0].start_s == audio.words[0].end_s


def test_speed_multiplies_and_stays_in_range():
    driver, _ = spoken("One [speed 2] two [speed 4] three [speed 1] four", speed=1.5)
    assert driver.speeds == [1.5, 3.0, 4.0, 1.5]


class SilentSpeaker:
    def split(self, word):
        return [word]

    def say(self, words):
        return ["a" for _ in words]


def test_other_languages_are_read_by_their_own_front_end(monkeypatch):
    monkeypatch.setattr(foreign, "_speaker", lambda language: SilentSpeaker())
    driver = FlatDriver()
    for language in foreign.LANGUAGES:
        pieces = driver.pieces("Hola [pause 1s] ¡tú!", SpeakOptions(language=language))
        assert [(p.phonemes, p.pause_before_s) for p in pieces] == [("a", 0), ("a", 1)]
    assert set(foreign.LANGUAGES) < set(driver.capabilities.languages)


def test_options_of_reading_reach_the_pieces():
    driver = FlatDriver()
    options = SpeakOptions(language="en-US", text_format="markdown", lexicon={"sonant": "sˈOnənt"}, heading_pause_s=1)
    pieces = driver.pieces("# Sonant\n\n**Hi** [tomato](/təmˈɑːtoʊ/)", options)
    assert [(p.phonemes, p.pause_before_s) for p in pieces] == [("sˈOnənt.", 0), ("hˈI təmˈɑːtoʊ", 1)]
