"""English times and dates: 5:03 pm, August 15, 15 August 1947, 2024-05-03, 31.12.2021, Mon-Fri."""

from __future__ import annotations

import re

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.written_en import Bodies, Written, plain_number, say
from sonant.text.spans import MARK, SAID, SPELLED, Token

_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?:(?P<sign>[:.])(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?(?P<half>[ap]\.?m\.?)?$",
    re.IGNORECASE,
)
_RANGE_DASH = re.compile("[-–—]")
_HALF = re.compile(r"[ap]\.?m\.?$", re.IGNORECASE)
_HALF_TO = re.compile(r"([ap]\.?m\.?)[-–—](.+)$", re.IGNORECASE)
_DAYS = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?(?:[-–—](\d{1,2})(?:st|nd|rd|th)?)?$")
_YEAR = re.compile(r"[12]\d{3}$")
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?:T(?P<time>\d\d:\d\d)\S{0,20})?$"
)
_SLASHED = re.compile(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4}|\d{2})$")
_DOTTED = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})$")
_NAMED = re.compile(r"(?P<day>\d{1,2})-(?P<name>[A-Z][a-z]{2,8})-(?P<year>\d{4}|\d{2})$")
_SPAN = re.compile(r"([A-Z][a-z]{2,3})\.?[-–—]([A-Z][a-z]{2,3})$")
# After these an hour is whole without "o'clock".
_WHOLE_BEFORE = tables.word_set("am pm a.m p.m o'clock noon midnight hours")
_RATIO_WORDS = tables.word_set("ratio scale odds mix mixture split dilution")


def clock(line: list[Written], i: int) -> Bodies | None:
    """5:03, 9:30PM, 9.30am, 10:30-11:45."""
    core = line[i].core
    sides = _RANGE_DASH.split(core)
    following = line[i + 1].lower if i + 1 < len(line) and not line[i].tail else ""
    matches = [match for side in sides if (match := _time(side, following)) and int(match["hour"]) <= 24]
    is_clock = any(match["minute"] or match["half"] for match in matches)
    if len(matches) != len(sides) or not is_clock or len(sides) > 2 or following in _RATIO_WORDS:
        return None
    body: list[Token] = []
    for match in matches:
        body += [Token("to", line[i].index, SAID)] if body else []
        body += say(line[i], _time_words(match, following)) + half(line[i], match["half"])
    return [body]


def _time(side: str, following: str) -> re.Match[str] | None:
    """A point parts hours and minutes only before am and pm."""
    match = _TIME.match(side)
    if match and match["sign"] == "." and not match["half"] and following not in ("am", "pm", "a.m", "p.m"):
        return None
    return match


def _time_words(match: re.Match[str], following: str) -> str:
    hour, minute, second = match["hour"], match["minute"], match["second"]
    said = [numbers.cardinal(hour)]
    if minute and minute != "00":
        said.append(f"oh {numbers.cardinal(minute)}" if minute[0] == "0" else numbers.cardinal(minute))
    elif minute and not match["half"] and not second and following not in _WHOLE_BEFORE:
        said.append("o'clock" if 0 < int(hour) <= 12 else "hundred")
    if second and second != "00":
        said.append(f"oh {numbers.cardinal(second)}" if second[0] == "0" else numbers.cardinal(second))
    return " ".join(said)


def half(written: Written, letters: str | None) -> list[Token]:
    """am, p.m. letter by letter."""
    if not letters:
        return []
    letters = letters.replace(".", "").upper()
    return [Token(letters, written.index, SPELLED, spoken=" ".join(letters.lower()))]


def day_half(line: list[Written], i: int) -> Bodies | None:
    """am, p.m. after a time; the a.m.–5 of "9 a.m.–5 p.m."."""
    before, core = line[i - 1].core if i else "", line[i].core
    if (match := _HALF_TO.match(core)) and before[-1:].isdecimal() and (time := _TIME.match(match[2])):
        said = _time_words(time, "am")
        return [[*half(line[i], match[1]), Token("to", line[i].index, SAID), *say(line[i], said)]]
    if not _HALF.match(core) or not (before[-1:].isdecimal() or "." in core):
        return None
    line[i].drop_dot()
    return [half(line[i], core)]


