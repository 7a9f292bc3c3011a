"""A driver of the engine's tests, so that what is tested is the engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.errors import Cancelled
from sonant.families.family import PieceAudio
from sonant.options import SpeakOptions
from sonant.types import Capabilities, VoiceInfo, WordTiming

RATE = 1000


class CountingDriver:
    """One piece per word, 100 samples each, whose value is the index of the piece, in stretches of `grain` samples.

    The word "slow" takes until it is cancelled (10 s at most), "bad" raises.
    """

    sample_rate = RATE
    capabilities = Capabilities(
        languages=("en-US",),
        named_voices=True,
        voice_blending=False,
        cloning=False,
        speed=True,
        streaming_grain="piece",
        word_source="duration",
        licence="none",
    )

    def __init__(self, grain: int = 100) -> None:
        self.grain = grain
        self.closed: list[int] = []
        self.spoken: list[int] = []
        self.threads: set[str] = set()
        self.cancel: CancelFlag | None = None
        self.is_slow = threading.Event()
        self.stopped = threading.Event()

    def voices(self) -> list[VoiceInfo]:
        return [VoiceInfo("one", "en-US", None)]

    def pieces(self, text: str, options: SpeakOptions) -> Sequence[tuple[str, int]]:
        pieces, at = [], 0
        for word in text.split():
            at = text.index(word, at)
            pieces.append((word, at))
            at += len(word)
        return pieces

    def stream_piece(
        self, piece: tuple[str, int], index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        word, at = piece
        self.spoken.append(index)
        self.threads.add(threading.current_thread().name)
        self.cancel = cancel
        try:
            if word == "bad":
                raise RuntimeError("the computation failed")
            if word == "slow":
                self._wait(cancel)
            samples = np.full(100, index, np.float32)
            timing = WordTiming(word, 0.01, 0.09, at, at + len(word))
            for start in range(0, 100, self.grain):
                end = start + self.grain
                yield PieceAudio(samples[start:end], (timing,) if start < 90 <= end else ())
        finally:
            self.closed.append(index)

    def _wait(self, cancel: CancelFlag) -> None:
        self.is_slow.set()
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if cancel.is_set:
                self.stopped.set()
                raise Cancelled("stopped between kernels")
            time.sleep(0.005)
