"""A source word taken apart: opening marks, core, closing marks. Punctuation is turned into marks here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sonant.text.normalize.characters import plain
from sonant.text.normalize.tables_en import CLIPPED
from sonant.text.spans import MARK, SourceWord, Token

_LEAD = frozenset("\"“”'([{<*_~#—–-….,;:!?|>¿¡^\\")
_TAIL = frozenset("\"“”')]}>*_~—–-….,;:!?|^\\")
# Characters that the model reads as themselves, and how others are written for it.
_READ = frozenset(";:,.!?—…()“”")
_REWRITTEN = {"–": "—", "[": "(", "{": "(", "]": ")", "}": ")"}
# A row of the same mark says no more than three of it, and the model's input is short.
_REPEATED, _MOST_MARKS = 3, 6
_DASHES = re.compile(r"--+")


@dataclass(slots=True)
class Written:
    """One source word, cleaned: `lead` and `tail` are marks as written, `core` is what may be spoken."""

    index: int
    lead: str
    core: str
    tail: str
    last: bool = False  # the last speakable word of its sentence

    @property
    def lower(self) -> str:
        return self.core.lower()

    @property
    def is_capital(self) -> bool:
        return self.core[:1].isupper()

    def drop_dot(self) -> None:
        """The dot of an abbreviation is not a pause, unless the sentence ends with it."""
        if self.tail.startswith(".") and not self.last:
            self.tail = self.tail[1:]


def take_apart(words: Sequence[SourceWord]) -> list[Written]:
    """Every source word of a sentence, in order."""
    line: list[Written] = []
    quoted = False  # inside single quotes
    for index, word in enumerate(words):
        text = plain(word.text)
        start = _lead_end(text)
        end = len(text)
        while end > start and text[end - 1] in _TAIL:
            end -= 1
        lead, core, tail = text[:start], text[start:end], text[end:]
        if text.lower() == "'n'":
            lead, core, tail = "", text, ""
        if "'" in lead:
            quoted = True
        if tail.startswith("'") and core:
            if quoted and not core.endswith("in"):
                quoted = False
            else:
                core, tail = core + "'", tail[1:]
        line.append(Written(index, lead, core, tail))
    for written in reversed(line):
        if written.core:
            written.last = True
            break
    return line


def _lead_end(text: str) -> int:
    """Where the opening marks end. A sign, a point or an apostrophe may belong to what follows."""
    at = 0
    while at < len(text) and text[at] in _LEAD:
        following = text[at + 1 : at + 2]
        if text[at] in "-–.#~" and (following.isdecimal() or (text[at] in "-–" and following in "$£€¥₹" and following)):
            break
        if text[at] == "'" and (following.isdecimal() or _first_letters(text, at + 1) in CLIPPED):
            break
        at += 1
    return at


def _first_letters(text: str, at: int) -> str:
    end = at
    while end < len(text) and end - at < 8 and text[end].isalpha():
        end += 1
    return text[at:end].lower()


def marks(written: str, word: int, *, opening: bool) -> list[Token]:
    """Marks of a lead or a tail as tokens. Straight quotes become curly ones, what the model cannot read is dropped."""
    kept = ""
    for letter in _DASHES.sub("—", written):
        letter = _REWRITTEN.get(letter, letter)
        if letter in "\"'":
            letter = "“" if opening else "”"
        if letter in _READ and not kept.endswith(letter * _REPEATED) and len(kept) < _MOST_MARKS:
            kept += letter
    return [Token(letter, word, MARK) for letter in kept]


def lone_marks(written: Written) -> list[Token]:
    """Marks that stand alone: a dash, a quote with its question mark."""
    text = written.lead + written.tail
    if text == "-":
        # Between words it is a dash; in front of a line it is a bullet.
        return [Token("—", written.index, MARK)] if written.index else []
    opens = text[:1] in "\"'" and len(text) > 1
    return marks(text[:opens], written.index, opening=True) + marks(text[opens:], written.index, opening=False)
