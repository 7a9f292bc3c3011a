"""English quantities: numbers with units and signs, ranges, percent, ordinals, decades, fractions, heights.

`quantity` is a rule of normalize/en.py: it matches every core with a digit. Times and dates are in times_en.py, money
in money_en.py, numbers that are names in codes_en.py.
"""

from __future__ import annotations

import re

from sonant.text.normalize import codes_en as codes
from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.characters import FRACTIONS
from sonant.text.normalize.money_en import CURRENCY, behind, coded, money
from sonant.text.normalize.times_en import clock, half
from sonant.text.normalize.written_en import (
    ORDINAL,
    Bodies,
    Written,
    is_attribute,
    plain_number,
    say,
    trailing,
    unit_of,
)
from sonant.text.spans import SAID, Token

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_SIGN = r"[-–+±~≈<>≤≥√]"
_QUANTITY = re.compile(
    rf"(?P<sign>{_SIGN}?)(?P<currency>{CURRENCY})?(?P<inner>[-–]?)(?P<number>{_NUMBER})"
    rf"(?:(?P<dash>[-–—])(?:{CURRENCY})?(?P<second>{_NUMBER}))?(?P<suffix>\D*|\D*/\D*[²³23]|[^\W\d]+[²³])$"
)
_UNIT_RANGE = re.compile(rf"({_NUMBER})(%|°[CF]?|[a-zA-Z]{{1,3}})[-–—]({_NUMBER})\2$")
_COMMA_AMOUNT = re.compile(r"([€£$]?)(\d+),(\d{2})([€£$]?)$")
_GROUPED = re.compile(r"\d{1,3}(?:(?:\.\d{3}){2,}|(?:'\d{3})+|(?:_\d{3})+)$")
_MANY = re.compile(r"1(0{1,3})s$")
_MANIES = {1: "tens", 2: "hundreds", 3: "thousands"}
_SCIENTIFIC = re.compile(r"(\d+(?:\.\d+)?)[eE]([-+−]?)(\d{1,3})$")
_FRACTION = re.compile(r"(\d{1,3})/(\d{1,3})$")
_MIXED = re.compile(rf"(\d*)([{''.join(FRACTIONS)}])(\D*)$")
_DECADE = re.compile(r"'?(\d*)(\d0)'?s$")
_PLURAL = re.compile(r"(\d[\d,]*)'?s$")
_HEIGHT = re.compile(r"(\d{1,2})'(\d{1,2})?$")
_DENOMINATORS = frozenset((2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 32, 64, 100))
_OPERATORS = frozenset("+-=*/<>×÷^–")
_PICTURE_WORDS = frozenset(("2K", "4K", "5K", "8K"))


def quantity(line: list[Written], i: int) -> Bodies | None:
    """Any core with a digit (or a vulgar fraction); None when there is nothing to count in it."""
    written = line[i]
    core = written.core
    if not any(letter.isdecimal() or letter in FRACTIONS for letter in core):
        return coded(line, i) if core in tables.CURRENCY_CODES else None
    if core.startswith("#") and core[1:].isdecimal():
        number = plain_number(core[1:]) if len(core) == 5 else numbers.cardinal(core[1:])
        return [[Token("number", written.index, SAID), *say(written, number)]]
    if _GROUPED.match(core):  # 1.000.000, 1'000, 1_000
        return [say(written, numbers.cardinal(re.sub(r"\D", "", core)))]
    for rule in _RULES:
        if (found := rule(line, i)) is not None:
            return found
    core = _with_point(line, i)
    match = _QUANTITY.match(core)
    if match:
        sign = match["sign"] or match["inner"]
        found = money(line, i, match, sign) if match["currency"] else None
        if not match["currency"] and not sign and not match["second"]:
            found = behind(line, i, match["number"], match["suffix"])
        if found is None and not match["currency"]:
            found = _measure(line, i, match)
        if found is not None:
            return found
    return [codes.code(written)]


