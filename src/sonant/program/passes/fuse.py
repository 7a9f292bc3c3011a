"""Fusion: pointwise chains become one node, and move into the dense op before (epilogue) or after (prologue) them.

Nothing changes what is computed: the NumPy backend runs the fused Program and gives the same numbers. A chain is held
as a list of (op, args) where an arg is a Value, a literal or a `_Ref` to an earlier step of the chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sonant.program.dims import Dim
from sonant.program.opset import DENSE_FUSED_AT
from sonant.program.passes.rebuild import is_effect, live_nodes, rebuild
from sonant.program.program import Node, Program, Value
from sonant.program.steps import Step, render


@dataclass(frozen=True)
class _Ref:
    step: int


_Arg = Value | float | _Ref
_Chain = list[tuple[str, tuple[_Arg, ...]]]


def fuse(program: Program) -> Program:
    """An equivalent Program with fewer, larger nodes."""
    nodes = live_nodes([_fuse_body(n) for n in program.nodes], program.outputs)
    graph = _Graph(program, nodes)
    graph.join_chains()
    graph.fold_prologues()
    graph.fold_epilogues()
    return rebuild(program, graph.nodes())


def _fuse_body(node: Node) -> Node:
    if "body" not in node.attrs:
        return node
    return Node(node.op, node.inputs, {**node.attrs, "body": fuse(node.attrs["body"])}, node.outputs)


class _Graph:
    """Nodes in order, each perhaps held as a chain; `uses` counts the readers of every value."""

    def __init__(self, program: Program, nodes: list[Node]) -> None:
        self.literals = {id(v): float(array) for v, array in program.constants.values() if array.ndim == 0}
        self.order: list[Node | None] = list(nodes)
        self.chains: dict[int, _Chain] = {i: self._chain(n) for i, n in enumerate(nodes) if self._is_chain(n)}
        self.maker = {id(v): i for i, n in enumerate(nodes) for v in n.outputs}
        self.uses = Counter(id(v) for n in nodes for v in n.inputs if v is not None)
        self.uses.update(id(v) for v in program.outputs)

    def _is_chain(self, node: Node) -> bool:
        """A node of numbers alone has no subject and stays as it is."""
        return (node.row.pointwise and node.op != "pointwise" and node.outputs[0].dtype == "f32"
                and any(id(v) not in self.literals for v in node.inputs))

    def _chain(self, node: Node) -> _Chain:
        args: list[_Arg] = [self.literals.get(id(v), v) for v in node.inputs if v is not None]
        return [(node.op, (*args, *map(float, node.attrs.values())))]

    def _node(self, index: int) -> Node:
        node = self.order[index]
        assert node is not None
        return node

    def _sole_maker(self, value: Value) -> int | None:
        """The index of the node that makes `value`, if it has one reader only."""
        return self.maker.get(id(value)) if self.uses[id(value)] == 1 else None

    # --- chain + chain ---
    def join_chains(self) -> None:
        """Two chains that could each end a dense op stay two: joined, one of the dense results would have to wait."""
        for i in sorted(self.chains):
            out = self._node(i).outputs[0]
            made = [(self._sole_maker(v), v) for v in _values(self.chains[i]) if _equal_shape(v, out)]
            joinable = [(j, v) for j, v in made if j is not None and j in self.chains]
            for j, value in sorted(joinable, key=lambda item: -item[0]):
                if not self._hosts(self.chains[i], out) or not self._hosts(self.chains[j], out):
                    self.chains[i] = _splice(self.chains[j], value, self.chains[i])
                    del self.chains[j]
                    self.order[j] = None

    def _hosts(self, chain: _Chain, out: Value) -> list[tuple[int, Value]]:
        """The dense nodes that could take `chain` as their epilogue, each with the value it makes."""
        made = [(self._sole_maker(v), v) for v in _values(chain) if _equal_shape(v, out)]
        return [(j, v) for j, v in made if j is not None and self.order[j] is not None
                and self._node(j).op in DENSE_FUSED_AT and not self._node(j).attrs["epilogue"]]

    # --- chain -> dense ---
    def fold_prologues(self) -> None:
        for i, node in enumerate(self.order):
            if node is None or node.op not in DENSE_FUSED_AT:
                continue
            x = node.inputs[0]
            assert x is not None
            j = self._sole_maker(x)
            if j not in self.chains:
                continue
            assert j is not None
            subject = _only_full_operand(self.chains[j], x)
            if subject is not None:
                operands, text = _number(self.chains[j], subject)
                self._attach(i, node, subject, operands, {"prologue": text, "n_pro": len(operands)})
                del self.chains[j]
                self.order[j] = None

    def _attach(self, at: int, node: Node, x: Value, operands: list[Value], attrs: dict[str, Any]) -> None:
        """Put `node` at position `at` with x as its subject and `operands` after those it already has."""
        start = DENSE_FUSED_AT[node.op]
        head = [x, *node.inputs[1:start]]
        head += [None] * (start - len(head))
        self.order[at] = Node(node.op, (*head, *node.inputs[start:], *operands), {**node.attrs, **attrs}, node.outputs)

    # --- dense -> chain ---
    def fold_epilogues(self) -> None:
        for i in sorted(self.chains):
            out = self._node(i).outputs[0]
            found = [(j, v) for j, v in self._hosts(self.chains[i], out) if self._may_move(j, i)]
            if not found:
                continue
            j, subject = max(found, key=lambda item: item[0])  # the latest: the other operands exist by then
            node = self._node(j)
            operands, text = _number(self.chains[i], subject)
            if not all(_fits_epilogue(v, out) for v in operands):
                continue
            del self.chains[i]
            self.order[j] = None
            x = node.inputs[0]
            assert x is not None
            self._attach(i, Node(node.op, node.inputs, node.attrs, (out,)), x, operands, {"epilogue": text})
            self.maker[id(out)] = i

    def _may_move(self, j: int, i: int) -> bool:
        """A node with a state keeps its place among all that touch states."""
        between = self.order[j + 1:i]
        return not is_effect(self._node(j)) or not any(n is not None and is_effect(n) for n in between)

    def nodes(self) -> Iterable[Node]:
        for i, node in enumerate(self.order):
            if node is not None and i in self.chains:
                out = node.outputs[0]
                values = _values(self.chains[i])
                subject = next((v for v in values if _equal_shape(v, out)), values[0])
                operands, text = _number(self.chains[i], subject)
                yield Node("pointwise", (subject, *operands), {"steps": text}, node.outputs)
            elif node is not None:
                yield node


def _values(chain: _Chain) -> list[Value]:
    return list({id(a): a for _, args in chain for a in args if isinstance(a, Value)}.values())


def _equal_shape(a: Value, b: Value) -> bool:
    return len(a.shape) == len(b.shape) and all(Dim.of(x) == Dim.of(y) for x, y in zip(a.shape, b.shape, strict=True))


def _splice(first: _Chain, value: Value, second: _Chain) -> _Chain:
    """`second` with `value` computed by `first` inside the chain."""
    shift, result = len(first), _Ref(len(first) - 1)

    def move(a: _Arg) -> _Arg:
        if isinstance(a, _Ref):
            return _Ref(a.step + shift)
        return result if a is value else a

    return [*first, *((op, tuple(map(move, args))) for op, args in second)]


def _is_vector(v: Value) -> bool:
    """Broadcast over time: scalar, [C] or [B,1,C]."""
    return len(v.shape) <= 1 or (len(v.shape) == 3 and v.shape[1] == 1)


def _only_full_operand(chain: _Chain, x: Value) -> Value | None:
    """The one operand shaped like x, if all others are the same at every time step."""
    full = [v for v in _values(chain) if _equal_shape(v, x)]
    rest = [v for v in _values(chain) if not _equal_shape(v, x)]
    return full[0] if len(full) == 1 and all(map(_is_vector, rest)) else None


def _fits_epilogue(v: Value, out: Value) -> bool:
    return _is_vector(v) or _equal_shape(v, out)


def _number(chain: _Chain, subject: Value) -> tuple[list[Value], str]:
    """The further operands in order and the step list text, with `subject` as register 0."""
    operands = [v for v in _values(chain) if v is not subject]
    registers = {id(subject): 0, **{id(v): i + 1 for i, v in enumerate(operands)}}
    base = len(operands) + 1

    def register(a: _Arg) -> int | float:
        if isinstance(a, _Ref):
            return base + a.step
        return a if isinstance(a, float) else registers[id(a)]

    return operands, render([Step(op, tuple(map(register, args))) for op, args in chain])
