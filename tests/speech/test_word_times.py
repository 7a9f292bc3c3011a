"""Word times of real speech against instruments that know nothing of the model."""

from __future__ import annotations

import json
from pathlib import Path

import instruments
import numpy as np
import pytest

import sonant

DATA = Path(__file__).parents[1] / "families" / "kokoro" / "data"
TEXTS = [
    *json.loads((DATA / "benchmark_texts.json").read_text(encoding="utf-8")),
    "Well, I thought about it; then, after a while, I said no.",
    "First, open the door. Next, turn left, and then go straight.",
]

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def speeches(synth: sonant.Synthesizer) -> list[sonant.Speech]:
    return [synth.speak(text) for text in TEXTS]


def test_word_starts_agree_with_a_forced_aligner(speeches: list[sonant.Speech]) -> None:
    pytest.importorskip("pocketsphinx")
    differences: list[float] = []
    for speech in speeches:
        starts = instruments.aligned_starts(speech.samples, speech.sample_rate, [w.text for w in speech.words])
        if starts is not None:
            differences += [abs(w.start_s - s) for w, s in zip(speech.words, starts, strict=True)]
    assert len(differences) >= 170
    assert np.median(differences) <= 0.025
    assert np.mean(np.array(differences) <= 0.1) >= 0.95


def test_starts_after_silence_and_the_last_end_agree_with_energy(speeches: list[sonant.Speech]) -> None:
    starts, ends = [], []
    for speech in speeches:
        onsets = instruments.energy_onsets(speech.samples, speech.sample_rate)
        words = speech.words
        after_silence = [w.start_s for i, w in enumerate(words) if i == 0 or w.start_s - words[i - 1].end_s > 0.08]
        starts += [np.abs(onsets - s).min() for s in after_silence]
        ends.append(abs(words[-1].end_s - instruments.energy_end(speech.samples, speech.sample_rate)))
    assert np.median(starts) <= 0.020
    assert max(ends) <= 0.040
