"""Programs: what a computation is. Values, nodes, weights, constants, states; knows no speech and no backend.

A Program is recorded by calling the functions of `program/ops.py` on Values; every call appends one Node, whose shapes
and dtypes are inferred by the opset row at once, so that a mistake is reported at the line that makes it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sonant.errors import ProgramError
from sonant.program import opset
from sonant.program.dims import Dim, DimLike, simplify
from sonant.program.shapes import Shape

STATE_KINDS = ("kv", "ring", "context", "counter", "history", "carry")


@dataclass(frozen=True)
class StateSpec:
    """What one row of a slot keeps between steps.

    kv, ring: [capacity, channels], position p of a ring at row p % capacity; context: last input rows [L, C];
    counter: []; history and carry: any shape.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str = "f32"

    def __post_init__(self) -> None:
        if self.kind not in STATE_KINDS:
            raise ProgramError(f"state kind must be one of {STATE_KINDS}, not {self.kind!r}")
        if self.dtype not in ("f32", "i32"):
            raise ProgramError(f"a state is f32 or i32, not {self.dtype!r}")
        if not all(type(d) is int and d >= 0 for d in self.shape):
            raise ProgramError(f"the shape of a state is of integers, 0 or more; {self.name!r} has {list(self.shape)}")


@dataclass(eq=False)
class Value:
    """One tensor of a Program: an input, a weight, a constant or the result of a node."""

    program: Program
    name: str
    shape: Shape
    dtype: str
    kind: str
    """`input`, `weight`, `constant` or `node`."""

    @property
    def shape_text(self) -> str:
        return "[" + ", ".join(map(str, self.shape)) + "]"

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {self.shape_text}"

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(eq=False)
class Node:
    op: str
    inputs: tuple[Value | None, ...]
    attrs: dict[str, Any]
    outputs: tuple[Value, ...]

    @property
    def row(self) -> opset.Op:
        return opset.op(self.op)


@dataclass(eq=False)
class Program:
    """A recorded computation. `inputs` and `outputs` are ordered; weights and states are found by name when it is run.

    Inputs, weights, constants (`c0`, `c1`, …) and results (`%0`, `%1`, …) share one space of names.
    """

    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    weights: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, tuple[Value, np.ndarray]] = field(default_factory=dict)
    states: dict[str, StateSpec] = field(default_factory=dict)
    _count: int = 0

    def input(self, name: str, shape: Iterable[DimLike | str], dtype: str = "f32") -> Value:
        """Declare an input; a str in `shape` is read as a dim expression."""
        dims = tuple(simplify(Dim.parse(d)) if isinstance(d, str) else d for d in shape)
        _check_dtype(name, dtype, ("f32", "i32"))
        if any(v.name == name for v in self.inputs):
            raise ProgramError(f"input {name!r} is declared twice in {self.name}")
        self._claim(name)
        value = Value(self, name, dims, dtype, "input")
        self.inputs.append(value)
        return value

    def weight(self, name: str, shape: Iterable[int], dtype: str = "f32") -> Value:
        """The checkpoint tensor `name`; asking again with the same shape returns the same Value."""
        dims = tuple(shape)
        known = self.weights.get(name)
        if known is None:
            _check_dtype(name, dtype, ("f32", "f16", "bf16", "q8", "i8"))
            self._claim(name)
            known = self.weights[name] = Value(self, name, dims, dtype, "weight")
        elif known.shape != dims or known.dtype != dtype:
            raise ProgramError(f"weight {known} is asked for again as {dtype} {list(dims)}")
        return known

    def constant(self, array: Any) -> Value:
        """A small array that belongs to the computation itself (a scalar, a window, harmonic numbers)."""
        given = np.asarray(array)
        if given.dtype.kind not in "iubf":
            raise ProgramError(f"a constant is made of numbers, not of {given.dtype}")
        data = given.astype(np.int32 if given.dtype.kind in "iub" else np.float32)
        dtype = "i32" if data.dtype == np.int32 else "f32"
        if dtype == "i32" and not np.array_equal(data, given):
            raise ProgramError("an integer constant does not fit i32")
        for value, known in self.constants.values():
            if value.dtype == dtype and known.shape == data.shape and known.tobytes() == data.tobytes():
                return value
        name = f"c{len(self.constants)}"
        self._claim(name)
        value = Value(self, name, data.shape, dtype, "constant")
        self.constants[name] = (value, data)
        return value

    def add_state(self, name: str, kind: str, shape: Iterable[int], dtype: str = "f32") -> str:
        """Declare a state; returns its name, which state ops take."""
        spec = StateSpec(name, kind, tuple(shape), dtype)
        if self.states.setdefault(name, spec) != spec:
            raise ProgramError(f"state {name!r} is declared twice, as {self.states[name]} and as {spec}")
        return name

    def _claim(self, name: str) -> None:
        """Names are how a run finds arrays: two values of one name would become one."""
        if name.startswith("%"):
            raise ProgramError(f"name {name!r}: % is kept for the results of nodes")
        if name in self.weights or name in self.constants or any(v.name == name for v in self.inputs):
            raise ProgramError(f"the name {name!r} is taken in {self.name} already")

    def state(self, name: str) -> StateSpec:
        if name not in self.states:
            raise ProgramError(f"program {self.name} has no state {name!r}; it has {sorted(self.states)}")
        return self.states[name]

    def record(self, op: str, inputs: Iterable[Value | None], **attrs: Any) -> tuple[Value, ...]:
        """Append a node and return its results. Unknown or missing attributes and misfit operands are ProgramErrors."""
        operands = tuple(inputs)
        full = complete_attrs(op, attrs)
        for v in operands:
            if v is not None and v.program is not self:
                raise ProgramError(f"{op}: operand {v} belongs to program {v.program.name}, not to {self.name}")
        try:
            check_operands(op, operands)
            signatures = opset.op(op).rule(operands, full)
        except ProgramError as e:
            raise ProgramError(f"{self.name}: {op}({', '.join(map(str, operands))}): {e}") from e
        results = []
        for shape, dtype in signatures:
            results.append(Value(self, f"%{self._count}", shape, dtype, "node"))
            self._count += 1
        self.nodes.append(Node(op, operands, full, tuple(results)))
        return tuple(results)

    def symbols(self) -> list[str]:
        """The dim symbols that the inputs bind, in order of appearance."""
        found: dict[str, None] = {}
        for value in self.inputs:
            for dim in value.shape:
                found.update(dict.fromkeys(sorted(Dim.of(dim).symbols())))
        return list(found)

    def programs(self) -> Iterator[Program]:
        """This Program and the bodies of its loops, depth first."""
        yield self
        for node in self.nodes:
            if "body" in node.attrs:
                yield from node.attrs["body"].programs()


