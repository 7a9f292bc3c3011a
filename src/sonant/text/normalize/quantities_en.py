"""English quantities: money, percent, units, times, dates, ranges, ordinals, fractions, versions, codes.

`quantity` is a rule of normalize/en.py: it matches every core with a digit that it can read as a whole and leaves the
rest (codes such as B2B) to the plain words.
"""

from __future__ import annotations

import re

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.characters import FRACTIONS
from sonant.text.normalize.written_en import Written, marks
from sonant.text.spans import MARK, SAID, SPELLED, Token

Bodies = list[list[Token]]

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_CURRENCY = r"US\$|[$£€¥₹₩]"
_QUANTITY = re.compile(
    rf"(?P<sign>[-–+±~≈]?)(?P<currency>{_CURRENCY})?(?P<inner>[-–]?)(?P<number>{_NUMBER})"
    rf"(?:(?P<dash>[-–—])(?:{_CURRENCY})?(?P<second>{_NUMBER}))?(?P<suffix>\D*)$"
)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?(?P<half>[ap]\.?m\.?)?$", re.IGNORECASE
)
_RANGE_DASH = re.compile("[-–—]")
_FRACTION = re.compile(r"(\d{1,3})/(\d{1,3})$")
_MIXED = re.compile(rf"(\d*)([{''.join(FRACTIONS)}])(\D*)$")
_VERSION = re.compile(r"v?\d+(?:\.\d+){2,}$", re.IGNORECASE)
_PHONE = re.compile(r"(?:\+?\d{1,3}[-.])?\(?\d{3}\)?[-.]?\d{3}[-.]\d{4}$|\d{3}-\d{4}$")
_ORDINAL = re.compile(r"(\d[\d,]*)(st|nd|rd|th)(?:-(.*))?$", re.IGNORECASE)
_DECADE = re.compile(r"'?(\d*)(\d0)'?s$")
_PLURAL = re.compile(r"(\d[\d,]*)'?s$")
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})$")
_SLASH_DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})$")
_CODE = re.compile(
    r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:(?:st|nd|rd|th|s)(?![^\W\d_]))?|[^\W\d_²³]+(?:'[^\W\d_²³]+)*|.", re.DOTALL
)
_DENOMINATORS = frozenset((2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 32, 64, 100))
_SIGNS = {"-": "minus", "–": "minus", "+": "plus", "±": "plus or minus", "~": "about", "≈": "about"}


def say(written: Written, text: str) -> list[Token]:
    """Plain spoken words of one source word."""
    return [Token(text, written.index, SAID, tag="CD")]


def quantity(line: list[Written], i: int) -> Bodies | None:
    """Any core with a digit (or a vulgar fraction); None when there is nothing to count in it."""
    written = line[i]
    core = written.core
    if not any(letter.isdecimal() or letter in FRACTIONS for letter in core):
        return None
    if core.startswith("#") and core[1:].isdecimal():
        return [[Token("number", written.index, SAID), *say(written, numbers.cardinal(core[1:]))]]
    for rule in (_clock, _calendar_day, _zip_code, _phone, _version, _fraction, _ordinal, _decade):
        if (found := rule(line, i)) is not None:
            return found
    match = _QUANTITY.match(core)
    if match:
        found = _money(line, i, match) if match["currency"] else _measure(line, i, match)
        if found is not None:
            return found
    return [_code(written)]


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


def _clock(line: list[Written], i: int) -> Bodies | None:
    """5:03, 9:30PM, 10:30-11:45."""
    sides = _RANGE_DASH.split(line[i].core)
    matches = [match for side in sides if (match := _TIME.match(side)) and int(match["hour"]) <= 24]
    is_clock = any(match["minute"] or match["half"] for match in matches)
    if len(matches) != len(sides) or not is_clock or len(sides) > 2:
        return None
    following = line[i + 1].lower if i + 1 < len(line) and not line[i].tail else ""
    body: list[Token] = []
    for match in matches:
        body += [Token("to", line[i].index, SAID)] if body else []
        body += say(line[i], _time_words(match, following)) + _half(line[i], match["half"])
    return [body]


