"""The runtime below the native backend: threads, workspaces, cancelling, forks, bad bytecode."""

from __future__ import annotations

import ctypes
import os
import threading
import time

import numpy as np
import pytest

from sonant import _native as native
from sonant.backends.native import NativeBackend
from sonant.backends.native.lower import plan_of, single_as_steps
from sonant.errors import BackendError
from sonant.program import ops, opset
from sonant.program.program import Program

NONE = np.zeros(0, np.int64)
N = 200_000


def chain(length: int) -> np.ndarray:
    """Bytecode of `length` times x = sin(x) on N numbers, from an input to an output."""
    p = Program("chain")
    x = p.input("x", (N,))
    for _ in range(length):
        x = ops.sin(x)
    p.outputs = [x]
    return p


class Run:
    """One program bound by hand, below NativeBackend."""

    def __init__(self, program: Program, inputs: dict[str, np.ndarray]) -> None:
        self.plan = plan_of(single_as_steps(program))
        self.bound = self.plan.bind({})
        self.constants = [np.ascontiguousarray(c) for c in self.plan.constants]
        self.table = np.zeros(2 * len(self.constants), np.int64)
        self.table[1::2] = [c.ctypes.data for c in self.constants]
        self.inputs = [np.ascontiguousarray(inputs[v.name]) for v in program.inputs]
        self.outputs = [np.zeros(s, np.float32) for s in self.bound.output_shapes]

    def play(self, pool, *, code: np.ndarray | None = None, cancel: np.ndarray | None = None, seconds=None,
             threads: int = 0) -> int:  # fmt: skip
        addresses = [np.array([a.ctypes.data for a in arrays], np.int64) for arrays in (self.inputs, self.outputs)]
        words = self.bound.code if code is None else code
        counts = len(self.inputs), len(self.outputs), 0, self.bound.arena_bytes
        plan = native.Plan(words, self.table, *counts, native.isas()[-1])
        return plan.run(*addresses, native.States(NONE), pool, cancel, seconds, threads)


@pytest.fixture
def numbers() -> np.ndarray:
    return np.linspace(-3, 3, N, dtype=np.float32)


def threads_of_this_process() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_a_pool_starts_threads_when_they_are_needed_and_ends_them(numbers: np.ndarray) -> None:
    before = threads_of_this_process()
    pool = native.Pool(3)
    small = Program("small")
    small.outputs = [ops.sin(small.input("x", (16,)))]
    Run(small, {"x": numbers[:16]}).play(pool)
    assert threads_of_this_process() == before
    run = Run(chain(2), {"x": numbers})
    run.play(pool)
    assert threads_of_this_process() == before + 2
    pool.close()
    assert threads_of_this_process() == before
    assert run.play(pool) == 0  # and starts anew
    del pool
    assert threads_of_this_process() == before


def test_one_thread_starts_none(numbers: np.ndarray) -> None:
    before = threading.active_count()
    Run(chain(2), {"x": numbers}).play(native.Pool(1))
    assert threading.active_count() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_a_run_of_one_thread_starts_none_of_the_pool(numbers: np.ndarray) -> None:
    before, pool, run = threads_of_this_process(), native.Pool(3), Run(chain(2), {"x": numbers})
    run.play(pool, threads=1)
    assert threads_of_this_process() == before
    wanted = run.outputs[0].tobytes()
    run.play(pool, threads=2)
    assert threads_of_this_process() > before
    assert run.outputs[0].tobytes() == wanted


@pytest.mark.parametrize("n", [0, -1, 100000])
def test_a_pool_of_an_impossible_size(n: int) -> None:
    with pytest.raises(ValueError, match="threads"):
        native.Pool(n)


def test_runs_on_one_pool_from_several_threads(numbers: np.ndarray) -> None:
    pool = native.Pool(3)
    wanted = Run(chain(5), {"x": numbers})
    wanted.play(native.Pool(1))
    runs = [Run(chain(5), {"x": numbers}) for _ in range(6)]

    def many(run: Run) -> None:
        for _ in range(10):
            assert run.play(pool) == 0

    workers = [threading.Thread(target=many, args=(r,)) for r in runs]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert all(r.outputs[0].tobytes() == wanted.outputs[0].tobytes() for r in runs)


def test_the_interpreter_runs_on_while_kernels_do(numbers: np.ndarray) -> None:
    run, pool = Run(chain(400), {"x": numbers}), native.Pool(1)
    worker = threading.Thread(target=run.play, args=(pool,))
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
        time.sleep(0.0005)
    assert turns > 3


