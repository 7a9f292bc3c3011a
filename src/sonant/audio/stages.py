"""What happens to samples on their way to a file: another rate, another loudness, a limit to the peaks.

Every stage takes stretches of mono float32 and gives back what is ready: `push` as often as wanted, then `finish`. The
joined output does not depend on where the input was cut.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sonant.audio.loudness import integrated_loudness

LOOKAHEAD_S = 0.005
"""How long before a peak the limiter begins to turn down."""
_NOTHING = np.zeros(0, np.float32)


class Stage(Protocol):
    def push(self, samples: np.ndarray) -> np.ndarray: ...

    def finish(self) -> np.ndarray: ...


class Resampler:
    """Another sample rate, by soxr's HQ filter; its delay is taken out, so times stay what they were."""

    def __init__(self, source_rate: int, sample_rate: int) -> None:
        import soxr

        self._stream = soxr.ResampleStream(source_rate, sample_rate, 1, dtype="float32", quality="HQ")

    def push(self, samples: np.ndarray) -> np.ndarray:
        return self._resample(samples, last=False) if len(samples) else _NOTHING

    def finish(self) -> np.ndarray:
        return self._resample(_NOTHING, last=True)

    def _resample(self, samples: np.ndarray, *, last: bool) -> np.ndarray:
        out: np.ndarray = self._stream.resample_chunk(np.ascontiguousarray(samples, np.float32), last=last)
        return out


class Leveller:
    """One gain for the whole, so that it has `loudness_lufs`. Keeps everything until the end: only then is it known."""

    def __init__(self, sample_rate: int, loudness_lufs: float) -> None:
        self._rate, self._target = sample_rate, loudness_lufs
        self._held: list[np.ndarray] = []

    def push(self, samples: np.ndarray) -> np.ndarray:
        self._held.append(samples)
        return _NOTHING

    def finish(self) -> np.ndarray:
        whole = np.concatenate(self._held) if self._held else _NOTHING
        found = integrated_loudness(whole, self._rate)
        if found == -np.inf:  # silence has no loudness to change
            return whole
        levelled: np.ndarray = whole * np.float32(10 ** ((self._target - found) / 20))
        return levelled


class Limiter:
    """No sample beyond `peak_dbfs`. Quieter stretches pass unchanged, to the bit; nothing is delayed.

    The gain that every sample needs is spread over LOOKAHEAD_S to either side (a minimum, then a mean over the same
    window, so the mean never exceeds what the sample in its middle needs).
    """

    def __init__(self, sample_rate: int, peak_dbfs: float) -> None:
        self._limit = np.float32(10 ** (peak_dbfs / 20))
        self._reach = max(1, round(sample_rate * LOOKAHEAD_S))
        # Samples whose output is not known yet, behind `_reach * 2` that only serve as context.
        self._held = np.zeros(2 * self._reach, np.float32)

    def push(self, samples: np.ndarray) -> np.ndarray:
        self._held = np.concatenate([self._held, np.asarray(samples, np.float32)])
        context = 2 * self._reach
        ready = len(self._held) - 2 * context
        if ready <= 0:
            return _NOTHING
        out = self._limited(self._held[: ready + 2 * context])
        self._held = self._held[ready:]
        return out

    def finish(self) -> np.ndarray:
        context = 2 * self._reach
        if len(self._held) == context:
            return _NOTHING
        out = self._limited(np.concatenate([self._held, np.zeros(context, np.float32)]))
        self._held = np.zeros(context, np.float32)
        return out

    def _limited(self, padded: np.ndarray) -> np.ndarray:
        """The middle of `padded` [2*reach + S + 2*reach], limited."""
        middle = padded[2 * self._reach : -2 * self._reach]
        loud = np.abs(padded)
        if loud.max(initial=0.0) <= self._limit:
            return middle
        needed = np.minimum(1.0, self._limit / np.maximum(loud, self._limit))
        window = 2 * self._reach + 1
        low = _sliding(np.minimum, needed.astype(np.float64), window)
        gain = _sliding(np.add, low, window) / window
        # What the sums leave of rounding must not lift a peak over the limit, nor touch samples that are let through.
        gain = np.where(gain > 1 - 1e-9, 1.0, gain)
        out: np.ndarray = np.clip(middle * gain, -self._limit, self._limit).astype(np.float32)
        return out


def _sliding(combine: np.ufunc, values: np.ndarray, window: int) -> np.ndarray:
    """`combine` over every `window` neighbours [S] → [S-window+1], always in the same order: by halves of a window."""
    length, offset, covered = len(values) - window + 1, 0, 1
    result: np.ndarray | None = None
    while True:
        if window & covered:
            part = values[offset : offset + length]
            result = part if result is None else combine(result, part)
            offset += covered
        if 2 * covered > window:
            assert result is not None
            return result
        values = combine(values[:-covered], values[covered:])
        covered *= 2