def _with_point(line: list[Written], i: int) -> str:
    """3,50 € is written with a comma in Europe."""
    core = line[i].core
    after = line[i + 1].core if i + 1 < len(line) else ""
    comma = _COMMA_AMOUNT.match(core)
    if comma and (comma[1] or comma[4] or after in ("€", "£", "EUR")):
        return f"{comma[1]}{comma[2]}.{comma[3]}{comma[4]}"
    return core


def _fraction(line: list[Written], i: int) -> Bodies | None:
    core = line[i].core
    whole, suffix = "", ""
    if mixed := _MIXED.match(core):
        whole, core, suffix = mixed[1], FRACTIONS[mixed[2]], mixed[3]
    match = _FRACTION.match(core)
    if not match:
        return _whole_and_fraction(line, i)
    top, bottom = match.groups()
    if not mixed and (int(bottom) not in _DENOMINATORS or int(top) >= int(bottom)):
        return [say(line[i], f"{numbers.cardinal(top)} {numbers.cardinal(bottom)}")]  # 9/11, 24/7, 50/50
    said = numbers.fraction(top, bottom)
    if whole:
        said = f"{numbers.cardinal(whole)} and {said.replace('one half', 'a half')}"
    unit = tables.UNITS.get(suffix)
    rest = [] if unit else trailing(line[i], suffix)
    if rest is None:
        return None
    return [[*say(line[i], f"{said} {unit[1]}" if unit else said), *rest]]


def _whole_and_fraction(line: list[Written], i: int) -> Bodies | None:
    """5 1/2 → five and a half."""
    after = line[i + 1] if i + 1 < len(line) else None
    if not line[i].core.isdecimal() or line[i].tail or not after or after.lead:
        return None
    match = _FRACTION.match(FRACTIONS.get(after.core, after.core))
    if not match or int(match[2]) not in _DENOMINATORS or not 0 < int(match[1]) < int(match[2]):
        return None
    said = numbers.fraction(*match.groups()).replace("one half", "a half")
    return [say(line[i], f"{numbers.cardinal(line[i].core)} and"), say(after, said)]


def _ordinal(line: list[Written], i: int) -> Bodies | None:
    match = ORDINAL.match(line[i].core)
    if not match:
        return None
    rest = [Token(part, line[i].index) for part in re.findall(r"[^\W\d_]+", match[3] or "")]
    return [[*say(line[i], numbers.ordinal(match[1].replace(",", ""))), *rest]]


def _decade(line: list[Written], i: int) -> Bodies | None:
    core = line[i].core
    if (match := _MANY.match(core)) and i + 1 < len(line) and line[i + 1].core == "of":
        return [say(line[i], _MANIES[len(match[1])])]
    if match := _DECADE.match(core):
        century, tens = match.groups()
        digits = century + tens
        if len(digits) == 4:
            return [say(line[i], numbers.plural(numbers.year(digits)))]
        return [say(line[i], numbers.plural(numbers.cardinal(digits)))]
    if core[0] == "'" and core[1:].isdecimal():
        return [say(line[i], plain_number(core[1:]))]
    if (match := _PLURAL.match(core)) and (len(match[1]) > 2 or "'" in core):
        said = numbers.grouped(match[1]) if len(match[1]) == 3 else plain_number(match[1])
        return [say(line[i], numbers.plural(said))]
    return None


def _height(line: list[Written], i: int) -> Bodies | None:
    """5'11" and 6' are feet, 15" is inches where no quotation is open."""
    written = line[i]
    match = _HEIGHT.match(written.core)
    if match and (match[2] or not written.core.endswith("''")):
        said = f"{numbers.cardinal(match[1])} {'foot' if match[1] == '1' else 'feet'}"
        if match[2]:
            said += f" {numbers.cardinal(match[2])} {'inch' if match[2] == '1' else 'inches'}"
            written.tail = written.tail.removeprefix('"')
        return [say(written, said)]
    is_inches = written.tail.startswith('"') and re.match(r"[\d.]+$", written.core) and not written.lead
    if is_inches and not _is_quoted(line, i):
        written.tail = written.tail[1:]
        unit = "inch" if written.core == "1" or is_attribute(line, i, i) else "inches"
        return [say(written, f"{plain_number(written.core)} {unit}")]
    return None


