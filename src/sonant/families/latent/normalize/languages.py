"""The words of one language that signs and numbers are read with, from data/<code>.json.

They are the words that ptts 0.4.2 (MIT or Apache-2.0) says, since the models learned those. domains.txt is IANA's list
of top-level domains (November 2025), country_codes.txt the telephone codes of E.164.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"
CODES = ("en", "fr", "de", "es", "pt")


@dataclass(frozen=True, kw_only=True)
class Language:
    """Tables of one language; {n} stands for the number.

    scales: [value, said for one of it, said for n of it], the largest first. money: singular and plural by sign.
    linked_scales take `link` before a currency ("2 millions d'euros"). cents: how two decimals of an amount are read,
    where they are read apart. short_scales: what "bi" is behind one and behind several. shortest_range: the digits
    that numbers need for the dash between them to be read.
    """

    code: str
    at: str
    plus: str
    equals: str
    colon: str
    slash: str
    dash: str
    dot: str
    underscore: str
    about: str
    plus_or_minus: str
    love: str
    star: str
    number: str
    minus: str
    to: str
    degree: list[str]
    signs: dict[str, str]
    stars: list[str]
    powers: dict[str, str]
    digits: list[str]
    decimal: str
    point: str
    group: str
    scales: list[tuple[int, str, str]]
    scale_words: list[str]
    scale_letters: dict[str, str]
    linked_scales: list[str]
    link: dict[str, str]
    money: dict[str, list[str]]
    cents: dict[str, str]
    abbreviations: dict[str, str]
    ranks: dict[str, str]
    shortest_range: int
    short_scales: dict[str, list[str]] = field(default_factory=dict)


@cache
def language_of(code: str) -> Language:
    return Language(code=code, **json.loads((DATA / f"{code}.json").read_bytes()))


@cache
def word_list(name: str) -> frozenset[str]:
    """The words of data/<name>.txt."""
    return frozenset((DATA / f"{name}.txt").read_text(encoding="ascii").split())
