"""Streams computed by a thread of their own: for a caller that must stay responsive, and for asyncio."""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import NamedTuple

from sonant.backends.backend import CancelFlag
from sonant.errors import Cancelled
from sonant.types import AudioChunk

Start = Callable[[CancelFlag], Iterator[AudioChunk]]
"""Begins a stream that stops, within the kernel it is in, once the flag is set."""

_WAIT_S = 0.1
"""The longest that a signal such as Ctrl-C waits for a caller that waits for a chunk."""


class _End(NamedTuple):
    error: BaseException | None


class BackgroundStream(Iterator[AudioChunk]):
    """The chunks of a stream, computed at most `ahead` chunks before they are taken.

    `next` raises what the computation raised. `close` stops the computation within its current kernel and waits until
    it has stopped; as a context manager it is called at the end.
    """

    def __init__(self, start: Start, *, ahead: int = 2) -> None:
        self._start, self._cancel = start, CancelFlag()
        self._ready: queue.Queue[AudioChunk | _End] = queue.Queue(ahead)
        self._ended = False
        self._thread = threading.Thread(target=self._compute, name="sonant-stream", daemon=True)
        self._thread.start()

    def __next__(self) -> AudioChunk:
        while not self._ended:
            try:
                item = self._ready.get(block=not self._cancel.is_set, timeout=_WAIT_S)
            except queue.Empty:
                self._ended = self._cancel.is_set
                continue
            if not isinstance(item, _End):
                return item
            self._ended = True
            if item.error is not None:
                raise item.error
        raise StopIteration

    def stop(self) -> None:
        """Ask the computation to stop; the iteration ends after the chunks that are ready. Does not wait, so a signal
        handler may call it."""
        self._cancel.set()

    def close(self) -> None:
        """Stop the computation, and wait until it has stopped; chunks that were not taken are lost."""
        self._ended = True
        self.stop()
        self._thread.join()

    def __enter__(self) -> BackgroundStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compute(self) -> None:
        end = _End(None)
        try:
            for chunk in self._start(self._cancel):
                self._put(chunk)
                if self._cancel.is_set:
                    return
        except BaseException as e:  # noqa: BLE001 - raised again where the chunks are taken
            end = _End(e)
        self._put(end)

    def _put(self, item: AudioChunk | _End) -> None:
        while not self._cancel.is_set:
            try:
                return self._ready.put(item, timeout=_WAIT_S)
            except queue.Full:
                continue


async def iterate(start: Start) -> AsyncGenerator[AudioChunk, None]:
    """The chunks of a stream, each computed in the stream's one thread while the event loop goes on.

    Nothing is computed ahead of `anext`. When the task that waits for a chunk is cancelled, the computation stops
    within its current kernel.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    loop, cancel = asyncio.get_running_loop(), CancelFlag()
    worker = ThreadPoolExecutor(1, thread_name_prefix="sonant-stream")
    try:
        chunks = await loop.run_in_executor(worker, start, cancel)
        while (chunk := await loop.run_in_executor(worker, _next, chunks)) is not None:
            yield chunk
    finally:
        cancel.set()
        worker.shutdown(wait=False, cancel_futures=True)


def _next(chunks: Iterator[AudioChunk]) -> AudioChunk | None:
    return next(chunks, None)


def check(cancel: CancelFlag) -> None:
    """Raises Cancelled once the flag is set."""
    if cancel.is_set:
        raise Cancelled("the stream was cancelled by its owner")