def test_cancelled_before_and_within(numbers: np.ndarray) -> None:
    run, pool = Run(chain(4000), {"x": numbers}), native.Pool(2)
    flag = np.ones(1, np.int32)
    assert run.play(pool, cancel=flag) == 1
    assert not run.outputs[0].any()
    flag[0] = 0
    timer = threading.Timer(0.02, lambda: flag.__setitem__(0, 1))
    timer.start()
    start = time.perf_counter()
    assert run.play(pool, cancel=flag) == 1
    timer.join()
    took = time.perf_counter() - start
    flag[0] = 0
    assert run.play(pool, cancel=flag) == 0
    assert took < time.perf_counter() - start - took


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_pool_works_in_the_child_of_a_fork(numbers: np.ndarray) -> None:
    pool = native.Pool(3)
    run = Run(chain(3), {"x": numbers})
    run.play(pool)
    wanted = run.outputs[0].tobytes()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            run.outputs[0][:] = 0
            good = run.play(pool) == 0 and run.outputs[0].tobytes() == wanted
            pool.close()
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert run.play(pool) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_runs(numbers: np.ndarray) -> None:
    pool = native.Pool(3)
    busy, stop = Run(chain(20), {"x": numbers}), threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            busy.play(pool)

    worker = threading.Thread(target=keep_busy)
    worker.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(Run(chain(3), {"x": numbers}).play(pool))
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        worker.join()


def test_an_error_of_a_kernel_on_another_thread_arrives_once_and_the_pool_goes_on() -> None:
    p = Program("ids")
    p.outputs = [ops.gather(p.input("x", (1, 3, 2)), p.input("i", (1, 4), "i32"))]
    pool = native.Pool(2)
    run = Run(p, {"x": np.ones((1, 3, 2), np.float32), "i": np.array([[0, 1, 2, 3]], np.int32)})
    with pytest.raises(RuntimeError, match=r"gather: index 0\.\.3 outside 3 rows"):
        run.play(pool)
    run.inputs[1][:] = 2
    assert run.play(pool) == 0


def test_seconds_are_counted_per_instruction(numbers: np.ndarray) -> None:
    seconds = np.zeros(3)
    run = Run(chain(3), {"x": numbers})
    run.play(native.Pool(1), seconds=seconds)
    assert (seconds > 0).all()
    for places in (2, 4):
        with pytest.raises(ValueError, match=f"{places} places for 3 instructions"):
            run.play(native.Pool(1), seconds=np.zeros(places))


def test_seconds_of_a_loop_are_those_of_its_body() -> None:
    body = Program("body")
    x = body.input("x", ("T",))
    body.input("step", (1,), "i32")
    body.outputs = [ops.sin(x)]
    p = Program("p")
    x = ops.tanh(p.input("x", ("T",)))
    p.outputs = [ops.exp(ops.loop([x], body, n_carry=1, trips=4)[0])]
    executable = NativeBackend(threads=1).load(p, {})
    seconds = np.zeros(len(executable.nodes))
    executable.run({"x": np.zeros(50_000, np.float32)}, seconds=seconds)
    taken = {n.attrs.get("steps", n.op).split()[0]: s for n, s in zip(executable.nodes, seconds, strict=True)}
    assert taken["loop"] == 0
    assert taken["sin"] > 0
    assert taken["tanh"] > 0
    assert taken["exp"] > 0


@pytest.mark.parametrize("isa", native.isas())
def test_the_probe_finds_what_the_machine_can_do(isa: str) -> None:
    """Bounds that any machine of the last twenty years keeps, and none of the next ones."""
    one, budget_s = native.Pool(1), 0.02
    assert 1e8 < native.peak_rate("f32", isa, one, budget_s) < 1e13
    assert 1e7 < native.peak_rate("int8", isa, one, budget_s) < 1e14
    assert (native.peak_rate("bf16", isa, one, budget_s) > 0) == (isa in ("avx512bf16", "amx"))
    assert 1e8 < native.read_rate(1 << 16, isa, one, budget_s) < 1e13
    with pytest.raises(ValueError, match="f64"):
        native.peak_rate("f64", isa, one, budget_s)
    with pytest.raises(ValueError, match="1024 bytes"):
        native.read_rate(1000, isa, one, budget_s)


def test_an_unknown_instruction_set() -> None:
    with pytest.raises(ValueError, match="no instruction set 'sse9'"):
        native.Plan(np.array([1, 2, 0]), NONE, 0, 0, 0, 0, "sse9")


def test_every_isa_up_to_the_best_is_offered() -> None:
    assert native.isas()[0] == "generic"
    assert NativeBackend(threads=1).isa == native.isas()[-1]


# --- malformed bytecode -----------------------------------------------------------------------------------------------
def several_ops() -> Run:
    """A program with steps, lists, a loop, constants and an arena; small enough to run thousands of times."""
    body = Program("body")
    x = body.input("x", (2, 3))
    body.input("step", (1,), "i32")
    body.outputs = [ops.mul(x, 0.5), ops.add(x, 1.0)]
    p = Program("several")
    a = p.input("a", (2, 3))
    last, stacked, _ = ops.loop([ops.transpose(ops.transpose(a, (1, 0)), (1, 0))], body, n_carry=1, trips=3)
    picked = ops.leaky_relu(ops.snake(last, p.constant(np.float32([1, 2, 3]))), slope=0.1)
    p.outputs = [ops.concat([picked, ops.slice(ops.reshape(stacked, (6, 3)), 0, 1, 3)], 1), ops.sum(last, 0)]
    return Run(p, {"a": np.ones((2, 3), np.float32)})


