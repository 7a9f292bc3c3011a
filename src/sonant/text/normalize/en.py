"""English: source words → tokens to speak. Each rule looks at the words from one on and may take several.

Numbers and their kin are in quantities_en.py, the tables in tables_en.py. A rule never sees the attached marks of a
word; it may only drop the dot of an abbreviation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from sonant.text.lexicon_file import UserLexicon
from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.addresses_en import address, social
from sonant.text.normalize.given_en import NOTHING, Known, listed, stretch_tokens, with_listed
from sonant.text.normalize.math_en import in_british, operator, power
from sonant.text.normalize.quantities_en import quantity
from sonant.text.normalize.roman_en import roman
from sonant.text.normalize.times_en import calendar_day, day_half, numeric_date, short_name
from sonant.text.normalize.written_en import Bodies, Written, lone_marks, marks, take_apart, unit_of, word_tokens
from sonant.text.spans import SAID, SPELLED, SourceWord, Token

Rule = Callable[[list[Written], int], "Bodies | None"]

_INITIALS = re.compile(r"[^\W\d_]{1,2}(?:\.[^\W\d_]{1,2})+$")
_PARTS = re.compile(r"[^\W\d_²³]+(?:[-'][^\W\d_²³]+)*'?|\d+|.", re.DOTALL)
_STREET_ENDS = {"Ave": "avenue", "Blvd": "boulevard", "Rd": "road", "Ln": "lane", "Pkwy": "parkway", "Hwy": "highway"}
_BEFORE_A_NUMBER = frozenset(("min.", "max.", "ca.", "c.", "ext."))
_SPELLED_BESIDE_AND = 3  # AT&T, R&D
_DASHES = re.compile(r"--+|–")


def normalize(words: Sequence[SourceWord], *, british: bool = False, known: Known = NOTHING) -> list[Token]:
    """Tokens of one sentence, in order; a source word without tokens is silent."""
    line = take_apart(words)
    rules = _rules(british, known.lexicon)
    tokens: list[Token] = []
    i = 0
    while i < len(line):
        if i in known.stretches:
            tokens += stretch_tokens(words[i], i, known.stretches[i], british=british)
            i += 1
            continue
        sign = operator(line, i)
        if sign is not None or not line[i].core:
            tokens += lone_marks(line[i]) if sign is None else sign
            i += 1
            continue
        for body in next(found for rule in rules if (found := rule(line, i)) is not None):
            if i not in known.stretches:  # a rule that takes two words takes no given one
                tokens += marks(line[i].lead, i, opening=True)
                tokens += body
                tokens += marks(line[i].tail, i, opening=False)
                i += 1
    if british:
        tokens = in_british(tokens)
    return with_listed(tokens, known.lexicon) if known.lexicon else tokens


def _rules(british: bool, lexicon: UserLexicon | None) -> tuple[Rule, ...]:
    def in_lexicon(line: list[Written], i: int) -> Bodies | None:
        found = listed(line, i, lexicon, british=british) if lexicon else None
        return None if found is None else [found]

    def dated(line: list[Written], i: int) -> Bodies | None:
        return numeric_date(line, i, british=british) or calendar_day(line, i, british=british)

    return (
        *((in_lexicon,) if lexicon else ()),
        address,
        social,
        dated,
        day_half,
        power,
        quantity,
        number_sign,
        short_name,
        title,
        roman,
        initials,
        dotted_part,
        unit,
        initial,
        symbol,
        plain_word,
    )


def number_sign(line: list[Written], i: int) -> Bodies | None:
    """No. 5 → number five; a "no." without a number is a no."""
    after = line[i + 1].core if i + 1 < len(line) else ""
    if line[i].core not in ("No", "Nos", "no", "nos") or not line[i].tail.startswith(".") or not after[:1].isdecimal():
        return None
    line[i].drop_dot()
    return [[Token("No.", line[i].index, spoken="number" if line[i].lower == "no" else "numbers")]]


def title(line: list[Written], i: int) -> Bodies | None:
    """Abbreviations with a dot, and the few that go without one."""
    written = line[i]
    dotted = written.tail.startswith(".")
    key = written.lower + "."
    after = line[i + 1] if i + 1 < len(line) else None
    if written.lower in tables.SHORTHANDS:
        return [[Token(tables.SHORTHANDS[written.lower], written.index, SAID)]]
    if street := _street(line, i, dotted=dotted):
        said = (street, "")
    elif key in tables.ABBREVIATIONS and (dotted or _goes_without_dot(written)):
        if not _is_in_place(key, written, after):
            return None
        said = tables.ABBREVIATIONS[key]
    else:
        return None
    if dotted:
        written.drop_dot()
    text, shown = said
    return [[Token(text, written.index, spoken=shown)]]


def _street(line: list[Written], i: int, *, dotted: bool) -> str:
    """St. and Dr. name a street behind a name, a saint and a doctor before one; "" for anything else."""
    written = line[i]
    after = line[i + 1] if i + 1 < len(line) and not written.tail.strip(".") else None
    before_name = after is not None and after.is_capital and not after.lead
    behind_name = _is_name_before(line, i) and not written.lead
    if written.core == "St":
        if before_name and not behind_name:
            return "saint"
        return "street" if dotted or behind_name else ""
    if (
        written.core == "Dr"
        and behind_name
        and not before_name
        and any(line[j].core.isdecimal() for j in (i - 2, i - 3) if j >= 0)
    ):
        return "drive"
    if written.core in _STREET_ENDS and behind_name and not dotted and not before_name:
        return _STREET_ENDS[written.core]
    return ""


def _is_name_before(line: list[Written], i: int) -> bool:
    return i > 0 and line[i - 1].is_capital and not line[i - 1].tail and line[i - 1].lower not in ("the", "in", "at")


def _goes_without_dot(written: Written) -> bool:
    return written.lower in tables.WITHOUT_DOT and not (written.core.isupper() and written.core != "VS")


def _is_in_place(key: str, written: Written, after: Written | None) -> bool:
    """Whether the words around allow the abbreviation: "Rep. Smith", "fig. 3", "in Jan."."""
    following = after.core[:1] if after else ""
    if key == "al.":
        return written.core == "al"
    if key in tables.NUMBER_LABELS:
        return following.isdecimal() or (following.isupper() and written.is_capital and key != "p.")
    if key in _BEFORE_A_NUMBER and following.isdecimal():
        return key != "c." or len(after.core if after else "") == 4
    if key == "c.":
        return False
    if key in tables.NEED_CAPITAL:
        return written.is_capital and (following.isupper() or following.isdecimal() or key in ("co.", "inc.", "corp."))
    return written.is_capital or key not in tables.OWN_CAPITAL


def initials(line: list[Written], i: int) -> Bodies | None:
    """U.S., e.g., Ph.D.: letter by letter. The last dot is theirs."""
    if not _INITIALS.match(line[i].core):
        return None
    line[i].drop_dot()
    letters = line[i].core.replace(".", "")
    return [[Token(letters, line[i].index, SPELLED, spoken=" ".join(letters))]]


def dotted_part(line: list[Written], i: int) -> Bodies | None:
    """U.S.-based, non-U.S.: letters between hyphens keep no dot."""
    core, index = line[i].core, line[i].index
    parts = core.split("-")
    if len(parts) < 2 or not any(_INITIALS.match(part.rstrip(".")) for part in parts):
        return None
    if not all(part.rstrip(".").replace(".", "").isalpha() for part in parts):
        return None
    line[i].drop_dot()
    tokens = []
    for part in parts:
        letters = part.replace(".", "")
        dotted = bool(_INITIALS.match(part.rstrip(".")))
        tokens += [Token(letters, index, SPELLED, spoken=" ".join(letters))] if dotted else word_tokens(part, index)
    return [tokens]


def unit(line: list[Written], i: int) -> Bodies | None:
    """km/h on its own."""
    found = unit_of(line[i].core) if "/" in line[i].core else None
    return [[Token(found[1], line[i].index, SAID)]] if found else None


def initial(line: list[Written], i: int) -> Bodies | None:
    """The J of J. Smith: its dot is no pause."""
    written = line[i]
    if len(written.core) != 1 or not written.core.isupper() or not written.tail.startswith(".") or written.last:
        return None
    written.drop_dot()
    return [[Token(written.core, written.index, tag="NNP")]]


def symbol(line: list[Written], i: int) -> Bodies | None:
    """A symbol on its own."""
    core = line[i].core
    if core not in tables.SYMBOLS:
        return None
    said = tables.SYMBOLS[core]
    return [[Token(said, line[i].index, SAID)]] if said else [[]]


def plain_word(line: list[Written], i: int) -> Bodies:
    """Everything else: words, joined words, digits among letters. Always matches."""
    index = line[i].index
    core = _DASHES.sub("—", line[i].core)
    if core in ("a", "A") and line[i].tail.startswith(")"):  # a letter that numbers a list
        return [[Token(core, index, tag="NN")]]
    if len(core) == 1 and (name := unicodedata.name(core, "")).startswith("GREEK"):
        return [[Token(name.split(" WITH ")[0].split()[-1].lower(), index)]]
    if core[0] == "'" and core[1:].rstrip("'").isalpha():  # 'tis, 'em, 'n'
        return [word_tokens(core, index)]
    parts = _PARTS.findall(core)
    tokens: list[Token] = []
    for at, part in enumerate(parts):
        before, after = parts[at - 1] if at else "", parts[at + 1] if at + 1 < len(parts) else ""
        if part[0].isalpha():
            spelled = "&" in (before, after) and part.isupper() and len(part) <= _SPELLED_BESIDE_AND
            tokens += [Token(part, index, SPELLED, spoken=" ".join(part))] if spelled else word_tokens(part, index)
        elif part.isdecimal():
            between = before[-1:].isalpha() and after[:1].isalpha()
            tokens.append(Token("to" if part == "2" and between else numbers.grouped(part), index, SAID))
        else:
            tokens += _joint(part, before, after, index)
    return [tokens]


def _joint(part: str, before: str, after: str, index: int) -> list[Token]:
    """What stands between the parts of a word."""
    if part == "." and before and after[:1].islower():
        return [Token("dot", index, SAID)]
    if part in tables.SYMBOLS and tables.SYMBOLS[part] and (before or after):
        return [Token(tables.SYMBOLS[part], index, SAID)]
    return marks(part, index, opening=part in '"([{' and not before)
