"""Layout: what is still to be read is never overwritten. A checker plays the memory, value by value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import programs

from sonant.backends.native.lower import fused, plan_of, single_as_steps
from sonant.program import ops
from sonant.program.dims import Dim, product
from sonant.program.layout import Layout, Location, assign
from sonant.program.passes import fuse, own_outputs
from sonant.program.program import Node, Program, Value

T = Dim.symbol("T")


class Memory:
    """Which value each place holds while a Program is played; reading another one's is the error to find."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.layout, self.holds = layout, {}
        for v in program.inputs:
            self.write(v)
        self.play(program)
        for i, v in enumerate(program.outputs):
            self.read(v)
            assert self.layout.of(v) == Location("output", i)

    def place(self, v: Value) -> Location | None:
        """Nothing for weights and constants, which nobody writes."""
        location = self.layout.of(v)
        return None if location.space in ("weight", "constant") else location

    def read(self, v: Value) -> None:
        place, root = self.place(v), self.layout.source(v)
        assert place is None or self.holds.get(place) is root, f"{v} is read where {self.holds.get(place)} lies"

    def write(self, v: Value) -> None:
        place = self.place(v)
        assert place is not None
        self.holds[place] = v

    def play(self, program: Program) -> None:
        for node in program.nodes:
            for v in node.inputs:
                if v is not None:
                    self.read(v)
            if node.op == "reshape":
                assert self.layout.source(node.outputs[0]) is self.layout.source(node.inputs[0])
                continue
            if node.op == "loop":
                self.loop(node)
            for v in node.outputs:
                self.check_in_place(node, v)
                self.write(v)

    def loop(self, node: Node) -> None:
        body, n_carry = node.attrs["body"], node.attrs["n_carry"]
        for v in body.inputs[:n_carry]:
            self.write(v)
        for _ in range(2):  # the second step meets what the first one left behind
            self.write(body.inputs[-1])
            self.play(body)
            for v in body.outputs:
                self.read(v)
            for v in body.inputs[:n_carry]:
                self.write(v)
        for v in body.inputs[:n_carry]:
            self.read(v)

    def check_in_place(self, node: Node, out: Value) -> None:
        """A result may lie on one operand only, element by element, and only where a kernel reads before it writes."""
        on = [v for v in node.inputs if v is not None and self.place(v) == self.place(out)]
        assert len(on) <= 1
        for v in on:
            first = {"linear": 3, "conv1d": 4, "conv_transpose1d": 4}.get(node.op, 0) + node.attrs.get("n_pro", 0)
            assert node.op == "pointwise" or node.attrs.get("epilogue")
            assert all(v is not o for o in node.inputs[:first])
            assert v.shape == out.shape


def check_sizes(program: Program, layout: Layout, t: int) -> None:
    sizes = {"T": t}
    room = [max(e.evaluate(sizes) for e in tenants) for tenants in layout.buffers]
    for p in program.programs():
        for v in (*p.inputs, *(o for n in p.nodes for o in n.outputs)):
            if layout.of(v).space == "arena":
                assert product(v.shape).evaluate(sizes) <= room[layout.of(v).index]


@given(programs(most=20), st.integers(1, 50), st.booleans())
def test_no_two_live_values_share_memory(program: Program, t: int, lower: bool) -> None:
    program = fused(program) if lower else own_outputs(program)
    layout = assign(program, {"T": 7})
    Memory(program, layout)
    check_sizes(program, layout, t)


@given(programs(most=10), st.integers(1, 50))
def test_the_peak_is_the_sum_of_the_buffers(program: Program, t: int) -> None:
    program = own_outputs(single_as_steps(fuse(program)))
    rooms = [4 * max(e.evaluate({"T": t}) for e in tenants) for tenants in assign(program).buffers]
    assert plan_of(program).bind({"T": t}).arena_bytes == sum(-(-n // 64) * 64 for n in rooms)


def test_a_chain_of_layers_needs_two_buffers() -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 4))
    for _ in range(20):
        x = ops.layer_norm(x)
    p.outputs = [x]
    layout = assign(p)
    assert len(layout.buffers) == 2
    Memory(p, layout)


def test_a_pointwise_result_takes_over_its_operand() -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 4))
    for _ in range(20):
        x = ops.mul(ops.layer_norm(x), p.weight("gain", (4,)))
    p.outputs = [x]
    layout = assign(fuse(p))
    assert len(layout.buffers) == 2


def _body(kind: str) -> Program:
    body = Program("body")
    carry, lent = body.input("carry", (1, "T", 4)), body.input("lent", (1, "T", 4))
    body.input("step", (1,), "i32")
    seen = lent if kind == "plain" else ops.reshape(lent, (T, 4))
    other = ops.reshape(ops.tanh(seen), (1, T, 4))
    body.outputs = [ops.add(ops.layer_norm(carry), other)]
    return body


@pytest.mark.parametrize("kind", ["plain", "reshaped"])
def test_what_a_loop_lends_its_body_is_there_at_the_next_step(kind: str) -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 4))
    final, _ = ops.loop([x, ops.layer_norm(x)], _body(kind), n_carry=1, trips=3)
    p.outputs = [final]
    program = own_outputs(single_as_steps(fuse(p)))
    Memory(program, assign(program))


def test_a_body_has_buffers_of_its_own() -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 4))
    before = ops.layer_norm(x)
    final, _ = ops.loop([before, ops.layer_norm(before)], _body("plain"), n_carry=1, trips=3)
    p.outputs = [ops.add(final, ops.layer_norm(final))]
    program = own_outputs(single_as_steps(fuse(p)))
    layout = assign(program)
    loop = next(n for n in program.nodes if n.op == "loop")
    body = loop.attrs["body"]
    inside = {layout.of(v) for v in (*body.inputs[:1], body.inputs[-1], *(o for n in body.nodes for o in n.outputs))}
    outside = {layout.of(o) for n in program.nodes for o in n.outputs}
    assert not inside & outside
