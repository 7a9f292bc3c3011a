"""Word times of a model that speaks frame by frame, from the attention it pays to its text and the sound it makes.

The attention says about where a word begins (attention_path.py); the sound around it says where exactly, and where the
word ends: a word starts where its sound begins and, within a phrase, lasts until the next one. Every decision looks a
fixed way ahead and is never taken back, so the words of a stream are those of the whole, however it is cut.
docs/attention_times.md has the rules and the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sonant.errors import InputError
from sonant.families.latent.attention_path import TokenPath, crossing_frame
from sonant.families.latent.loudness import Loudness
from sonant.types import WordTiming

REACH_S = 0.12
"""A word begins at an onset so near: one and a half frames, about the error of the attention."""
PAUSE_S = 0.08
"""Shorter silence before the next word is the closure of a stop and belongs to the word."""


class TokenWord(Protocol):
    """A source word, original[start:end] == text, and the tokens that say it; an empty range makes no sound."""

    @property
    def text(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def token_start(self) -> int: ...
    @property
    def token_end(self) -> int: ...


@dataclass(frozen=True, slots=True)
class AttentionQuality:
    """How clearly the attention followed the text; both are 1 for heads that are always certain and never go back.

    mean_peak: mean over the frames of the largest weight. monotone_share: of the frames whose largest weight is at the
    token of the frame before or further on.
    """

    mean_peak: float
    monotone_share: float


@dataclass(frozen=True, slots=True)
class _Begin:
    """Where a word begins: at `entry_s` by the attention, at `start_s` by the sound, None if it is silent there."""

    entry_s: float
    start_s: float | None


class AttentionTimes:
    """The words of one piece. Give it the frames and the samples as they come, in stretches of any size; `add` returns
    the words whose end has become known, each once and in order, timed from the first sample of the piece.

    words: in order, with disjoint token ranges. frame_samples: samples of a frame. lead_frames: how much later than its
    attention the sound of a word comes (below zero: earlier); checkpoint data, see heads.py.
    """

    def __init__(
        self,
        words: Sequence[TokenWord],
        n_tokens: int,
        *,
        sample_rate: int,
        frame_samples: int,
        lead_frames: float,
    ) -> None:
        _check_ranges(words, n_tokens)
        self._path, self._sound = TokenPath(n_tokens), Loudness(sample_rate)
        self._frame_s, self._lead_frames = frame_samples / sample_rate, lead_frames
        self._words, self._n_told = words, 0
        self._spoken, self._n_spoken = [w for w in words if w.token_end > w.token_start], 0
        self._entries: list[float] = []  # frames of the attention at which it enters the spoken words, as far as known
        self._begin: _Begin | None = None  # of the next spoken word, once known
        self._last_start_s, self._last_end_s = -1.0, 0.0  # of the last word that was told
        self._finished = False

    @property
    def quality(self) -> AttentionQuality:
        """Of the frames so far."""
        return AttentionQuality(self._path.mean_peak, self._path.monotone_share)

    def add(self, attention: np.ndarray, samples: np.ndarray) -> list[WordTiming]:
        """attention f32 [frames, heads, n_tokens], samples f32 [S]: what comes next of each; either may run ahead."""
        if self._finished:
            raise InputError("this piece is finished; each piece has an AttentionTimes of its own")
        self._path.add(attention)
        self._sound.add(samples)
        return self._ended()

    def finish(self) -> list[WordTiming]:
        """Nothing more comes: the words that are left. Those that the attention did not reach share the last sound."""
        if self._finished:
            return []
        self._finished = True
        self._path.finish()
        self._sound.finish()
        return self._ended()

    def _ended(self) -> list[WordTiming]:
        told: list[WordTiming] = []
        while self._n_told < len(self._words):
            word = self._words[self._n_told]
            span = self._span() if word.token_end > word.token_start else (self._last_end_s, self._last_end_s)
            if span is None:
                break
            told.append(WordTiming(word.text, *span, word.start, word.end))
            self._n_told += 1
            self._last_end_s = span[1]
        return told

    def _span(self) -> tuple[float, float] | None:
        """(start_s, end_s) of the next spoken word, None while it is not known."""
        begin = self._begin = self._begin or self._beginning(self._n_spoken, self._last_start_s)
        if begin is None:
            return None
        start_s = begin.start_s
        if start_s is None:  # the attention came to it in a pause
            start_s = self._sound.first_loud(begin.entry_s)
        if start_s is None:
            return self._tell(self._last_end_s, self._last_end_s, None) if self._finished else None
        if self._n_spoken + 1 == len(self._spoken):
            end_s = self._sound.sound_end(start_s, self._sound.duration_s) or start_s
            return self._tell(start_s, end_s, None) if self._finished else None
        following = self._beginning(self._n_spoken + 1, start_s)
        return self._tell(start_s, self._end_s(start_s, following), following) if following else None

    def _tell(self, start_s: float, end_s: float, following: _Begin | None) -> tuple[float, float]:
        self._n_spoken += 1
        self._last_start_s, self._begin = start_s, following
        return start_s, end_s

    def _end_s(self, start_s: float, following: _Begin) -> float:
        """With its sound before a pause, else where the next word starts."""
        if following.start_s is None:
            return self._sound.sound_end(start_s, following.entry_s) or start_s
        sound_end_s = self._sound.sound_end(start_s, following.start_s) or start_s
        return sound_end_s if following.start_s - sound_end_s >= PAUSE_S else following.start_s

    def _beginning(self, spoken: int, last_start_s: float) -> _Begin | None:
        """Of a spoken word; None while the sound around it is not known."""
        entry_s = self._entry_after_s(spoken, last_start_s)
        if entry_s is None or not self._sound.known_to(entry_s + REACH_S + self._sound.step_s):
            return None
        onset_s = self._sound.onset_near(entry_s, REACH_S, last_start_s)
        if onset_s is not None:
            return _Begin(entry_s, onset_s)
        return _Begin(entry_s, entry_s if self._sound.is_loud(entry_s) else None)

    def _entry_after_s(self, spoken: int, last_start_s: float) -> float | None:
        """When the attention enters a word, after the start of the one before: words that it entered in a pause, all
        before the sound set in, share the time until it enters the first one after that."""
        for later in range(spoken, len(self._spoken) + 1):
            entry_s = self._entry_s(later)
            if entry_s is None:
                return None
            if entry_s > last_start_s:
                return last_start_s + (entry_s - last_start_s) / (later - spoken + 1) if later > spoken else entry_s
        return last_start_s

    def _entry_s(self, spoken: int) -> float | None:
        """When the attention enters a spoken word, in seconds of the sound; for the end of the last one, the end."""
        if spoken == len(self._spoken):
            return self._sound.duration_s if self._finished else None
        while len(self._entries) <= spoken:
            entry = self._next_entry()
            if entry is None:
                return None
            self._entries.append(entry)
        return max(0.0, (self._entries[spoken] + self._lead_frames) * self._frame_s)

    def _next_entry(self) -> float | None:
        token = self._spoken[len(self._entries)].token_start
        positions = self._path.positions
        found = crossing_frame(positions, token, self._entries[-1] if self._entries else 0.0, self._lead_frames)
        if found is not None or not self._finished:
            return found
        at, position = (len(positions) - 0.5, positions[-1]) if positions else (0.0, 0.0)
        sound_end_s = self._sound.sound_end(0.0, self._sound.duration_s) or 0.0
        end = max(at, sound_end_s / self._frame_s - self._lead_frames)
        return at + (end - at) * (token - position) / (self._path.n_tokens - position)


def _check_ranges(words: Sequence[TokenWord], n_tokens: int) -> None:
    at = 0
    for word in words:
        if not at <= word.token_start <= word.token_end <= n_tokens:
            raise InputError(
                f"word {word.text!r} has tokens {word.token_start} to {word.token_end}; wanted a range within {at} to "
                f"{n_tokens}, behind the word before"
            )
        at = word.token_end
