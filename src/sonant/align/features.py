"""What two recordings of the same words have in common: the short-time spectrum, at any sample rate.

A frame is every 10 ms, centred at k * STEP_S; in a reference that is much slower or faster than the recording they are
farther apart or nearer, so that both have about as many. Nothing is resampled: the mel bands are laid over the spectrum
of each recording at its own rate, up to a frequency that both have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEP_S = 0.010
WINDOW_S = 0.025
BANDS = 40
LOWEST_HZ, HIGHEST_HZ = 60.0, 7500.0
CEPSTRA = 13
DELTA_WEIGHT = 1.5
FLOOR_DB = -60.0
"""Below the loud frames of a recording: what is quieter counts as nothing."""
LOUD_PERCENTILE = 98.0
"""The level of a recording is the energy that so many of its frames do not reach: a click is no level."""
NOISE_PERCENTILE = 5.0
"""A band is this quiet where nobody speaks."""
ABOVE_NOISE_DB = 6.0
SILENCE_DB = (-40.0, -15.0)
"""What counts as silence is so far above the noise, but within these bounds."""
_BLOCK_FRAMES = 4096

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Bands:
    """Mel energies [F, BANDS] relative to the recording's loud frames; a frame every `step_s`."""

    mel: Array
    step_s: float

    @property
    def frames(self) -> int:
        return len(self.mel)

    def level_db(self) -> Array:
        """dB [F] of every frame against the loud ones."""
        return _db(self.mel.mean(1) + 1e-12)


def highest_hz(*sample_rates: int) -> float:
    """The upper edge of the bands for recordings of these rates."""
    return min(HIGHEST_HZ, *(0.45 * rate for rate in sample_rates))


def bands(samples: np.ndarray, sample_rate: int, top_hz: float, step_s: float = STEP_S) -> Bands:
    """The bands of mono `samples` [S], at least one frame; silence gives zeros."""
    width = round(WINDOW_S * sample_rate)
    n_fft = 2 << (width - 1).bit_length()  # the bins of a low rate are finer than the lowest bands
    frames = int(len(samples) / sample_rate / step_s) + 1
    centres = np.round(np.arange(frames) * (step_s * sample_rate)).astype(np.int64)
    padded = np.pad(np.asarray(samples, np.float32), (width // 2, width))
    window, bank = np.hanning(width).astype(np.float32), mel_bank(sample_rate, n_fft, top_hz)
    views = np.lib.stride_tricks.sliding_window_view(padded, width)
    mel = np.empty((frames, BANDS), np.float32)
    for first in range(0, frames, _BLOCK_FRAMES):
        spectrum = np.fft.rfft(views[centres[first : first + _BLOCK_FRAMES]] * window, n_fft)
        mel[first : first + _BLOCK_FRAMES] = (np.square(spectrum.real) + np.square(spectrum.imag)) @ bank
    loud = np.percentile(mel.mean(1), LOUD_PERCENTILE)
    return Bands(mel / loud if loud > 0 else np.zeros_like(mel), step_s)


def mel_bank(sample_rate: int, n_fft: int, top_hz: float) -> Array:
    """Triangles [n_fft//2 + 1, BANDS] of unit sum, evenly spaced in mel from LOWEST_HZ to `top_hz`."""
    low, high = (2595 * np.log10(1 + hz / 700) for hz in (LOWEST_HZ, top_hz))
    edges = 700 * (10 ** (np.linspace(low, high, BANDS + 2) / 2595) - 1)
    hz = np.arange(n_fft // 2 + 1)[:, None] * (sample_rate / n_fft)
    rising = (hz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hz) / (edges[2:] - edges[1:-1])
    bank = np.maximum(0, np.minimum(rising, falling))
    out: Array = (bank / np.maximum(bank.sum(0), 1e-9)).astype(np.float32)
    return out


def matched(reference: Bands, recording: Bands) -> tuple[Array, Array]:
    """Features [F, 2 * CEPSTRA + 1] of both, comparable: what the noise of the recording hides is hidden in both."""
    floor = 10 ** (FLOOR_DB / 10)
    noise = np.percentile(recording.mel, NOISE_PERCENTILE, axis=0)
    quiet_db = silence_db(recording)
    first = _features(_db(reference.mel + noise + floor), reference.level_db() >= quiet_db)
    return first, _features(_db(recording.mel + floor), recording.level_db() >= quiet_db)


def silence_db(recording: Bands) -> float:
    """Below this level nobody speaks."""
    return float(np.clip(np.percentile(recording.level_db(), NOISE_PERCENTILE) + ABOVE_NOISE_DB, *SILENCE_DB))


def _db(power: np.ndarray) -> Array:
    return np.asarray(10 * np.log10(power), np.float32)


def _features(log_mel: Array, speech: np.ndarray) -> Array:
    """Cepstra against their mean over speech, their slopes, and the level."""
    speech = speech if speech.any() else np.ones_like(speech)
    cepstra = log_mel @ _dct()
    cepstra = cepstra - cepstra[speech].mean(0)
    cepstra = cepstra / max(float(cepstra[speech].std()), 1e-9)
    level = log_mel.mean(1)
    height = (level - level[speech].mean()) / max(float(level[speech].std()), 1e-9)
    out: Array = np.concatenate([cepstra, DELTA_WEIGHT * _slopes(cepstra), height[:, None]], 1).astype(np.float32)
    return out


def backwards(features: Array) -> Array:
    """The features of the same sound played backwards."""
    flipped = features[::-1].copy()
    flipped[:, CEPSTRA : 2 * CEPSTRA] *= -1
    return flipped


def _dct() -> Array:
    """[BANDS, CEPSTRA]: orthonormal DCT-II."""
    angles = np.pi * np.arange(CEPSTRA) * (np.arange(BANDS)[:, None] + 0.5) / BANDS
    out: Array = (np.cos(angles) * np.sqrt(2 / BANDS)).astype(np.float32)
    return out


def _slopes(values: Array) -> Array:
    """Least-squares slope over five frames."""
    padded = np.pad(values, ((2, 2), (0, 0)), mode="edge")
    return np.asarray((padded[3:-1] - padded[1:-3] + 2 * (padded[4:] - padded[:-4])) / 10, np.float32)
