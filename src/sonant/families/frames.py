"""What a family that speaks frame by frame gives to the scheduler (engine/scheduler.py), and what it gets from it.

A stream is one piece of text on one row of the model's states. The scheduler decides who steps and who is decoded
when, several streams in one batch; the model does it and knows nothing of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from sonant.backends.backend import CancelFlag


class FrameStream(Protocol):
    """One utterance in the making."""

    @property
    def ended(self) -> bool:
        """The model said stop, or its cap is reached: no further step."""
        ...

    @property
    def pending(self) -> int:
        """Frames that were stepped, will be kept and are not decoded yet. Frames that a later stop may still drop do
        not count."""
        ...


S = TypeVar("S", bound=FrameStream)


class FrameModel(Protocol[S]):
    """Steps and decodes streams; `n_rows` of them at once. threads: how many of the backend's may compute."""

    n_rows: int

    def begin(self, row: int, request: Any, cancel: CancelFlag) -> S:
        """A new stream on a free row: its state reset, its prefix (voice, text) read. `request` is the family's own."""
        ...

    def step(self, streams: Sequence[S], *, threads: int | None = None) -> None:
        """One more frame for each (none of them `ended`), in one batch."""
        ...

    def decode(self, streams: Sequence[S], n_frames: int, *, threads: int | None = None) -> list[np.ndarray]:
        """The next `n_frames` pending frames of each as samples [n_frames * samples per frame], in one batch.

        They count as pending until it returns. A stream may be stepped in another thread meanwhile.
        """
        ...


S_co = TypeVar("S_co", bound=FrameStream, covariant=True)


class Scheduler(Protocol[S_co]):
    """Made by the engine for one FrameModel; safe to call from several threads."""

    def stream(
        self, request: Any, cancel: CancelFlag, *, chunk_frames: int | None
    ) -> Iterator[tuple[S_co, np.ndarray]]:
        """The samples of one request as they are made, with its stream as it then stands.

        chunk_frames: how many frames to a stretch, None for 1, 2, 4, then 8 each (a fast start, then fewer calls).
        Closing the iterator frees the row. Raises Cancelled once the flag is set.
        """
        ...
