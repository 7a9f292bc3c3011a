"""Many streams of one frame-by-frame model: who steps and who is decoded when, in one batch.

There is no thread of its own. Whoever waits for samples and finds nobody at work leads: it reads the prefixes of those
who join, steps and decodes for all who wait, and hands the lead on once it has its own samples. So a stream alone runs
in its caller's thread, nothing is computed for a caller that does not wait, and a batch is as wide as there are
callers that do. With `overlap` one more thread decodes while the leader already steps what comes next.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.engine.background import check
from sonant.errors import BackendError
from sonant.families.frames import FrameModel, FrameStream

CHUNK_FRAMES = (1, 2, 4, 8)
"""Frames of the first stretches of a stream, the last again and again: a fast start, then fewer calls."""
_LOOK_S = 0.05
"""How often one who waits looks at its cancel flag."""

S = TypeVar("S", bound=FrameStream)


@dataclass(eq=False)
class _Job(Generic[S]):
    """One stream, its caller's wish and what was made of it."""

    request: Any
    cancel: CancelFlag
    row: int
    stream: S | None = None
    wanted: int = 0
    """Frames that the caller waits for; 0 while it does not wait."""
    following: int = 0
    """Frames it will want after those."""
    samples: list[np.ndarray] = field(default_factory=list)
    error: BaseException | None = None
    busy: bool = False
    """Part of the turn that is running."""
    started: bool = False
    """It has got samples before."""

    @property
    def served(self) -> bool:
        return bool(self.samples) or self.error is not None

    @property
    def due(self) -> int:
        """Frames that can be decoded for it now, 0 for none."""
        if self.stream is None or self.served or not self.wanted:
            return 0
        pending = self.stream.pending
        return min(pending, self.wanted) if pending >= self.wanted or self.stream.ended else 0


class _Decoding(NamedTuple):
    future: Future[list[np.ndarray]]
    jobs: list[_Job[Any]]


