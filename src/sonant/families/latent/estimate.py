"""Word times of a checkpoint none of whose heads is known to follow the text: an estimate, and called so.

The sound of a piece, from its first loud step to its last, is shared out among the words by their tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sonant.families.latent.loudness import Loudness
from sonant.families.latent.timing import TokenWord
from sonant.types import WordTiming


class EstimatedTimes:
    """The words of one piece; all are told at its end. Used as timing.AttentionTimes is."""

    def __init__(self, words: Sequence[TokenWord], *, sample_rate: int) -> None:
        self._words, self._sound = words, Loudness(sample_rate)

    def add(self, samples: np.ndarray) -> list[WordTiming]:
        """samples f32 [S]: what comes next."""
        self._sound.add(samples)
        return []

    def finish(self) -> list[WordTiming]:
        """The words, in seconds from the first sample of the piece."""
        self._sound.finish()
        whole_s = self._sound.duration_s
        start_s = self._sound.first_loud(0.0) or 0.0
        end_s = self._sound.sound_end(start_s, whole_s) or whole_s
        tokens = sum(w.token_end - w.token_start for w in self._words)
        told, at = [], 0
        for word in self._words:
            bounds = []
            for said in (at, at + word.token_end - word.token_start):
                bounds.append(start_s + (end_s - start_s) * said / max(tokens, 1))
            told.append(WordTiming(word.text, bounds[0], bounds[1], word.start, word.end))
            at += word.token_end - word.token_start
        return told
