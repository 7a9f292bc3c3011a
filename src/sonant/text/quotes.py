"""Short quotations and parentheses: they are spoken in one go."""

from __future__ import annotations

LONGEST_CHARS = 120
"""A quotation is kept whole up to here; beyond, or at a line end, its opening mark is taken for a stray one."""

_CLOSING = {'"': '"', "“": "”", "«": "»", "(": ")", "[": "]", "「": "」", "『": "』", "（": "）", "`": "`"}
_BEFORE_WORDS = frozenset('"(`')
"""They open something at the start of a word only: not in 5" and :( ."""
_BEFORE_MARKS = frozenset("([{“‘«—–-*_")


def quotations(text: str) -> list[tuple[int, int | None]]:
    """Where each quotation opens and closes, in order, not nested; None at the end for one that may still close."""
    found: list[tuple[int, int | None]] = []
    opened, closing = -1, ""
    for at, sign in enumerate(text):
        if opened >= 0 and (sign == "\n" or at - opened > LONGEST_CHARS):
            opened = -1
        if opened >= 0:
            if sign == closing:
                found.append((opened, at))
                opened = -1
        elif sign in _CLOSING and (sign not in _BEFORE_WORDS or _begins_word(text, at)):
            opened, closing = at, _CLOSING[sign]
    if opened >= 0:
        found.append((opened, None))
    return found


def _begins_word(text: str, at: int) -> bool:
    return at == 0 or text[at - 1].isspace() or text[at - 1] in _BEFORE_MARKS
