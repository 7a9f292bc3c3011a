"""A native backend that keeps the time of every node: the runs that a text makes, whichever driver makes them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sonant.backends.backend import CancelFlag, Repeated, States, Weights, bind_sizes
from sonant.backends.native import NativeBackend, NativeExecutable
from sonant.program.program import Program
from sonant.program.recipe import Recipe


@dataclass
class Runs:
    """All runs of one Program with the same sizes. seconds: of each node of `executable.nodes`, summed; position: the
    average of the input of that name, up to where the rows of states are read; None without one."""

    executable: NativeExecutable
    sizes: dict[str, int]
    seconds: np.ndarray
    count: int = 0
    position: float | None = None


@dataclass
class TimedBackend:
    """Loads Programs on `inner` for a driver and notes what they then run. Safe to use from several threads."""

    inner: NativeBackend
    runs: dict[tuple[int, tuple[int, ...]], Runs] = field(default_factory=dict)
    name: str = "native"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def fast(self) -> tuple[str, ...]:
        return self.inner.fast

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None) -> _TimedExecutable:
        return self.load_all([program], weights, cache=cache)[0]

    def load_all(self, programs: Sequence[Program | Recipe], weights: Weights, *,
                 cache: Path | None = None) -> list[_TimedExecutable]:
        return [_TimedExecutable(self, e) for e in self.inner.load_all(programs, weights, cache=cache)]

    def clear(self) -> None:
        """Forget the runs so far, such as those that warmed up."""
        with self._lock:
            self.runs.clear()

    def note(self, executable: NativeExecutable, inputs: Mapping[str, np.ndarray], seconds: np.ndarray) -> None:
        """Add one run."""
        sizes = bind_sizes(executable.program, inputs)
        with self._lock:
            key = (id(executable), tuple(sizes.values()))
            runs = self.runs.setdefault(key, Runs(executable, sizes, np.zeros(len(seconds))))
            runs.seconds += seconds
            runs.count += 1
            if "position" in inputs:
                before = runs.position or 0.0
                runs.position = before + (float(np.mean(inputs["position"])) - before) / runs.count


class _TimedExecutable:
    def __init__(self, backend: TimedBackend, inner: NativeExecutable) -> None:
        self.program, self._backend, self._inner = inner.program, backend, inner
        self._places = len(inner.nodes)

    def run(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None,
            cancel: CancelFlag | None = None, threads: int | None = None) -> list[np.ndarray]:
        seconds = np.zeros(self._places)
        outputs = self._inner.run(inputs, states=states, cancel=cancel, threads=threads, seconds=seconds)
        self._backend.note(self._inner, inputs, seconds)
        return outputs

    def prepare(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None) -> Repeated:
        return Repeated(self, inputs, states)

    def create_states(self, n_rows: int) -> States:
        return self._inner.create_states(n_rows)

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        return self._inner.peak_bytes(sizes)
