"""Text in which every character knows the stretch of the original that it came from.

The steps of the front end change a text many times (numbers in words, other quotes, a capital, the tokenizer's own
rules); a Traced goes through all of them, so that a token can be led back to characters of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_UNIT = re.compile(r"\d|[^\W\d_]+")
_WORD = re.compile(r"\S+")
_NEAR = 16
"""How far ahead one is sought; what is said comes in the order of what is written."""


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
        """One text of many, with `between` put in right before each but the first."""
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for part in parts:
            if between and text:
                text.append(between)
                at = part.starts[0] if part else (starts or [0])[-1]
                starts += (at,) * len(between)
                ends += (at,) * len(between)
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
        """`new` in the place of this text: digits and letters that are in both keep their own places.

        What stands between two of them is spread over what stood there ("$2 million" → "2 million dollars": behind
        million was nothing, so dollars belongs to million).
        """
        if new == self.text:
            return self
        parts: list[Traced] = []
        at = new_at = 0
        for start, new_start, size in _in_both(self.text, new):
            parts += (self._spread(at, start, new[new_at:new_start]), self[start : start + size])
            at, new_at = start + size, new_start + size
        return Traced.join((*parts, self._spread(at, len(self), new[new_at:])))

    def _spread(self, first: int, last: int, text: str) -> Traced:
        """Each character of `text` with its share of self[first:last]; if that is empty, with the character before."""
        count = len(text)
        if first == last:
            first = max(0, first - 1)
        size = max(1, last - first)
        starts = [first + i * size // count for i in range(count)]
        ends = [max(start, first + (i + 1) * size // count - 1) for i, start in enumerate(starts)]
        return Traced(text, tuple(self.starts[i] for i in starts), tuple(self.ends[i] for i in ends))


def _in_both(old: str, new: str) -> Iterator[tuple[int, int, int]]:
    """Digits and runs of letters that are in both texts, in order: place in the old, place in the new, length."""
    units = [match.span() for match in _UNIT.finditer(old)]
    first = 0
    for match in _UNIT.finditer(new):
        for number, (start, end) in enumerate(units[first : first + _NEAR], first):
            if old[start:end] == match.group():
                yield start, match.start(), end - start
                first = number + 1
                break
