"""Amounts of money: $1,234.56 → 1 thousand 234 dollars and 56 cents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonant.families.latent.normalize.languages import Language
from sonant.families.latent.normalize.numbers import read_number, without_end

_CENTS = re.compile("(?P<whole>[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?P<point>[.,])(?P<cents>[0-9]{2})")
# 5,50 € in an English text: two digits are no group of thousands.
_DECIMAL_COMMA = re.compile("-?[0-9]+,[0-9]{1,2}")
_VOWELS = tuple("aeioué")
_SMALL_UNIT = "¢"


def amount(word: str, language: Language) -> str | None:
    """A number with the sign of a currency before or behind it, not both."""
    body, end = without_end(word)
    sign, digits = _taken_apart(body, language)
    if not sign:
        return None
    if language.decimal == "." and _DECIMAL_COMMA.fullmatch(digits):
        digits = digits.replace(",", ".")
    said = _with_letter(digits, sign, language) or _with_cents(digits, sign, language)
    if said is None:
        found = read_number(digits, language)
        if not found:
            return None
        one, many = language.money[sign]
        # The plural even for one, except of cents, as the models were trained.
        said = _named(found[0], one if sign == _SMALL_UNIT and digits == "1" else many, language)
    return said + end


def scaled_amount(words: Sequence[str], language: Language) -> list[str] | None:
    """$2 million, R$ 3 bi: the scale is read before the currency."""
    if len(words) < 2:
        return None
    sign, digits = _taken_apart(words[0], language)
    scale, end = without_end(words[1])
    if scale in language.short_scales:
        scale = language.short_scales[scale][digits != "1"]
    found = read_number(digits, language)
    if not sign or words[0].startswith("-") or scale not in language.scale_words or not found or found[1]:
        return None
    return [found[0], _named(scale, language.money[sign][1], language) + end]


def _taken_apart(word: str, language: Language) -> tuple[str, str]:
    """The sign and the number, whose minus may stand before the sign; ("", "") if there is no sign."""
    minus = "-" if word.startswith("-") else ""
    bare = word[len(minus) :]
    for sign in sorted(language.money, key=len, reverse=True):
        if bare.startswith(sign):
            return sign, minus + bare[len(sign) :]
    last = word[-1:]
    return (last, word[:-1]) if last in language.money else ("", "")


def _with_letter(digits: str, sign: str, language: Language) -> str | None:
    """$3.2m"""
    for letters, scale in language.scale_letters.items():
        bare = digits.removesuffix(letters)
        if bare != digits and bare[-1:].isdecimal():
            return _in_scale(bare, scale, sign, language) or ""
    return None


def _in_scale(digits: str, scale: str, sign: str, language: Language) -> str | None:
    found = read_number(digits, language)
    if not found or found[1]:
        return None
    return _named(f"{found[0]} {scale}", language.money[sign][1], language)


def _with_cents(digits: str, sign: str, language: Language) -> str | None:
    """Exactly two decimals, in the languages that read them apart."""
    match = _CENTS.fullmatch(digits)
    if not match or not language.cents or sign == _SMALL_UNIT or match["point"] != language.decimal:
        return None
    found = read_number(match["whole"], language)
    if not found or found[1]:
        return None
    one, many = language.money[sign]
    units = _named(found[0], one if found[0] == "1" else many, language)
    if match["cents"] == "00":
        return units
    cents = f"{match['cents'].removeprefix('0')} {language.cents.get(sign, language.cents[''])}"
    return cents if found[0] == "0" else f"{units} {language.cents['joint']} {cents}"


def _named(said: str, name: str, language: Language) -> str:
    """The number and its currency: 2 millions d'euros, 2 millones de dólares, 500 mille euros."""
    if not said.endswith(tuple(language.linked_scales) or ("\0",)):
        return f"{said} {name}"
    link = language.link.get("vowel" if name.startswith(_VOWELS) else "") or language.link[""]
    return f"{said} {link}{name}"
