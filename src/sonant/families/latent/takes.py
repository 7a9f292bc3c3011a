"""What `sonant quantize --texts` asks of a latent model: its latents of a text, freely spoken or led by given ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.families.latent.frames import ChunkRequest, LatentFrames
from sonant.options import SpeakOptions

Array = np.ndarray


@dataclass(frozen=True)
class Take:
    """One chunk of text, spoken: latents f32 [F, L], normalised, and the frame in which the model said that it ends."""

    latents: Array
    eos_frame: int | None


class LatentSpeaker(Protocol):
    """A driver of such a model."""

    def takes(
        self, text: str, options: SpeakOptions, cancel: CancelFlag, *, led_by: Sequence[Array] | None = None
    ) -> Sequence[Take]:
        """`text`, chunk by chunk as it is cut for speech. led_by: latents [F, L] of every chunk (`take` below)."""
        ...


def take(frames: LatentFrames, request: ChunkRequest, cancel: CancelFlag, led_by: Array | None = None) -> Take:
    """One chunk on row 0 of a frame model that nobody else uses.

    led_by: latents [F, L] that the model is given after each step instead of what it made; it then makes exactly F
    frames, wherever it would end. The noise is the same in either case.
    """
    stream = frames.begin(0, request, cancel)
    while not stream.ended if led_by is None else stream.made < len(led_by):
        frames.step([stream])
        if led_by is not None:
            stream.latent = led_by[stream.made - 1]
    return Take(np.stack(stream.latents), stream.eos_frame)
