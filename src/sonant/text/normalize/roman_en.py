"""Roman numerals: World War II, Henry VIII, Chapter xii, the XXI century; never the pronoun I."""

from __future__ import annotations

import re

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.written_en import Bodies, Written
from sonant.text.spans import SAID, Token

_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})$")
_SMALL = re.compile(r"[IVX]+$")
_PLAIN = re.compile(r"II|III|VII|VIII|X(?:II|III|IV|VI|VII|VIII|IX)$")
"""Numbers wherever they stand: no word and no acronym is written so."""
_YEAR = re.compile(r"M{1,2}[CDXLVI]{3,}$")
_COUNTED = tables.word_set("century centuries dynasty olympiad legion congress summit")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def roman(line: list[Written], i: int) -> Bodies | None:
    """World War II → two, Henry VIII → the eighth, Henry the VIII → eighth."""
    core, ending = line[i].core, ""
    if core.endswith("'s"):
        core, ending = core[:-2], "'s"
    before = line[i - 1].lower if i and not line[i - 1].tail else ""
    if core.islower() and len(core) > 1 and before in tables.NUMBERED:
        core = core.upper()
    if not _ROMAN.match(core):
        return None
    value = str(roman_value(core))
    if (said := _as_name(line, i, core, value, before, ending)) is not None:
        return [[Token(said[0] + ending, line[i].index, SAID, spoken=said[1])]]
    after = line[i + 1].lower if i + 1 < len(line) and not line[i].tail else ""
    if len(core) > 1 and before == "the" and after in _COUNTED:
        return [[Token(numbers.ordinal(value), line[i].index, SAID)]]
    if _YEAR.match(core):
        return [[Token(numbers.year(value), line[i].index, SAID)]]
    if i and _PLAIN.match(core) and not ending:
        return [[Token(numbers.cardinal(value), line[i].index, SAID)]]
    return None


def _as_name(line: list[Written], i: int, core: str, value: str, before: str, ending: str) -> tuple[str, str] | None:
    """(spoken, shown) behind a name or a label that takes a number."""
    has_article = before == "the" and i > 1 and line[i - 2].lower in tables.REGNAL
    regnal = has_article or before in tables.REGNAL
    numbered = before in tables.NUMBERED
    if not before or not (has_article or numbered or line[i - 1].is_capital):
        return None
    if not _SMALL.match(core) and not (numbered and len(core) > 1):
        return None
    if len(core) == 1 and not numbered and not (regnal and (core != "I" or line[i].tail or ending)):
        return None
    if numbered and not line[i - 1].is_capital and len(core) == 1:
        return None
    if regnal:
        return (numbers.ordinal(value) if has_article else f"the {numbers.ordinal(value)}"), ""
    said = numbers.cardinal(value)
    return said, said.title() if not ending else ""


def roman_value(core: str) -> int:
    """XIV → 14."""
    values = [_VALUES[letter] for letter in core]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))
