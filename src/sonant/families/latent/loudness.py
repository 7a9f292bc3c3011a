"""Where a speech sounds and where it is silent, in steps of 10 ms, known a little after it was made.

Whether a step is loud depends on nothing later than PEAK_AHEAD_STEPS behind it: a stream is judged as the whole.
"""

from __future__ import annotations

import numpy as np

STEP_S = 0.01
SILENCE_DB = -45.0
"""So far below the loudest step until then is silence,"""
FLOOR_DBFS = -60.0
"""and so is everything below this: before the first word nothing loud has been heard yet."""
PEAK_AHEAD_STEPS = 16
"""The loudest step may come 160 ms later: where a first word begins it is in that word."""
QUIET_STEPS = 3
"""30 ms of silence before an onset."""


class Loudness:
    """Give it the samples as they come, in stretches of any size. Times are seconds from the first sample."""

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._step_samples = round(STEP_S * sample_rate)
        self.step_s = self._step_samples / sample_rate
        self._rest = np.zeros(0, np.float32)
        self._energies = np.zeros(0)
        self._n_samples = 0
        self._loud = np.zeros(0, np.bool_)
        self._finished = False

    def add(self, samples: np.ndarray) -> None:
        """samples f32 [S]"""
        self._n_samples += len(samples)
        joined = np.concatenate([self._rest, samples])
        whole = len(joined) // self._step_samples * self._step_samples
        self._rest = joined[whole:]
        self._judge(np.square(joined[:whole], dtype=np.float64).reshape(-1, self._step_samples).mean(axis=1))

    def finish(self) -> None:
        """No further sample comes: the rest is a step too, and all that was made is known."""
        self._finished = True
        rest = np.square(self._rest, dtype=np.float64)
        self._judge(rest.mean(keepdims=True) if len(rest) else rest)

    def _judge(self, energies: np.ndarray) -> None:
        self._energies = np.concatenate([self._energies, energies])
        peaks = np.maximum.accumulate(self._energies)
        n_known = len(peaks) if self._finished else max(0, len(peaks) - PEAK_AHEAD_STEPS)
        ahead = np.minimum(np.arange(len(self._loud), n_known) + PEAK_AHEAD_STEPS, len(peaks) - 1)
        limits = np.maximum(peaks[ahead] * 10 ** (SILENCE_DB / 10), 10 ** (FLOOR_DBFS / 10))
        self._loud = np.concatenate([self._loud, self._energies[len(self._loud) : n_known] > limits])

    @property
    def duration_s(self) -> float:
        """Of all samples so far."""
        return self._n_samples / self._rate

    @property
    def loud(self) -> np.ndarray:
        """bool: the steps that are known."""
        return self._loud

    def known_to(self, time_s: float) -> bool:
        """Is every step before it known, or is there none to come?"""
        return self._finished or time_s <= len(self._loud) * self.step_s

    def is_loud(self, time_s: float) -> bool:
        step = self._step(time_s)
        return step < len(self._loud) and bool(self._loud[step])

    def onset_near(self, time_s: float, reach_s: float, after_s: float) -> float | None:
        """Where sound sets in after silence, the nearest within reach and after `after_s`."""
        first = max(0, self._step(time_s - reach_s))
        onsets = [
            step * self.step_s
            for step in range(first, min(len(self._loud), self._step(time_s + reach_s) + 1))
            if self._loud[step] and not self._loud[max(0, step - QUIET_STEPS) : step].any()
        ]
        near = [t for t in onsets if abs(t - time_s) <= reach_s and t > after_s]
        return min(near, key=lambda t: abs(t - time_s)) if near else None

    def onsets(self, quiet_s: float) -> np.ndarray:
        """f64: where sound sets in after at least `quiet_s` of silence, that before the first sound included."""
        steps = np.flatnonzero(self._loud)
        silent = np.diff(steps, prepend=-1) - 1
        return steps[silent * self.step_s >= quiet_s] * self.step_s

    def first_loud(self, time_s: float) -> float | None:
        """The first loud moment from `time_s` on; None where none is known."""
        first = self._step(time_s)
        steps = np.flatnonzero(self._loud[first:])
        return max(time_s, float(first + steps[0]) * self.step_s) if len(steps) else None

    def sound_end(self, start_s: float, end_s: float) -> float | None:
        """When the last loud step of the stretch ends."""
        first = self._step(start_s)
        steps = np.flatnonzero(self._loud[first : max(first, round(end_s / self.step_s))])
        return min(end_s, self.duration_s, float(first + steps[-1] + 1) * self.step_s) if len(steps) else None

    def _step(self, time_s: float) -> int:
        return max(0, int(time_s / self.step_s + 1e-6))  # a time that is a step's own start belongs to that step
