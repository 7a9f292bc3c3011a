"""Numbers: 1,234.56 → 1 thousand 234 point 56. Under a thousand, and years, digits stay: the model reads them."""

from __future__ import annotations

import re
from functools import cache

from sonant.families.latent.normalize.languages import Language

ENDS = "!?.:,;…"
"""The marks that a rule leaves behind a word."""
_MOST_DIGITS = 12
_YEARS = range(1900, 2100)
_CODE = re.compile("0[0-9]+")
_RANGE = re.compile("([0-9]+)-([0-9]+)")
_ORDINAL_ES = re.compile(r"([13])\.?er")
_ORDINALS_ES = {"1": "primer", "3": "tercer"}


def number(word: str, language: Language) -> str | None:
    """A number, a code with a zero in front, a range (10-15), the number before a word (7,000-ton)."""
    body, end = without_end(word)
    if _CODE.fullmatch(body):
        return spelled(body, language) + end
    if (match := _RANGE.fullmatch(body)) and _is_range(match[1], match[2], language):
        return f"{match[1]} {language.to} {match[2]}{end}"
    if language.code == "es" and (match := _ORDINAL_ES.fullmatch(body)):
        return _ORDINALS_ES[match[1]] + end
    found = read_number(word, language)
    if found:
        return found[0] + found[1]
    head, dash, tail = word.partition("-")
    if dash and tail[:1].isalpha() and (found := read_number(head, language)) and not found[1]:
        return f"{found[0]}-{tail}"
    return None


def without_end(word: str) -> tuple[str, str]:
    """The word, and the marks behind it."""
    body = word.rstrip(ENDS)
    return body, word[len(body) :]


def spelled(code: str, language: Language) -> str:
    """Digit by digit; letters stay, dashes are silent."""
    return " ".join(language.digits[int(sign)] if sign in "0123456789" else sign for sign in code if sign != "-")


def read_number(word: str, language: Language) -> tuple[str, str] | None:
    """What a number is read as, and the marks behind it; None for anything else and for more than 12 digits."""
    if _CODE.match(word):
        return None
    match = _pattern(language.decimal, _group(word, language)).fullmatch(word)
    if not match:
        return None
    digits = re.sub("[^0-9]", "", match["whole"]).lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    value = int(digits or "0")
    said = str(value) if value < 1000 or value in _YEARS else _in_scales(value, language)
    if match["part"]:
        said += f" {language.point} {match['part']}"
    return (f"{language.minus} {said}" if match["minus"] else said), match["end"]


def _in_scales(value: int, language: Language) -> str:
    parts = []
    for scale, one, many in language.scales:
        count = value // scale % 1000
        if count:
            parts.append(one if count == 1 else many.format(n=count))
    if value % 1000:
        parts.append(str(value % 1000))
    return " ".join(parts)


def _group(word: str, language: Language) -> str:
    """The sign between thousands. A dot is one only if three characters follow each."""
    if language.group != ".":
        return language.group
    whole = word.rpartition(",")[0] if "," in word else word
    others = whole.split(".")[1:]
    return "." if others and all(len(group) == 3 for group in others) else ""


@cache
def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    """minus, whole part, decimals, marks. Groups have three digits: 1,2,3 is a list, not 123."""
    grouped = f"[0-9]+(?:{re.escape(group)}[0-9]{{3}})+|" if group else ""
    return re.compile(
        f"(?P<minus>-?)(?P<whole>{grouped}[0-9]+)(?:{re.escape(decimal)}(?P<part>[0-9]+))?(?P<end>[{re.escape(ENDS)}]*)"
    )


def _is_range(first: str, last: str, language: Language) -> bool:
    """10-15, 1445-1450 and 2024-25 go up; 3-5 is read by the model, in German only here."""
    if _is_small(first, language) and _is_small(last, language):
        return int(first) < int(last)
    if _is_year(first) and len(last) == 4:
        return _is_year(last) and first < last
    return _is_year(first) and len(last) == 2 and first[2:] < last


def _is_small(digits: str, language: Language) -> bool:
    return language.shortest_range <= len(digits) <= 3 and (len(digits) == 1 or digits[0] != "0")


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and (digits[0] == "1" or digits[:2] == "20")
