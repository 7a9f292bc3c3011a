"""The second pass, word by word: the first rule that knows a word reads it, and no rule reads what another one wrote.

Some readings take several words ("$2 million", groups of digits); @, + and slashes are read in words that no rule took.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence, Set

from sonant.families.latent.normalize.addresses import email, web_address
from sonant.families.latent.normalize.characters import Appender
from sonant.families.latent.normalize.clock import date, time
from sonant.families.latent.normalize.codes import dashed_digits, digit_groups, ending_in, phone
from sonant.families.latent.normalize.languages import Language
from sonant.families.latent.normalize.money import amount, scaled_amount
from sonant.families.latent.normalize.numbers import number
from sonant.families.latent.normalize.shortened import abbreviation, elongation, rank
from sonant.families.latent.traced import Traced

Reading = Callable[[str, Language], "str | None"]
RULES: dict[str, Reading] = {
    "numbers": number, "currency": amount, "dashed-digits": dashed_digits, "emails": email, "urls": web_address,
    "abbreviations": abbreviation, "elongations": elongation, "phones": phone, "times": time, "dates": date,
}  # fmt: skip
"""In the order in which they are asked."""
DEFAULT_RULES = frozenset(RULES) - {"phones", "times", "dates"}
_MARKS = string.punctuation.replace("/", "")
# Units with a slash between letters keep it: mg/kg.
_UNITS = frozenset(
    (
        "km", "kg", "mg", "ml", "mL", "dL", "mol", "kJ", "kW", "kWh", "Hz", "min", "hr", "hrs", "sec", "ft", "lb",
        "lbs", "oz", "mi", "mph", "kph", "yd", "cm", "mm", "yr", "wk", "mo", "kcal", "rpm",
    )
)  # fmt: skip


def rewrite(text: Traced, language: Language, rules: Set[str]) -> Traced:
    """The text with every word read by the rules; words are parted by single spaces."""
    places = _places(text.text)
    words = [text.text[start:end] for start, end in places]
    out: list[Traced] = []
    at = 0
    while at < len(words):
        row = _row(out[-1].text if out else "", words, at, language, rules)
        if row:
            out += (text[slice(*places[at + i])].respelled(said) for i, said in enumerate(row))
            at += len(row)
        else:
            out.append(_word(text[slice(*places[at])], language, rules))
            at += 1
    return Traced.join(out, " ")


def read_word(word: str, language: Language, rules: Set[str]) -> str | None:
    """What a word is read as, None when no rule knows it."""
    for name, rule in RULES.items():
        if name in rules:
            said = rule(word, language)
            if said is not None:
                return said
    return None


def _word(word: Traced, language: Language, rules: Set[str]) -> Traced:
    said = read_word(word.text, language, rules)
    return _with_symbols(word, language, rules) if said is None else word.respelled(said)


def _row(
    before: str, words: Sequence[str], at: int, language: Language, rules: Set[str]
) -> list[str] | None:
    """What the words from `at` on are read as, one by one, if they are read together."""
    found: list[str] | None = None
    if "currency" in rules:
        found = scaled_amount(words[at : at + 2], language)
    if not found and "numbers" in rules:
        found = digit_groups(words, at, language) or ending_in(before, words[at : at + 2], language)
    if not found and "abbreviations" in rules:
        found = rank(words[at : at + 2], language)
    return found


def _places(text: str) -> list[tuple[int, int]]:
    found = []
    start = 0
    for word in text.split(" "):
        found.append((start, start + len(word)))
        start += len(word) + 1
    return found


def _with_symbols(word: Traced, language: Language, rules: Set[str]) -> Traced:
    """@ and + in words, "and/or" as two words; what they part has a turn of its own at the rules."""
    parted = _without_slashes(word)
    if parted is None and "@" not in word.text and "+" not in word.text:
        return word
    if parted is None:
        writer = Appender()
        for letter, start, end in zip(word.text, word.starts, word.ends, strict=True):
            name = {"@": language.at, "+": language.plus}.get(letter)
            if name:
                writer.say(name, start, end)
            else:
                writer.push(letter, start, end)
        parted = writer.written()
    pieces = [parted[start:end] for start, end in _places(parted.text)]
    said = [read_word(piece.text, language, rules) for piece in pieces]
    return Traced.join((p if s is None else p.respelled(s) for p, s in zip(pieces, said, strict=True)), " ")


def _without_slashes(word: Traced) -> Traced | None:
    """Spaces for slashes between words of two letters or more that are no units; None for any other word."""
    if "/" not in word.text:
        return None
    body = word.text.rstrip(_MARKS)
    parts = body.split("/")
    if len(parts) < 2 or not all(len(part) > 1 and part.isalpha() and part not in _UNITS for part in parts):
        return None
    return word[: len(body)].translate({"/": " "}) + word[len(body) :]