def _time_words(match: re.Match[str], following: str) -> str:
    hour, minute, second = match["hour"], match["minute"], match["second"]
    said = [numbers.cardinal(hour)]
    if minute and minute != "00":
        said.append(f"oh {numbers.cardinal(minute)}" if minute[0] == "0" else numbers.cardinal(minute))
    elif minute and not match["half"] and not second and following not in ("am", "pm", "a.m", "p.m", "o'clock"):
        said.append("o'clock" if 0 < int(hour) <= 12 else "hundred")
    if second:
        said.append(f"and {numbers.cardinal(second)} seconds")
    return " ".join(said)


def _half(written: Written, half: str | None) -> list[Token]:
    if not half:
        return []
    letters = half.replace(".", "").upper()
    return [Token(letters, written.index, SPELLED, spoken=" ".join(letters.lower()))]


def _calendar_day(line: list[Written], i: int) -> Bodies | None:
    """August 15 → August fifteenth."""
    core = line[i].core
    if not core.isdecimal() or len(core) > 2 or not 1 <= int(core) <= 31 or not i:
        return None
    before = line[i - 1]
    if before.core not in tables.MONTH_NAMES or before.tail not in ("", "."):
        return None
    return [say(line[i], numbers.ordinal(core))]


def numeric_date(line: list[Written], i: int, *, day_first: bool) -> Bodies | None:
    """2024-05-03 and 5/3/2024 → May third, twenty twenty-four."""
    core = line[i].core
    if match := _ISO_DATE.match(core):
        year, month, day = match.groups()
    elif match := _SLASH_DATE.match(core):
        month, day, year = match.groups()
        if (day_first or int(month) > 12) and int(day) <= 12:
            month, day = day, month
    else:
        return None
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    index = line[i].index
    spoken_year = numbers.year(year) if len(year) == 4 else plain_number(year)
    return [
        [
            Token(tables.MONTHS[int(month) - 1], index, tag="NNP"),
            *say(line[i], numbers.ordinal(day)),
            Token(",", index, MARK),
            *say(line[i], spoken_year),
        ]
    ]


def _zip_code(line: list[Written], i: int) -> Bodies | None:
    core = line[i].core
    if not i or len(core) != 5 or not core.isdecimal() or line[i - 1].core not in tables.STATES:
        return None
    return [say(line[i], numbers.spell_digits(core, "oh"))]


def _phone(line: list[Written], i: int) -> Bodies | None:
    after = line[i + 1].core if i + 1 < len(line) else ""
    is_area = line[i].lead.endswith("(") and line[i].tail == ")" and len(line[i].core) == 3
    if not (_PHONE.match(line[i].core) or (is_area and _PHONE.match(after))):
        return None
    body: list[Token] = []
    for group in re.findall(r"\d+", line[i].core):
        body += [*([Token(",", line[i].index, MARK)] if body else []), *say(line[i], numbers.spell_digits(group, "oh"))]
    return [body]


def _version(line: list[Written], i: int) -> Bodies | None:
    core = line[i].core
    if not _VERSION.match(core):
        return None
    parts = core.lstrip("vV").split(".")
    said = " point ".join(plain_number(part) if len(part) < 4 else numbers.cardinal(part) for part in parts)
    head = [Token("version", line[i].index)] if core[0] in "vV" else []
    return [[*head, *say(line[i], said)]]