def _check_dtype(name: str, dtype: str, allowed: tuple[str, ...]) -> None:
    if dtype not in allowed:
        raise ProgramError(f"{name!r} must be one of {', '.join(allowed)}, not {dtype!r}")


def check_operands(op: str, operands: Sequence[Value | None]) -> None:
    """ProgramError unless every operand that the row of `op` wants is there, and no other."""
    row = opset.op(op)
    fixed = [i for i in row.inputs if not i.endswith("*")]
    for at, name in enumerate(fixed):
        if not name.endswith("?") and (at >= len(operands) or operands[at] is None):
            raise ProgramError(f"operand {name} is missing")
    many = len(fixed) < len(row.inputs)
    if len(operands) > len(fixed) and not many:
        raise ProgramError(f"takes {len(fixed)} operands ({', '.join(row.inputs)}), got {len(operands)}")
    if None in operands[len(fixed):]:
        raise ProgramError(f"an operand of {row.inputs[-1]} is missing")


def complete_attrs(op: str, attrs: dict[str, Any]) -> dict[str, Any]:
    """`attrs` with defaults filled in, in the order of the opset row, each checked against its kind."""
    row = opset.op(op)
    unknown = sorted(set(attrs) - set(row.attrs))
    if unknown:
        raise ProgramError(f"{op} has no attribute {unknown[0]!r}; it has {list(row.attrs)}")
    full = {}
    for name, attr in row.attrs.items():
        if attr.required and name not in attrs:
            raise ProgramError(f"{op} needs the attribute {name!r}")
        try:
            full[name] = _of_kind(attr.kind, attrs.get(name, attr.default))
        except (TypeError, ValueError) as e:
            raise ProgramError(f"{op}: {name} must be {KIND_NAMES[attr.kind]}, got {attrs[name]!r:.80}") from e
    return full


KIND_NAMES = {"int": "an integer", "float": "a number", "str": "a string", "steps": "a step list", "dim": "a dim",
              "dims": "a tuple of dims", "ints": "a tuple of integers", "program": "a Program"}


def _of_kind(kind: str, value: Any) -> Any:
    """The attribute value in its one stored form; TypeError where it is of another kind."""
    if kind == "dims":
        return tuple(_of_kind("dim", d) for d in _sequence(value))
    if kind == "ints":
        return tuple(_of_kind("int", d) for d in _sequence(value))
    if kind == "dim" and isinstance(value, Dim):
        return simplify(value)
    if kind in ("int", "dim"):
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    if kind == "float":
        if isinstance(value, (bool, str)):
            raise TypeError
        return float(value)
    if not isinstance(value, Program if kind == "program" else str):
        raise TypeError
    return value


def _sequence(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        raise TypeError
    return tuple(value)
