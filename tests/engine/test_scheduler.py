"""The scheduler with a model whose samples say who they are of: each stream whole, in order, nobody else's."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest

from sonant.backends.backend import CancelFlag
from sonant.engine.scheduler import FrameScheduler
from sonant.errors import BackendError, Cancelled

PER_FRAME = 3


@dataclass
class Stream:
    name: int
    length: int
    row: int
    made: int = 0
    taken: int = 0
    fails_at: int = -1

    @property
    def ended(self) -> bool:
        return self.made == self.length

    @property
    def pending(self) -> int:
        return self.made - self.taken


@dataclass
class Model:
    """Frame f of stream `name` is three samples of 1000 * name + f."""

    n_rows: int = 4
    step_s: float = 0.0
    widths: list[int] = field(default_factory=list)
    decodes: list[tuple[int, int]] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    stepped: threading.Event = field(default_factory=threading.Event)
    waits_for_steps: bool = False
    """Each decoding but the first waits until another frame is stepped, if one is to come."""
    overlapped: int = 0

    def begin(self, row: int, request: tuple[int, int, int], cancel: CancelFlag) -> Stream:
        name, length, fails_at = request
        if length < 0:
            raise BackendError(f"no stream {name}")
        return Stream(name, length, row, fails_at=fails_at)

    def step(self, streams: Sequence[Stream], *, threads: int | None = None) -> None:
        rows = [s.row for s in streams]
        assert len(set(rows)) == len(rows)
        self.widths.append(len(streams))
        self.stepped.set()
        time.sleep(self.step_s)
        for s in streams:
            assert not s.ended
            if s.made == s.fails_at:
                raise BackendError(f"stream {s.name} broke")
            s.made += 1

    def decode(self, streams: Sequence[Stream], n_frames: int, *, threads: int | None = None) -> list[np.ndarray]:
        self.decodes.append((len(streams), n_frames))
        if self.waits_for_steps and len(self.decodes) > 1 and not streams[0].ended:
            until = time.monotonic() + 10
            while streams[0].pending == n_frames:  # as many as it had when this began
                assert time.monotonic() < until, "nobody stepped while the codec worked"
                time.sleep(1e-3)
            self.overlapped += 1
        time.sleep(self.step_s)
        found = []
        for s in streams:
            assert s.pending >= n_frames
            frames = 1000 * s.name + s.taken + np.arange(n_frames)
            found.append(np.repeat(frames, PER_FRAME).astype(np.float32))
        for s in streams:
            s.taken += n_frames
        return found


def wanted(name: int, length: int) -> np.ndarray:
    return np.repeat(1000 * name + np.arange(length), PER_FRAME).astype(np.float32)


def joined(chunks: Iterator[tuple[Stream, np.ndarray]]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *(samples for _, samples in chunks)])


def start(scheduler: FrameScheduler[Stream], name: int, length: int, *, fails_at: int = -1, chunk: int | None = None,
          cancel: CancelFlag | None = None) -> Iterator[tuple[Stream, np.ndarray]]:
    return scheduler.stream((name, length, fails_at), cancel or CancelFlag(), chunk_frames=chunk)


@pytest.fixture(params=[False, True], ids=["in turn", "overlapping"])
def overlap(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 8, 15, 16, 40])
@pytest.mark.parametrize("chunk", [None, 1, 4, 8])
def test_a_stream_alone_is_whole_and_its_stretches_grow(overlap: bool, length: int, chunk: int | None) -> None:
    scheduler = FrameScheduler(Model(), threads=2, overlap=overlap)
    chunks = [samples for _, samples in start(scheduler, 5, length, chunk=chunk)]
    np.testing.assert_array_equal(np.concatenate([np.zeros(0), *chunks]), wanted(5, length))
    sizes = [len(c) // PER_FRAME for c in chunks]
    plan = [chunk] * 40 if chunk else [1, 2, 4, *[8] * 40]
    assert sizes[:-1] == plan[:max(len(sizes) - 1, 0)]


def test_nothing_is_computed_for_a_caller_that_does_not_wait() -> None:
    model = Model()
    chunks = start(FrameScheduler(model, threads=1, overlap=False), 1, 100)
    assert not model.widths
    next(chunks)
    next(chunks)
    assert len(model.widths) == 3


def test_what_comes_next_is_stepped_while_the_codec_works() -> None:
    model = Model(waits_for_steps=True)
    stream = joined(start(FrameScheduler(model, threads=2, overlap=True), 1, 60))
    np.testing.assert_array_equal(stream, wanted(1, 60))
    assert model.overlapped > 3


def test_many_callers_share_steps_and_rows(overlap: bool) -> None:
    model = Model(n_rows=8, step_s=0.001)
    scheduler = FrameScheduler(model, threads=2, overlap=overlap)
    lengths = [int(n) for n in np.random.default_rng(0).integers(0, 60, 40)]
    with ThreadPoolExecutor(16) as callers:
        found = list(callers.map(lambda i: joined(start(scheduler, i, lengths[i])), range(40)))
    for i, samples in enumerate(found):
        np.testing.assert_array_equal(samples, wanted(i, lengths[i]))
    assert max(model.widths) == 8
    assert sorted(scheduler._free) == list(range(8))
    assert not scheduler._jobs
    assert scheduler._decoder is None


def test_a_slow_caller_does_not_hold_up_the_others(overlap: bool) -> None:
    scheduler = FrameScheduler(Model(step_s=0.001), threads=2, overlap=overlap)
    slow = start(scheduler, 1, 30)
    next(slow)
    np.testing.assert_array_equal(joined(start(scheduler, 2, 30)), wanted(2, 30))
    np.testing.assert_array_equal(joined(slow), wanted(1, 30)[PER_FRAME:])


def test_more_streams_than_rows_wait_their_turn(overlap: bool) -> None:
    scheduler = FrameScheduler(Model(n_rows=1, step_s=0.001), threads=1, overlap=overlap)
    with ThreadPoolExecutor(5) as callers:
        found = list(callers.map(lambda i: joined(start(scheduler, i, 12)), range(5)))
    for i, samples in enumerate(found):
        np.testing.assert_array_equal(samples, wanted(i, 12))


def test_a_cancelled_stream_leaves_its_row_and_the_others_go_on(overlap: bool) -> None:
    scheduler = FrameScheduler(Model(n_rows=2, step_s=0.002), threads=2, overlap=overlap)
    cancel = CancelFlag()
    with ThreadPoolExecutor(2) as callers:
        other = callers.submit(lambda: joined(start(scheduler, 2, 100)))
        stopped = callers.submit(lambda: joined(start(scheduler, 1, 100_000, cancel=cancel)))
        time.sleep(0.03)
        cancel.set()
        begun = time.perf_counter()
        with pytest.raises(Cancelled):
            stopped.result()
        assert time.perf_counter() - begun < 0.5
        np.testing.assert_array_equal(other.result(), wanted(2, 100))
    assert len(scheduler._free) == 2


def test_waiting_for_a_row_can_be_cancelled() -> None:
    scheduler = FrameScheduler(Model(n_rows=1), threads=1, overlap=False)
    holder = start(scheduler, 1, 10)
    next(holder)
    cancel = CancelFlag()
    timer = threading.Timer(0.05, cancel.set)
    timer.start()
    with pytest.raises(Cancelled):
        next(start(scheduler, 2, 10, cancel=cancel))
    timer.join()
    np.testing.assert_array_equal(joined(holder), wanted(1, 10)[PER_FRAME:])


def test_who_comes_while_a_stream_steps_on_is_stepped_with_it() -> None:
    model = Model(n_rows=2, step_s=0.005)
    scheduler = FrameScheduler(model, threads=1, overlap=False)
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(lambda: joined(start(scheduler, 1, 64, chunk=64)))
        assert model.stepped.wait(10)
        second = callers.submit(lambda: joined(start(scheduler, 2, 8, chunk=8)))
        np.testing.assert_array_equal(second.result(), wanted(2, 8))
        assert model.widths.count(1) < 64 - 8
        np.testing.assert_array_equal(first.result(), wanted(1, 64))
    assert model.widths.count(2) == 8


def test_closing_a_stream_early_frees_its_row(overlap: bool) -> None:
    scheduler = FrameScheduler(Model(n_rows=1), threads=2, overlap=overlap)
    for i in range(3):
        chunks = start(scheduler, i, 50)
        for _ in range(5):
            next(chunks)
        chunks.close()
    np.testing.assert_array_equal(joined(start(scheduler, 9, 20)), wanted(9, 20))


def test_a_stream_that_cannot_begin_fails_alone(overlap: bool) -> None:
    scheduler = FrameScheduler(Model(), threads=2, overlap=overlap)
    other = start(scheduler, 1, 20)
    next(other)
    with pytest.raises(BackendError, match="no stream 7"):
        next(start(scheduler, 7, -1))
    np.testing.assert_array_equal(joined(other), wanted(1, 20)[PER_FRAME:])


@pytest.mark.parametrize("fails_at", [0, 1, 9, 20])
def test_a_step_that_fails_ends_its_streams_as_failed(overlap: bool, fails_at: int) -> None:
    scheduler = FrameScheduler(Model(n_rows=2), threads=2, overlap=overlap)
    with pytest.raises(BackendError, match="stream 3 broke"):
        joined(start(scheduler, 3, 40, fails_at=fails_at))
    np.testing.assert_array_equal(joined(start(scheduler, 4, 20)), wanted(4, 20))
    assert len(scheduler._free) == 2
