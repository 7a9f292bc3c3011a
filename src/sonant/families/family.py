"""What the engine asks of a family: a driver that turns a text into pieces and a piece into samples and word times.

A piece is what a family reads at once; a stretch is what it hands out at once: the whole piece, or some frames of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.errors import InputError
from sonant.options import SpeakOptions
from sonant.types import Capabilities, VoiceInfo, WordTiming

if TYPE_CHECKING:
    from sonant.audio.reader import Recording


@dataclass(frozen=True)
class PieceAudio:
    """A stretch of one piece, or all of it: float32 samples [S], and the words that end in them.

    Word times are seconds from the start of the piece, whichever stretch they come with.
    """

    samples: np.ndarray
    words: tuple[WordTiming, ...]


def with_pauses(audio: PieceAudio, sample_rate: int, *, before_s: float, after_s: float) -> PieceAudio:
    """The piece between exact silences: round(seconds * sample_rate) zero samples each; the words move along."""
    before, after = round(before_s * sample_rate), round(after_s * sample_rate)
    if not before and not after:
        return audio
    samples = np.concatenate([np.zeros(before, np.float32), audio.samples, np.zeros(after, np.float32)])
    by_s = before / sample_rate
    return PieceAudio(samples, tuple(w.shifted(by_s) for w in audio.words))


def check_sampling(options: SpeakOptions, able: Capabilities) -> None:
    """Raises InputError for a choice that a family without it would have to drop."""
    for name, value, can in (("temperature", options.temperature, able.temperature),
                             ("guidance", options.guidance, able.guidance)):
        if value is not None and not can:
            raise InputError(f"{name} is {value!r}; this model has none: leave it out")


def refuse_clone(why: str) -> NoReturn:
    """What `clone` does in a family that cannot."""
    raise InputError(f"{why}; a model whose capabilities say cloning can make a voice of a recording")


class Driver(Protocol):
    """One loaded checkpoint. `pieces` cuts a text the same way for speak and for stream."""

    sample_rate: int
    capabilities: Capabilities

    def voices(self) -> list[VoiceInfo]: ...

    def clone(self, name: str, recording: Recording, *, keep: Path | None = None,
              cancel: CancelFlag | None = None) -> None:
        """A voice from a recording; InputError where the checkpoint cannot."""
        ...

    def pieces(self, text: str, options: SpeakOptions) -> Iterable[Any]:
        """Checks options and markup at once; may read the text piece by piece."""
        ...

    def stream_piece(
        self, piece: Any, index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        """The stretches of one piece in order; their samples joined are the piece, every word is in exactly one.

        index: the place of the piece in its speech; noise and sampling are keyed by it and the seed. Nothing is
        computed before a stretch is asked for; closing the generator ends the work. Raises Cancelled once `cancel` is
        set.
        """
        ...
