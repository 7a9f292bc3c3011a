"""Where a text pauses and how fast it goes: sentences are cut at the cues of their script, words put in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sonant.text.pieces import SpokenSentence
from sonant.text.script import Script
from sonant.text.spans import SpokenWord

_CLOSING = frozenset(",.;:!?…")
_LONGEST_GAP = 2
"""A silent paragraph (a row of stars) doubles the pause; more of them change nothing."""


class CueReader:
    """Goes along the visible text of a script.

    A pause in the text is exact and takes the place of the pause of a paragraph; several add up.
    """

    def __init__(self, script: Script, paragraph_pause_s: float, heading_pause_s: float) -> None:
        self.script = script
        self._paragraph_s, self._heading_s = paragraph_pause_s, heading_pause_s
        self._at = 0  # the next cue
        self._asked_s: float | None = None
        self._gap_s = self._longest_s = 0.0
        self._speed = 1.0
        self._last_end = 0
        self._sounded = False

    def cut(self, words: tuple[SpokenWord, ...], *, paragraph_end: bool) -> Iterator[SpokenSentence]:
        """The parts of a sentence between its cues."""
        first = 0
        for at in range(len(words) + 1):
            is_end = at == len(words)
            if is_end or self._has_cue(words[at].source.start):
                if at > first:
                    yield self._part(words[first:at], paragraph_end=is_end and paragraph_end, goes_on=first > 0)
                first = at
            if not is_end:
                self._pass(words[at])

    def rest(self) -> Iterator[SpokenSentence]:
        """The pause that the text ends with."""
        self._take(len(self.script.visible))
        if self._asked_s:
            yield SpokenSentence((), True, self._asked_s)

    def _has_cue(self, start: int) -> bool:
        return self._at < len(self.script.cues) and self.script.cues[self._at].at <= start

    def _pass(self, word: SpokenWord) -> None:
        """Note what stands between the word before and this one."""
        between = self.script.visible[self._last_end : word.source.start]
        if self._sounded and between.count("\n") > 1:
            self._add_gap(self._paragraph_s)
        if self._last_end in self.script.heading_ends:
            self._add_gap(self._heading_s - (self._paragraph_s if between.count("\n") > 1 else 0))
        self._take(word.source.start)
        self._last_end = word.source.end

    def _add_gap(self, seconds: float) -> None:
        self._gap_s = min(self._gap_s + seconds, _LONGEST_GAP * max(self._paragraph_s, self._heading_s))

    def _take(self, start: int) -> None:
        """Take the cues up to a place."""
        while self._has_cue(start):
            cue = self.script.cues[self._at]
            self._at += 1
            if cue.pause_s is not None:
                self._asked_s = (self._asked_s or 0.0) + cue.pause_s
            if cue.speed is not None:
                self._speed = cue.speed

    def _part(self, words: tuple[SpokenWord, ...], *, paragraph_end: bool, goes_on: bool) -> SpokenSentence:
        pause_s = 0.0
        if any(word.phonemes for word in words):
            pause_s = self._gap_s if self._asked_s is None else self._asked_s
            self._asked_s, self._gap_s, self._sounded = None, 0.0, True
            if goes_on and words[0].lead[:1] in _CLOSING:
                words = (replace(words[0], lead=words[0].lead.lstrip("".join(_CLOSING))), *words[1:])
        else:
            # A row of stars or dots is a break, not a sentence: the model would babble on marks alone.
            words = tuple(SpokenWord(word.source) for word in words)
        placed = tuple(replace(word, source=self.script.place(word.source)) for word in words)
        return SpokenSentence(placed, paragraph_end, pause_s, self._speed)
