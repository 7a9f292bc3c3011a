"""Signs between numbers and names: 5 - 3 = 2, 3 * 4, x < 5, x^2; and the words that British English adds to numbers."""

from __future__ import annotations

import re
from dataclasses import replace

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize.written_en import Bodies, Written, say
from sonant.text.spans import SAID, Token

_PLAIN_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_POWER = re.compile(r"(\d+|[A-Za-z]\w{0,9})\^(?:([-−]?)(\d{1,4})|([a-zA-Z]))$")
_BETWEEN = {"*": "times", "<": "less than", ">": "greater than", "<=": "less than or equal to",
            ">=": "greater than or equal to", "==": "equals", "!=": "not equal to", "/": "divided by",
            "->": "to", "=>": "to"}  # fmt: skip
_POWERS = {"2": "squared", "3": "cubed"}
_NUMBER = re.compile(r"[-−$£€]?\d[\d.,]*%?$")
_FORMULA = frozenset("=+×÷±√")


def operator(line: list[Written], i: int) -> list[Token] | None:
    """A sign that stands alone between two operands."""
    sign = line[i].lead + line[i].core + line[i].tail
    if not 0 < i < len(line) - 1:
        return None
    before, after = line[i - 1], line[i + 1]
    if before.tail or after.lead or not before.core or not after.core:
        return None
    counted = bool(_NUMBER.match(before.core)) and bool(_NUMBER.match(after.core))
    if sign in "-–" and counted:
        return _minus_or_to(line, i)
    if sign in "xX" and counted:
        return say(line[i], "by")
    if sign not in _BETWEEN or not (counted or (_is_operand(before.core) and _is_operand(after.core))):
        return None
    return say(line[i], _BETWEEN[sign])


def _is_operand(core: str) -> bool:
    return bool(_NUMBER.match(core)) or (len(core) <= 2 and core.isalnum())


def _minus_or_to(line: list[Written], i: int) -> list[Token] | None:
    """Minus in a formula, else "to" where the numbers rise, else a dash."""
    if any(word.core in _FORMULA for word in line):
        return say(line[i], "minus")
    return say(line[i], "to") if _size(line[i - 1].core) < _size(line[i + 1].core) else None


def _size(core: str) -> float:
    """The first number in a word, whatever stands around it; 0 without one."""
    found = _PLAIN_NUMBER.search(core)
    return float(found.group().replace(",", "")) if found else 0.0


def power(line: list[Written], i: int) -> Bodies | None:
    """x^2, 10^6."""
    match = _POWER.match(line[i].core)
    if not match:
        return None
    base, sign, exponent, letter = match.groups()
    said = _POWERS.get(exponent or "", "") if not sign else ""
    if not said:
        power_of = f"{'minus ' if sign else ''}{numbers.cardinal(exponent)}" if exponent else letter
        said = f"to the power of {power_of}"
    head = say(line[i], numbers.cardinal(base)) if base.isdecimal() else [Token(base, line[i].index)]
    return [[*head, *say(line[i], said)]]


_BELOW_HUNDRED = (
    r"(?:(?:twen|thir|for|fif|six|seven|eigh|nine)t(?:y|ieth)(?:-\w+)?|\w+teenth|\w+teen|ten|eleven|twelve|one|two|three|"
    r"four|five|six|seven|eight|nine|tenth|eleventh|twelfth|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)"
)
_AND = re.compile(rf"\b(hundred) (?={_BELOW_HUNDRED}\b)")
_LONG_AND = re.compile(
    rf"\b(thousand|million|billion|trillion) (?={_BELOW_HUNDRED}\b(?! (?:hundred|thousand|million|billion|trillion)))"
)
_METRES = re.compile(r"(met|lit)er(s?)\b")


def in_british(tokens: list[Token]) -> list[Token]:
    """One hundred and five, two thousand and one; kilometres and pence."""
    return [replace(token, text=_british(token.text)) if token.kind == SAID else token for token in tokens]


def _british(said: str) -> str:
    said = _LONG_AND.sub(r"\1 and ", _AND.sub(r"\1 and ", said))
    said = _METRES.sub(r"\1re\2", said)
    return said.removesuffix(" p") + " pence" if said.endswith(" p") else said