def _month(core: str) -> str | None:
    """The full name of a month as written, with a capital."""
    if core not in tables.MONTH_NAMES:
        return None
    return core if core in tables.MONTHS else tables.ABBREVIATIONS[core.lower() + "."][0]


def calendar_day(line: list[Written], i: int, *, british: bool = False) -> Bodies | None:
    """August 15 → August fifteenth; 15 August → the fifteenth of August; June 10-12 → tenth to twelfth."""
    match = _DAYS.match(line[i].core)
    if not match or not all(1 <= int(day) <= 31 for day in match.groups() if day):
        return None
    days = " to ".join(numbers.ordinal(day) for day in match.groups() if day)
    if i and _month(line[i - 1].core) and line[i - 1].tail in ("", "."):
        return [say(line[i], f"the {days}" if british else days)]
    after = line[i + 1] if i + 1 < len(line) and not line[i].tail and not line[i + 1].lead else None
    if not after or not (name := _month(after.core)) or line[i].lead:
        return None
    year = line[i + 2].core if i + 2 < len(line) and not after.tail.strip(".") else ""
    if not i and not _YEAR.match(year) and name in ("March", "May"):
        return None
    after.drop_dot()
    article = "" if i and line[i - 1].lower == "the" else "the "
    return [say(line[i], f"{article}{days} of"), [Token(name, after.index, tag="NNP")]]


def numeric_date(line: list[Written], i: int, *, british: bool) -> Bodies | None:
    """2024-05-03, 5/3/2024, 3.5.2024, 3-May-2024 → May third, twenty twenty-four."""
    core, index = line[i].core, line[i].index
    match = _YEAR_FIRST.match(core) or _SLASHED.match(core) or _DOTTED.match(core) or _NAMED.match(core)
    if not match:
        return None
    found = match.groupdict()
    day, year = found["day"], found["year"]
    if "name" in found:
        name = _month(found["name"])
    else:
        month = found["month"]
        if match.re is _SLASHED and (british or int(month) > 12) and int(day) <= 12:
            month, day = day, month
        elif match.re is _SLASHED and british and int(month) <= 12 < int(day):
            pass
        name = tables.MONTHS[int(month) - 1] if 1 <= int(month) <= 12 else None
    if not name or not 1 <= int(day) <= 31:
        return None
    spoken_year = numbers.year(year) if len(year) == 4 else plain_number(year)
    date = [Token(name, index, tag="NNP"), *say(line[i], numbers.ordinal(day))]
    if british:
        article = "" if i and line[i - 1].lower == "the" else "the "
        date = [*say(line[i], f"{article}{numbers.ordinal(day)} of"), Token(name, index, tag="NNP")]
    date += [Token(",", index, MARK), *say(line[i], spoken_year)]
    if found.get("time") and (time := _TIME.match(found["time"])):
        date += [Token(",", index, MARK), *say(line[i], _time_words(time, ""))]
    return [date]


def short_name(line: list[Written], i: int) -> Bodies | None:
    """Mon-Fri, Sept 3, Sun, Jan 5: days and months cut short without a dot."""
    core, index = line[i].core, line[i].index
    if (match := _SPAN.match(core)) and (names := [_short(part) for part in match.groups()]) and all(names):
        return [[Token(names[0] or "", index), Token("to", index, SAID), Token(names[1] or "", index)]]
    name = _short(core)
    if not name or core in tables.MONTHS or line[i].tail not in ("", ","):
        return None
    after = line[i + 1].core if i + 1 < len(line) else ""
    is_month = core in tables.MONTH_NAMES
    if after[:1].isdecimal() and (is_month or line[i].tail == ","):
        return [[Token(name, index, tag="NNP")]]
    return [[Token(name, index, tag="NNP")]] if not is_month and line[i].tail and _month(after) else None


def _short(core: str) -> str | None:
    if core in tables.MONTH_NAMES:
        return _month(core)
    found = tables.ABBREVIATIONS.get(core.lower() + ".") or tables.DAY_NAMES.get(core)
    return found[0] if found and found[0].endswith("day") and core[:1].isupper() else None
