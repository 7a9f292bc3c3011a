"""Times of day and dates in digits: 3:45PM → 3-45 PM, 20/12/2015 → 20-12 2015."""

from __future__ import annotations

import re

from sonant.families.latent.normalize.languages import Language
from sonant.families.latent.normalize.numbers import ENDS

_END = f"(?P<end>[{re.escape(ENDS)}]*)"
_HOUR = "(?P<hour>[0-9]{1,2})"
_MINUTES = "(?P<minutes>[0-9]{2,4})"
_ENGLISH = re.compile(f"{_HOUR}(?P<mark>[:.]){_MINUTES}(?P<half>AM|PM|am|pm)?{_END}")
_FRENCH = re.compile(f"{_HOUR}[:hH]{_MINUTES}{_END}")
_GERMAN = re.compile(f"{_HOUR}[:.]{_MINUTES}{_END}")
_DATE = re.compile(f"([0-9]{{1,2}})/([0-9]{{1,2}})(?:/([0-9]{{2,4}}))?{_END}")


def time(word: str, language: Language) -> str | None:
    """A time as it is written in the language; Spanish and Portuguese ones the model reads itself."""
    if language.code == "en":
        return _english(_ENGLISH.fullmatch(word))
    if language.code == "fr" and (match := _FRENCH.fullmatch(word)):
        return f"{_hour(match)}h{match['minutes']}{match['end']}"
    if language.code == "de" and (match := _GERMAN.fullmatch(word)):
        minutes = "" if match["minutes"] == "00" else f" {match['minutes']}"
        return f"{_hour(match)} Uhr{minutes}{match['end']}"
    return None


def date(word: str, language: Language) -> str | None:
    """Day and month, or month and day, and perhaps a year."""
    match = _DATE.fullmatch(word)
    if not match:
        return None
    return f"{match[1]}-{match[2]}{' ' + match[3] if match[3] else ''}{match['end']}"


def _english(match: re.Match[str] | None) -> str | None:
    """With a full stop only before AM and PM: 12.30 may be a decimal."""
    if not match or (match["mark"] == "." and not match["half"]):
        return None
    minutes = "" if match["minutes"] == "00" else f"-{match['minutes']}"
    half = f" {match['half'].upper()}" if match["half"] else ""
    return f"{_hour(match)}{minutes}{half}{match['end']}"


def _hour(match: re.Match[str]) -> str:
    hour = match["hour"]
    return hour[1:] if len(hour) == 2 and hour[0] == "0" else hour
