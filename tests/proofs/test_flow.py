"""Proof (b): a flow-matching solver as one loop node: a latent of any length is the carry, the condition stays outside,
the time embedding of each step comes from a constant table, guidance is two rows of one batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest

from sonant.backends.backend import Backend
from sonant.backends.numpy import NumpyBackend
from sonant.program import ops
from sonant.program.dims import Dim, DimLike
from sonant.program.passes import fuse
from sonant.program.program import Program, Value
from sonant.program.serialize import from_json, to_json, to_text

CHANNELS, CONDITION, HEADS, STEPS, TABLE = 6, 5, 2, 8, 32
GUIDANCE = 1.7
T, N = Dim.symbol("T"), Dim.symbol("N")
I32 = np.int32

TIMES = np.sin(np.outer(np.arange(TABLE) / TABLE, 2.0 ** np.arange(4) * np.pi)).astype(np.float32)  # [TABLE, 4]


def velocity(p: Program, x: Value, condition: Value, time: Value) -> Value:
    """x [R,T,C], condition [R,T,D], time [1,1,4] → [R,T,C]: attention and convolution, modulated by the time."""
    def w(name: str, *shape: int) -> Value:
        return p.weight(f"velocity.{name}", shape)

    inner = 8
    h = ops.linear(ops.concat([x, condition], 2), w("in", inner, CHANNELS + CONDITION), w("in.bias", inner))
    shift = ops.linear(time, w("time", inner, 4))  # [1,1,inner]
    h = ops.silu(ops.add(ops.layer_norm(h), shift))
    q, k, v = (ops.linear(h, w(n, inner, inner)) for n in "qkv")
    h = ops.add(h, ops.attention(q, k, v, heads=HEADS, scale=0.5))
    h = ops.conv1d(ops.gelu(h), w("conv", inner, 5, inner), w("conv.bias", inner), pad_left=2, pad_right=2)
    return ops.linear(ops.mul(h, ops.sigmoid(shift)), w("out", CHANNELS, inner), w("out.bias", CHANNELS))


def guided(p: Program, x: Value, condition: Value, time: Value) -> Value:
    """One velocity [1,T,C] of two rows: with the condition, and with none."""
    both = velocity(p, ops.concat([x, x], 0), ops.concat([condition, ops.mul(condition, 0.0)], 0), time)  # [2,T,C]
    told, free = ops.slice(both, 0, 0, 1), ops.slice(both, 0, 1, 2)
    return ops.add(free, ops.mul(ops.sub(told, free), GUIDANCE))


def body(name: str, pass_table: bool) -> Program:
    """One Euler step; `table` comes in as an invariant or is a constant of the body itself."""
    p = Program(name)
    x, condition = p.input("x", (1, "T", CHANNELS)), p.input("condition", (1, "T", CONDITION))
    dt = p.input("dt", (1,))
    table = p.input("table", (TABLE, 4)) if pass_table else p.constant(TIMES)
    step = p.input("step", (1,), "i32")
    time = ops.reshape(ops.embedding(step, table), (1, 1, 4))
    moved = ops.add(x, ops.mul(guided(p, x, condition, time), dt))
    p.outputs = [moved, ops.mean(ops.abs(moved), 1)]
    return p


def looped(trips: DimLike, *, pass_table: bool = True, again: bool = False) -> Program:
    """noise, condition, dt → latent, mean magnitudes of each step, steps run."""
    p = Program("proof.flow")
    x, condition = p.input("x", (1, "T", CHANNELS)), p.input("condition", (1, "T", CONDITION))
    dt = p.input("dt", (1,))
    if isinstance(trips, Dim):
        p.input("schedule", (N,))
    condition = ops.tanh(condition)  # a node's result as an invariant
    lent = [condition, dt, *([p.constant(TIMES)] if pass_table else [])]
    final, sizes, count = ops.loop([x, *lent], body("proof.flow.body", pass_table), n_carry=1, trips=trips)
    if again:  # a second loop over the result of the first
        final, sizes, count = ops.loop([final, *lent], body("proof.flow.body2", pass_table), n_carry=1, trips=trips)
    p.outputs = [final, sizes, count]
    return p


def unrolled(steps: int) -> Program:
    """The same, written out step by step."""
    p = Program("proof.unrolled")
    x, condition = p.input("x", (1, "T", CHANNELS)), p.input("condition", (1, "T", CONDITION))
    dt = p.input("dt", (1,))
    condition = ops.tanh(condition)
    sizes = []
    for i in range(steps):
        time = ops.reshape(p.constant(TIMES[i]), (1, 1, 4))
        x = ops.add(x, ops.mul(guided(p, x, condition, time), dt))
        sizes.append(ops.mean(ops.abs(x), 1))
    p.outputs = [x, ops.reshape(ops.concat(sizes, 1), (steps, 1, 1, CHANNELS))]
    return p


def weights_of(program: Program) -> dict[str, np.ndarray]:
    return {name: (0.4 * np.random.default_rng(zlib.crc32(name.encode())).normal(size=v.shape)).astype(np.float32)
            for name, v in program.weights.items()}


def inputs(t: int, schedule: int | None = None) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(t)
    given = {"x": rng.normal(size=(1, t, CHANNELS)).astype(np.float32),
             "condition": rng.normal(size=(1, t, CONDITION)).astype(np.float32),
             "dt": np.array([1 / STEPS], np.float32)}
    return given if schedule is None else {**given, "schedule": np.zeros(schedule, np.float32)}


def run(backend: Backend, program: Program, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    return backend.load(program, weights_of(program)).run(given)


def by_hand(given: dict[str, np.ndarray], steps: int) -> np.ndarray:
    """The solver in plain NumPy around one Program of the velocity alone, in f64."""
    p = Program("velocity")
    x, condition = p.input("x", (2, "T", CHANNELS)), p.input("condition", (2, "T", CONDITION))
    p.outputs = [velocity(p, x, condition, p.input("time", (1, 1, 4)))]
    net = NumpyBackend(np.float64).load(p, weights_of(p))
    latent = given["x"].astype(np.float64)
    told = np.tanh(given["condition"])
    rows = np.concatenate([told, np.zeros_like(told)])
    for i in range(steps):
        both = net.run({"x": np.tile(latent, (2, 1, 1)).astype(np.float32), "condition": rows,
                        "time": TIMES[i].reshape(1, 1, 4)})[0]
        latent = latent + (both[1:] + (both[:1] - both[1:]) * GUIDANCE) * given["dt"]
    return latent


@pytest.mark.parametrize("t", [1, 7, 40])
@pytest.mark.parametrize("pass_table", [True, False])
def test_the_loop_is_the_solver_written_by_hand(backends: dict[str, Backend], t: int, pass_table: bool) -> None:
    wanted = by_hand(inputs(t), STEPS)
    assert np.abs(wanted - inputs(t)["x"]).max() > 0.1
    for name, backend in backends.items():
        final, sizes, count = run(backend, looped(STEPS, pass_table=pass_table), inputs(t))
        np.testing.assert_allclose(final, wanted, rtol=0, atol=2e-5, err_msg=name)
        assert sizes.shape == (STEPS, 1, 1, CHANNELS)
        np.testing.assert_allclose(sizes[-1], np.abs(wanted).mean(1, keepdims=True), rtol=0, atol=2e-5)
        assert count.tolist() == [STEPS]


@pytest.mark.parametrize("t", [1, 7, 40])
def test_the_loop_is_the_unrolled_program_bit_for_bit(backends: dict[str, Backend], t: int) -> None:
    for name, backend in backends.items():
        final, sizes, _ = run(backend, looped(STEPS), inputs(t))
        wanted, wanted_sizes = run(backend, unrolled(STEPS), inputs(t))
        np.testing.assert_array_equal(final, wanted, err_msg=name)
        np.testing.assert_array_equal(sizes, wanted_sizes, err_msg=name)


@pytest.mark.parametrize("steps", [0, 1, 3, 8])
def test_trips_may_come_with_the_inputs(backends: dict[str, Backend], steps: int) -> None:
    for name, backend in backends.items():
        final, sizes, count = run(backend, looped(N), inputs(9, steps))
        wanted = run(backend, unrolled(steps), inputs(9))[0] if steps else inputs(9)["x"]
        np.testing.assert_array_equal(final, wanted, err_msg=name)
        assert sizes.shape == (steps, 1, 1, CHANNELS)
        assert count.tolist() == [steps]


def test_one_loaded_program_serves_every_length_and_step_count(backends: dict[str, Backend]) -> None:
    for name, backend in backends.items():
        program = looped(N)
        executable = backend.load(program, weights_of(program))
        first = {(t, n): executable.run(inputs(t, n))[0] for t in (5, 3, 17) for n in (2, 4)}
        for (t, n), latent in first.items():
            np.testing.assert_array_equal(executable.run(inputs(t, n))[0], latent, err_msg=name)
            np.testing.assert_array_equal(run(backend, unrolled(n), inputs(t))[0], latent, err_msg=name)


def test_a_second_loop_begins_where_the_first_ended(backends: dict[str, Backend]) -> None:
    for name, backend in backends.items():
        once, _, _ = run(backend, looped(3), inputs(7))
        twice, sizes, count = run(backend, looped(3, again=True), inputs(7))
        wanted, wanted_sizes, _ = run(backend, looped(3), {**inputs(7), "x": once})
        np.testing.assert_array_equal(twice, wanted, err_msg=name)
        np.testing.assert_array_equal(sizes, wanted_sizes, err_msg=name)
        assert count.tolist() == [3]


def test_threads_change_no_bit(native_backends: dict[str, Backend]) -> None:
    bits: dict[str, bytes] = {}
    for name, backend in native_backends.items():
        final = run(backend, looped(STEPS), inputs(300))[0].tobytes()
        assert bits.setdefault(name.rsplit("-", 1)[0], final) == final, name


# --- what a body may hand back ----------------------------------------------------------------------------------------
def _swap(a: Value, b: Value, step: Value) -> list[Value]:
    return [b, a]


def _fibonacci(a: Value, b: Value, step: Value) -> list[Value]:
    return [ops.add(a, b), a, a]


def _same_twice(a: Value, b: Value, step: Value) -> list[Value]:
    both = ops.mul(ops.add(a, b), 0.5)
    return [both, both, ops.reshape(both, (T,))]


def _step_number(a: Value, b: Value, step: Value) -> list[Value]:
    return [ops.add(a, ops.cast(step, "f32")), a, step, b]


def _constants(a: Value, b: Value, step: Value) -> list[Value]:
    p = a.program
    return [b, ops.expand(p.constant([4.0]), (1, T)), p.constant([1.0, 2.0]), p.weight("gain", (3,))]


BODIES: dict[str, Callable[[Value, Value, Value], list[Value]]] = {
    "swapped carries": _swap, "a carry handed on": _fibonacci, "one value twice": _same_twice,
    "the step itself": _step_number, "constants and weights": _constants,
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_any_value_may_be_a_carry_or_be_stacked(backends: dict[str, Backend], name: str, trips: int) -> None:
    p, inner = Program("p"), Program("body")
    given = [p.input(n, (1, "T")) for n in "ab"]
    a, b = (inner.input(n, (1, "T")) for n in "ab")
    inner.outputs = BODIES[name](a, b, inner.input("step", (1,), "i32"))
    p.outputs = list(ops.loop(given, inner, n_carry=2, trips=trips))
    weights = {"gain": np.array([3, 2, 1], np.float32)}
    arrays = {"a": np.array([[1, 2, 3]], np.float32), "b": np.array([[10, 20, 30]], np.float32)}
    wanted = NumpyBackend().load(p, weights).run(arrays)
    for backend in backends.values():
        for found, reference in zip(backend.load(p, weights).run(arrays), wanted, strict=True):
            assert found.dtype == reference.dtype
            np.testing.assert_array_equal(found, reference)
    if name == "a carry handed on" and trips == 5:
        assert wanted[0][0, 0] == 5 * 10 + 8 * 1
        assert wanted[2][:, 0, 0].tolist() == [1, 11, 12, 23, 35]


def test_a_loop_stops_after_the_step_that_says_so(backends: dict[str, Backend]) -> None:
    """`done` is looked at after the step; every element has to agree; what is stacked stays zero from there on."""
    p, inner = Program("p"), Program("body")
    x = p.input("x", (4,))
    a, step = inner.input("a", (4,)), inner.input("step", (1,), "i32")
    grown = ops.mul(a, 2.0)
    inner.outputs = [grown, ops.greater(grown, 30.0), ops.add(step, 1)]
    p.outputs = list(ops.loop([x], inner, n_carry=1, trips=9, has_done=True))
    for backend in backends.values():
        final, stacked, count = backend.load(p, {}).run({"x": np.array([1, 2, 4, 8], np.float32)})
        assert final.tolist() == [32, 64, 128, 256]
        assert stacked[:, 0].tolist() == [1, 2, 3, 4, 5, 0, 0, 0, 0]
        assert count.tolist() == [5]


def test_a_loop_within_a_loop(backends: dict[str, Backend]) -> None:
    inner = Program("inner")
    a, lent = inner.input("a", (1, "T")), inner.input("lent", (1, "T"))
    inner_step = inner.input("step", (1,), "i32")
    inner.outputs = [ops.add(ops.mul(a, 0.5), ops.mul(lent, ops.cast(inner_step, "f32")))]
    outer = Program("outer")
    b, kept = outer.input("b", (1, "T")), outer.input("kept", (1, "T"))
    outer.input("step", (1,), "i32")
    last, _ = ops.loop([b, ops.sin(kept)], inner, n_carry=1, trips=T)
    outer.outputs = [ops.add(last, kept)]
    p = Program("p")
    x = p.input("x", (1, "T"))
    final, _ = ops.loop([x, ops.cos(x)], outer, n_carry=1, trips=3)
    p.outputs = [final]
    given = np.array([[0.5, -1.0, 2.0, 0.25]], np.float32)
    value, kept_now = given, np.cos(given)
    for _ in range(3):
        for i in range(4):
            value = value * 0.5 + np.sin(kept_now) * i
        value = value + kept_now
    for name, backend in backends.items():
        np.testing.assert_allclose(backend.load(p, {}).run({"x": given})[0], value, rtol=0, atol=1e-5, err_msg=name)


def test_the_written_forms_keep_the_loop(backends: dict[str, Backend]) -> None:
    program = looped(N)
    back = from_json(to_json(fuse(program)))
    assert to_text(back) == to_text(fuse(program))
    for backend in backends.values():
        np.testing.assert_array_equal(run(backend, back, inputs(6, 3))[0], run(backend, program, inputs(6, 3))[0])