def test_empty_and_truncated_code() -> None:
    run, pool = several_ops(), native.Pool(1)
    for n in range(len(run.bound.code)):
        with pytest.raises(ValueError, match="bytecode"):
            run.play(pool, code=run.bound.code[:n].copy())


def trusted_words(code: np.ndarray) -> set[int]:
    """Places of the offsets of weights, inputs and outputs, whose sizes the executor does not know."""
    found = set()
    for start in code[1 : 1 + code[0]]:
        at = int(start) + 1
        for _ in range(int(code[start])):
            tensors = range(at + 6, at + 6 + 11 * int(code[at + 2] + code[at + 3]), 11)
            found |= {t + 2 for t in tensors if code[t] > 1}
            at += int(code[at])
    return found


def test_code_with_changed_words_never_crashes() -> None:
    """Any other word replaced by any number: an error or a result (the sanitizer build sees every access outside)."""
    run, pool = several_ops(), native.Pool(1)
    room = 1 << 18  # more than any shape here with one axis changed
    run.inputs, run.outputs = ([np.zeros(room, np.float32) for _ in arrays] for arrays in (run.inputs, run.outputs))
    run.constants = [np.zeros(room, np.float32) for _ in run.constants]
    run.table[1::2] = [c.ctypes.data for c in run.constants]
    rng = np.random.default_rng(0)
    refused = 0
    for at in sorted(set(range(len(run.bound.code))) - trusted_words(run.bound.code)):
        for value in (-1, 0, 1, 2, 3, 6, 7, 12, 1 << 12, (1 << 62) + 3, -(1 << 63), *rng.integers(0, 60, 4).tolist()):
            code = run.bound.code.copy()
            code[at] = value
            try:
                run.play(pool, code=code)
            except (ValueError, RuntimeError):
                refused += 1
    assert refused > len(run.bound.code)


def test_tables_of_another_type() -> None:
    with pytest.raises(ValueError, match="addresses"):
        native.Plan(np.array([1, 2, 0]), np.zeros(1, np.float64), 0, 0, 0, 0, "generic")
    with pytest.raises(ValueError, match="11 words"):
        native.States(np.zeros(5, np.int64))


def test_a_run_brings_what_its_plan_was_made_for() -> None:
    plan = native.Plan(np.array([1, 2, 0]), NONE, 1, 0, 0, 0, "generic")
    with pytest.raises(ValueError, match="another number of inputs, outputs or states"):
        plan.run(NONE, NONE, native.States(NONE), native.Pool(1))


def test_a_prepared_run_wants_its_arrays_as_they_are() -> None:
    p = Program("sum")
    p.outputs = [ops.add(p.input("x", (4, 2)), 1.0)]
    executable = NativeBackend(threads=1).load(p, {})
    with pytest.raises(BackendError, match="contiguous"):
        executable.prepare({"x": np.zeros((2, 4), np.float32).T})


def test_addresses_may_be_unsigned() -> None:
    data = np.ones(3, np.float32)
    out = np.zeros(3, np.float32)
    cast = list(opset.OPS).index("cast")
    tensor = [0, 0, 1, 3, 0, 0, 0, 0, 0]
    code = [1, 2, 1, 6 + 22 + 1, cast, 1, 1, 1, 0, 3, 0, *tensor, 4, 0, *tensor, 0]
    addresses = (np.array([ctypes.addressof(ctypes.c_char.from_buffer(a))], np.uint64) for a in (data, out))
    plan = native.Plan(np.array(code), NONE.astype(np.uint64), 1, 1, 0, 0, "generic")
    plan.run(*addresses, native.States(NONE), native.Pool(1))
    assert out.tolist() == [1, 1, 1]


# --- packing ----------------------------------------------------------------------------------------------------------
def test_pack_wants_a_target_of_the_right_size() -> None:
    w = np.ones((5, 3), np.float32)
    assert native.packed_bytes("linear", [5, 3], 1, "f32") == 32 * 3 * 4
    with pytest.raises(ValueError, match="384"):
        native.pack("linear", w, 1, "f32", np.zeros(383, np.uint8))
    with pytest.raises(ValueError, match="role"):
        native.packed_bytes("table", [5, 3], 1, "f32")
    with pytest.raises(ValueError, match="rank"):
        native.packed_bytes("conv", [5, 3], 1, "f32")
    with pytest.raises(ValueError, match="divide"):
        native.packed_bytes("conv", [5, 3, 2], 2, "f32")
