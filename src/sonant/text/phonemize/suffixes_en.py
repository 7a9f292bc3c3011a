"""English endings on a known stem: -s, -ed, -ing. Sources: the rules of English phonology, as misaki applies them."""

from __future__ import annotations

import re

# After these sounds an American t before a vowel becomes a tap.
_TAPPED_AFTER = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
_DOUBLED = re.compile(r"([bcdgklmnprstvxz])\1ing$|cking$")


def plural_sound(stem: str, *, british: bool) -> str:
    """The stem with -s or -'s."""
    if stem[-1] in "ptkfθ":
        return stem + "s"
    if stem[-1] in "szʃʒʧʤ":
        return stem + ("ɪz" if british else "ᵻz")
    return stem + "z"


def past_sound(stem: str, *, british: bool) -> str:
    """The stem with -ed."""
    weak = "ɪd" if british else "ᵻd"
    if stem[-1] in "pkfθʃsʧ":
        return stem + "t"
    if stem[-1] == "d":
        return stem + weak
    if stem[-1] != "t":
        return stem + "d"
    if british or len(stem) < 2:
        return stem + "ɪd"
    return stem[:-1] + "ɾᵻd" if stem[-2] in _TAPPED_AFTER else stem + "ᵻd"


def gerund_sound(stem: str, *, british: bool) -> str | None:
    """The stem with -ing; None where British English may add an r that the stem does not show."""
    if british:
        return None if stem[-1] in "əː" else stem + "ɪŋ"
    if len(stem) > 1 and stem[-1] == "t" and stem[-2] in _TAPPED_AFTER:
        return stem[:-1] + "ɾɪŋ"
    return stem + "ɪŋ"


def plural_stems(word: str) -> list[str]:
    """Spellings that `word` may be the -s form of, best first."""
    if len(word) < 3 or not word.endswith("s"):
        return []
    stems = [] if word.endswith("ss") else [word[:-1]]
    if word.endswith("'s") or (len(word) > 4 and word.endswith("es") and not word.endswith("ies")):
        stems.append(word[:-2])
    if len(word) > 4 and word.endswith("ies"):
        stems.append(word[:-3] + "y")
    return stems


def past_stems(word: str) -> list[str]:
    """Spellings that `word` may be the -ed form of, best first."""
    if len(word) < 4 or not word.endswith("d"):
        return []
    stems = [] if word.endswith("dd") else [word[:-1]]
    if len(word) > 4 and word.endswith("ed") and not word.endswith("eed"):
        stems.append(word[:-2])
    return stems


def gerund_stems(word: str) -> list[str]:
    """Spellings that `word` may be the -ing form of, best first."""
    if len(word) < 5 or not word.endswith("ing"):
        return []
    stems = [word[:-3]] if len(word) > 5 else []
    stems.append(word[:-3] + "e")
    if len(word) > 5 and _DOUBLED.search(word):
        stems.append(word[:-4])
    return stems
