"""The aligner on real speech. One English voice is packaged, so the recordings are that voice changed: played faster or
slower, which moves pitch, resonances and pace together, over a telephone, in noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sonant

TEXTS = json.loads(
    (Path(__file__).parents[1] / "families" / "kokoro" / "data" / "benchmark_texts.json").read_text(encoding="utf-8")
)
SAID = " ".join(TEXTS[:5])

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def said(synth: sonant.Synthesizer) -> sonant.Speech:
    return synth.speak(SAID, speed=0.9, seed=7)


@pytest.mark.parametrize("faster", [0.87, 1.15])
@pytest.mark.parametrize("noise_db", [None, 15.0])
def test_words_of_another_throat_are_found(
    synth: sonant.Synthesizer, said: sonant.Speech, faster: float, noise_db: float | None
) -> None:
    samples = said.samples
    if noise_db is not None:
        level = np.sqrt(np.mean(np.square(samples[np.abs(samples) > 0.02]))) * 10 ** (-noise_db / 20)
        samples = samples + level * np.random.default_rng(0).standard_normal(len(samples)).astype(np.float32)
    found = synth.align(samples, round(said.sample_rate * faster), SAID)
    apart_ms = 1e3 * np.abs([f.start_s - w.start_s / faster for f, w in zip(found.words, said.words, strict=True)])
    assert np.median(apart_ms) <= 30
    assert np.mean(apart_ms <= 100) >= 0.85
    assert found.word_match is not None
    assert found.word_match >= 0.2
    assert [w.text for w in found.words] == SAID.split()
    assert all(w.phonemes for w in found.words)


def test_another_text_is_refused(synth: sonant.Synthesizer, said: sonant.Speech) -> None:
    with pytest.raises(sonant.InputError, match="the text does not fit the recording"):
        synth.align(said.samples, said.sample_rate, " ".join(TEXTS[5:10]))


def test_a_speech_aligned_with_itself_keeps_its_times(synth: sonant.Synthesizer) -> None:
    """To a frame, and the 7 ms that Kokoro's words are early within phrases."""
    own, aligned = synth.speak(SAID), synth.speak(SAID, words="align")
    np.testing.assert_array_equal(aligned.samples, own.samples)
    assert aligned.word_source == "align"
    apart_s = np.abs([a.start_s - w.start_s for a, w in zip(aligned.words, own.words, strict=True)])
    assert np.median(apart_s) <= 0.012
    assert apart_s.max() <= 0.05
