"""The reference backend: runs a Program node by node in NumPy, in f32 or f64. It is the meaning of every op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sonant.backends.backend import (
    ArrayStates,
    CancelFlag,
    Repeated,
    States,
    Weights,
    bind_sizes,
    round_to,
    states_of,
)
from sonant.backends.numpy import ops
from sonant.errors import BackendError, Cancelled
from sonant.program.bounds import Bounds
from sonant.program.dims import Dim
from sonant.program.program import Node, Program, Value
from sonant.program.recipe import Recipe, recorded
from sonant.program.verify import verify

Operand = np.ndarray | None

__all__ = ["NumpyBackend", "NumpyExecutable"]


class NumpyBackend:
    """Runs Programs in NumPy. `dtype` is the type of all floating arithmetic (float64 to measure rounding)."""

    name = "numpy"
    fast: tuple[str, ...] = ()

    def __init__(self, dtype: type[np.floating[Any]] = np.float32) -> None:
        self.dtype = np.dtype(dtype)

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None) -> NumpyExecutable:
        return NumpyExecutable(recorded(program), weights, self.dtype)

    def load_all(self, programs: Sequence[Program | Recipe], weights: Weights, *,
                 cache: Path | None = None) -> list[NumpyExecutable]:
        return [self.load(p, weights, cache=cache) for p in programs]


class NumpyExecutable:
    def __init__(self, program: Program, weights: Weights, dtype: np.dtype[Any]) -> None:
        verify(program)
        self.program, self.dtype, self.bounds = program, dtype, Bounds(program)
        self.weights = {name: self._weight(value, weights) for name, value in program.weights.items()}

    def _weight(self, value: Value, weights: Weights) -> np.ndarray:
        if value.name not in weights or weights[value.name].shape != value.shape:
            found = list(weights[value.name].shape) if value.name in weights else "nothing"
            raise BackendError(f"weight {value} of {self.program.name}: found {found}")
        return round_to(weights[value.name], value.dtype).astype(self.dtype, copy=False)

    def prepare(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None) -> Repeated:
        return Repeated(self, inputs, states)

    def create_states(self, n_rows: int) -> ArrayStates:
        return ArrayStates(list(self.program.states.values()), n_rows)

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        """Every node result at once: this backend frees nothing early."""
        values = [v for n in self.program.nodes for v in n.outputs]
        return sum(4 * int(np.prod([Dim.of(d).evaluate(sizes) for d in v.shape])) for v in values)

    def run(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None, cancel: CancelFlag | None = None,
            threads: int | None = None, trace: dict[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """Outputs in order; with `trace`, every node result is also left there under its name. NumPy decides on
        threads by itself, whatever `threads` says."""
        sizes = bind_sizes(self.program, inputs)
        self.bounds.check(sizes)
        arrays = {k: v if v.dtype == np.int32 else v.astype(self.dtype) for k, v in inputs.items()}
        run = _Run(self, sizes, states_of(self.program, states), cancel)
        found = run.play(self.program, arrays)
        if trace is not None:
            trace.update(found)
        return [np.ascontiguousarray(found[v.name]) for v in self.program.outputs]


class _Run:
    """One run: sizes, states and weights at hand; plays a Program and the bodies of its loops."""

    def __init__(self, owner: NumpyExecutable, sizes: dict[str, int], states: ArrayStates,
                 cancel: CancelFlag | None) -> None:
        self.owner, self.sizes, self.states, self.cancel = owner, sizes, states, cancel

    def play(self, program: Program, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = {**self.owner.weights, **inputs}
        for name, (_, array) in program.constants.items():
            found[name] = array if array.dtype == np.int32 else array.astype(self.owner.dtype)
        for node in program.nodes:
            if self.cancel is not None and self.cancel.is_set:
                raise Cancelled(f"{program.name} was cancelled")
            operands = [None if v is None else found[v.name] for v in node.inputs]
            for value, array in zip(node.outputs, self._node(node, operands), strict=True):
                found[value.name] = array
        return found

    def _node(self, node: Node, operands: list[Operand]) -> tuple[np.ndarray, ...]:
        attrs = {k: self._attr(node.row.attrs[k].kind, v) for k, v in node.attrs.items()}
        if node.op == "loop":
            return self._loop(node, attrs, [o for o in operands if o is not None])
        if node.op in ops.STATEFUL:
            return ops.STATEFUL[node.op](self.states, attrs, *operands)
        if node.op in ops.FUNCTIONS:
            return ops.FUNCTIONS[node.op](attrs, *operands)
        literal = "".join(f" f{v!r}" for v in attrs.values())  # a single pointwise op is a step list of one
        registers = " ".join(str(i) for i in range(len(operands)))
        return ops.FUNCTIONS["pointwise"]({"steps": f"{node.op} {registers}{literal}"}, *operands)

    def _attr(self, kind: str, value: Any) -> Any:
        if kind == "dim":
            return Dim.of(value).evaluate(self.sizes)
        return tuple(Dim.of(d).evaluate(self.sizes) for d in value) if kind == "dims" else value

    def _loop(self, node: Node, attrs: dict[str, Any], operands: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        body, n_carry, n_plain = attrs["body"], attrs["n_carry"], attrs["n_carry"] + attrs["has_done"]
        names = [v.name for v in body.inputs]
        carries, invariants = operands[:n_carry], operands[n_carry:]
        stacked = [np.zeros(self._attr("dims", v.shape), np.int32 if v.dtype == "i32" else self.owner.dtype)
                   for v in node.outputs[n_carry:-1]]
        count = 0
        for step in range(attrs["trips"]):
            given = dict(zip(names, [*carries, *invariants, np.array([step], np.int32)], strict=True))
            found = self.play(body, given)
            outputs = [found[v.name] for v in body.outputs]
            carries, count = outputs[:n_carry], step + 1
            for target, v in zip(stacked, outputs[n_plain:], strict=True):
                target[step] = v
            if attrs["has_done"] and np.all(outputs[n_carry]):
                break
        return (*carries, *stacked, np.array([count], np.int32))
