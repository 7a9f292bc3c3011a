"""Loudness by ITU-R BS.1770-4: K-weighting, 400 ms blocks, the absolute and the relative gate. One channel.

Written here rather than taken from pyloudnorm, which needs SciPy: 60 lines of NumPy spare a large install.
The weighting is two second-order sections whose response dies out within a tenth of a second, so it is applied as
a finite filter through FFTs, without a loop over samples.
"""

from __future__ import annotations

import math

import numpy as np

_BLOCK_S, _STEP_S = 0.4, 0.1
_ABSOLUTE_GATE_LUFS, _RELATIVE_GATE_LU = -70.0, -10.0
_OFFSET = -0.691
"""So that a full-scale sine of 997 Hz in one channel is −3.01 LUFS."""


def integrated_loudness(samples: np.ndarray, sample_rate: int) -> float:
    """LUFS of mono `samples` [S]; −inf for silence. Less than 400 ms counts as one block, without gates."""
    power = np.square(_k_weighted(np.asarray(samples, np.float64), sample_rate))
    block, step = round(_BLOCK_S * sample_rate), round(_STEP_S * sample_rate)
    if len(power) < block:
        return _lufs(float(power.mean())) if len(power) else -math.inf
    total = np.concatenate([[0.0], np.cumsum(power)])
    starts = np.arange(0, len(power) - block + 1, step)
    blocks = (total[starts + block] - total[starts]) / block
    blocks = blocks[blocks > _power(_ABSOLUTE_GATE_LUFS)]
    if not len(blocks):
        return -math.inf
    gate = _power(_lufs(float(blocks.mean())) + _RELATIVE_GATE_LU)
    return _lufs(float(blocks[blocks > gate].mean()))


def _lufs(power: float) -> float:
    return _OFFSET + 10 * math.log10(power) if power > 0 else -math.inf


def _power(lufs: float) -> float:
    return float(10 ** ((lufs - _OFFSET) / 10))


def _k_weighted(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """`samples` [S] through the shelf and the high-pass, in pieces of 2^17 by FFT."""
    taps = 1 << math.ceil(math.log2(0.15 * sample_rate))
    size = max(1 << 17, 4 * taps)
    turn = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    response = np.ones(size // 2 + 1, np.complex128)
    for b, a in _sections(sample_rate):
        response *= np.polyval(b[::-1], turn) / np.polyval(a[::-1], turn)
    # The response as sampled wraps around after `size` samples, when nothing is left of it.
    hop = size - taps
    out = np.empty_like(samples)
    padded = np.concatenate([np.zeros(taps), samples])
    for start in range(0, len(samples), hop):
        piece = padded[start : start + size]
        filtered = np.fft.irfft(np.fft.rfft(piece, size) * response, size)
        out[start : start + hop] = filtered[taps : taps + min(hop, len(samples) - start)]
    return out


def _sections(sample_rate: int) -> list[tuple[list[float], list[float]]]:
    """(b, a) of both filters at any rate, from the analogue prototypes behind the standard's 48 kHz coefficients."""
    k = math.tan(math.pi * 1681.974450955533 / sample_rate)
    q, high = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    band = high**0.4996667741545416
    a0 = 1 + k / q + k * k
    shelf = (
        [(high + band * k / q + k * k) / a0, 2 * (k * k - high) / a0, (high - band * k / q + k * k) / a0],
        [1.0, 2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0],
    )
    k, q = math.tan(math.pi * 38.13547087602444 / sample_rate), 0.5003270373238773
    a0 = 1 + k / q + k * k
    return [shelf, ([1.0, -2.0, 1.0], [1.0, 2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0])]
