"""Lowering a Program to bytecode for the C++ executor, and binding it to sizes.

The bytecode (documented in native/runtime/executor.h) is one int64 array. Lowering writes it once with every symbolic
word left open; binding evaluates each different dim expression once and drops the numbers in.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sonant.backends.native.sums import with_sums
from sonant.errors import BackendError
from sonant.program import opset, steps
from sonant.program.bounds import Bounds
from sonant.program.dims import Dim, DimLike
from sonant.program.layout import Layout, assign
from sonant.program.passes import fuse, own_outputs
from sonant.program.passes.rebuild import rebuild
from sonant.program.program import Node, Program, Value

SPACES = {"absent": 0, "arena": 1, "weight": 2, "input": 3, "output": 4}
DTYPES = {"f32": 0, "f16": 1, "bf16": 2, "i32": 3, "q8": 4, "i8": 5}
ENUMS = {"f32": 0, "bf16": 1, "int8": 2, "int8_row": 3, "none": 0, "causal": 1, "zero": 0, "reflect": 1, "edge": 2,
         "nearest": 0, "linear": 1, "interleaved": 0, "halves": 1}
OPCODES = {name: i for i, name in enumerate(opset.OPS)}
MAX_RANK = 6
ALIGNMENT = 64


@dataclass(frozen=True)
class PackKey:
    """One weight in the form a kernel reads it: `role` is linear, conv, lstm, or plain (of `dtype`, kept in f32)."""

    name: str
    role: str
    groups: int
    dtype: str

    @staticmethod
    def of(weight: Value, node: Node, position: int) -> PackKey:
        """For the operand at `position` of `node`."""
        role = weight_role(node, position)
        return PackKey(weight.name, role, node.attrs.get("groups", 1) if role == "conv" else 1, weight.dtype)


def weight_role(node: Node, position: int) -> str:
    """How the kernel of `node` reads its operand at `position`."""
    if node.op in ("linear", "conv1d", "conv_transpose1d") and position == 1:
        if node.op == "linear":
            return "linear"
        return "conv"
    return "lstm" if node.op == "lstm" and position in (1, 2) else "plain"


@dataclass
class Bound:
    """A Plan with every size known."""

    code: np.ndarray
    arena_bytes: int
    output_shapes: list[tuple[int, ...]]


def lower(program: Program, hints: Mapping[str, int] | None = None) -> NativePlan:
    """The Plan of a Program as its family recorded it."""
    return plan_of(fused(program), hints, Bounds(program))


def fused(program: Program) -> Program:
    """The Program whose nodes a Plan plays."""
    return with_sums(own_outputs(single_as_steps(fuse(program))))


def plan_of(program: Program, hints: Mapping[str, int] | None = None, bounds: Bounds | None = None) -> NativePlan:
    """The Plan of a fused Program whose pointwise nodes are all step lists. bounds: by default the Program's own."""
    return _Writer(program, assign(program, hints)).plan(bounds or Bounds(program))


def declared(program: Program) -> Program:
    """What a caller sees of a Program: its inputs, outputs and states, without nodes."""
    seen = Program(program.name)
    for v in program.inputs:
        seen.input(v.name, v.shape, v.dtype)
    seen.states = dict(program.states)
    seen.outputs = [Value(seen, v.name, v.shape, v.dtype, "node") for v in program.outputs]
    return seen


