from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.families.kokoro.timing import FRAME_S, LEAD_CONSONANT_S, LEAD_VOWEL_S, word_timings
from sonant.text.english import Piece, PieceWord


def piece(*words: tuple[str, int, int], phonemes: str = "x" * 20) -> Piece:
    made = tuple(
        PieceWord(text=t, start=10 * i, end=10 * i + len(t), phoneme_start=a, phoneme_end=b, normalized=t)
        for i, (t, a, b) in enumerate(words)
    )
    return Piece(phonemes=phonemes, words=made, start=0, end=100, paragraph_end=True)


def test_within_a_phrase_a_word_lasts_until_the_next_one() -> None:
    frames = np.array([4, 2, 3, 1, 5, 2], np.int64)  # both ends included
    found = word_timings(piece(("xb", 0, 2), ("x", 3, 4)), frames, np.ones(17 * 600, np.float32))
    assert found[0].end_s == found[1].start_s == pytest.approx(10 * FRAME_S - LEAD_CONSONANT_S)


def test_a_vowel_leads_less_than_a_consonant() -> None:
    frames = np.array([4, 8, 1, 5, 2], np.int64)
    vowel = word_timings(piece(("a", 0, 1), ("ˈæ", 2, 3), phonemes="k æ"), frames, np.ones(20 * 600, np.float32))
    assert vowel[1].start_s == pytest.approx(13 * FRAME_S - LEAD_VOWEL_S)


def test_after_silence_a_word_starts_and_ends_with_its_sound() -> None:
    frames = np.array([4, 20, 10], np.int64)
    samples = np.zeros(34 * 600, np.float32)
    samples[1200:9000] = 0.5  # frames say 100 ms; the sound begins at 50 ms
    (word,) = word_timings(piece(("ab", 0, 1)), frames, samples)
    assert word.start_s == pytest.approx(1200 / 24_000, abs=0.005)
    assert word.end_s == pytest.approx(9000 / 24_000, abs=0.005)


def test_phonemes_fill_their_word_and_stress_belongs_to_what_it_stresses() -> None:
    frames = np.array([4, 2, 3, 1, 2, 1, 5, 2], np.int64)
    first, _ = word_timings(piece(("xˈæb", 0, 4), ("x", 5, 6), phonemes="xˈæb x"), frames, np.ones(12000, np.float32))
    assert [p.symbol for p in first.phonemes] == ["x", "ˈæ", "b"]
    assert (first.phonemes[0].start_s, first.phonemes[-1].end_s) == (first.start_s, first.end_s)
    assert all(a.end_s == b.start_s for a, b in itertools.pairwise(first.phonemes))
    assert first.phonemes[1].start_s == pytest.approx(6 * FRAME_S - LEAD_VOWEL_S)
    assert first.phonemes[2].start_s == pytest.approx(10 * FRAME_S - LEAD_CONSONANT_S)


def test_silent_words_keep_their_place_in_order() -> None:
    frames = np.array([4, 2, 3, 2], np.int64)
    found = word_timings(piece(("—", 0, 0), ("ab", 0, 2), ("🎉", 2, 2)), frames, np.ones(11 * 600, np.float32))
    assert [w.text for w in found] == ["—", "ab", "🎉"]
    assert found[0].start_s == found[0].end_s == 0
    assert found[2].start_s == found[2].end_s == found[1].end_s
    assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(found))


@given(st.lists(st.integers(1, 30), min_size=8, max_size=8), st.integers(0, 2**32 - 1))
def test_times_are_in_order_and_inside_the_samples(frames: list[int], seed: int) -> None:
    length = sum(frames) * 600
    samples = np.random.default_rng(seed).standard_normal(length).astype(np.float32)
    samples[length // 3 : length // 2] = 0
    words = piece(("a", 0, 1), ("—", 1, 1), ("b", 2, 4), ("c", 5, 6))
    found = word_timings(words, np.array(frames, np.int64), samples)
    times = [t for w in found for t in (w.start_s, w.end_s)]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= length / 24_000 + 1e-9


def test_no_words_have_no_times() -> None:
    assert word_timings(piece(("—", 0, 0)), np.array([2, 2], np.int64), np.zeros(2400, np.float32))[0].end_s == 0