def _fraction(line: list[Written], i: int) -> Bodies | None:
    core = line[i].core
    whole, suffix = "", ""
    if mixed := _MIXED.match(core):
        whole, core, suffix = mixed[1], FRACTIONS[mixed[2]], mixed[3]
    match = _FRACTION.match(core)
    if not match:
        return None
    top, bottom = match.groups()
    if not mixed and (int(bottom) not in _DENOMINATORS or int(top) > int(bottom)):
        return [say(line[i], f"{numbers.cardinal(top)} {numbers.cardinal(bottom)}")]  # 9/11, 24/7, 50/50
    said = numbers.fraction(top, bottom)
    if whole:
        said = f"{numbers.cardinal(whole)} and {said.replace('one half', 'a half')}"
    unit = tables.UNITS.get(suffix)
    if suffix and not unit:
        return None
    return [say(line[i], f"{said} {unit[1]}" if unit else said)]


def _ordinal(line: list[Written], i: int) -> Bodies | None:
    match = _ORDINAL.match(line[i].core)
    if not match:
        return None
    rest = [Token(part, line[i].index) for part in re.findall(r"[^\W\d_]+", match[3] or "")]
    return [[*say(line[i], numbers.ordinal(match[1].replace(",", ""))), *rest]]


def _decade(line: list[Written], i: int) -> Bodies | None:
    core = line[i].core
    if match := _DECADE.match(core):
        century, tens = match.groups()
        digits = century + tens
        if len(digits) == 4:
            return [say(line[i], numbers.plural(numbers.year(digits)))]
        return [say(line[i], numbers.plural(numbers.cardinal(digits)))]
    if core[0] == "'" and core[1:].isdecimal():
        return [say(line[i], plain_number(core[1:]))]
    if (match := _PLURAL.match(core)) and (len(match[1]) > 2 or "'" in core):
        return [say(line[i], numbers.plural(plain_number(match[1])))]
    return None


def _money(line: list[Written], i: int, match: re.Match[str]) -> Bodies | None:
    """$5 → five dollars; $5.30 → five dollars and thirty cents; $5.3 billion → five point three billion dollars."""
    one, many, cent, cents = tables.CURRENCIES[match["currency"]]
    suffix = match["suffix"]
    scale = tables.SCALES.get(suffix, "")
    rest = [] if scale else _trailing(line[i], suffix)
    if rest is None:
        return None
    sign = match["sign"] or match["inner"]
    said = f"{_SIGNS[sign]} " if sign else ""
    amount = match["number"]
    after = line[i + 1] if i + 1 < len(line) and not line[i].tail and not suffix else None
    if match["second"]:
        said += f"{money_number(amount)} to {money_number(match['second'])}"
    elif not scale and not (after and after.lower in tables.SCALE_WORDS):
        return [[*say(line[i], said + _coins(amount, one, many, cent, cents)), *rest]]
    else:
        said += money_number(amount)
    if after and after.lower in tables.SCALE_WORDS:
        return [say(line[i], said), say(after, f"{after.lower} {many}")]
    return [[*say(line[i], f"{said} {scale} {many}" if scale else f"{said} {many}"), *rest]]


def money_number(number: str) -> str:
    """Amounts are never years."""
    whole, _, fraction = number.replace(",", "").partition(".")
    return numbers.decimal(whole, fraction) if fraction else numbers.cardinal(whole)


def _coins(amount: str, one: str, many: str, cent: str, cents: str) -> str:
    whole, _, fraction = amount.replace(",", "").partition(".")
    if len(fraction) > 2 or not cent:
        return f"{money_number(amount)} {many}"
    small = int(fraction.ljust(2, "0")) if fraction else 0
    big = whole.lstrip("0")
    parts = []
    if big or not small:
        parts.append(f"{numbers.cardinal(whole)} {one if big == '1' else many}")
    if small:
        parts.append(f"{numbers.cardinal(str(small))} {cent if small == 1 else cents}")
    return " and ".join(parts)


