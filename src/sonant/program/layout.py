"""Where every value of a Program lives: buffers numbered by lifetime, shared by the backends' lowerings.

A value is in one of five spaces: `arena` (a numbered buffer, reused once its last reader has run), `weight`,
`constant`, `input`, `output`. A reshape is another name for the same memory, and so is what a loop hands its body
unchanged. Sizes stay expressions of the dims; `hints` are typical sizes, used only to choose which free buffer fits
best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sonant.program.dims import Dim, product
from sonant.program.opset import DENSE_FUSED_AT
from sonant.program.program import Node, Program, Value

HINT = 256
"""Size assumed for a dim symbol that has no hint."""


@dataclass(frozen=True)
class Location:
    space: str
    index: int


@dataclass
class Layout:
    """`locations` by value (identity); `buffers[i]` lists the element counts of the tenants of arena buffer i.

    `aliases`: the value that another one (a reshape, an invariant inside a loop body) is a further name of.
    """

    locations: dict[int, Location] = field(default_factory=dict)
    buffers: list[list[Dim]] = field(default_factory=list)
    aliases: dict[int, Value] = field(default_factory=dict)

    def source(self, value: Value) -> Value:
        """The value that `value` is, or is a further name of."""
        while id(value) in self.aliases:
            value = self.aliases[id(value)]
        return value

    def of(self, value: Value) -> Location:
        return self.locations[id(value)]


def assign(program: Program, hints: Mapping[str, int] | None = None) -> Layout:
    """A Layout for `program` and the bodies of its loops."""
    planner = _Planner(program, dict(hints or {}))
    planner.place_program(program, top=True)
    return planner.layout


class _Planner:
    def __init__(self, program: Program, hints: dict[str, int]) -> None:
        self.layout = Layout()
        self.hints = {s: hints.get(s, HINT) for p in program.programs() for s in p.symbols()} | hints
        self.widest: list[int] = []  # the largest tenant of each buffer at the hinted sizes
        self.free: list[int] = []
        self.weights: dict[str, int] = {}
        self.constants = 0

    def place_program(self, program: Program, *, top: bool) -> None:
        """Loop bodies get buffers of their own that are never shared with the program around them."""
        self._place_givens(program, top)
        reads = _Reads(program)
        for i, v in enumerate(program.outputs):
            root = reads.root(v)
            if top and id(root) not in self.layout.locations:
                self.layout.locations[id(root)] = Location("output", i)
        for at, node in enumerate(program.nodes):
            if "body" in node.attrs:
                self._place_body(node)
            for v in node.outputs:
                self._place_result(node, v, at, reads)
            touched = {id(r): r for r in (reads.root(v) for v in (*node.inputs, *node.outputs) if v is not None)}
            for root in touched.values():
                if reads.last.get(id(root), at) <= at and id(root) not in reads.kept:
                    self._release(root)

    def _place_givens(self, program: Program, top: bool) -> None:
        for i, v in enumerate(program.inputs):
            if top:
                self.layout.locations[id(v)] = Location("input", i)
        for name, v in program.weights.items():
            self.layout.locations[id(v)] = Location("weight", self.weights.setdefault(name, len(self.weights)))
        for v, _ in program.constants.values():
            self.layout.locations[id(v)] = Location("constant", self.constants)
            self.constants += 1

    def _place_body(self, node: Node) -> None:
        body, n_carry = node.attrs["body"], node.attrs["n_carry"]
        outside, self.free = self.free, []
        for v in (*body.inputs[:n_carry], body.inputs[-1]):
            self._allocate(v)
        for inner, outer in zip(body.inputs[n_carry:-1], node.inputs[n_carry:], strict=True):
            assert outer is not None
            self.layout.aliases[id(inner)] = outer
            self.layout.locations[id(inner)] = self.layout.of(outer)
        self.place_program(body, top=False)
        self.free = outside  # the body's buffers stay its own

    def _place_result(self, node: Node, v: Value, at: int, reads: _Reads) -> None:
        root = reads.root(v)
        if root is not v:
            self.layout.aliases[id(v)] = root
            self.layout.locations[id(v)] = self.layout.of(root)
        elif id(v) not in self.layout.locations:
            donor = _donor(node, v, at, reads)
            if donor is not None and self.layout.of(donor).space == "arena":
                buffer = self.layout.of(donor).index
                self.layout.locations[id(v)] = Location("arena", buffer)
                self.layout.buffers[buffer].append(product(v.shape))
                reads.last[id(donor)] = len(reads.program.nodes)  # never released: the buffer now lives as long as v
            else:
                self._allocate(v)

    def _allocate(self, v: Value) -> None:
        elements = product(v.shape)
        size = elements.evaluate(self.hints)
        fitting = [b for b in self.free if self.widest[b] >= size]
        if fitting:
            buffer = min(fitting, key=lambda b: self.widest[b])
        elif self.free:
            buffer = max(self.free, key=lambda b: self.widest[b])
        else:
            buffer = len(self.layout.buffers)
            self.layout.buffers.append([])
            self.widest.append(0)
            self.free.append(buffer)
        self.free.remove(buffer)
        self.widest[buffer] = max(self.widest[buffer], size)
        self.layout.buffers[buffer].append(elements)
        self.layout.locations[id(v)] = Location("arena", buffer)

    def _release(self, v: Value) -> None:
        location = self.layout.of(v)
        # Only node results: what a loop body is given must survive to its next step.
        if v.kind == "node" and location.space == "arena" and location.index not in self.free:
            self.free.append(location.index)


class _Reads:
    """Who reads what in one Program: `last` reader by value, and the values `kept` to its end."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._roots: dict[int, Value] = {}
        for node in program.nodes:
            if node.op == "reshape":
                source = node.inputs[0]
                assert source is not None
                self._roots[id(node.outputs[0])] = self.root(source)
        self.last = {id(self.root(v)): at
                     for at, node in enumerate(program.nodes) for v in node.inputs if v is not None}
        self.kept = {id(self.root(v)) for v in program.outputs}

    def root(self, v: Value) -> Value:
        """The value whose memory `v` shares."""
        return self._roots.get(id(v), v)


def _donor(node: Node, out: Value, at: int, reads: _Reads) -> Value | None:
    """An operand read for the last time here whose memory the result may take over element by element."""
    if node.op == "pointwise":
        operands = node.inputs
    elif node.attrs.get("epilogue"):
        operands = node.inputs[DENSE_FUSED_AT[node.op] + node.attrs["n_pro"] :]
    else:
        return None
    used = [reads.root(v) for v in node.inputs if v is not None]
    for v in operands:
        if v is None or v.dtype != out.dtype or v.shape != out.shape:
            continue
        root = reads.root(v)
        # A root that is not a node's result is lent: an input, a weight, or what a loop body is given at every step.
        if (root.kind == "node" and reads.last[id(root)] == at and id(root) not in reads.kept
                and sum(u is root for u in used) == 1):
            return root
    return None
