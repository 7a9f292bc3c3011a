"""Block sums: what instance_affine needs of x, made by the convolution that makes x while that is in the cache.

Only in a Plan, not in the opset: the convolution has a second result, f32 [B, blocks, 4, C], which is the fourth
operand of every instance_affine of x (native/kernels/dense_sums.h says what is in it). The bits are those
of the plain ops.
"""

from __future__ import annotations

from dataclasses import replace

from sonant.program.dims import Dim, simplify
from sonant.program.program import Program, Value

MAKERS = ("conv1d", "conv_transpose1d")
BLOCK, ROWS = 128, 4
"""As kSumsBlock and kSumsRows of native/kernels/dense_sums.h."""


def with_sums(program: Program) -> Program:
    """`program` with block sums wherever the x of an instance_affine is the result of a convolution of the same block.
    To be the last pass: the nodes do not follow the opset any more."""
    read = {id(node.inputs[0]) for node in program.nodes if node.op == "instance_affine"}
    sums: dict[int, Value] = {}
    nodes = []
    for node in program.nodes:
        x = node.inputs[0] if node.inputs else None
        if "body" in node.attrs:
            node = replace(node, attrs={**node.attrs, "body": with_sums(node.attrs["body"])})
        elif node.op in MAKERS and id(node.outputs[0]) in read:
            made = sums[id(node.outputs[0])] = _sums_of(node.outputs[0])
            node = replace(node, outputs=(*node.outputs, made))
        elif node.op == "instance_affine" and id(x) in sums:
            node = replace(node, inputs=(*node.inputs, sums[id(x)]))
        nodes.append(node)
    return replace(program, nodes=nodes)


def _sums_of(x: Value) -> Value:
    batch, length, channels = x.shape
    blocks = simplify((Dim.of(length) + (BLOCK - 1)) // BLOCK)
    return Value(x.program, f"{x.name}.sums", (batch, blocks, ROWS, channels), "f32", "node")
