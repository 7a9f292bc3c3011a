"""The line on a terminal that says how far a long text is."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """Rewrites one line of `stream`, only if that is a terminal. `label` stands in front."""

    def __init__(self, label: str = "", *, enabled: bool = True, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._label = f"{label}  " if label else ""
        self.quiet = not enabled
        self._enabled = enabled and self._stream.isatty()
        self._began_s = time.monotonic()
        self._width = 0

    def show(self, fraction: float, audio_s: float) -> None:
        """fraction: of the text, 0 to 1. audio_s: seconds of speech so far."""
        if not self._enabled:
            return
        elapsed_s = time.monotonic() - self._began_s
        left = f"{_clock(elapsed_s * (1 - fraction) / fraction)} left" if fraction > 0 else ""
        self._write(f"{self._label}{fraction:4.0%}  {_clock(audio_s)} of speech  {left}")

    def clear(self) -> None:
        if self._width:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()
            self._width = 0

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = max(self._width, len(line))


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours = f"{whole // 3600}:{whole // 60 % 60:02}" if whole >= 3600 else f"{whole // 60}"
    return f"{hours}:{whole % 60:02}"
