"""What the engine asks of a family: a driver that turns a text into pieces and a piece into samples and word times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.options import SpeakOptions
from sonant.types import Capabilities, VoiceInfo, WordTiming


@dataclass(frozen=True)
class PieceAudio:
    """The samples of one piece, and its words with times from the start of the piece."""

    samples: np.ndarray
    words: tuple[WordTiming, ...]


class Driver(Protocol):
    """One loaded checkpoint. `pieces` cuts a text the same way for speak and for stream."""

    sample_rate: int
    capabilities: Capabilities

    def voices(self) -> list[VoiceInfo]: ...

    def pieces(self, text: str, options: SpeakOptions) -> Sequence[Any]: ...

    def speak_piece(self, piece: Any, index: int, options: SpeakOptions, cancel: CancelFlag) -> PieceAudio: ...