def _is_quoted(line: list[Written], i: int) -> bool:
    return sum((word.lead + word.tail).count('"') for word in line[:i]) % 2 == 1


def _between(line: list[Written], i: int) -> Bodies | None:
    """10%–20%, 1.5e-3, and 4K, which is no thousand."""
    core = line[i].core
    if (match := _UNIT_RANGE.match(core)) and match[2] in tables.UNITS:
        unit = tables.UNITS[match[2]][1]
        return [say(line[i], f"{plain_number(match[1])} {unit} to {plain_number(match[3])} {unit}")]
    if match := _SCIENTIFIC.match(core):
        power = ("minus " if match[2] not in ("", "+") else "") + numbers.cardinal(match[3])
        return [say(line[i], f"{plain_number(match[1])} times ten to the {power}")]
    if core in _PICTURE_WORDS:
        return [[*say(line[i], numbers.cardinal(core[0])), Token("K", line[i].index)]]
    return None


_RULES = (
    clock,
    codes.zip_code,
    codes.phone,
    codes.version,
    coded,
    _fraction,
    _ordinal,
    _decade,
    _height,
    _between,
    codes.named,
)


def _measure(line: list[Written], i: int, match: re.Match[str]) -> Bodies | None:
    """A number or a range of numbers with or without a unit, the unit attached or in the next word."""
    written, suffix = line[i], match["suffix"]
    number, second = match["number"], match["second"]
    if second and match["dash"] == "-" and number[0] == "0" and second[0] != "0" and "." not in number:
        return None
    sign = match["sign"] or match["inner"]
    said = f"{tables.SIGNS[sign]} " if sign else ""
    # 5-10 is a range, 50-50 is not.
    joint = " " if number == second else " to "
    said += plain_number(number)
    if second:  # 2008-09
        is_short = len(number) == 4 and len(second) == 2 and second[0] == "0"
        said += joint + (numbers.spell_digits(second, "oh") if is_short else plain_number(second))
    is_one = number == "1" and not second
    bare = suffix.removesuffix("+")
    if bare in tables.SCALES and (bare not in "mtbBT" or (bare in "BT" and "." in number)):
        return [say(written, f"{said} {tables.SCALES[bare]}{' plus' if bare != suffix else ''}")]
    if suffix == "x" and i + 1 < len(line) and line[i + 1].lead + line[i + 1].core in _OPERATORS:
        return [[*say(written, said), Token("x", written.index, tag="NN")]]
    if unit := unit_of(suffix):
        return [say(written, f"{said} {unit[not (is_one or is_attribute(line, i, i))]}")]
    if suffix.lower().replace(".", "") in ("am", "pm"):
        return [[*say(written, said), *half(written, suffix)]]
    if suffix:
        rest = trailing(written, suffix)
        return None if rest is None else [[*say(written, said), *rest]]
    unit = None if written.tail else _unit_word(line, i + 1)
    if unit and line[i + 1].core in ("sq", "cu") and (of := _unit_word(line, i + 2)):
        line[i + 1].drop_dot()
        return [say(written, said), say(line[i + 1], unit[0]), say(line[i + 2], of[not is_one])]
    if unit:
        line[i + 1].drop_dot()
        return [say(written, said), say(line[i + 1], unit[not (is_one or is_attribute(line, i, i + 1))])]
    return [say(written, said)]


def _unit_word(line: list[Written], i: int) -> tuple[str, str] | None:
    """The unit that a whole word is, unless it is more often another word there."""
    if i >= len(line) or line[i].lead:
        return None
    core = line[i].core
    if core == "in":
        feet_before = i > 2 and line[i - 2].core in ("ft", "feet", "foot")
        return tables.UNITS[core] if feet_before or (line[i].tail and line[i].tail[0] in ".,;)") else None
    if core in ("m", "€", "£"):
        return tables.UNITS[core]
    return None if core in tables.ONLY_ATTACHED else unit_of(core)
