"""Undo a fusion where its kernel would bind more storage buffers than every WebGPU device has."""

from __future__ import annotations

from sonant.backends.webgpu.kernels import STORAGE_BUFFERS
from sonant.program.opset import DENSE_FUSED_AT
from sonant.program.passes.rebuild import rebuild
from sonant.program.program import Node, Program, Value


def unfuse(program: Program) -> Program:
    """The same Program; where a dense node has too many operands, its epilogue, then its prologue, is a node again."""
    nodes: list[Node] = []
    for node in program.nodes:
        after: list[Node] = []
        if node.op in DENSE_FUSED_AT and node.attrs["epilogue"] and _buffers(node) > STORAGE_BUFFERS:
            node, epilogue = _without_epilogue(node)
            after.append(epilogue)
        if node.op in DENSE_FUSED_AT and node.attrs["prologue"] and _buffers(node) > STORAGE_BUFFERS:
            prologue, node = _without_prologue(node)
            nodes.append(prologue)
        nodes += [node, *after]
    return rebuild(program, nodes)


def _buffers(node: Node) -> int:
    return len({id(v) for v in (*node.inputs, *node.outputs) if v is not None})


def _without_epilogue(node: Node) -> tuple[Node, Node]:
    at = DENSE_FUSED_AT[node.op] + node.attrs["n_pro"]
    out = node.outputs[0]
    sums = Value(out.program, f"{out.name}.sums", out.shape, out.dtype, "node")
    return (Node(node.op, node.inputs[:at], {**node.attrs, "epilogue": ""}, (sums,)),
            Node("pointwise", (sums, *node.inputs[at:]), {"steps": node.attrs["epilogue"]}, node.outputs))


def _without_prologue(node: Node) -> tuple[Node, Node]:
    start = DENSE_FUSED_AT[node.op]
    stop = start + node.attrs["n_pro"]
    x = node.inputs[0]
    assert x is not None
    made = Value(x.program, f"{x.name}.prologue", x.shape, "f32", "node")
    return (Node("pointwise", (x, *node.inputs[start:stop]), {"steps": node.attrs["prologue"]}, (made,)),
            Node(node.op, (made, *node.inputs[1:start], *node.inputs[stop:]),
                 {**node.attrs, "prologue": "", "n_pro": 0}, node.outputs))
