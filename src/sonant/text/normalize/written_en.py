"""A source word taken apart: opening marks, core, closing marks. Punctuation is turned into marks here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.characters import plain
from sonant.text.spans import MARK, SAID, SourceWord, Token

Bodies = list[list[Token]]
"""What a rule makes of the source words it takes: the tokens of each."""
ORDINAL = re.compile(r"(\d[\d,]*)(st|nd|rd|th)(?:-(.*))?$", re.IGNORECASE)

_LEAD = frozenset("\"“”'([{<*_~#—–-….,;:!?|>¿¡^\\")
_TAIL = frozenset("\"“”')]}>*_~—–-….,;:!?|^\\")
# Characters that the model reads as themselves, and how others are written for it.
_READ = frozenset(";:,.!?—…()“”")
_REWRITTEN = {"–": "—", "[": "(", "{": "(", "]": ")", "}": ")"}
# A row of the same mark says no more than three of it, and the model's input is short.
_REPEATED, _MOST_MARKS = 3, 6
_ONE_SIGN = {">=": "≥", "<=": "≤", "!=": "≠", "~=": "≈"}
_TWO_SIGNS = re.compile("[<>!~]=")
_DASHES = re.compile(r"--+")
_EMOTICON = re.compile(r"[:;=]['^o-]?[()\[\]DPp/\\|*]+$|<3+$|[)(]['^o-]?[:;=]$|\^_*\^$")
_SIGNS = frozenset("-–+~<>≈≤≥")
_CURRENCY_SIGNS = frozenset("$£€¥₹₩₿")
_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_PIECES = re.compile(r"'n'$|[^\W\d_]+(?:'[^\W\d_]+)*'?|[-']")


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
        text = _TWO_SIGNS.sub(lambda match: _ONE_SIGN[match[0]], plain(word.text))
        if is_emoticon(text):
            line.append(Written(index, "", "", ""))
            continue
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
        if text[at] in _SIGNS and (following.isdecimal() or (following and following in _CURRENCY_SIGNS)):
            break
        if text[at] == "." and (following.isdecimal() or _is_path(text, at)):
            break
        if text[at] == "#" and following.isalnum():
            break
        if text[at] == "~" and following == "/":
            break
        if text[at] == "'" and (following.isdecimal() or _first_letters(text, at + 1) in tables.CLIPPED):
            break
        at += 1
    return at


def is_emoticon(text: str) -> bool:
    """Whether a word is a face or a heart made of marks."""
    return 1 < len(text) < 6 and not text.isalnum() and bool(_EMOTICON.match(text))


def _is_path(text: str, at: int) -> bool:
    return text.startswith(("./", "../"), at) or (at > 0 and text.startswith("./", at - 1))


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


def say(written: Written, text: str) -> list[Token]:
    """Plain spoken words of one source word."""
    return [Token(text, written.index, SAID, tag="CD")]


def plain_number(number: str) -> str:
    """A number as written: years have four digits and no comma, codes a leading zero."""
    digits, _, fraction = number.replace(",", "").partition(".")
    if fraction:
        return numbers.decimal(digits, fraction)
    if len(digits) > 1 and digits[0] == "0":
        return numbers.spell_digits(digits)
    if len(number) == 4:
        return numbers.year(digits)
    return numbers.cardinal(digits)


def is_attribute(line: list[Written], i: int, last: int) -> bool:
    """A 5 km run, a $3 million deal: what is counted describes the next word, and stays in the singular."""
    if not i or line[i - 1].lower not in ("a", "an") or line[i - 1].tail or line[last].tail or last + 1 >= len(line):
        return False
    after = line[last + 1]
    return after.core.islower() and after.core.isalpha() and not after.lead and after.core not in tables.AFTER_A_MEASURE


def unit_of(written: str) -> tuple[str, str] | None:
    """(one, many) of a unit; mg/ml and MB/s are made of two."""
    if written in tables.UNITS:
        return tables.UNITS[written]
    above, slash, below = written.partition("/")
    if not slash or above not in tables.UNITS or below not in tables.UNITS:
        return None
    (one, many), per = tables.UNITS[above], tables.UNITS[below][0]
    return f"{one} per {per}", f"{many} per {per}"


def trailing(written: Written, suffix: str) -> list[Token] | None:
    """What follows a number in its word: -year-old, -km, /month; None when it is no word of its own."""
    if not suffix:
        return []
    if suffix[0] not in "-/–—" or not suffix[1:2].isalpha():
        return None
    per = [Token("per", written.index)] if suffix[0] == "/" else []
    if suffix[1:] in tables.UNITS:
        return [*per, Token(tables.UNITS[suffix[1:]][0], written.index, SAID)]
    return [*per, *(Token(word, written.index) for word in _WORDS.findall(suffix))]


def word_tokens(word: str, index: int) -> list[Token]:
    """A word of letters, hyphens and apostrophes as glued tokens: pieces that may be looked up apart."""
    pieces = [piece for run in _PIECES.findall(word) for piece in _humps(run)]
    return [Token(piece, index, glued=at > 0) for at, piece in enumerate(pieces)]


def _humps(run: str) -> list[str]:
    """iPhone → i, Phone; a single capital before a capitalised word stands apart."""
    if run.islower() or run.isupper() or (run[1:].islower() and run[0].isupper()):
        return [run]
    cuts = [0]
    for at in range(1, len(run)):
        hump = run[at].isupper() and run[at - 1].islower()
        # The last capital of a row begins the next word (USAGov), unless only a plural follows (APIs).
        row_ends = run[at].isupper() and run[at - 1].isupper() and run[at + 1 : at + 2].islower()
        if hump or (row_ends and (at == 1 or (run[at + 1 : at + 3].islower() and len(run) > at + 2))):
            cuts.append(at)
    return [run[start:end] for start, end in zip(cuts, [*cuts[1:], len(run)], strict=True)]
