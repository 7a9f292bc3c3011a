"""What a caller can do wrong with states, loops and sizes: an error that says so, on every backend, and no harm."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from sonant.backends.backend import Backend, CancelFlag, Executable
from sonant.errors import BackendError, Cancelled, ProgramError
from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.program import Program, Value

I32 = np.int32
ROWS, CAPACITY, C = 3, 6, 4
B, T = Dim.symbol("B"), Dim.symbol("T")


def _attention(p: Program, x: Value, rows: Value, position: Value) -> Value:
    for name in "kv":
        p.add_state(name, "kv", (CAPACITY, C))
    return ops.attention(x, x, x, rows=rows, position=position, heads=2, scale=1, mask="causal",
                         state_k="k", state_v="v")


def _conv1d(p: Program, x: Value, rows: Value, position: Value) -> Value:
    p.add_state("left", "context", (2, C))
    return ops.conv1d(x, p.weight("w", (C, 3, C)), rows=rows, state="left")


def _conv_transpose1d(p: Program, x: Value, rows: Value, position: Value) -> Value:
    p.add_state("left", "context", (2, C))
    return ops.conv_transpose1d(x, p.weight("w", (C, 5, C)), stride=2, rows=rows, state="left")


def _state_read(p: Program, x: Value, rows: Value, position: Value) -> Value:
    p.add_state("note", "carry", (C,))
    return ops.add(x, ops.reshape(ops.state_read(rows, "note"), (B, 1, C)))


def _state_write(p: Program, x: Value, rows: Value, position: Value) -> Value:
    p.add_state("note", "carry", (C,))
    ops.state_write(rows, ops.reshape(ops.mean(x, 1), (B, C)), "note")
    return x


def _state_write_in_a_loop(p: Program, x: Value, rows: Value, position: Value) -> Value:
    body = Program("body")
    inner, inner_rows = body.input("x", ("B", "T", C)), body.input("rows", ("B",), "i32")
    body.input("step", (1,), "i32")
    body.outputs = [_state_write(body, ops.tanh(inner), inner_rows, inner_rows)]
    return ops.loop([x, rows], body, n_carry=1, trips=3)[0]


STATEFUL: dict[str, Callable[[Program, Value, Value, Value], Value]] = {
    "attention": _attention, "conv1d": _conv1d, "conv_transpose1d": _conv_transpose1d, "state_read": _state_read,
    "state_write": _state_write, "state_write in a loop": _state_write_in_a_loop,
}


def load(backend: Backend, record: Callable[[Program, Value, Value, Value], Value]) -> Executable:
    p = Program("failing")
    x = p.input("x", ("B", "T", C))
    rows, position = p.input("rows", ("B",), "i32"), p.input("position", ("B",), "i32")
    p.outputs = [record(p, x, rows, position), ops.add(rows, position)]
    return backend.load(p, {name: np.ones(v.shape, np.float32) for name, v in p.weights.items()})


def given(rows: list[int], position: list[int] | None = None, t: int = 2) -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(len(rows), t, C)).astype(np.float32)
    return {"x": x, "rows": np.array(rows, I32), "position": np.array(position or [0] * len(rows), I32)}


@pytest.mark.parametrize("op", STATEFUL)
@pytest.mark.parametrize("rows", [[0, 1, ROWS], [-1, 0, 1], [0, 1, 2**31 - 1], [-(2**31), 1, 2]], ids=str)
def test_rows_that_do_not_exist(backends: dict[str, Backend], op: str, rows: list[int]) -> None:
    for name, backend in backends.items():
        executable = load(backend, STATEFUL[op])
        states = executable.create_states(ROWS)
        good = executable.run(given([0, 1, 2]), states=states)
        with pytest.raises(BackendError, match="row"):
            executable.run(given(rows), states=states)
        for row in range(ROWS):
            states.reset(row)
        for found, wanted in zip(executable.run(given([0, 1, 2]), states=states), good, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=name)


@pytest.mark.parametrize("op", [op for op in STATEFUL if op != "state_read"])
def test_a_row_that_two_streams_claim(backends: dict[str, Backend], op: str) -> None:
    for backend in backends.values():
        executable = load(backend, STATEFUL[op])
        with pytest.raises(BackendError, match=r"row .*is named twice"):
            executable.run(given([1, 0, 1]), states=executable.create_states(ROWS))


def test_a_row_may_be_read_twice(backends: dict[str, Backend]) -> None:
    for backend in backends.values():
        executable = load(backend, _state_read)
        executable.run(given([1, 1]), states=executable.create_states(ROWS))


@pytest.mark.parametrize(("position", "t"), [
    ([0, CAPACITY], 1), ([0, CAPACITY - 1], 2), ([0, 0], CAPACITY + 1), ([-1, 0], 1), ([0, 2**31 - 1], 1),
    ([-(2**31), 0], 1), ([2**31 - 1, 0], 3),
], ids=str)
def test_positions_past_the_capacity(backends: dict[str, Backend], position: list[int], t: int) -> None:
    for backend in backends.values():
        executable = load(backend, _attention)
        states = executable.create_states(ROWS)
        executable.run(given([0, 1], [0, CAPACITY - 2], 2), states=states)
        bystander = states.read("k", 2)
        with pytest.raises(BackendError, match=r"attention.*(capacity|position)"):
            executable.run(given([0, 1], position, t), states=states)
        np.testing.assert_array_equal(states.read("k", 2), bystander)


@pytest.mark.parametrize("op", STATEFUL)
def test_states_that_were_not_passed(backends: dict[str, Backend], op: str) -> None:
    for backend in backends.values():
        with pytest.raises(BackendError, match=r"keeps states: pass states=create_states\(n_rows\)"):
            load(backend, STATEFUL[op]).run(given([0]))


@pytest.mark.parametrize(("mine", "other", "message"), [
    ("attention", "conv1d", "state 'k' of failing must be f32 .* found nothing: are these another"),
    ("conv1d", "state_read", "state 'left' of failing must be"),
])
def test_states_of_another_program(backends: dict[str, Backend], mine: str, other: str, message: str) -> None:
    for backend in backends.values():
        states = load(backend, STATEFUL[other]).create_states(ROWS)
        with pytest.raises(BackendError, match=message):
            load(backend, STATEFUL[mine]).run(given([0]), states=states)


def test_states_of_another_size(backends: dict[str, Backend]) -> None:
    for backend in backends.values():
        executable = load(backend, _conv1d)
        p = Program("larger")
        p.add_state("left", "context", (5, C))
        p.input("x", (1,))
        states = backend.load(p, {}).create_states(ROWS)
        with pytest.raises(BackendError, match=r"must be f32 \[3, 2, 4\], found float32 \[3, 5, 4\]"):
            executable.run(given([0]), states=states)


def test_the_states_themselves_know_their_rows_and_names(backends: dict[str, Backend]) -> None:
    value = np.arange(2 * C, dtype=np.float32).reshape(2, C)
    for backend in backends.values():
        executable = load(backend, _conv1d)
        states = executable.create_states(ROWS)
        states.write("left", 1, value)
        states.copy(1, 2)
        np.testing.assert_array_equal(states.read("left", 2), value)
        states.reset(1)
        assert not states.read("left", 1).any()
        for wrong in (lambda s: s.reset(ROWS), lambda s: s.copy(0, -1), lambda s: s.copy(ROWS, 0),
                      lambda s: s.read("left", -1), lambda s: s.write("left", 99, value)):
            with pytest.raises(BackendError, match="is not one of the 3 that there are"):
                wrong(states)
        with pytest.raises(BackendError, match=r"no state 'right'; there are \['left'\]"):
            states.read("right", 0)
        with pytest.raises(BackendError, match=r"holds \[2, 4\] a row, got \[4\]"):
            states.write("left", 0, value[0])
        with pytest.raises(BackendError, match="n_rows must be 0 or more"):
            executable.create_states(-1)


def test_no_rows_at_all(backends: dict[str, Backend]) -> None:
    for backend in backends.values():
        executable = load(backend, _conv1d)
        with pytest.raises(BackendError, match="row"):
            executable.run(given([0]), states=executable.create_states(0))


def _embedding(p: Program, x: Value, rows: Value, position: Value) -> Value:
    return ops.embedding(rows, p.weight("table", (5, C)))


def _gather(p: Program, x: Value, rows: Value, position: Value) -> Value:
    return ops.gather(x, ops.reshape(rows, (B, 1)))


@pytest.mark.parametrize(("record", "good", "wrong"),
                         [(_embedding, 4, 5), (_embedding, 0, -1), (_gather, 1, 2), (_gather, 0, -1)])
def test_ids_outside_a_table(backends: dict[str, Backend], record: Callable[..., Value], good: int, wrong: int) -> None:
    for backend in backends.values():
        executable = load(backend, record)
        executable.run(given([good, 1]))
        with pytest.raises(BackendError, match=r"embedding|gather"):
            executable.run(given([wrong, 1]))


def _cut(p: Program, x: Value, rows: Value, position: Value) -> Value:
    return ops.slice(x, 1, 0, 4)


def _valid_conv(p: Program, x: Value, rows: Value, position: Value) -> Value:
    return ops.conv1d(x, p.weight("w", (C, 5, C)))


def _reflect(p: Program, x: Value, rows: Value, position: Value) -> Value:
    return ops.pad(x, 1, 3, 3, "reflect")


@pytest.mark.parametrize("record", [_cut, _valid_conv, _reflect])
def test_an_utterance_that_is_too_short(backends: dict[str, Backend], record: Callable[..., Value]) -> None:
    for backend in backends.values():
        executable = load(backend, record)
        executable.run(given([0], t=8))
        with pytest.raises(ProgramError, match="cannot run at"):
            executable.run(given([0], t=3))


@pytest.mark.parametrize(("change", "message"), [
    (lambda g: g.pop("rows"), r"takes inputs \['x', 'rows', 'position'\], got \['position', 'x'\]"),
    (lambda g: g.update(more=g["x"]), "takes inputs"),
    (lambda g: g.update(x=g["x"].astype(np.float64)), r"input x: f32 \[B, T, 4\] of failing: got float64"),
    (lambda g: g.update(rows=g["rows"].astype(np.int64)), "got int64"),
    (lambda g: g.update(x=g["x"][0]), r"got float32 \[2, 4\]"),
    (lambda g: g.update(x=g["x"][:, :, :3]), r"must be \[2, 2, 4\] here, got \[2, 2, 3\]"),
    (lambda g: g.update(rows=g["rows"][:1]), r"must be \[2\] here, got \[1\]"),
])
def test_inputs_that_do_not_fit(backends: dict[str, Backend], change: Callable[..., object], message: str) -> None:
    for backend in backends.values():
        inputs = given([0, 1])
        change(inputs)
        with pytest.raises(BackendError, match=message):
            load(backend, _cut).run(inputs)


def test_weights_that_are_missing_or_of_another_shape(backends: dict[str, Backend]) -> None:
    p = Program("p")
    p.outputs = [ops.linear(p.input("x", ("T", C)), p.weight("w", (2, C)))]
    for backend in backends.values():
        for weights in ({}, {"w": np.zeros((C, 2), np.float32)}):
            with pytest.raises(BackendError, match=r"w.*found"):
                backend.load(p, weights)


def test_a_program_that_breaks_a_rule_is_not_loaded(backends: dict[str, Backend]) -> None:
    p = Program("p")
    p.outputs = [ops.sin(ops.tanh(p.input("x", ("T", C))))]
    p.nodes.reverse()
    for backend in backends.values():
        with pytest.raises(ProgramError, match="is read before it is made"):
            backend.load(p, {})


def _endless() -> Program:
    body = Program("body")
    x = body.input("x", ("T", C))
    body.input("step", (1,), "i32")
    body.outputs = [ops.tanh(x)]
    p = Program("p")
    p.outputs = list(ops.loop([p.input("x", ("T", C))], body, n_carry=1, trips=10**9))
    return p


def test_a_run_is_cancelled_within_a_loop(backends: dict[str, Backend]) -> None:
    for backend in backends.values():
        executable, flag = backend.load(_endless(), {}), CancelFlag()
        timer = threading.Timer(0.05, flag.set)
        timer.start()
        with pytest.raises(Cancelled, match="was cancelled"):
            executable.run({"x": np.ones((2, C), np.float32)}, cancel=flag)
        timer.join()
        flag = CancelFlag()
        flag.set()
        with pytest.raises(Cancelled):
            executable.run({"x": np.ones((2, C), np.float32)}, cancel=flag)
