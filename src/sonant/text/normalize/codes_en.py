"""English numbers that name and do not count: phones, versions, addresses of machines, serials, rooms, MP3, H2O."""

from __future__ import annotations

import re

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.characters import FRACTION_SIGNS, FRACTIONS
from sonant.text.normalize.written_en import ORDINAL, Bodies, Written, marks, plain_number, say
from sonant.text.spans import MARK, SAID, SPELLED, Token

_VERSION = re.compile(r"[vV]?\d+(?:\.\d+){2,}$|v\d+(?:\.\d+)?$")
_MACHINE = re.compile(r"[12]?\d{2}(?:\.[12]?\d{1,2}){3}$")
_PHONE = re.compile(r"(?:\+?\d{1,3}[-.])?\(?\d{3}\)?[-.]?\d{3}[-.]\d{4}$|\d{3}-\d{4}$")
_DIGIT_GROUPS = re.compile(r"\d+(?:-\d+){2,}$")
_COUNTRY = re.compile(r"\+\d{1,3}$|0\d{2,4}$")
_GROUP = re.compile(r"\d{2,5}(?:-\d{2,5})*$")
_EMERGENCY = frozenset(("911", "999", "112", "988", "411", "311", "211", "511", "811", "101", "111"))
_CALLED = tables.word_set("call called calling dial dialed dialled phone ring text")
_PLAIN_LONG = re.compile(r"\d{7,}$")
_CODE = re.compile(
    rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?:(?:st|nd|rd|th|s)(?![^\W\d_]))?|[^\W\d_²³{FRACTION_SIGNS}]+(?:'[^\W\d_²³{FRACTION_SIGNS}]+)*|.",
    re.DOTALL,
)
# 2 is "to" between these letters, and between words.
_TO_PAIRS = frozenset(
    ("B2B", "B2C", "B2G", "C2B", "C2C", "D2C", "P2P", "G2P", "M2M", "E2E", "V2V", "V2X", "O2O", "F2F")
)
_SPOKEN = {"IPv": ("I", "P", "v")}
_BETWEEN_NUMBERS = {"x": "by", ":": "to", "*": "times"}


def phone(line: list[Written], i: int) -> Bodies | None:
    """555-1234, 1-800-555-0199, (555) 123-4567, +44 20 7946 0958, call 911: digit by digit, a comma between groups."""
    written = line[i]
    after = line[i + 1].core if i + 1 < len(line) else ""
    is_area = written.lead.endswith("(") and written.tail == ")" and len(written.core) == 3
    if _PHONE.match(written.core) or (is_area and _PHONE.match(after)):
        return [_digit_groups(written)]
    if _DIGIT_GROUPS.match(written.core):
        return [_digit_groups(written)]
    if i and line[i - 1].lower in _CALLED and (written.core in _EMERGENCY or _PLAIN_LONG.match(written.core)):
        return [say(written, numbers.spell_digits(written.core))]
    return _in_groups(line, i)


def _in_groups(line: list[Written], i: int) -> Bodies | None:
    """A number whose groups stand apart, from its country or area code on."""
    if not _COUNTRY.match(line[i].core):
        return None
    end = i + 1
    while end < len(line) and end - i < 6 and _GROUP.match(line[end].core) and not line[end - 1].tail.strip(")"):
        end += 1
    digits = sum(sum(map(str.isdecimal, word.core)) for word in line[i:end])
    if end - i < 2 or not 7 <= digits <= 15:
        return None
    bodies = [_digit_groups(word) for word in line[i:end]]
    for body, word in zip(bodies[:-1], line[i:], strict=False):
        if not word.tail:
            body.append(Token(",", word.index, MARK))
    return bodies


def _digit_groups(written: Written) -> list[Token]:
    body: list[Token] = [Token("plus", written.index, SAID)] if written.core.startswith("+") else []
    for at, group in enumerate(re.findall(r"\d+", written.core)):
        said = f"{numbers.ONES[int(group[0])]} hundred" if re.match(r"[1-9]00$", group) else ""
        body += [Token(",", written.index, MARK)] if at else []
        body += say(written, said or numbers.spell_digits(group, "oh"))
    return body


def zip_code(line: list[Written], i: int) -> Bodies | None:
    """The five digits behind the letters of a state."""
    core = line[i].core
    if not i or len(core) != 5 or not core.isdecimal() or line[i - 1].core not in tables.STATES:
        return None
    return [say(line[i], numbers.spell_digits(core, "oh"))]


