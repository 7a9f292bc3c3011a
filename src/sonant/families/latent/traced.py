"""Text in which every character knows the stretch of the original that it came from.

The steps of the front end change a text many times (numbers in words, other quotes, a capital, the tokenizer's own
rules); a Traced goes through all of them, so that a token can be led back to characters of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

_UNIT = re.compile(r"\d+|[^\W\d_]+|.", re.DOTALL)
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Traced:
    """`text[i]` came from original[starts[i]:ends[i]]; the stretch is empty for a character that was put in."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @staticmethod
    def of(text: str, offset: int = 0) -> Traced:
        """A text that is its own original, from `offset` on."""
        last = offset + len(text)
        return Traced(text, tuple(range(offset, last)), tuple(range(offset + 1, last + 1)))

    @staticmethod
    def made(text: str, start: int, end: int) -> Traced:
        """Characters that all came from the same stretch."""
        return Traced(text, (start,) * len(text), (end,) * len(text))

    @staticmethod
    def join(parts: Iterable[Traced], between: str = "") -> Traced:
        """One text of many, with `between` put in."""
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for part in parts:
            if between and text:
                text.append(between)
                starts += (ends[-1] if ends else part.start,) * len(between)
                ends += (starts[-1],) * len(between)
            text.append(part.text)
            starts += part.starts
            ends += part.ends
        return Traced("".join(text), tuple(starts), tuple(ends))

    def __len__(self) -> int:
        return len(self.text)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __getitem__(self, where: slice) -> Traced:
        return Traced(self.text[where], self.starts[where], self.ends[where])

    def __add__(self, other: Traced) -> Traced:
        return Traced(self.text + other.text, self.starts + other.starts, self.ends + other.ends)

    @property
    def start(self) -> int:
        """Where the original of the first character starts; of an empty text, 0."""
        return min(self.starts, default=0)

    @property
    def end(self) -> int:
        return max(self.ends, default=0)

    def turned(self, text: str) -> Traced:
        """Another text in the place of this one: each of its characters came from the whole stretch."""
        return Traced.made(text, self.start, self.end)

    def following(self, text: str) -> Traced:
        """Characters put in behind this text: they came from nothing."""
        return Traced.made(text, self.end, self.end)

    def strip(self, letters: str | None = None) -> Traced:
        left = len(self.text) - len(self.text.lstrip(letters))
        return self[left : max(left, len(self.text.rstrip(letters)))]

    def rstrip(self, letters: str | None = None) -> Traced:
        return self[: len(self.text.rstrip(letters))]

    def split(self) -> list[Traced]:
        """The words between white space."""
        return [self[match.start() : match.end()] for match in _WORD.finditer(self.text)]

    def sub(self, pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]) -> Traced:
        """Each match turned into `new`, taken literally."""
        return self._rebuilt((*m.span(), new if isinstance(new, str) else new(m)) for m in pattern.finditer(self.text))

    def translate(self, table: dict[str, str]) -> Traced:
        """Single characters turned into texts, empty ones into nothing."""
        if table.keys().isdisjoint(self.text):
            return self
        return self._rebuilt((i, i + 1, table[c]) for i, c in enumerate(self.text) if c in table)

    def _rebuilt(self, changes: Iterable[tuple[int, int, str]]) -> Traced:
        parts: list[Traced] = []
        at = 0
        for start, end, new in changes:
            parts += (self[at:start], self[start:end].turned(new) if start < end else self[:start].following(new))
            at = end
        return Traced.join((*parts, self[at:])) if parts else self

    def respelled_words(self, new: Callable[[str], str]) -> Traced:
        """Each word between white space in another spelling."""
        parts: list[Traced] = []
        at = 0
        for match in _WORD.finditer(self.text):
            said = new(match.group())
            if said != match.group():
                parts += (self[at : match.start()], self[match.start() : match.end()].respelled(said))
                at = match.end()
        return Traced.join((*parts, self[at:])) if parts else self

    def respelled(self, new: str) -> Traced:
        """`new` in the place of this text: runs of digits or letters that are in both keep their own places.

        "$2 million" → "2 million dollars": dollars came from nothing between, so it belongs to what is before it.
        """
        if new == self.text:
            return self
        old_units = [match.span() for match in _UNIT.finditer(self.text)]
        new_units = [match.group() for match in _UNIT.finditer(new)]
        matcher = SequenceMatcher(None, [self.text[a:b] for a, b in old_units], new_units, autojunk=False)
        parts: list[Traced] = []
        for kind, first, last, new_first, new_last in matcher.get_opcodes():
            own = self[old_units[first][0] : old_units[last - 1][1]] if last > first else Traced("", (), ())
            text = "".join(new_units[new_first:new_last])
            if kind == "equal":
                parts.append(own)
            elif own:
                parts.append(own.turned(text))
            else:
                parts.append((parts[-1][-1:] if parts else self[:1]).turned(text))
        return Traced.join(parts)

