"""Fusion: fewer nodes, the same numbers, the same states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import inputs_of, programs, weights_of

from sonant.backends.numpy import NumpyBackend
from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.passes import fuse, own_outputs
from sonant.program.program import Program
from sonant.program.verify import verify

T = Dim.symbol("T")


def run(program: Program, t: int) -> list[np.ndarray]:
    """Outputs and the states left behind, of two runs in a row."""
    executable = NumpyBackend().load(program, weights_of(program))
    states = executable.create_states(1)
    found = []
    with np.errstate(all="ignore"):
        for seed in range(2):
            found += executable.run(inputs_of(program, t, seed), states=states)
    return [*found, *(a for _, a in sorted(states.arrays.items()))]


@given(programs(), st.integers(1, 5))
def test_a_fused_program_gives_the_same_bits(program: Program, t: int) -> None:
    verify(program)
    fused = fuse(program)
    verify(fused)
    for plain, other in zip(run(program, t), run(fused, t), strict=True):
        assert plain.dtype == other.dtype
        np.testing.assert_array_equal(plain, other)
    assert len(fused.nodes) <= len(program.nodes)
    assert [v.shape for v in fused.outputs] == [v.shape for v in program.outputs]
    assert [v.shape for v in fused.inputs] == [v.shape for v in program.inputs]


@given(programs(), st.integers(1, 4))
def test_own_outputs_gives_the_same_bits_in_memory_of_their_own(program: Program, t: int) -> None:
    owned = own_outputs(fuse(program))
    verify(owned)
    for plain, other in zip(run(program, t), run(owned, t), strict=True):
        np.testing.assert_array_equal(plain, other)
    assert all(v.kind == "node" for v in owned.outputs)
    assert len({id(v) for v in owned.outputs}) == len(owned.outputs)


@given(programs(most=8))
def test_fusing_twice_changes_nothing_more(program: Program) -> None:
    once = fuse(program)
    assert len(fuse(once).nodes) <= len(once.nodes)


class Net:
    def __init__(self) -> None:
        self.p = Program("net")
        self.x, self.y = self.p.input("x", (1, "T", 4)), self.p.input("y", (1, "T", 4))
        self.rows = self.p.input("rows", (1,), "i32")
        self.w, self.bias, self.gain = (self.p.weight(n, s) for n, s in (("w", (4, 4)), ("bias", (4,)), ("gain", (4,))))

    def fused(self) -> list[str]:
        program = fuse(self.p)
        verify(program)
        for plain, other in zip(run(self.p, 3), run(program, 3), strict=True):
            np.testing.assert_array_equal(plain, other)
        return [n.op + "".join(f" {k}={n.attrs[k]!r}" for k in ("prologue", "epilogue", "steps") if n.attrs.get(k))
                for n in program.nodes]


def test_a_chain_is_one_node() -> None:
    n = Net()
    n.p.outputs = [ops.tanh(ops.mul(ops.add(n.x, n.gain), 2.0))]
    assert n.fused() == ["pointwise steps='add 0 1; mul 2 f2.0; tanh 3'"]


def test_what_two_read_is_made_once() -> None:
    n = Net()
    shared = ops.exp(n.x)
    n.p.outputs = [ops.tanh(shared), ops.sin(shared)]
    assert len(n.fused()) == 3
    n.p.outputs = [shared, ops.tanh(shared)]
    assert len(n.fused()) == 2


def test_a_value_read_twice_by_one_node_is_made_once() -> None:
    n = Net()
    y = ops.exp(n.x)
    n.p.outputs = [ops.mul(y, y)]
    assert n.fused() == ["pointwise steps='exp 0'", "pointwise steps='mul 0 0'"]


def test_activation_before_and_residual_after_a_dense_op_move_into_it() -> None:
    n = Net()
    n.p.outputs = [ops.add(ops.linear(ops.relu(n.x), n.w, n.bias), n.y)]
    assert n.fused() == ["linear prologue='relu 0' epilogue='add 0 1'"]


def test_an_operand_made_between_the_dense_op_and_its_reader_is_there_in_time() -> None:
    n = Net()
    first = ops.linear(n.x, n.w)
    between = ops.layer_norm(n.y)
    n.p.outputs = [ops.mul(ops.add(first, between), n.gain)]
    assert n.fused() == ["layer_norm", "linear epilogue='add 0 1; mul 3 2'"]


def test_of_two_dense_ops_the_later_takes_the_sum() -> None:
    n = Net()
    n.p.outputs = [ops.add(ops.linear(n.x, n.w), ops.linear(n.y, n.w, n.bias))]
    assert n.fused() == ["linear", "linear epilogue='add 1 0'"]


def test_broadcasting_chains_stay_outside() -> None:
    n = Net()
    row = ops.tanh(n.gain)
    n.p.outputs = [ops.add(n.x, row)]
    assert n.fused() == ["pointwise steps='tanh 0'", "pointwise steps='add 0 1'"]


def test_integers_are_not_joined() -> None:
    p = Program("p")
    ids = p.input("ids", ("T",), "i32")
    p.outputs = [ops.add(ops.mul(ids, 3), 1)]
    assert [n.op for n in fuse(p).nodes] == ["mul", "add"]


def test_numbers_alone_stay_a_node() -> None:
    p = Program("p")
    p.outputs = [ops.add(p.constant(1.5), p.constant(2.0))]
    p.input("x", ("T",))
    fused = fuse(p)
    assert [n.op for n in fused.nodes] == ["add"]
    assert NumpyBackend().load(fused, {}).run({"x": np.zeros(2, np.float32)})[0] == 3.5


def test_dead_nodes_and_their_weights_fall_away_but_not_effects() -> None:
    n = Net()
    n.p.add_state("sum", "carry", (4,))
    ops.linear(n.x, n.p.weight("dead", (9, 4)))
    ops.state_write(n.rows, ops.reshape(ops.sum(n.x, 1), (1, 4)), "sum")
    n.p.outputs = [ops.tanh(n.x)]
    fused = fuse(n.p)
    assert [node.op for node in fused.nodes] == ["sum", "reshape", "state_write", "pointwise"]
    assert not fused.weights
    assert list(fused.states) == ["sum"]


@pytest.mark.parametrize("touch", ["read", "write"])
def test_a_convolution_with_a_state_keeps_its_place(touch: str) -> None:
    n = Net()
    state = n.p.add_state("left", "context", (2, 4))
    y = ops.conv1d(n.x, n.p.weight("k", (4, 3, 4)), rows=n.rows, state=state)
    if touch == "read":
        between = ops.sum(ops.state_read(n.rows, state), 1)
    else:
        between = ops.mean(n.y, 1)
        ops.state_write(n.rows, ops.expand(between, (1, 2, 4)), state)
    n.p.outputs = [ops.add(y, between)]
    assert "conv1d" in n.fused()


def test_the_body_of_a_loop_is_fused() -> None:
    n = Net()
    body = Program("body")
    carry = body.input("carry", (1, "T", 4))
    body.input("step", (1,), "i32")
    body.outputs = [ops.tanh(ops.mul(ops.linear(carry, body.weight("w", (4, 4))), 0.5))]
    final, _ = ops.loop([n.x], body, n_carry=1, trips=3)
    n.p.outputs = [final]
    assert n.fused() == ["loop"]
    assert [node.op for node in fuse(n.p).nodes[0].attrs["body"].nodes] == ["linear"]
