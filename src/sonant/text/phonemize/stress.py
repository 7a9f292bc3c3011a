"""Stress marks on a phoneme string, in misaki's scale: how far a word is raised or lowered.

-2 no stress, -1 lowered, -0.5 and 0 at most secondary, 0.5 at least secondary, 1 raised, 2 at least primary.
"""

from __future__ import annotations

PRIMARY, SECONDARY = "ˈ", "ˌ"
VOWELS = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ")
CONSONANTS = frozenset("bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ")
_LONG = frozenset("AIOQWYʤʧ")


def restress(phonemes: str, level: float | None) -> str:
    """`phonemes` with its stress moved to `level`; None leaves it alone."""
    if level is None:
        return phonemes
    has_primary, has_secondary = PRIMARY in phonemes, SECONDARY in phonemes
    if level < -1:
        return phonemes.replace(PRIMARY, "").replace(SECONDARY, "")
    if level == -1 or (level <= 0 and has_primary):
        return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)
    if not has_primary and not has_secondary:
        if level < 0:
            return phonemes
        return _before_vowel(phonemes, PRIMARY if level > 1 else SECONDARY)
    if level >= 1 and not has_primary:
        return phonemes.replace(SECONDARY, PRIMARY)
    return phonemes


def _before_vowel(phonemes: str, mark: str) -> str:
    """The mark before the first vowel; a word without vowels carries none."""
    for at, letter in enumerate(phonemes):
        if letter in VOWELS:
            return phonemes[:at] + mark + phonemes[at:]
    return phonemes


def weight(phonemes: str) -> int:
    """How heavy a part of a compound is; the lighter half gives way."""
    return sum(2 if letter in _LONG else 1 for letter in phonemes)
