"""English words that one spelling shares and a part of speech alone cannot tell apart: read, lead, bass, tear, bow.

The tagger has spoken before; these rules look at neighbours and only act where they are sure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sonant.text.normalize.tables_en import word_set

_WINDOW = 8  # how far a word like "yesterday" reaches
_PAST = word_set("yesterday ago last previously once already earlier was were had did then finally")
_PRESENT = word_set(
    "every always often usually never sometimes daily now today nowadays rarely regularly seldom tomorrow"
)
_SUBJECTS = word_set("i you we they who people")

# word → (words before, words after, tag or spelling that gives the other sound)
_NEIGHBOURS = {
    "lead": (
        word_set("molten liquid unleaded metallic"),
        word_set("pipe pipes paint poisoning acid oxide bullet bullets weight weights shot ore sheet balloon"),
        "=led",
    ),
    "bass": (
        word_set("double electric upright plays playing played"),
        word_set("guitar guitars guitarist drum drums player players line lines clef note notes solo riff"),
        "JJ",
    ),
    "tear": (frozenset(), word_set("down up apart off away gas-free open"), "VB"),
    "tears": (frozenset(), word_set("down apart off open"), "VB"),
    "bow": (word_set("take took takes"), word_set("down before"), "VB"),
    "close": (word_set("very so too how quite"), word_set("to by"), "JJ"),
    "wind": (frozenset(), word_set("down up"), "VB"),
}


def settle(words: Sequence[str], tags: list[str]) -> dict[int, str]:
    """Correct `tags` in place; returns the spelling to look up instead, by index, where a tag is not enough."""
    respelled: dict[int, str] = {}
    for i, word in enumerate(words):
        lower = word.lower()
        if lower in ("read", "reread"):
            tags[i] = _reading(words, tags, i)
        elif lower in _NEIGHBOURS:
            before, after, answer = _NEIGHBOURS[lower]
            previous = words[i - 1].lower() if i else ""
            following = words[i + 1].lower() if i + 1 < len(words) else ""
            if following in after or previous in before or (lower == "bow" and _two_before(words, i) in before):
                if answer.startswith("="):
                    respelled[i] = answer[1:]
                elif lower != "close" or tags[i] not in ("VB", "VBP") or previous in before:
                    tags[i] = answer
    return respelled


def _two_before(words: Sequence[str], i: int) -> str:
    return words[i - 2].lower() if i > 1 and words[i - 1].lower() in ("a", "his", "her", "their") else ""


def _reading(words: Sequence[str], tags: Sequence[str], i: int) -> str:
    """A bare "I read" is past for the lexicon; a habit or a past around it decides."""
    tag = tags[i]
    if tag not in ("VBP", "VBD") or not i:
        return tag
    if tags[i - 1] in ("TO", "MD") or words[i - 1].lower() in ("do", "don't", "to"):
        return "VB"
    near = [word.lower() for word in words[max(0, i - _WINDOW) : i + _WINDOW + 1]]
    past, present = (not names.isdisjoint(near) for names in (_PAST, _PRESENT))
    if present and not past and (words[i - 1].lower() in _SUBJECTS or words[i - 1].lower() in _PRESENT):
        return "VB"
    return tag