@dataclass(frozen=True, eq=False)
class NativePlan:
    """The lowered form of one Program; `declared` is all that is left of the Program itself.

    dims: every size that is open. template: the words, 0 where one of these belongs, at `dim_at` (its number in
    `dim_of`), or the offset of an arena buffer, at `offset_at` (its number in `offset_of`). tenants: the numbers of the
    dims that are the element counts of the buffers, one buffer after another, each beginning at its `tenants_start`.
    """

    declared: Program
    bounds: Bounds
    dims: tuple[Dim, ...]
    template: np.ndarray
    dim_at: np.ndarray
    dim_of: np.ndarray
    offset_at: np.ndarray
    offset_of: np.ndarray
    tenants: np.ndarray
    tenants_start: np.ndarray
    last_used: np.ndarray
    """Of each packed weight: the number of the last instruction of the first block that reads it, or its body."""
    pack_shapes: dict[PackKey, tuple[int, ...]]
    """In the order of their places in the weight table."""
    constants: list[np.ndarray]

    @property
    def name(self) -> str:
        return self.declared.name

    def bind(self, sizes: Mapping[str, int]) -> Bound:
        values = self._evaluate(*(sizes[s] for s in self._symbols))
        code = self.template.copy()
        code[self.dim_at] = values[self.dim_of]
        starts, total = self._buffer_starts(values)
        code[self.offset_at] = starts[self.offset_of] if len(starts) else 0
        shapes = [tuple(Dim.of(d).evaluate(sizes) for d in v.shape) for v in self.declared.outputs]
        return Bound(code, total, shapes)

    @cached_property
    def _symbols(self) -> list[str]:
        return self.declared.symbols()

    @cached_property
    def _evaluate(self) -> Any:
        """All dims at once, from the sizes of the symbols in order."""
        expressions = ", ".join(map(str, self.dims)) + ("," if self.dims else "")  # as Dim prints them, never a file
        source = f"lambda {', '.join(self._symbols)}: __array(({expressions}))"
        return eval(source, {"__array": lambda values: np.array(values, np.int64)})

    def _buffer_starts(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        if not len(self.tenants):
            return np.zeros(0, np.int64), 0
        needed = 4 * np.maximum.reduceat(values[self.tenants], self.tenants_start)
        ends = np.cumsum(-(-needed // ALIGNMENT) * ALIGNMENT)
        return np.concatenate([[0], ends[:-1]]), int(ends[-1])


class _Writer:
    """Writes the words; remembers which of them wait for a dim or for a buffer's offset."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout, self.states = program, layout, list(program.states)
        self.words: list[int] = []
        self.dims: dict[Dim, int] = {}
        self.dim_at: list[tuple[int, int]] = []
        self.offset_at: list[tuple[int, int]] = []
        self.blocks: list[Program] = []
        self.pack_keys: dict[PackKey, int] = {}
        self.pack_shapes: dict[PackKey, tuple[int, ...]] = {}
        self.last_used: dict[PackKey, int] = {}
        self.at = 0
        self.constants: list[np.ndarray] = []
        self.constant_key: dict[int, int] = {}

    def plan(self, bounds: Bounds) -> NativePlan:
        template = self._write()
        tenants, tenants_start = self._tenants()
        return NativePlan(
            declared(self.program), bounds, tuple(self.dims), template, _column(self.dim_at, 0),
            _column(self.dim_at, 1), _column(self.offset_at, 0), _column(self.offset_at, 1), tenants, tenants_start,
            np.array([self.last_used[key] for key in self.pack_shapes], np.int64), self.pack_shapes, self.constants)

    def _write(self) -> np.ndarray:
        self.blocks = list(self.program.programs())
        self.words = [len(self.blocks), *[0] * len(self.blocks)]
        for i, program in enumerate(self.blocks):
            self.words[1 + i] = len(self.words)
            nodes = played(program)
            self.words.append(len(nodes))
            for n, node in enumerate(nodes):
                if program is self.program:
                    self.at = n  # the bodies of loops, which come after it, count as read by its last
                self._node(node)
        return np.array(self.words, np.int64)

    def _tenants(self) -> tuple[np.ndarray, np.ndarray]:
        """Which dims are the element counts of each arena buffer, one buffer after another, and where each begins."""
        counts: list[int] = []
        starts: list[int] = []
        for buffer in self.layout.buffers:
            starts.append(len(counts))
            counts += [self.dims.setdefault(e, len(self.dims)) for e in dict.fromkeys(buffer)]
        return np.array(counts, np.int64), np.array(starts, np.int64)

    def _dim(self, value: DimLike) -> None:
        if isinstance(value, int):
            self.words.append(value)
            return
        dim = Dim.of(value)
        if dim.is_constant:
            self.words.append(int(dim))
            return
        self.dim_at.append((len(self.words), self.dims.setdefault(dim, len(self.dims))))
        self.words.append(0)

    def _node(self, node: Node) -> None:
        start = len(self.words)
        inputs, outputs = self._operands(node)
        attrs, extra = self._attrs(node)
        self.words += [0, OPCODES[node.op], len(inputs), len(outputs), len(attrs), len(extra)]
        for position, v in enumerate(inputs):
            self._tensor(v, node, position)
        for v in outputs:
            self._tensor(v, node, -1)
        for word in (*attrs, *extra):
            self._dim(word)
        self.words[start] = len(self.words) - start

    def _operands(self, node: Node) -> tuple[list[Value | None], list[Value]]:
        if node.op != "loop":
            return list(node.inputs), list(node.outputs)
        body, n_carry = node.attrs["body"], node.attrs["n_carry"]
        values = [*node.inputs[:n_carry], *body.inputs[:n_carry], *body.outputs, body.inputs[-1]]
        return values, list(node.outputs)

    def _tensor(self, v: Value | None, node: Node, position: int) -> None:
        if v is None:
            self.words += [0] * (5 + MAX_RANK)
            return
        if len(v.shape) > MAX_RANK:
            raise BackendError(f"{v}: the native backend holds tensors of rank {MAX_RANK} at most")
        location = self.layout.of(v)
        space, index, dtype = location.space, location.index, v.dtype
        if space == "weight":
            weight = self.layout.source(v)
            key = PackKey.of(weight, node, position)
            self.pack_shapes[key] = tuple(map(int, weight.shape))
            self.last_used[key] = self.at
            index = self.pack_keys.setdefault(key, len(self.pack_keys)) * 2
            dtype = "f32" if key.role == "plain" else dtype
        elif space == "constant":
            space, index = "weight", self._constant_index(self.layout.source(v))
        self.words += [SPACES[space], index]
        if space == "arena":
            self.offset_at.append((len(self.words), index))
        self.words += [0, DTYPES[dtype], len(v.shape)]
        for d in (*v.shape, *[0] * (MAX_RANK - len(v.shape))):
            self._dim(d)

    def _constant_index(self, v: Value) -> int:
        """Weights have even indices in the table, constants odd ones: both lists grow while the words are written."""
        if id(v) not in self.constant_key:
            self.constant_key[id(v)] = len(self.constants)
            self.constants.append(v.program.constants[v.name][1])
        return self.constant_key[id(v)] * 2 + 1

    def _attrs(self, node: Node) -> tuple[list[DimLike], list[DimLike]]:
        if node.op == "loop":
            block = self.blocks.index(node.attrs["body"])
            return [block, node.attrs["n_carry"], node.attrs["trips"], node.attrs["has_done"]], []
        words: list[DimLike] = []
        extra: list[DimLike] = []
        for name, attr in node.row.attrs.items():
            value = node.attrs[name]
            if attr.kind == "steps":
                words.append(len(extra) if value else -1)
                extra += _encode_steps(value) if value else []
            elif attr.kind in ("dims", "ints"):
                words.append(len(extra))
                extra += [len(value), *value]
            else:
                words.append(self._scalar(name, attr.kind, value))
        return words, extra

    def _scalar(self, name: str, kind: str, value: Any) -> DimLike:
        if name.startswith("state"):
            return self.states.index(value) if value else -1
        if name == "dtype":
            return DTYPES[value]
        if kind == "str":
            return ENUMS[value]
        return _double_bits(value) if kind == "float" else value


def played(program: Program) -> list[Node]:
    """The nodes of a block that are instructions; a reshape is only another look at its operand."""
    return [n for n in program.nodes if n.op != "reshape"]


def _encode_steps(text: str) -> list[DimLike]:
    parsed = steps.parse(text)
    words: list[DimLike] = [len(parsed)]
    for step in parsed:
        words += [OPCODES[step.op], len(step.args)]
        for a in step.args:
            words += [1, _double_bits(a)] if isinstance(a, float) else [0, a]
    return words


def _double_bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _column(pairs: list[tuple[int, int]], column: int) -> np.ndarray:
    return np.array([p[column] for p in pairs], np.int64)


def single_as_steps(program: Program) -> Program:
    """Every lone pointwise node as a `pointwise` node, the only form the executor knows (f32 and i32 alike)."""
    nodes = []
    if not any("body" in n.attrs or (n.row.pointwise and n.op != "pointwise") for n in program.nodes):
        return program
    for node in program.nodes:
        attrs = node.attrs
        if node.row.pointwise and node.op != "pointwise":
            registers = " ".join(map(str, range(len(node.inputs))))
            literals = "".join(f" f{float(v)!r}" for v in attrs.values())
            node = Node("pointwise", node.inputs, {"steps": f"{node.op} {registers}{literals}"}, node.outputs)
        elif "body" in attrs:
            node = Node(node.op, node.inputs, {**attrs, "body": single_as_steps(attrs["body"])}, node.outputs)
        nodes.append(node)
    return rebuild(program, nodes)
