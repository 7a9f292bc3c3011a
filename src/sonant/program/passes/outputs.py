"""Every output in memory of its own, for backends that write outputs where their caller wants them."""

from __future__ import annotations

from sonant.program import ops
from sonant.program.passes.rebuild import rebuild
from sonant.program.program import Program, Value


def own_outputs(program: Program) -> Program:
    """`program` with a copy for each output that is an input, a weight, a constant, or another output once more."""
    fresh = rebuild(program, program.nodes)
    roots: dict[int, Value] = {}
    for node in fresh.nodes:
        if node.op == "reshape" and node.inputs[0] is not None:
            roots[id(node.outputs[0])] = roots.get(id(node.inputs[0]), node.inputs[0])
    owned: set[int] = set()
    for i, v in enumerate(fresh.outputs):
        root = roots.get(id(v), v)
        if root.kind != "node" or id(root) in owned:
            fresh.outputs[i] = ops.expand(v, v.shape)
        else:
            owned.add(id(root))
    return fresh
