"""What a node costs at given sizes: arithmetic and memory traffic, counted from shapes. For rooflines, not plans.

FLOP counts a multiplication and an addition as two, and one for each step of a pointwise chain; moves count none.
Bytes are what a perfect cache would still have to fetch once: operands, weights in their stored type, and results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonant.program import steps
from sonant.program.dims import Dim, product
from sonant.program.program import Node, Value

_BYTES = {"f32": 4.0, "i32": 4.0, "f16": 2.0, "bf16": 2.0, "q8": 34 / 32, "i8": 1.0}


@dataclass(frozen=True)
class Cost:
    """flop: arithmetic. weight_bytes, activation_bytes: read and written."""

    flop: int
    weight_bytes: int
    activation_bytes: int


def cost(node: Node, sizes: Mapping[str, int], *, position: float | None = None) -> Cost:
    """Of one run of `node`; of a loop, of nothing but what goes in and comes out: its body's nodes have their own.

    position: where the rows of attention states stand; without it they count as full.
    """
    weights = {v.name: v for v in node.inputs if v is not None and v.kind == "weight"}
    others = {id(v): v for v in node.inputs if v is not None and v.kind != "weight"}
    if _takes_sums(node):
        del others[id(node.inputs[0])]
    weight_bytes = sum(_elements(v, sizes) * _BYTES[v.dtype] for v in weights.values())
    if node.op == "embedding":  # reads one row for each id
        weight_bytes = _elements(node.outputs[0], sizes) * _BYTES["f32"]
    results = sum(_elements(v, sizes) for v in node.outputs)
    if node.op in ("slice", "gather"):  # read what they take
        moved = 4 * 2 * results
    else:
        moved = 4 * (sum(_elements(v, sizes) for v in others.values()) + results)
    return Cost(_flop(node, sizes, position), int(weight_bytes), moved + _state_bytes(node, sizes, position))


def _takes_sums(node: Node) -> bool:
    """An instance_affine that a backend gives the sums over time, which the maker of x has left, instead of x."""
    return node.op == "instance_affine" and len(node.inputs) > len(node.row.inputs)


def _elements(v: Value, sizes: Mapping[str, int]) -> int:
    return product(v.shape).evaluate(sizes)


def _flop(node: Node, sizes: Mapping[str, int], position: float | None) -> int:
    out = _elements(node.outputs[0], sizes) if node.outputs else 0
    x = node.inputs[0] if node.inputs else None
    if node.op in ("linear", "conv1d", "conv_transpose1d"):
        return _dense_flop(node, sizes, out)
    if node.op == "attention" and x is not None:
        return 4 * _elements(x, sizes) * _keys(node, sizes, position)
    if node.op == "attention_weights" and x is not None:  # out [B,T,H,N] over the channels of a head
        return 2 * out * (Dim.of(x.shape[2]).evaluate(sizes) // int(node.attrs["heads"]))
    if node.op == "lstm" and x is not None:
        w_ih, w_hh = node.inputs[1], node.inputs[2]
        assert w_ih is not None
        assert w_hh is not None
        per_step = product(w_ih.shape) + product(w_hh.shape)
        return 2 * (product(x.shape[:2]) * per_step).evaluate(sizes)
    if node.op in ("stft", "istft") and x is not None:
        frames = max(_elements(x, sizes), out) // (int(node.attrs["n_fft"]) + 2)
        return frames * 2 * int(node.attrs["n_fft"]) * int(node.attrs["n_fft"])
    if node.op == "pointwise":
        return out * len(steps.parse(node.attrs["steps"]))
    if node.op in ("rope", "rope_table"):  # two products and a sum; an angle and its cosine or sine
        return 3 * out
    if _takes_sums(node):
        x = node.inputs[-1]
    if node.op in ("layer_norm", "instance_affine", "sample"):
        return 6 * (_elements(x, sizes) if x is not None else 0)
    return out if node.row.pointwise or node.op in ("sum", "mean", "max", "interpolate", "cumsum_turns") else 0


def _dense_flop(node: Node, sizes: Mapping[str, int], out: int) -> int:
    x, w = node.inputs[0], node.inputs[1]
    assert x is not None
    assert w is not None
    # A transposed convolution puts every input row through every tap; the others gather taps for every output.
    rows = product(x.shape[:-1]) * w.shape[0] if node.op == "conv_transpose1d" else Dim.of(out)
    products = rows.evaluate(sizes) * int(product(w.shape[1:]))
    before, after = (len(steps.parse(node.attrs[name])) for name in ("prologue", "epilogue"))
    sums = 4 * out if len(node.outputs) > 1 else 0  # over time: pivot off, a sum, a square's sum
    return 2 * products + before * _elements(x, sizes) + after * out + sums


def _keys(node: Node, sizes: Mapping[str, int], position: float | None) -> int:
    """Keys that a query looks at; of a state, those up to its position, at most its window or capacity."""
    k = node.inputs[1]
    assert k is not None
    own, window = Dim.of(k.shape[1]).evaluate(sizes), int(node.attrs["window"])
    if not node.attrs["state_k"]:
        return min(own, window) if window else own
    capacity = k.program.state(node.attrs["state_k"]).shape[0]
    there = capacity if position is None else min(capacity, round(position) + own)
    return min(window, there) if window else there


def _state_bytes(node: Node, sizes: Mapping[str, int], position: float | None) -> int:
    """What a node reads of the states it names, for each of its rows."""
    x = node.inputs[0] if node.inputs else None
    names = [v for k, v in node.attrs.items() if k.startswith("state") and v]
    if x is None or not names:
        return 0
    rows = Dim.of(x.shape[0]).evaluate(sizes)
    specs = [x.program.state(n) for n in names]
    if node.op == "attention":
        return rows * _keys(node, sizes, position) * sum(4 * spec.shape[1] for spec in specs)
    if node.op == "attention_weights":  # the named keys, of the heads that are looked at
        n = Dim.of(node.outputs[0].shape[3]).evaluate(sizes)
        width = specs[0].shape[1] // int(node.attrs["kv_heads"] or node.attrs["heads"])
        return rows * n * 4 * width * len(node.attrs["head_ids"])
    return rows * sum(4 * int(product(spec.shape)) for spec in specs)
