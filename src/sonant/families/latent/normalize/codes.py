"""Digits that are no quantity: phone numbers, codes in groups, the end of a card number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonant.families.latent.normalize.languages import Language, word_list
from sonant.families.latent.normalize.numbers import ENDS, spelled, without_end

_GROUP = re.compile("(?=.{1,8}$)[A-Z]*[0-9][0-9A-Z]*")
_DASHED = re.compile("[0-9]+(?:[-_][0-9]+){2,}")
_ENDING = ("ending", "ends", "ended")
_ENDING_CODE = re.compile("-(?=.*[0-9])[0-9A-Z-]+")
_PHONE = re.compile(rf"(?P<plus>\+?)(?P<number>[0-9]+)(?P<end>[{re.escape(ENDS)}]*)")
_SHORTEST_INTERNATIONAL = 6
# Groups of digits behind a country code, the last of them repeated.
_INTERNATIONAL = {"1": (3, 3, 4, 3), "34": (3,), "351": (3,)}
_MOBILE_DE, _CITY_DE = ("15", "16", "17"), ("30", "40", "69")


def digit_groups(words: Sequence[str], at: int, language: Language) -> list[str] | None:
    """Digits and capitals in groups, read one by one: three groups that are no years, or two of a phone number."""
    has_plus = words[at].startswith("+")
    groups: list[str] = []
    end = ""
    for number in range(at, len(words)):
        body, behind = without_end(words[number][has_plus and number == at :])
        if not _GROUP.fullmatch(body):
            break
        groups.append(body)
        end = behind
        if end:
            break
    are_years = all(len(group) == 4 and group[:2] in ("19", "20") for group in groups)
    is_phone = len(groups) == 2 and (has_plus or any(group[0] == "0" for group in groups))
    if not is_phone and (len(groups) < 3 or are_years):
        return None
    said = [spelled(group, language) + "," for group in groups]
    said[0] = f"{language.plus} {said[0]}" if has_plus else said[0]
    return [*said[:-1], said[-1][:-1] + end]


def ending_in(before: str, words: Sequence[str], language: Language) -> list[str] | None:
    """A card ending in -4098: the dash is no minus."""
    if before.lower() not in _ENDING or len(words) < 2 or words[0] != "in":
        return None
    code, end = without_end(words[1])
    return ["in", spelled(code[1:], language) + end] if _ENDING_CODE.fullmatch(code) else None


def dashed_digits(word: str, language: Language) -> str | None:
    """555-123-4567 → 555 123 4 5 6 7; a date stays."""
    body, end = without_end(word)
    if not _DASHED.fullmatch(body) or ("_" not in body and _is_date(body.split("-"))):
        return None
    groups = body.replace("_", f"- {language.underscore}-").split("-")
    said = (" ".join(group) if len(group) >= 4 and group.isdecimal() else group.strip() for group in groups)
    return " ".join(said) + end


def phone(word: str, language: Language) -> str | None:
    """A phone number in one run of digits, in the groups of its country."""
    match = _PHONE.fullmatch(word)
    if not match:
        return None
    number = match["number"]
    said = _international(number, language) if match["plus"] else _local(number, language)
    return said + match["end"] if said else None


def _international(number: str, language: Language) -> str | None:
    code = next((number[:size] for size in (1, 2, 3) if number[:size] in word_list("country_codes")), "")
    if len(number) < _SHORTEST_INTERNATIONAL or not code:
        return None
    rest = number[len(code) :]
    if code in _INTERNATIONAL:
        said = _grouped(rest, _INTERNATIONAL[code], language)
    elif code == "44":
        said = _british(rest, language)
    elif code == "49":
        said = _german(rest, language)
    else:
        said = _grouped(rest, (2 - len(rest) % 2, 2), language, dashes=language.code != "fr")
    return f"{language.plus} {code} {said}"


def _local(number: str, language: Language) -> str | None:
    if number[0] != "0":
        return None
    if language.code == "fr" and len(number) == 10:
        return _grouped(number, (2,), language, dashes=False)
    if language.code == "en" and len(number) == 11:
        return _british(number, language)
    if language.code == "de" and len(number) in (10, 11):
        return _german(number, language)
    return None


def _british(number: str, language: Language) -> str:
    """London has 2 + 4 + 4 digits behind the zero, the rest of the country 3 + 3 + 4."""
    zero = number.startswith("0")
    sizes = (2 + zero, 4) if number[zero:].startswith("2") else (3 + zero, 3, 4)
    return _grouped(number, sizes, language)


def _german(number: str, language: Language) -> str:
    """The code of a city or a network, then pairs."""
    zero = number.startswith("0")
    if number[zero:].startswith(_MOBILE_DE):
        return _grouped(number, (2 + zero, 1, 1, 2), language)
    return _grouped(number, ((2 if number[zero:].startswith(_CITY_DE) else 3) + zero, 2), language)


def _grouped(number: str, sizes: Sequence[int], language: Language, *, dashes: bool = True) -> str:
    """Groups of these sizes, the last one repeated; dashes make the model read digit by digit."""
    groups = []
    at = turn = 0
    while at < len(number):
        size = sizes[min(turn, len(sizes) - 1)]
        digits = list(number[at : at + size])
        if dashes and language.code == "en":
            digits = ["zero" if digit == "0" else digit for digit in digits]
        groups.append(("-" if dashes else "").join(digits))
        at, turn = at + size, turn + 1
    return " ".join(groups)


def _is_date(groups: Sequence[str]) -> bool:
    """2024-05-12, 12-05-2024, 12-05-24, with day and month in any order."""
    if len(groups) != 3:
        return False
    first, second, third = groups
    return (len(first) == 4 and _is_day_month(second, third)) or (
        len(third) in (2, 4) and _is_day_month(first, second)
    )


def _is_day_month(first: str, second: str) -> bool:
    if len(first) > 2 or len(second) > 2:
        return False
    low, high = sorted((int(first), int(second)))
    return 1 <= low <= 12 and high <= 31
