"""Which instance_affine takes block sums from the convolution that makes its x, in native Plans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from importlib import resources

import pytest

from sonant.backends.native.lower import fused
from sonant.families.kokoro import model as kokoro
from sonant.families.kokoro.config import KokoroConfig
from sonant.program import ops
from sonant.program.cost import cost
from sonant.program.dims import Dim
from sonant.program.program import Node, Program, Value

T = Dim.symbol("T")


def affine(x: Value) -> tuple[Value, Value]:
    p, c = x.program, int(x.shape[-1])
    return ops.instance_affine(x, p.weight("gamma", (c,)), p.weight("beta", (c,)))


def conv(x: Value, name: str = "w", n: int = 8) -> Value:
    return ops.conv1d(x, x.program.weight(name, (n, 3, int(x.shape[2]))), pad_left=1, pad_right=1)


def nodes(p: Program, op: str) -> list[Node]:
    return [n for n in fused(p).nodes if n.op == op]


def of_one(make: Callable[[Value], Value]) -> Program:
    p = Program("p")
    p.outputs = list(affine(make(p.input("x", ("B", "T", 8)))))
    return p


MAKERS: dict[str, Callable[[Value], Value]] = {
    "conv1d": conv,
    "conv1d with an epilogue": lambda x: ops.add(conv(x), x),
    "conv_transpose1d": lambda x: ops.conv_transpose1d(x, x.program.weight("w", (8, 4, 8)), stride=2),
}
OTHERS: dict[str, Callable[[Value], Value]] = {
    "input": lambda x: x,
    "pointwise": lambda x: ops.tanh(ops.layer_norm(x)),
    "linear": lambda x: ops.linear(x, x.program.weight("w", (8, 8))),
    "concat": lambda x: ops.concat([x, conv(x)], 2),
    "reshape": lambda x: ops.reshape(conv(x), (x.shape[0] * T, 1, 8)),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_the_maker_of_x_makes_its_sums(maker: str) -> None:
    p = of_one(MAKERS[maker])
    made = next(n for n in fused(p).nodes if n.op.startswith("conv"))
    (taken,) = nodes(p, "instance_affine")
    y, sums = made.outputs
    blocks = (Dim.of(y.shape[1]) + 127) // 128
    assert (sums.shape, sums.dtype) == ((y.shape[0], blocks, 4, 8), "f32")
    assert [len(made.outputs), len(taken.inputs)] == [2, 4]


@pytest.mark.parametrize("maker", OTHERS)
def test_other_makers_leave_none(maker: str) -> None:
    program = fused(of_one(OTHERS[maker]))
    assert all(len(n.inputs) == 3 for n in program.nodes if n.op == "instance_affine")
    assert all(len(n.outputs) == 1 for n in program.nodes if n.op == "conv1d")


def test_several_take_the_same_sums() -> None:
    p = Program("p")
    y = conv(p.input("x", (1, "T", 8)))
    scales = [affine(y) for _ in range(3)]
    p.outputs = [v for pair in scales for v in pair]
    program = fused(p)
    sums = next(n for n in program.nodes if n.op == "conv1d").outputs[1]
    assert [n.inputs[3] for n in program.nodes if n.op == "instance_affine"] == [sums, sums, sums]


def test_a_block_has_its_own_sums_only() -> None:
    """A body reads what lies outside as an input."""
    p = Program("p")
    y = conv(p.input("x", (1, "T", 8)))
    body = Program("body")
    carry, lent = body.input("carry", (1, "T", 8)), body.input("lent", (1, "T", 8))
    body.input("step", (1,), "i32")
    inside = conv(carry)
    body.outputs = [ops.add(ops.affine(inside, *affine(inside)), ops.affine(lent, *affine(lent)))]
    p.outputs = list(ops.loop([y, y], body, n_carry=1, trips=3))[:1]
    program = fused(p)
    (loop,) = (n for n in program.nodes if n.op == "loop")
    (made,) = (n for n in loop.attrs["body"].nodes if n.op == "conv1d")
    taken = [n for n in loop.attrs["body"].nodes if n.op == "instance_affine"]
    assert sorted(len(n.inputs) for n in taken) == [3, 4]
    assert len(made.outputs) == 2
    assert len(next(n for n in program.nodes if n.op == "conv1d").outputs) == 1


def test_the_given_program_stays_as_it_is() -> None:
    p = of_one(conv)
    fused(p)
    assert [len(n.outputs) for n in p.nodes] == [1, 2]
    assert [len(n.inputs) for n in p.nodes if n.op == "instance_affine"] == [3]


def kokoro_config() -> KokoroConfig:
    config = resources.files("sonant.families.kokoro") / "data" / "config.json"
    return KokoroConfig.from_json(json.loads(config.read_text(encoding="utf-8")))


@pytest.mark.parametrize("precision", ["f32", "int8"])
def test_kokoro_reads_no_long_tensor_for_its_norms(precision: str) -> None:
    """The generator's 48, and 8 of the first part; the others are of concatenations of T frames."""
    taken = nodes(kokoro.decoder_program(kokoro_config(), precision), "instance_affine")
    assert Counter(len(n.inputs) for n in taken) == {4: len(taken) - 5, 3: 5}
    assert {str(n.inputs[0].shape[1]) for n in taken if len(n.inputs) == 3} == {"T"}
    assert len(taken) == 58
    made = [n for n in fused(kokoro.decoder_program(kokoro_config(), precision)).nodes if len(n.outputs) > 1]
    assert Counter(n.op for n in made)["conv_transpose1d"] == 1
    prosody = nodes(kokoro.prosody_program(kokoro_config()), "instance_affine")
    assert Counter(len(n.inputs) for n in prosody) == {4: 10, 3: 2}


def test_what_it_costs() -> None:
    """x is not read again; its sums are work of the convolution."""
    p = of_one(conv)
    made, taken = (next(n for n in fused(p).nodes if n.op == op) for op in ("conv1d", "instance_affine"))
    sizes, sums = {"B": 2, "T": 300}, 2 * 3 * 4 * 8
    plain, found = cost(p.nodes[0], sizes), cost(made, sizes)
    assert found.flop - plain.flop == 4 * 2 * 300 * 8
    assert found.activation_bytes - plain.activation_bytes == 4 * sums
    assert cost(taken, sizes).activation_bytes == 4 * (sums + 2 * 2 * 8)
    assert cost(p.nodes[1], sizes).activation_bytes == 4 * (2 * 300 * 8 + 2 * 2 * 8)