def version(line: list[Written], i: int) -> Bodies | None:
    """v1.2.3; four parts that name a machine are said with dots."""
    core = line[i].core
    if _MACHINE.match(core):
        parts = [numbers.grouped(part) if len(part) > 2 else numbers.cardinal(part) for part in core.split(".")]
        return [say(line[i], " dot ".join(parts))]
    if not _VERSION.match(core):
        return None
    parts = core.lstrip("vV").split(".")
    said = " point ".join(plain_number(part) if len(part) < 4 else numbers.cardinal(part) for part in parts)
    head = [Token("version", line[i].index)] if core[0] in "vV" else []
    return [[*head, *say(line[i], said)]]


def named(line: list[Written], i: int) -> Bodies | None:
    """Boeing 747, room 101, 123 Main Street: three digits in two steps; long plain numbers digit by digit."""
    core = line[i].core
    if _PLAIN_LONG.match(core) and not core.endswith("000"):
        return [say(line[i], numbers.spell_digits(core))]
    match = re.match(r"(\d{3})([A-Z]?)$", core)
    if not match or match[1].endswith("00"):
        return None
    is_labelled = bool(i) and not line[i - 1].tail and line[i - 1].lower in tables.NAMED_BY_NUMBER
    if not (is_labelled or _is_address(line, i)):
        return None
    letter = [Token(match[2], line[i].index, SPELLED)] if match[2] else []
    return [[*say(line[i], numbers.grouped(match[1])), *letter]]


def _is_address(line: list[Written], i: int) -> bool:
    """Capitalised words up to a kind of street come behind it."""
    for at in range(i + 1, min(i + 5, len(line))):
        if at > i + 1 and line[at].lower in tables.STREETS and line[at].is_capital:
            return True
        if not line[at].is_capital or line[at].tail or line[at].lead:
            return False
    return False


def code(written: Written) -> list[Token]:
    """Letters and digits mixed: MP3, COVID-19, H2O, 3-D."""
    tokens: list[Token] = []
    parts = _CODE.findall(written.core)
    for at, part in enumerate(parts):
        before, after = parts[at - 1] if at else "", parts[at + 1] if at + 1 < len(parts) else ""
        between = _BETWEEN_NUMBERS.get(part) if before.isdecimal() and after.isdecimal() else None
        if part[0].isdecimal():
            tokens += say(written, _code_number(part, at, parts))
        elif between:
            tokens.append(Token(between, written.index, SAID))
        elif part in _SPOKEN:
            tokens += [Token(letter, written.index, SPELLED) for letter in _SPOKEN[part]]
        elif part[0].isalpha():
            tokens.append(_code_word(part, written.index, bool(after or at)))
        else:
            tokens += _code_sign(part, bool(at), after, written.index)
    return tokens


def _code_sign(part: str, inside: bool, after: str, index: int) -> list[Token]:
    if part == "." and inside and after:
        return [Token("dot" if after.isalpha() else "point", index, SAID)]
    if part in ",;:()[]—–" and after:
        return marks(part, index, opening=False)
    if part in FRACTIONS:
        return [Token(numbers.fraction(*FRACTIONS[part].split("/")), index, SAID)]
    said = tables.SYMBOLS.get(part)
    return [Token(said, index, SAID)] if said else []


def _code_number(part: str, at: int, parts: list[str]) -> str:
    if match := ORDINAL.match(part):
        return numbers.ordinal(match[1].replace(",", ""))
    before, after = parts[at - 1] if at else "", parts[at + 1] if at + 1 < len(parts) else ""
    # mid-1990s has a year in it, F-16s a name; 1920x1080 are two sizes.
    is_size = before in ("x", "*") and at > 1 and parts[at - 2].isdecimal()
    is_counted = not at or is_size or before == "_" or (at > 1 and before == "-" and parts[at - 2].islower())
    say_number = plain_number if is_counted else numbers.grouped
    if part.endswith("s"):
        return numbers.plural(say_number(part[:-1]))
    if part == "2" and before.isalpha() and after.isalpha():
        is_to = before + part + after in _TO_PAIRS or (len(before) > 2 and len(after) > 2)
        return "to" if is_to else "two"
    if "." in part or "," in part:
        whole, _, fraction = part.replace(",", "").partition(".")
        return numbers.decimal(whole, fraction) if fraction else numbers.cardinal(whole)
    return say_number(part)


def _code_word(part: str, index: int, beside: bool) -> Token:
    """Letters of a code: capitals and vowelless runs are spelled."""
    is_short_capital = part.isupper() and len(part) < 4
    if beside and "'" not in part and (is_short_capital or not set(part.lower()) & set("aeiouy")):
        return Token(part, index, SPELLED, spoken=" ".join(part))
    return Token(part, index)
