"""Record a list of nodes into a fresh Program, so that every pass ends in a Program whose shapes were inferred anew."""

from __future__ import annotations

from collections.abc import Iterable

from sonant.program.program import Node, Program, Value


def is_effect(node: Node) -> bool:
    """True where the node changes a state, and so must stay even if nobody reads its results."""
    return node.row.effect or any(kind.startswith("state") and node.attrs[kind] for kind in node.attrs)


def live_nodes(nodes: Iterable[Node], outputs: Iterable[Value]) -> list[Node]:
    """The nodes that an output or a state depends on, in order."""
    needed = {id(v) for v in outputs}
    kept = []
    for node in reversed(list(nodes)):
        if is_effect(node) or any(id(v) in needed for v in node.outputs):
            needed |= {id(v) for v in node.inputs if v is not None}
            kept.append(node)
    return kept[::-1]


def rebuild(program: Program, nodes: Iterable[Node]) -> Program:
    """`program` with its nodes replaced; dead nodes, unused weights and unused constants fall away."""
    fresh = Program(program.name)
    moved: dict[int, Value] = {id(v): fresh.input(v.name, v.shape, v.dtype) for v in program.inputs}
    for spec in program.states.values():
        fresh.add_state(spec.name, spec.kind, spec.shape, spec.dtype)
    arrays = {id(value): array for value, array in program.constants.values()}

    def move(v: Value | None) -> Value | None:
        if v is None:
            return None
        if id(v) not in moved:
            is_constant = v.kind == "constant"
            moved[id(v)] = fresh.constant(arrays[id(v)]) if is_constant else fresh.weight(v.name, v.shape, v.dtype)  # type: ignore[arg-type]
        return moved[id(v)]

    for node in live_nodes(nodes, program.outputs):
        for name, weight in node.attrs["body"].weights.items() if "body" in node.attrs else ():
            fresh.weight(name, weight.shape, weight.dtype)
        results = fresh.record(node.op, [move(v) for v in node.inputs], **node.attrs)
        moved.update({id(old): new for old, new in zip(node.outputs, results, strict=True)})
    fresh.outputs = [v for v in map(move, program.outputs) if v is not None]
    return fresh
