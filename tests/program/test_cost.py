"""Counts that can be done on paper."""

from __future__ import annotations

import pytest

from sonant.program import ops
from sonant.program.cost import Cost, cost
from sonant.program.program import Program


def of(p: Program, **sizes: int) -> Cost:
    return cost(p.nodes[-1], sizes)


def test_a_linear_is_two_flop_a_weight_and_row() -> None:
    p = Program("p")
    x = p.input("x", ("B", "T", 32))
    ops.linear(x, p.weight("w", (64, 32), "bf16"), p.weight("b", (64,)))
    found = of(p, B=2, T=5)
    assert found.flop == 2 * 2 * 5 * 64 * 32
    assert found.weight_bytes == 64 * 32 * 2 + 64 * 4
    assert found.activation_bytes == 2 * 5 * (32 + 64) * 4


@pytest.mark.parametrize(("dtype", "per_weight"), [("f32", 4), ("f16", 2), ("q8", 34 / 32)])
def test_weights_count_in_their_stored_type(dtype: str, per_weight: float) -> None:
    p = Program("p")
    ops.linear(p.input("x", (1, 64)), p.weight("w", (64, 64), dtype))
    assert of(p).weight_bytes == 64 * 64 * per_weight


def test_a_convolution_counts_every_tap() -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 8))
    ops.conv1d(x, p.weight("w", (16, 3, 8)), pad_left=1, pad_right=1)
    assert of(p, T=10).flop == 2 * 10 * 16 * 3 * 8
    ops.conv_transpose1d(x, p.weight("v", (16, 4, 8)), stride=2)
    assert of(p, T=10).flop == 2 * 10 * 16 * 4 * 8


def test_attention_over_a_state_reads_its_window() -> None:
    p = Program("p")
    x = p.input("x", ("B", "T", 16))
    rows, position = p.input("rows", ("B",), "i32"), p.input("position", ("B",), "i32")
    for name in "kv":
        p.add_state(name, "ring", (40, 16))
    ops.attention(x, x, x, rows=rows, position=position, heads=2, scale=1, mask="causal", window=30, state_k="k",
                  state_v="v")
    assert of(p, B=1, T=2).flop == 4 * 2 * 16 * 30
    early = cost(p.nodes[-1], {"B": 1, "T": 2}, position=5)
    assert early.flop == 4 * 2 * 16 * 7
    assert of(p, B=1, T=2).activation_bytes - early.activation_bytes == 2 * (30 - 7) * 16 * 4


def test_recorded_attention_reads_the_named_keys_of_its_heads() -> None:
    p = Program("p")
    q, rows = p.input("q", ("B", "T", 16)), p.input("rows", ("B",), "i32")
    p.add_state("k", "kv", (40, 16))
    ops.attention_weights(q, p.input("keys", ("B", "N"), "i32"), rows, head_ids=(1,), heads=4, scale=1, state_k="k")
    found = of(p, B=2, T=1, N=10)
    assert found.flop == 2 * 2 * 10 * 4
    assert found.activation_bytes == 4 * (2 * 16 + 2 * 10 + 2 + 2 * 10) + 2 * 10 * 4 * 4


def test_a_slice_reads_what_it_takes() -> None:
    p = Program("p")
    ops.slice(p.input("x", (1, "T", 4)), axis=1, start=0, stop=3)
    assert of(p, T=1000).activation_bytes == 2 * 3 * 4 * 4


def test_a_chain_counts_its_steps_and_a_move_none() -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 4))
    ops.transpose(x, (0, 2, 1))
    assert of(p, T=10).flop == 0
    ops.tanh(x)
    assert of(p, T=10).flop == 40


def test_an_embedding_reads_its_rows_only() -> None:
    p = Program("p")
    ops.embedding(p.input("ids", ("T",), "i32"), p.weight("table", (4000, 8)))
    assert of(p, T=3).weight_bytes == 3 * 8 * 4