def _measure(line: list[Written], i: int, match: re.Match[str]) -> Bodies | None:
    """A number or a range of numbers with or without a unit, the unit attached or in the next word."""
    written, suffix = line[i], match["suffix"]
    number, second = match["number"], match["second"]
    if second and match["dash"] == "-" and number[0] == "0":
        return None
    sign = match["sign"]
    said = f"{_SIGNS[sign]} " if sign else ""
    # 5-10 is a range, 50-50 is not.
    joint = " " if number == second else " to "
    said += plain_number(number) + (joint + plain_number(second) if second else "")
    is_one = number == "1" and not second
    if suffix in tables.SCALES and suffix not in "mMtbB":
        return [say(written, f"{said} {tables.SCALES[suffix]}")]
    if unit := tables.UNITS.get(suffix):
        return [say(written, f"{said} {unit[0] if is_one else unit[1]}")]
    if suffix.lower().replace(".", "") in ("am", "pm"):
        return [[*say(written, said), *_half(written, suffix)]]
    if suffix:
        rest = _trailing(written, suffix)
        return None if rest is None else [[*say(written, said), *rest]]
    unit = None if written.tail else _unit_word(line, i + 1)
    if unit:
        line[i + 1].drop_dot()
        return [say(written, said), say(line[i + 1], unit[0] if is_one else unit[1])]
    return [say(written, said)]


def _unit_word(line: list[Written], i: int) -> tuple[str, str] | None:
    """The unit that a whole word is, unless it is more often another word there."""
    if i >= len(line) or line[i].lead:
        return None
    core = line[i].core
    if core == "in":
        feet_before = i > 2 and line[i - 2].core in ("ft", "feet", "foot")
        return tables.UNITS[core] if feet_before or (line[i].tail and line[i].tail[0] in ".,;)") else None
    if core == "m":
        return tables.UNITS[core]
    return None if core in tables.ONLY_ATTACHED else tables.UNITS.get(core)


def _trailing(written: Written, suffix: str) -> list[Token] | None:
    """What follows a number in its word: -year-old, /month; None when it is no word of its own."""
    if not suffix:
        return []
    if suffix[0] not in "-/–—" or not suffix[1:2].isalpha():
        return None
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", suffix)
    per = [Token("per", written.index)] if suffix[0] == "/" else []
    if suffix[0] == "/" and suffix[1:] in tables.UNITS:
        return [*per, Token(tables.UNITS[suffix[1:]][0], written.index, SAID)]
    return [*per, *(Token(word, written.index) for word in words)]


def _code(written: Written) -> list[Token]:
    """Letters and digits mixed: MP3, COVID-19, H2O, 3-D."""
    tokens: list[Token] = []
    parts = _CODE.findall(written.core)
    for at, part in enumerate(parts):
        before, after = parts[at - 1] if at else "", parts[at + 1] if at + 1 < len(parts) else ""
        if part[0].isdecimal():
            tokens += say(written, _code_number(part, at, parts))
        elif part[0].isalpha():
            tokens.append(_code_word(part, written.index, bool(after or at)))
        elif part == ":" and before.isdecimal() and after.isdecimal():
            tokens.append(Token("to", written.index, SAID))
        elif part == "." and at and after:
            tokens.append(Token("dot" if after.isalpha() else "point", written.index, SAID))
        elif part in ",;:()[]—–" and after:
            tokens += marks(part, written.index, opening=False)
        elif tables.SYMBOLS.get(part):
            tokens.append(Token(tables.SYMBOLS[part], written.index, SAID))
    return tokens


def _code_number(part: str, at: int, parts: list[str]) -> str:
    if match := _ORDINAL.match(part):
        return numbers.ordinal(match[1].replace(",", ""))
    # mid-1990s has a year in it, F-16s a name.
    is_counted = not at or (at > 1 and parts[at - 1] == "-" and parts[at - 2].islower())
    say_number = plain_number if is_counted else numbers.grouped
    if part.endswith("s"):
        return numbers.plural(say_number(part[:-1]))
    between = 0 < at < len(parts) - 1 and parts[at - 1][-1].isalpha() and parts[at + 1][0].isalpha()
    if part == "2" and between:
        return "to"
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
