"""Ctrl-C while something is spoken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any


class Interrupt:
    """While it is entered, Ctrl-C calls what it was given instead of breaking into the writing of a chunk; a second
    Ctrl-C does break in."""

    def __init__(self) -> None:
        self.came = False
        self._calls: tuple[Callable[[], None], ...] = ()
        self._before: Any = None

    def calls(self, *calls: Callable[[], None]) -> None:
        self._calls = calls
        if self.came:
            self._run()

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():  # signals are the main thread's
            self._before = signal.signal(signal.SIGINT, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _stop(self, _signal: int, _frame: object) -> None:
        self.came = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._run()

    def _run(self) -> None:
        for call in self._calls:
            call()
