"""Features of the same sound are the same whatever the recording did to it."""

from __future__ import annotations

import numpy as np
import pytest
from babble import Babbler

from sonant.align.features import Bands, backwards, bands, highest_hz, matched, mel_bank, silence_db

TEXT = "the seven lazy dogs sing"


def of(samples: np.ndarray, rate: int, *rates: int) -> Bands:
    return bands(samples, rate, highest_hz(rate, *rates))


def test_a_frame_every_ten_milliseconds_from_the_first_sample_on() -> None:
    samples = np.zeros(24_000, np.float32)
    samples[12_000:12_010] = 1.0
    found = of(samples, 24_000)
    assert found.frames == 101
    assert int(found.level_db().argmax()) == 50


def test_loudness_does_not_matter() -> None:
    samples, _ = Babbler().say(TEXT)
    np.testing.assert_allclose(of(samples, 24_000).mel, of(samples * 0.01, 24_000).mel, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("rate", [8000, 16_000, 44_100])
def test_the_sample_rate_hardly_matters(rate: int) -> None:
    """The babble has next to nothing above 3.6 kHz; its consonants are other noise at another rate."""
    (one, _), (other, _) = Babbler().say(TEXT), Babbler(sample_rate=rate).say(TEXT)
    x, y = matched(of(one, 24_000, rate), of(other, rate, 24_000))
    frames = min(len(x), len(y))
    apart = np.linalg.norm(x[:frames] - y[:frames], axis=1).mean()
    by_chance = np.linalg.norm(x[:frames] - np.roll(y[:frames], frames // 3, axis=0), axis=1).mean()
    assert apart < 0.35 * by_chance


def test_noise_hides_the_same_in_both() -> None:
    samples, _ = Babbler().say(TEXT)
    noisy = samples + 0.01 * np.random.default_rng(0).standard_normal(len(samples)).astype(np.float32)
    x, y = matched(of(samples, 24_000), of(noisy, 24_000))
    clean, _ = matched(of(samples, 24_000), of(samples, 24_000))
    assert np.linalg.norm(x - y, axis=1).mean() < 0.6 * np.linalg.norm(clean - y, axis=1).mean()


def test_silence_is_told_from_speech_with_and_without_noise() -> None:
    samples, words = Babbler(lead_s=0.5).say(TEXT)
    for noise in (0.0, 0.003):
        heard = samples + noise * np.random.default_rng(1).standard_normal(len(samples)).astype(np.float32)
        found = of(heard, 24_000)
        loud = found.level_db() >= silence_db(found)
        first, last = round(words[0].start_s * 100), round(words[-1].end_s * 100)
        assert loud[first + 2 : last - 2].mean() > 0.9
        assert loud[: first - 3].mean() < 0.1
        assert loud[last + 4 :].mean() < 0.1


def test_silence_and_a_single_sample_are_finite() -> None:
    for samples in (np.zeros(0, np.float32), np.zeros(5000, np.float32), np.ones(1, np.float32)):
        x, y = matched(of(samples, 24_000), of(samples, 24_000))
        assert np.isfinite(x).all()
        assert np.isfinite(y).all()


def test_backwards_features_are_those_of_the_sound_backwards() -> None:
    samples, _ = Babbler().say(TEXT)
    samples = samples[: len(samples) // 240 * 240 + 1]  # frames are centred on the same samples from both ends
    x, _ = matched(*[of(samples, 24_000)] * 2)
    y, _ = matched(*[of(samples[::-1].copy(), 24_000)] * 2)
    np.testing.assert_allclose(backwards(x), y, atol=0.1)  # the window of an even number of samples has no middle one


def test_every_band_hears_something() -> None:
    for rate, n_fft in ((8000, 512), (24_000, 2048), (48_000, 4096)):
        bank = mel_bank(rate, n_fft, 3600.0)
        np.testing.assert_allclose(bank.sum(0), 1.0, rtol=1e-5)
        assert (bank >= 0).all()
