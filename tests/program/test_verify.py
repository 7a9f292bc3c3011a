"""verify() finds what recording could not see: Programs put together by hand, by passes, or read from files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sonant.errors import ProgramError
from sonant.program import ops
from sonant.program.bounds import Bounds
from sonant.program.dims import Dim
from sonant.program.program import Node, Program, Value
from sonant.program.verify import verify

T = Dim.symbol("T")


def net() -> Program:
    """linear, conv1d, tanh."""
    p = Program("net")
    x = p.input("x", (1, "T", 4))
    y = ops.linear(x, p.weight("w", (4, 4)))
    y = ops.conv1d(y, p.weight("k", (4, 3, 4)), pad_left=1, pad_right=1)
    p.outputs = [ops.tanh(y)]
    return p


def _reordered(p: Program) -> None:
    p.nodes.reverse()


def _unmade_output(p: Program) -> None:
    p.outputs = [Value(p, "%9", (1,), "f32", "node")]


def _made_twice(p: Program) -> None:
    p.nodes.append(p.nodes[0])


def _another_shape(p: Program) -> None:
    p.nodes[0].outputs[0].shape = (1, T, 5)


def _another_dtype(p: Program) -> None:
    p.nodes[2].outputs[0].dtype = "i32"


def _attribute_missing(p: Program) -> None:
    del p.nodes[1].attrs["stride"]


def _attribute_of_another_kind(p: Program) -> None:
    p.nodes[1].attrs["stride"] = "1"


def _unknown_state(p: Program) -> None:
    p.nodes[1].attrs.update(state="lost", pad_left=0, pad_right=0)


def _free_symbol(p: Program) -> None:
    y = ops.reshape(p.outputs[0], (1, 4, T))
    p.outputs = [ops.expand(ops.slice(y, 2, 0, 1), (1, 4, Dim.symbol("U")))]


def _free_symbol_in_attributes(p: Program) -> None:
    body = Program("body")
    carry = body.input("carry", (1, "T", 4))
    body.input("step", (1,), "i32")
    body.outputs = [carry]
    ops.loop([p.outputs[0]], body, n_carry=1, trips=Dim.symbol("U"))


def _fused(changes: dict[str, object], *operands: tuple[int, ...]) -> Callable[[Program], None]:
    def change(p: Program) -> None:
        values = [p.weight(f"v{i}", shape) for i, shape in enumerate(operands)]
        p.record("linear", [p.inputs[0], p.weights["w"], None, *values], **changes)

    return change


def _steps(text: str) -> Callable[[Program], None]:
    return lambda p: p.record("pointwise", [p.inputs[0], p.inputs[0]], steps=text)


BROKEN: dict[str, tuple[Callable[[Program], object], str]] = {
    "order": (_reordered, r"net, node 0 \(tanh\): %1.* is read before it is made"),
    "output": (_unmade_output, "output %9.* is never made"),
    "made twice": (_made_twice, "is made twice"),
    "shape": (_another_shape, "do not follow its rule"),
    "dtype": (_another_dtype, "do not follow its rule"),
    "attribute missing": (_attribute_missing, "attributes are missing"),
    "attribute kind": (_attribute_of_another_kind, "stride must be an integer"),
    "state": (_unknown_state, r"node 1 \(conv1d\): program net has no state 'lost'"),
    "symbol": (_free_symbol, r"depends on \['U'\], which no input binds"),
    "symbol of trips": (_free_symbol_in_attributes, r"trips depends on \['U'\]"),
    "n_pro": (_fused({"n_pro": 2}, (4,)), "n_pro is 2, with 1 fused operands"),
    "prologue operand": (_fused({"n_pro": 1, "prologue": "add 0 1"}, (5,)), "does not broadcast into"),
    "epilogue operand": (_fused({"epilogue": "add 0 1"}, (2, 1, 3, 4)), "does not broadcast into"),
    "prologue register": (_fused({"n_pro": 0, "prologue": "add 0 1"}, (4,)), "reads a register that does not exist"),
    "epilogue register": (_fused({"n_pro": 1, "epilogue": "add 0 1"}, (4,)), "reads a register that does not exist"),
    "step op": (_steps("linear 0 1"), "is not a pointwise op"),
    "step pointwise": (_steps("pointwise 0 1"), "is not a pointwise op"),
    "step unknown": (_steps("plus 0 1"), "no op 'plus'"),
    "step arguments": (_steps("add 0"), "wants 2 arguments"),
    "step register": (_steps("tanh 0; add 1 3"), "reads a register that does not exist"),
    "step negative": (_steps("add 0 -1"), "reads a register that does not exist"),
    "step attribute": (_steps("leaky_relu 0 1"), "must be a literal"),
    "step text": (_steps("add 0 x"), "bad step 'add 0 x'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_is_named(name: str) -> None:
    p = net()
    verify(p)
    change, message = BROKEN[name]
    change(p)
    with pytest.raises(ProgramError, match=message):
        verify(p)


def test_a_node_put_in_by_hand_is_checked() -> None:
    p = net()
    p.nodes.append(Node("add", (p.inputs[0],), {}, (Value(p, "%7", (1, T, 4), "f32", "node"),)))
    with pytest.raises(ProgramError, match="operand b is missing"):
        verify(p)


def test_a_body_is_verified_too() -> None:
    p = net()
    body = Program("body")
    carry = body.input("carry", (1, "T", 4))
    body.input("step", (1,), "i32")
    body.outputs = [ops.sin(ops.tanh(carry))]
    ops.loop([p.outputs[0]], body, n_carry=1, trips=2)
    verify(p)
    body.nodes.reverse()
    with pytest.raises(ProgramError, match=r"body, node 0 \(sin\).*read before"):
        verify(p)


def _at(make: Callable[[Program, Value], object]) -> Bounds:
    p = Program("p")
    make(p, p.input("x", (1, "T", 4)))
    return Bounds(p)


BOUNDS: dict[str, tuple[Callable[[Program, Value], object], int, str]] = {
    "slice past the end": (lambda p, x: ops.slice(x, 1, 0, 6), 6, "slice in p cannot run at {'T': 5}: it needs 6 <= T"),
    "slice from the end": (lambda p, x: ops.slice(x, 1, T - 3, T), 3, r"it needs 0 <= T-3, here 0 <= -1"),
    "convolution longer than its input": (lambda p, x: ops.conv1d(x, p.weight("k", (4, 3, 4))), 2, "0 <= T-2"),
    "reflection": (lambda p, x: ops.pad(x, 1, 3, 1, "reflect"), 4, "4 <= T"),
    "edges of nothing": (lambda p, x: ops.pad(x, 1, 1, 0, "edge"), 1, "1 <= T"),
    "stft": (lambda p, x: ops.stft(ops.reshape(x, (4, T)), 8, 2), 5, "5 <= T"),
    "mean of nothing": (lambda p, x: ops.mean(x, 1), 1, "1 <= T"),
    "trips": (lambda p, x: _loop(x, T - 2), 2, "0 <= T-2"),
}


def _loop(x: Value, trips: Dim) -> object:
    body = Program("body")
    body.outputs = [body.input("carry", x.shape)]
    body.input("step", (1,), "i32")
    return ops.loop([x], body, n_carry=1, trips=trips)


@pytest.mark.parametrize("name", BOUNDS)
def test_sizes_that_no_kernel_could_run_at_are_refused(name: str) -> None:
    make, least, message = BOUNDS[name]
    bounds = _at(make)
    bounds.check({"T": least})
    with pytest.raises(ProgramError, match=message):
        bounds.check({"T": least - 1})


def test_a_streamed_convolution_takes_whole_strides() -> None:
    p = Program("p")
    p.add_state("left", "context", (2, 4))
    x, rows = p.input("x", (1, "T", 4)), p.input("rows", (1,), "i32")
    p.outputs = [ops.conv1d(x, p.weight("k", (4, 5, 4)), stride=3, rows=rows, state="left")]
    Bounds(p).check({"T": 6})
    with pytest.raises(ProgramError, match="conv1d in p"):
        Bounds(p).check({"T": 7})


def test_a_ring_holds_the_window_and_what_comes_at_once() -> None:
    p = Program("p")
    for name in ("k", "v"):
        p.add_state(name, "ring", (12, 4))
    x, rows = p.input("x", (1, "T", 4)), p.input("rows", (1,), "i32")
    p.outputs = [ops.attention(x, x, x, rows=rows, position=rows, heads=1, scale=1.0, mask="causal", window=5,
                               state_k="k", state_v="v")]
    Bounds(p).check({"T": 8})
    with pytest.raises(ProgramError, match=r"attention in p cannot run at {'T': 9}: it needs T\+4 <= 12"):
        Bounds(p).check({"T": 9})


def test_bounds_inside_a_body_are_checked() -> None:
    p = Program("p")
    x = p.input("x", (1, "T", 4))
    body = Program("body")
    carry = body.input("carry", (1, "T", 4))
    body.input("step", (1,), "i32")
    body.outputs = [ops.add(carry, ops.slice(carry, 1, 4, 5))]
    ops.loop([x], body, n_carry=1, trips=2)
    with pytest.raises(ProgramError, match=r"slice in body.*5 <= T"):
        Bounds(p).check({"T": 4})