class FrameScheduler(Generic[S]):
    """Schedules the streams of one model over its rows.

    overlap: decode in a second thread while the next frames are stepped, sharing `threads` of the backend between the
    two; worth it where stepping leaves cores idle.
    """

    def __init__(self, model: FrameModel[S], *, threads: int, overlap: bool) -> None:
        self._model = model
        self._step_threads = max(1, threads // 2)
        self._decode_threads = max(1, threads - self._step_threads)
        self._overlap = overlap
        self._changed = threading.Condition()
        self._free = list(range(model.n_rows))
        self._queue: list[object] = []
        self._jobs: list[_Job[S]] = []
        self._leading = False
        self._decoding: _Decoding | None = None
        self._decoder: ThreadPoolExecutor | None = None

    def stream(
        self, request: Any, cancel: CancelFlag, *, chunk_frames: int | None
    ) -> Iterator[tuple[S, np.ndarray]]:
        """The samples of one request as they are made, with its stream as it then stands. See families/frames.py."""
        sizes = itertools.chain(CHUNK_FRAMES, itertools.repeat(CHUNK_FRAMES[-1]))
        wanted = itertools.repeat(chunk_frames) if chunk_frames else sizes
        job = self._join(request, cancel)
        try:
            for now, following in itertools.pairwise(wanted):
                samples = self._wait_for(job, now, following)
                if not len(samples):
                    return
                assert job.stream is not None
                yield job.stream, samples
        finally:
            self._leave(job)

    def _join(self, request: Any, cancel: CancelFlag) -> _Job[S]:
        """A job on a free row, waiting in order for one."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while self._queue[0] is not ticket or not self._free:
                    check(cancel)
                    self._changed.wait(_LOOK_S)
                job: _Job[S] = _Job(request, cancel, self._free.pop())
                self._jobs.append(job)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
        return job

    def _leave(self, job: _Job[S]) -> None:
        with self._changed:
            job.wanted = 0
            while job.busy:
                self._changed.wait()
            self._jobs.remove(job)
            self._free.append(job.row)
            if not self._jobs and self._decoder is not None:
                self._decoder.shutdown(wait=False)
                self._decoder = None
            self._changed.notify_all()

    def _wait_for(self, job: _Job[S], wanted: int, following: int) -> np.ndarray:
        """The next samples of `job`, none at its end; leads while nobody else does."""
        with self._changed:
            job.wanted, job.following = wanted, following
            while not job.served:
                check(job.cancel)
                if self._leading:
                    self._changed.wait(_LOOK_S)
                    continue
                self._leading = True
                self._changed.release()
                try:
                    self._lead(job)
                finally:
                    self._changed.acquire()
                    self._leading = False
                    self._changed.notify_all()
            if job.error is not None:
                raise job.error
            job.wanted, job.started = 0, True
            return job.samples.pop()

    def _lead(self, own: _Job[S]) -> None:
        try:
            while not own.served and not own.cancel.is_set:
                self._guarded_turn()
        finally:
            self._settle()

    def _guarded_turn(self) -> None:
        """One turn; what goes wrong in it fails every stream that was part of it."""
        with self._changed:
            jobs = self._waiting()
            taken = list(dict.fromkeys([*jobs, *self._in_flight]))
            for j in taken:
                j.busy = True
        try:
            self._turn(jobs)
        except BaseException as e:
            self._wait_for_decoder()
            for j in taken:
                j.error = j.error or e
            if not isinstance(e, Exception):
                raise
        finally:
            with self._changed:
                for j in taken:
                    j.busy = j in self._in_flight
                self._changed.notify_all()

    def _waiting(self) -> list[_Job[S]]:
        return [j for j in self._jobs if j.wanted and not j.served and not j.cancel.is_set]

    @property
    def _in_flight(self) -> list[_Job[Any]]:
        return self._decoding.jobs if self._decoding else []

    def _settle(self) -> None:
        """Nothing stays in flight once nobody leads."""
        jobs = self._in_flight
        try:
            if self._decoding:
                self._serve(jobs, self._decoding.future.result())
        except Exception as e:  # noqa: BLE001 - raised to the callers of these streams
            for j in jobs:
                j.error = e
        with self._changed:
            self._decoding = None
            for j in jobs:
                j.busy = False

    def _wait_for_decoder(self) -> None:
        if self._decoding:
            self._decoding.future.exception()
            self._decoding = None

    def _turn(self, jobs: list[_Job[S]]) -> None:
        """Everything that can be done at once: joins, one batch of decoding, one step."""
        for j in jobs:
            if j.stream is None:
                self._begin(j)
        if self._decoding is None:
            self._start_decoding([j for j in jobs if j.due or self._at_end(j)], jobs)
        hungry = [j for j in jobs if j not in self._in_flight and _wants_step(j, j.wanted)]
        ahead = [j for j in self._in_flight if _wants_step(j, j.wanted + j.following)]
        if hungry or ahead:
            self._step([*hungry, *ahead])
        if hungry and not self._decoding and len(hungry) == len(jobs):
            self._step_on(hungry)
        if self._decoding and (self._decoding.future.done() or not (hungry or ahead)):
            self._serve(self._decoding.jobs, self._decoding.future.result())
            self._decoding = None

    def _begin(self, job: _Job[S]) -> None:
        try:
            job.stream = self._model.begin(job.row, job.request, job.cancel)
        except Exception as e:  # noqa: BLE001 - raised to the caller of this one stream
            job.error = e

    @staticmethod
    def _at_end(job: _Job[S]) -> bool:
        return job.stream is not None and not job.served and job.stream.ended and not job.stream.pending

    def _start_decoding(self, ready: list[_Job[S]], jobs: list[_Job[S]]) -> None:
        """Decodes for those that want equally many frames as the first that is ready."""
        for j in ready:
            if self._at_end(j):
                j.samples.append(np.zeros(0, np.float32))
        ready = [j for j in ready if j.due]
        if not ready:
            return
        n_frames = ready[0].due
        batch = [j for j in ready if j.due == n_frames]
        streams = [j.stream for j in batch if j.stream is not None]
        others = [j for j in jobs if j.stream is not None and not j.stream.ended]
        if not (self._overlap and others) or not all(j.started for j in batch):
            self._serve(batch, self._model.decode(streams, n_frames))
            return
        if self._decoder is None:
            self._decoder = ThreadPoolExecutor(1, thread_name_prefix="sonant-codec")
        future = self._decoder.submit(self._model.decode, streams, n_frames, threads=self._decode_threads)
        self._decoding = _Decoding(future, batch)

    def _step_on(self, jobs: list[_Job[S]]) -> None:
        """Further steps while there is nothing else to do: all want them, nobody came or gave up."""
        while all(_wants_step(j, j.wanted) for j in jobs) and self._waiting() == jobs:
            self._step(jobs)

    def _step(self, jobs: Sequence[_Job[S]]) -> None:
        threads = self._step_threads if self._decoding else None
        self._model.step([j.stream for j in jobs if j.stream is not None], threads=threads)

    @staticmethod
    def _serve(jobs: Sequence[_Job[S]], samples: list[np.ndarray]) -> None:
        for j, s in zip(jobs, samples, strict=True):
            if not len(s):
                raise BackendError("a codec gave no samples for frames that it was given")
            j.samples.append(s)


def _wants_step(job: _Job[Any], frames: int) -> bool:
    return job.stream is not None and not job.served and not job.stream.ended and job.stream.pending < frames
