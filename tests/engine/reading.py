"""A driver that reads English as Kokoro's does; its samples are keyed by what is read, the piece and the seed."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator

import numpy as np
from counting import CountingDriver

from sonant.backends.backend import CancelFlag
from sonant.families.family import PieceAudio, with_pauses
from sonant.options import SpeakOptions
from sonant.text import english
from sonant.text.english import Piece
from sonant.text.reading import Reading
from sonant.types import WordTiming

GRAIN = 40


class ReadingDriver(CountingDriver):
    """Ten samples a phoneme, in stretches of GRAIN samples."""

    def pieces(self, text: str, options: SpeakOptions) -> Iterator[Piece]:  # type: ignore[override]
        reading = Reading(
            markup=options.markup,
            text_format=options.text_format,
            paragraph_pause_s=options.paragraph_pause_s,
            heading_pause_s=options.heading_pause_s,
        )
        return english.iter_pieces(text, reading=reading, first_piece=options.first_piece)

    def stream_piece(  # type: ignore[override]
        self, piece: Piece, index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        key = zlib.crc32(f"{piece.phonemes} {piece.speed} {index} {options.seed}".encode())
        noise = np.random.default_rng(key).random(10 * len(piece.phonemes), np.float32) + 1
        words = tuple(
            WordTiming(w.text, w.phoneme_start / 100, w.phoneme_end / 100, w.start, w.end) for w in piece.words
        )
        whole = with_pauses(
            PieceAudio(noise, words), self.sample_rate, before_s=piece.pause_before_s, after_s=piece.pause_after_s
        )
        left = list(whole.words)
        for start in range(0, len(whole.samples), GRAIN):
            end_s = (start + GRAIN) / self.sample_rate
            ended = [w for w in left if w.end_s <= end_s or start + GRAIN >= len(whole.samples)]
            left = left[len(ended) :]
            yield PieceAudio(whole.samples[start : start + GRAIN], tuple(ended))
