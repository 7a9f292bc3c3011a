from __future__ import annotations

import itertools

import numpy as np
import pytest

from sonant.families.kokoro.timing import FRAME_S, LEAD_S, word_timings
from sonant.text.english import Piece, PieceWord


def piece(*words: tuple[str, int, int]) -> Piece:
    made = tuple(
        PieceWord(text=t, start=10 * i, end=10 * i + len(t), phoneme_start=a, phoneme_end=b, normalized=t)
        for i, (t, a, b) in enumerate(words)
    )
    return Piece(phonemes="x" * 20, words=made, start=0, end=100, paragraph_end=True)


def test_a_word_is_the_sum_of_its_phonemes_minus_the_lead() -> None:
    frames = np.array([4, 2, 3, 1, 5, 2], np.int64)  # both ends included
    found = word_timings(piece(("ab", 0, 2), ("c", 3, 4)), frames, np.ones(17 * 600, np.float32))
    assert found[0].start_s == pytest.approx(4 * FRAME_S - LEAD_S)
    assert found[0].end_s == pytest.approx(9 * FRAME_S - LEAD_S)
    assert found[1].start_s == pytest.approx(10 * FRAME_S - LEAD_S)


def test_the_last_word_ends_with_its_sound() -> None:
    frames = np.array([4, 20, 10], np.int64)
    samples = np.zeros(34 * 600, np.float32)
    samples[2400:9000] = 0.5
    (word,) = word_timings(piece(("ab", 0, 1)), frames, samples)
    assert word.end_s == pytest.approx(9000 / 24_000, abs=0.005)


def test_silent_words_keep_their_place_in_order() -> None:
    frames = np.array([4, 2, 3, 2], np.int64)
    found = word_timings(piece(("—", 0, 0), ("ab", 0, 2), ("🎉", 2, 2)), frames, np.ones(11 * 600, np.float32))
    assert [w.text for w in found] == ["—", "ab", "🎉"]
    assert found[0].start_s == found[0].end_s == 0
    assert found[2].start_s == found[2].end_s == found[1].end_s
    assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(found))
