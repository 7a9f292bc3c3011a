"""The work of a session: one thread that speaks its text as it comes, and the chunks that wait to be taken."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from sonant.backends.backend import CancelFlag
from sonant.engine.delivery import Delivery
from sonant.engine.pending import PendingText, Span
from sonant.errors import Cancelled, InputError
from sonant.families.family import Driver
from sonant.options import SessionOptions, SpeakOptions
from sonant.text.cuts import CutRules
from sonant.text.seam import Seams
from sonant.types import AudioChunk

if TYPE_CHECKING:
    from asyncio import Future

_SIGNAL_S = 0.1 if os.name == "nt" else None
"""On Windows, Ctrl-C does not break into a wait; so much later it is noticed."""


class Speaking:
    """Safe to use from every thread and task. The thread begins when there is text, or somebody waits for chunks, and
    ends with the session."""

    def __init__(self, driver: Driver, speak: SpeakOptions, session: SessionOptions) -> None:
        self._driver, self._speak, self._session = driver, speak, session
        rules = CutRules(markup=speak.markup, text_format=speak.text_format, clauses=session.commit == "auto")
        self.text = PendingText(session, rules)
        self._changed = threading.Condition()  # holds a re-entrant lock: a signal handler may call `cancel`
        self._chunks: deque[AudioChunk] = deque()
        self._waiting: set[Future[None]] = set()
        self._cancel = CancelFlag()
        self._is_over = False
        self._error: BaseException | None = None
        self._text_came_s = 0.0
        self._thread: threading.Thread | None = None

    def change(self, edit: Callable[[PendingText], None]) -> None:
        """Let `edit` change the text. Raises what the session failed with, InputError after its end."""
        with self._changed:
            if self._error is not None:
                raise self._error
            if self.text.is_complete:
                raise InputError("the session has been told that its text has ended; open another one for more text")
            edit(self.text)
            self._go_on()

    def end(self) -> None:
        """No more text will come; a second time it says nothing new. Raises what the session failed with."""
        with self._changed:
            if self._error is not None:
                raise self._error
            self.text.end()
            self._go_on()

    def look(self) -> tuple[str, int, tuple[str, ...]]:
        """The text, how much of it has been spoken, the notes: of one moment."""
        with self._changed:
            return self.text.text, self.text.spoken_end, tuple(self.text.notes)

    def take(self) -> AudioChunk | None:
        """The next chunk, once it is there; None at the end. Raises what the session failed with."""
        with self._changed:
            # A signal handler that cancels just before the wait wakes nobody here; the thread, as it ends, does.
            self._start()
            while not self._has_news():
                self._changed.wait(_SIGNAL_S)
            return self._pop()

    async def atake(self) -> AudioChunk | None:
        """The same for a task: its event loop goes on."""
        import asyncio

        while True:
            with self._changed:
                if self._has_news():
                    return self._pop()
                news = asyncio.get_running_loop().create_future()
                self._waiting.add(news)
            try:
                await news
            finally:
                with self._changed:
                    self._waiting.discard(news)

    def take_ready(self) -> tuple[AudioChunk, ...]:
        """The chunks that are there. Raises what the session failed with when there is none."""
        with self._changed:
            if not self._chunks and self._error is not None:
                raise self._error
            ready = tuple(self._chunks)
            self._chunks.clear()
            self._wake()
            return ready

    def cancel(self) -> None:
        """Stop within the current kernel; chunks that were not taken are lost. Does not wait."""
        with self._changed:
            self._cancel.set()
            if self._chunks or not self._is_over:
                self._chunks.clear()
                self._is_over, self._error = True, self._error or Cancelled("the session was cancelled")
                self._wake()

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def _has_news(self) -> bool:
        return bool(self._chunks) or self._is_over

    def _pop(self) -> AudioChunk | None:
        self._wake()
        try:
            return self._chunks.popleft()
        except IndexError:
            pass  # at the end, or cancelled by a signal handler at this very moment
        if self._error is not None:
            raise self._error
        return None

    def _go_on(self) -> None:
        self._text_came_s = time.monotonic()
        self._start()
        self._wake()

    def _start(self) -> None:
        if self._thread is None and not self._is_over:
            thread = threading.Thread(target=self._run, name="sonant-session", daemon=True)
            thread.start()
            self._thread = thread

    def _wake(self) -> None:
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, set()
        for news in waiting:
            loop = news.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, news)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._speak_all()
        except BaseException as e:  # noqa: BLE001 - raised again where the chunks are taken
            error = e
        with self._changed:
            if not self._is_over:
                self._is_over, self._error = True, error
            self._wake()

    def _speak_all(self) -> None:
        delivery, seams = Delivery(self._driver, self._speak, self._cancel), Seams(self._speak)
        options = self._speak
        while (taken := self._next()) is not None:
            text, span = taken
            stretch = seams.stretch(text, *span)
            with self._changed:
                self.text.notes += stretch.notes
            pieces = self._driver.pieces(stretch.text, options)
            with closing(delivery.chunks(pieces, shift=stretch.shift, pause_s=stretch.pause_s)) as chunks:
                for chunk in chunks:
                    self._hand_over(chunk)
                    options = replace(self._speak, first_piece="full")  # the start has been heard

    def _next(self) -> tuple[str, Span] | None:
        """Wait for the next text to speak, and for room for its sound; None when there will be none."""
        with self._changed:
            while not self._is_over:
                idle_s = self._text_came_s + self._session.idle_s - time.monotonic()
                if len(self._chunks) < self._session.ahead:
                    if (span := self.text.take(idle=idle_s <= 0)) is not None:
                        return self.text.text, span
                    if self.text.is_complete:
                        return None
                self._changed.wait(idle_s if 0 < idle_s < math.inf else None)
            return None

    def _hand_over(self, chunk: AudioChunk) -> None:
        """Returns when the next chunk may be computed. Raises Cancelled."""
        with self._changed:
            if not self._is_over:
                self._chunks.append(chunk)
                self._wake()
            while len(self._chunks) >= self._session.ahead and not self._is_over:
                self._changed.wait()
            if self._is_over:
                raise Cancelled("the session was cancelled")


def _resolve(news: Future[None]) -> None:
    if not news.done():
        news.set_result(None)
