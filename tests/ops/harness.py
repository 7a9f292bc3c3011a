"""One op, every backend: a Case records a small Program, `check` compares the native backend with NumPy.

The truth is NumPy in f64. The native result must be within `tolerance` of it, relative to the largest number of the
result, for each instruction set of this machine, and the same bit for bit for 1, 2 and 3 threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sonant.backends.numpy import NumpyBackend
from sonant.program.program import Program, StateSpec, Value

Array = np.ndarray
Build = Callable[..., "Value | Sequence[Value] | None"]

F32 = 1e-5
"""f32 sums of up to a few thousand terms, in another order than NumPy's, and elementary functions of a few ulps."""
EXACT = 0.0
"""Elements are moved or integers computed: nothing is rounded."""
THREADS = (1, 2, 3)


@dataclass(frozen=True)
class Case:
    """`build(program, **values)` gets every input and weight as a Value, by name, and returns the outputs."""

    name: str
    build: Build
    inputs: Mapping[str, Array]
    weights: Mapping[str, Array] = field(default_factory=dict)
    weight_dtype: str = "f32"
    """Of the weights with two or more axes."""
    states: Sequence[StateSpec] = ()
    n_rows: int = 2
    tolerance: float = F32
    round_states: Callable[[Array], Array] = lambda state: state
    """What a run before this one would have left there."""

    def program(self) -> Program:
        p = Program(self.name)
        for state in self.states:
            p.add_state(state.name, state.kind, state.shape, state.dtype)
        values = {n: p.input(n, a.shape, "i32" if a.dtype == np.int32 else "f32") for n, a in self.inputs.items()}
        for n, a in self.weights.items():
            values[n] = p.weight(n, a.shape, self.weight_dtype if a.ndim > 1 else "f32")
        found = self.build(p, **values)
        p.outputs = [] if found is None else [found] if isinstance(found, Value) else list(found)
        return p


def initial_states(executable, case: Case):
    """States filled with numbers that are the same for every backend."""
    states = executable.create_states(case.n_rows)
    for i, spec in enumerate(case.states):
        for row in range(case.n_rows):
            rng = np.random.default_rng([i, row])
            states.write(
                spec.name,
                row,
                case.round_states(rng.standard_normal(spec.shape).astype(np.float32))
                if spec.dtype == "f32"
                else rng.integers(0, 9, spec.shape),
            )
    return states


def play(backend, case: Case) -> list[Array]:
    """Outputs, then the states as the run left them."""
    executable = backend.load(case.program(), dict(case.weights))
    states = initial_states(executable, case)
    found = executable.run(dict(case.inputs), states=states)
    return [*found, *(np.stack([states.read(s.name, r) for r in range(case.n_rows)]) for s in case.states)]


def worst(found: Array, truth: Array) -> float:
    """Largest error relative to the largest number; infinite where one is finite and the other is not."""
    if found.shape != truth.shape:
        return np.inf
    if found.size == 0:
        return 0.0
    finite = np.isfinite(truth)
    if not np.array_equal(np.where(finite, 0, found), np.where(finite, 0, truth), equal_nan=True):
        return np.inf
    error = np.abs(np.where(finite, found, 0).astype(np.float64) - np.where(finite, truth, 0)).max()
    scale = np.abs(np.where(finite, truth, 0)).max()
    return float(error / scale) if scale > 0 else float(error)


def check(case: Case, isa: str) -> None:
    from sonant.backends.native import NativeBackend

    truth = play(NumpyBackend(np.float64), case)
    first: list[Array] = []
    for threads in THREADS:
        found = play(NativeBackend(threads=threads, isa=isa), case)
        for i, (f, t) in enumerate(zip(found, truth, strict=True)):
            error = worst(f, t)
            assert error <= case.tolerance, f"result {i}: error {error:.2e} of {case.tolerance:.0e}, {threads} threads"
        if first:
            assert all(a.tobytes() == b.tobytes() for a, b in zip(first, found, strict=True)), (
                f"other bits with {threads} threads"
            )
        first = first or found
