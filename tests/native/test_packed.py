"""Packed weights: what q8 panels hold, what Programs share, and the file that is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sonant import _native as native
from sonant.backends import native as native_backend
from sonant.backends.backend import from_q8, round_to, to_q8
from sonant.backends.native import NativeBackend
from sonant.backends.native.lower import lower
from sonant.backends.native.packed import pack_name
from sonant.errors import BackendError
from sonant.program import ops
from sonant.program.program import Program

BLOCK = 1088  # bytes of 32 outputs by 32 channels: integers, then f16 scales


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(4, 1, 1), (32, 1, 32), (70, 3, 45), (33, 2, 128)], ids=str)
def test_q8_panels_hold_the_integers_and_scales_of_to_q8(shape: tuple[int, int, int]) -> None:
    w = normal(*shape)
    w[0, 0] = 0  # a block of zeros, and halves that round to even
    w[-1, -1] = np.arange(shape[2]) % 5 * 0.5 + 125.5
    n, taps, channels = shape
    panels, blocks = -(-n // 32), -(-channels // 32)
    packed = np.full(native.packed_bytes("conv", list(shape), 1, "q8"), 99, np.uint8)
    assert packed.size == panels * taps * blocks * BLOCK
    native.pack("conv", w, 1, "q8", packed)
    packed = packed.reshape(panels, taps, blocks, BLOCK)
    # [panel, tap, block, four, lane, channel of four] → [output, tap, channel]
    integers = packed[..., :1024].copy().view(np.int8).reshape(panels, taps, blocks, 8, 32, 4)
    integers = integers.transpose(0, 4, 1, 2, 3, 5).reshape(panels * 32, taps, blocks * 32)
    scales = packed[..., 1024:].copy().view(np.float16).transpose(0, 3, 1, 2).reshape(panels * 32, taps, blocks)
    wanted_integers, wanted_scales = to_q8(w)
    np.testing.assert_array_equal(integers[:n, :, :channels], wanted_integers)
    np.testing.assert_array_equal(scales[:n], wanted_scales)
    assert not integers[n:].any()
    assert not integers[:, :, channels:].any()
    assert not scales[n:].any()


@pytest.mark.parametrize("shape", [(4, 1, 1), (32, 1, 32), (70, 3, 45), (33, 2, 128)], ids=str)
def test_i8_panels_hold_what_i8_is(shape: tuple[int, int, int]) -> None:
    w = normal(*shape)
    w[0, 0] = 0
    n, taps, channels = shape
    panels, fours = -(-n // 32), -(-channels // 4)
    packed = np.full(native.packed_bytes("conv", list(shape), 1, "i8"), 99, np.uint8)
    native.pack("conv", w, 1, "i8", packed)
    packed = packed.reshape(panels, taps, fours * 128 + 256)
    integers = packed[..., :-256].copy().view(np.int8).reshape(panels, taps, fours, 32, 4)
    integers = integers.transpose(0, 3, 1, 2, 4).reshape(panels * 32, taps, fours * 4)
    first = packed[..., -256:-128].copy().view(np.int32).transpose(0, 2, 1).reshape(panels * 32, taps)
    scales = packed[..., -128:].copy().view(np.float32).transpose(0, 2, 1).reshape(panels * 32, taps)
    np.testing.assert_array_equal(integers[:n, :, :channels] * scales[:n, :, None], round_to(w, "i8"))
    np.testing.assert_array_equal(first, -128 * integers.astype(np.int32).sum(-1))
    assert np.abs(round_to(w, "i8") - w).max() <= scales.max() * 0.5001
    assert not integers[n:].any()
    assert not integers[:, :, channels:].any()
    assert not scales[n:].any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_i8_cannot_hold_is_refused(value: float) -> None:
    w = normal(4, 40)
    w[2, 35] = value
    for pack in (lambda w: round_to(w, "i8"), lambda w: native.pack("linear", w, 1, "i8", np.zeros(1536, np.uint8))):
        with pytest.raises((BackendError, RuntimeError), match="not finite"):
            pack(w)


def test_q8_keeps_what_it_has_rounded() -> None:
    w = round_to(normal(40, 70), "q8")
    assert round_to(w, "q8").tobytes() == w.tobytes()
    assert np.abs(from_q8(*to_q8(w)) - w).max() == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e8])
def test_what_q8_cannot_hold_is_refused(value: float) -> None:
    w = normal(4, 40)
    w[2, 35] = value
    for pack in (to_q8, lambda w: native.pack("linear", w, 1, "q8", np.zeros(2 * BLOCK, np.uint8))):
        with pytest.raises((BackendError, RuntimeError), match="not finite, or too large"):
            pack(w)


def program(name: str, *weights: tuple[str, tuple[int, int], str]) -> Program:
    """y = the product of x with each weight, for weights [N,C] of one C."""
    p = Program(name)
    x = p.input("x", ("T", weights[0][1][1]))
    p.outputs = [ops.linear(x, p.weight(n, shape, dtype)) for n, shape, dtype in weights]
    return p


WEIGHTS = {"a": normal(40, 50), "b": normal(9, 50), "c": normal(64, 50)}
PROGRAMS = [program("first", ("a", (40, 50), "f32"), ("b", (9, 50), "q8")),
            program("second", ("c", (64, 50), "f16"), ("a", (40, 50), "f32"), ("b", (9, 50), "f32"))]


def test_programs_that_are_loaded_together_share_what_they_have_in_common() -> None:
    backend = NativeBackend(threads=1)
    together = backend.load_all(PROGRAMS, WEIGHTS)
    first, second = (dict(zip(e.plan.pack_shapes, e.table[::2], strict=False)) for e in together)
    common = set(first) & set(second)
    assert [key.name for key in common] == ["a"]  # b is of two dtypes
    assert all(first[key] == second[key] for key in common)
    assert len(set(first.values()) | set(second.values())) == 4
    x = normal(3, 50)
    for executable, p in zip(together, PROGRAMS, strict=True):
        alone = backend.load(p, WEIGHTS).run({"x": x})
        assert [y.tobytes() for y in executable.run({"x": x})] == [y.tobytes() for y in alone]


def test_the_file_is_named_without_packing_and_opened_again(tmp_path: Path) -> None:
    backend, x = NativeBackend(threads=1), normal(3, 50)
    found = [e.run({"x": x}) for e in backend.load_all(PROGRAMS, WEIGHTS, cache=tmp_path)]
    assert [f.name for f in tmp_path.iterdir()] == [pack_name(PROGRAMS)]
    assert pack_name(PROGRAMS).startswith("native-first-second-")
    assert pack_name(PROGRAMS) != pack_name(PROGRAMS[::-1])
    before = (tmp_path / pack_name(PROGRAMS)).stat().st_mtime_ns
    again = [e.run({"x": x}) for e in backend.load_all(PROGRAMS, {}, cache=tmp_path)]  # nothing is packed anew
    assert (tmp_path / pack_name(PROGRAMS)).stat().st_mtime_ns == before
    assert [[y.tobytes() for y in ys] for ys in again] == [[y.tobytes() for y in ys] for ys in found]


def test_a_weight_of_two_shapes_is_refused() -> None:
    other = program("other", ("a", (41, 50), "f32"))
    with pytest.raises(BackendError, match=r"weight 'a' is \[40, 50\] in one Program, \[41, 50\] in other"):
        NativeBackend(threads=1).load_all([PROGRAMS[0], other], WEIGHTS)


def test_a_run_takes_the_threads_it_is_given() -> None:
    p = Program("wide")
    p.outputs = [ops.linear(p.input("x", (200, 512)), p.weight("w", (512, 512)))]
    executable = NativeBackend(threads=3).load(p, {"w": normal(512, 512)})
    x = normal(200, 512)
    wanted = executable.run({"x": x})[0].tobytes()
    for threads in (1, 2, 3, 99):
        assert executable.run({"x": x}, threads=threads)[0].tobytes() == wanted
    with pytest.raises(BackendError, match="1 thread or more, got 0"):
        executable.run({"x": x}, threads=0)


DEEP = {f"w{i}": normal(256, 256, seed=i) for i in range(6)}
"""A quarter of a MiB each: whole pages."""


def chain(name: str, *order: int) -> Program:
    p = Program(name)
    y = p.input("x", ("T", 256))
    for i in order:
        y = ops.tanh(ops.linear(y, p.weight(f"w{i}", (256, 256))))
    p.outputs = [y]
    return p


def resident_kib(file: Path) -> int:
    """How much of a mapped file is in this process's memory."""
    maps = Path("/proc/self/smaps").read_text().splitlines()
    found = [next(row for row in maps[i:] if row.startswith("Rss:")) for i, line in enumerate(maps)
             if line.endswith(file.name)]
    return sum(int(row.split()[1]) for row in found)


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="only Linux says what is resident")
def test_weights_leave_memory_behind_a_run_that_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(5, 256)
    programs = chain("one", 0, 1, 2, 1, 3), chain("other", 4, 5)
    wanted = [NativeBackend(threads=2).load(p, DEEP).run({"x": x})[0].tobytes() for p in programs]

    backend = NativeBackend(threads=2)
    loaded = [backend.load(p, DEEP, cache=tmp_path) for p in programs]
    files = [tmp_path / pack_name([p]) for p in programs]

    def play() -> list[tuple[int, int]]:
        """What is resident of the files of both after each of four runs."""
        seen = []
        for i in (0, 1, 0, 1):
            assert loaded[i].run({"x": x})[0].tobytes() == wanted[i]
            seen.append((resident_kib(files[0]), resident_kib(files[1])))
        return seen

    roomy = play()
    assert roomy[-1] == (1024, 512)
    monkeypatch.setattr(native_backend, "RESIDENT_BYTES", 1_200_000)  # the first and its workspace, but not both
    snug = play()
    assert snug[0][0] == 1024
    assert [(one == 0, other == 0) for one, other in snug[1:]] == [(True, False), (False, True), (True, False)]
    monkeypatch.setattr(native_backend, "RESIDENT_BYTES", 0)
    tight = play()
    # The last read is gone; what lies around a page that is brought in comes with it, as far as the system likes.
    assert all(one <= 768 and other <= 256 for one, other in tight), tight


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="only Linux says what is resident")
def test_weights_of_a_program_with_states_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stepped: reading them again each time would cost more than all else."""
    monkeypatch.setattr(native_backend, "RESIDENT_BYTES", 0)
    p = Program("stepped")
    p.add_state("before", "context", (1, 256))
    x, rows = p.input("x", (1, "T", 256)), p.input("rows", (1,), "i32")
    p.outputs = [ops.conv1d(x, p.weight("w", (256, 2, 256)), rows=rows, state="before")]
    executable = NativeBackend(threads=1).load(p, {"w": normal(256, 2, 256)}, cache=tmp_path)
    states = executable.create_states(1)
    for _ in range(2):
        executable.run({"x": normal(1, 3, 256), "rows": np.zeros(1, np.int32)}, states=states)
        assert resident_kib(tmp_path / pack_name([p])) == 512


def test_what_is_released_when() -> None:
    executable = NativeBackend(threads=1).load(chain("one", 0, 1, 2, 1, 3), DEEP)
    plan = executable.plan
    assert dict(zip((key.name for key in plan.pack_shapes), plan.last_used.tolist(), strict=True)) == {
        "w0": 0, "w1": 3, "w2": 2, "w3": 4}
    assert executable.packed.releases(plan).size == 0  # packed in memory: there is no file to read them from again


def test_weights_of_a_loop_stay_until_its_program_ends() -> None:
    p, body = Program("p"), Program("body")
    carry, _ = body.input("carry", (1, 4)), body.input("step", (1,), "i32")
    body.outputs = [ops.linear(carry, body.weight("inner", (4, 4)))]
    x = ops.linear(p.input("x", (1, 4)), p.weight("before", (4, 4)))
    y = ops.loop([x], body, n_carry=1, trips=2)[0]
    p.outputs = [ops.tanh(ops.linear(y, p.weight("after", (4, 4))))]
    plan = lower(p)
    last = len(list(p.nodes)) - 2  # tanh is the epilogue of the last product
    assert dict(zip((key.name for key in plan.pack_shapes), plan.last_used.tolist(), strict=True)) == {
        "before": 0, "after": last, "inner": last}
