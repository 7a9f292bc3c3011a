"""English words that one spelling shares and a part of speech alone cannot tell apart: read, lead, bass, tear, bow.

The tagger has spoken before; these rules look at neighbours and only act where they are sure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sonant.text.normalize.tables_en import word_set

_WINDOW = 8  # how far a word like "yesterday" reaches
_PAST = word_set("yesterday ago last previously once already recently just earlier was were had did then finally")
_PRESENT = word_set(
    "every always often usually never sometimes daily now today nowadays rarely regularly seldom tomorrow"
)
_BARE = word_set("to do don't did didn't does doesn't let let's please not")
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


_OBJECTS = word_set("a an the my your his its our their this these those it them him me us")


def settle(words: Sequence[str], tags: list[str]) -> dict[int, str]:
    """Correct `tags` in place; returns the spelling to look up instead, by index, where a tag is not enough."""
    respelled: dict[int, str] = {}
    for i, word in enumerate(words):
        lower = word.lower()
        if tags[i] == "NN" and _takes_an_object(words, tags, i):
            tags[i] = "VBZ" if lower.endswith("s") else "VBP"
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


def _takes_an_object(words: Sequence[str], tags: Sequence[str], i: int) -> bool:
    """They use an API: a noun cannot stand between a subject and an article."""
    if not i or i + 1 == len(words) or words[i + 1] not in _OBJECTS:
        return False
    return tags[i - 1] in ("NNP", "PRP", "MD", "TO") or words[i - 1].isupper()


def _two_before(words: Sequence[str], i: int) -> str:
    return words[i - 2].lower() if i > 1 and words[i - 1].lower() in ("a", "his", "her", "their") else ""


def _reading(words: Sequence[str], tags: Sequence[str], i: int) -> str:
    """ "I read" is past for the lexicon unless a habit says otherwise; "I recently read" is past although bare."""
    tag = tags[i]
    before = {word.lower() for word in words[max(0, i - 3) : i]}
    if tag not in ("VB", "VBP", "VBD") or not i or before & _BARE or "MD" in tags[max(0, i - 3) : i]:
        return "VB" if tag == "VBP" and before & _BARE else tag
    near = {word.lower() for word in words[max(0, i - _WINDOW) : i + _WINDOW + 1]}
    if near & _PAST:
        return "VBD" if tags[i - 1] in ("PRP", "RB", "NN", "NNP") else tag
    has_subject = words[i - 1].lower() in _SUBJECTS or words[i - 1].lower() in _PRESENT
    return "VB" if near & _PRESENT and has_subject else tag
