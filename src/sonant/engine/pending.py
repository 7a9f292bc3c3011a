"""The text of a session: what has been spoken of it, what may still be edited, and what goes to the model next.

Knows nothing of threads: engine/speaking.py holds a lock around it.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from typing import NamedTuple

from sonant.errors import InputError
from sonant.options import SessionOptions
from sonant.text.cuts import CutRules, first_cut

_WORD = re.compile(r"\S+")


class Span(NamedTuple):
    """text[start:end]"""

    start: int
    end: int


class PendingText:
    """`text[:spoken_end]` has been handed to the model and is never changed, the rest can be edited."""

    def __init__(self, options: SessionOptions, rules: CutRules) -> None:
        self._options, self._rules = options, rules
        self.text = ""
        self.spoken_end = 0
        self.notes: list[str] = []
        self.is_complete = False
        self._starts: list[int] = []  # where what was taken begins
        self._flushes: list[int] = []  # everything up to such a place is to be spoken
        self._looked_at = -1  # so much text had no cut

    def append(self, text: str) -> None:
        """More text at the end."""
        self.text += text

    def flush(self) -> None:
        """Everything pending is to be spoken, whatever follows."""
        if len(self.text) > self.spoken_end and self._flushes[-1:] != [len(self.text)]:
            self._flushes.append(len(self.text))

    def end(self) -> None:
        """No more text will come."""
        self.flush()
        self.is_complete = True

    def take(self, *, idle: bool = False) -> Span | None:
        """The next stretch to speak; None while there is none. idle: no text has come for a while."""
        end = self._next_end(idle)
        if end is None:
            return None
        start = self.spoken_end
        self.spoken_end = start + len(self.text[start:end].rstrip())
        self._starts.append(start)
        return Span(start, self.spoken_end)

    def replace(self, start: int, tail: str) -> None:
        """text[start:] becomes `tail`. Where that changes spoken text, on_conflict decides.

        Raises InputError (a start outside of the text; a conflict, with on_conflict="raise").
        """
        if not 0 <= start <= len(self.text):
            raise InputError(f"the edit begins at character {start}; the text has {len(self.text)}")
        edited = self.text[:start] + tail
        same = _common_prefix(self.text, edited)
        if same < self.spoken_end:
            edited = self._without_conflict(edited, same)
            same = _common_prefix(self.text, edited)
        self.text = edited
        self._flushes = [place for place in self._flushes if place <= same]
        self._looked_at = -1

    def _next_end(self, idle: bool) -> int | None:
        while self._flushes and not self.text[self.spoken_end : self._flushes[0]].strip():
            self._flushes.pop(0)
        limit = self._flushes[0] if self._flushes else None
        if self._options.commit == "manual":
            return limit
        if limit is None and self._looked_at == len(self.text) and not idle:
            return None
        end = len(self.text) if limit is None else limit
        cut = first_cut(self.text, self.spoken_end, end, self._rules, complete=limit is not None, idle=idle)
        if cut is None and limit is None:
            self._looked_at = len(self.text)
        return limit if cut is None else cut

    def _without_conflict(self, edited: str, same: int) -> str:
        """The edit as it can be made, when it changes spoken text from character `same` on."""
        said = f"the edit changes text from character {same} on, which has been spoken up to {self.spoken_end}"
        if self._options.on_conflict == "raise":
            raise InputError(f"{said}; edit only what is pending, or choose on_conflict keep or respeak")
        if self._options.on_conflict == "keep":
            self.notes.append(f"{said}: the spoken part was left as it was")
            tail = edited[self._spoken_end_in(edited, same) :]
            apart = " " if tail and not tail[0].isspace() else ""
            return self.text[: self.spoken_end] + apart + tail
        first = max(bisect_right(self._starts, same) - 1, 0)
        self.spoken_end = self._starts[first]
        del self._starts[first:]
        self.notes.append(f"{said}: from character {self.spoken_end} on it is spoken again")
        return edited

    def _spoken_end_in(self, edited: str, same: int) -> int:
        """Where in the edited text the part ends that stands for the spoken one."""
        base = max(self.text.rfind(sign, 0, same) for sign in " \n") + 1
        spoken = _WORD.findall(self.text, base, self.spoken_end)
        new = list(_WORD.finditer(edited, base))
        old = spoken + _WORD.findall(self.text, self.spoken_end)
        for _, old_start, old_end, start, end in difflib.SequenceMatcher(None, old, [w[0] for w in new]).get_opcodes():
            if old_end >= len(spoken):
                # Words that took the place of others stand for as many of them; what is more is new.
                taken = min(start + len(spoken) - old_start, end)
                return new[taken - 1].end() if taken else base
        return len(edited)


def _common_prefix(a: str, b: str) -> int:
    """How many characters two texts begin with in common."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low
