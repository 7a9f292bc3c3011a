"""What `sonant align-heads` asks of a family whose model attends to its text: speech with all heads recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.families.latent.timing import TokenWord
from sonant.options import SpeakOptions


@dataclass(frozen=True)
class AttentionRecord:
    """One piece, spoken. attention: f32 [layers * heads, frames, tokens], layer by layer, each row the softmax over the
    text tokens alone, of the kept frames. samples: f32 [S]. words: those of the piece, as offsets into `text`.
    """

    text: str
    words: Sequence[TokenWord]
    attention: np.ndarray
    samples: np.ndarray


class AttentionRecorder(Protocol):
    """A driver of such a family."""

    sample_rate: int

    @property
    def frame_samples(self) -> int:
        """Samples of a frame."""
        ...

    @property
    def n_layers(self) -> int: ...

    @property
    def n_heads(self) -> int:
        """Query heads of a layer."""
        ...

    def record_attention(self, text: str, options: SpeakOptions, cancel: CancelFlag) -> Iterable[AttentionRecord]:
        """`text` spoken as ever, piece by piece, with the attention of all heads; slower, and nothing is streamed."""
        ...
