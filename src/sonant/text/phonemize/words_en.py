"""One English word → phonemes: special words, the lexicon, endings, spelling. No context but what the caller passes.

The rules follow misaki's lexicon step, so that a voice trained on its phonemes gets the same ones; `None` means that
the word is not known and the caller has to guess (oov_en.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from sonant.text.phonemize import suffixes_en as suffixes
from sonant.text.phonemize.lexicon import GOLD, Lexicon
from sonant.text.phonemize.stress import PRIMARY, SECONDARY, restress

_SYMBOLS = {"%": "percent", "&": "and", "+": "plus", "@": "at"}
_PARENTS = {"VB": "VERB", "NN": "NOUN", "RB": "ADV", "JJ": "ADJ"}


@dataclass(frozen=True, slots=True)
class Ahead:
    """What follows a word: does a vowel (None: a pause or nothing), and is the next word "to"."""

    vowel: bool | None = None
    to: bool = False


def parent_tag(tag: str | None) -> str | None:
    """NOUN of NNS and so on: the names under which the lexicon keeps variants."""
    return _PARENTS.get(tag[:2], tag) if tag else tag


class Words:
    """Pronounces words of one accent from its lexicon."""

    def __init__(self, lexicon: Lexicon, *, british: bool) -> None:
        self.lexicon, self.british = lexicon, british

    def say(self, word: str, tag: str | None, ahead: Ahead) -> str | None:
        """Phonemes of a word as written, its case included; None when it is unknown."""
        level = None if word == word.lower() else 2 if word == word.upper() else 0.5
        return self._special(word, tag or "", level, ahead) or self._regular(word, tag, level, ahead)

    def plain(self, word: str) -> str | None:
        """Phonemes of a lower-case word outside any sentence: the words of a number."""
        if word == "oh":
            return self._look_up("O", None, -2, None)
        if word in self.lexicon:
            return self._look_up(word, None, -2 if word == "point" else None, None)
        return self._ending(word, None, None, Ahead())

    def spell(self, word: str) -> str | None:
        """Letter by letter, the last one stressed; None when a letter has no name in the lexicon."""
        names = [self._gold(letter.upper()) for letter in word if letter.isalpha()]
        if not names or None in names:
            return None
        return PRIMARY.join(restress("".join(name or "" for name in names), 0).rsplit(SECONDARY, 1))

    def _gold(self, word: str) -> str | None:
        entry = self.lexicon.get(word)
        return entry.variants["DEFAULT"] if entry and entry.rank == GOLD else None

    def _special(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        """The small words whose sound depends on their neighbours, and symbols."""
        if word in _SYMBOLS:
            return self._look_up(_SYMBOLS[word], None, None, ahead)
        rule = _SPECIAL.get(word.lower())
        return rule(self, word, tag, level, ahead) if rule else None

    def _regular(self, word: str, tag: str | None, level: float | None, ahead: Ahead) -> str | None:
        lower = word.lower()
        if self._is_only_capitalised(word, lower, tag) and (
            lower in self.lexicon or self._ending(lower, tag, level, ahead)
        ):
            word = lower
        if self._is_known(word):
            return self._look_up(word, tag, level, ahead)
        if word.endswith("s'") and self._is_known(word[:-2] + "'s"):
            return self._look_up(word[:-2] + "'s", tag, level, ahead)
        if word.endswith("'") and len(word) > 1:
            word = word[:-1]
            if self._is_known(word):
                return self._look_up(word, tag, level, ahead)
        return self._ending(word, tag, level, ahead)

    def _is_only_capitalised(self, word: str, lower: str, tag: str | None) -> bool:
        """A capital that marks a sentence start or a heading, not a name with a sound of its own."""
        if len(word) < 2 or word == lower or not word.replace("'", "").isalpha():
            return False
        if (tag == "NNP" and len(word) <= 7) or word in self.lexicon:
            return False
        return word == word.upper() or word[1:] == lower[1:]

    def _is_known(self, word: str) -> bool:
        if word in self.lexicon or word in _SYMBOLS:
            return True
        if not (word.isascii() and word.isalpha()):
            return False
        if len(word) == 1 or (word == word.upper() and self._gold(word.lower()) is not None):
            return True
        return word[1:] == word[1:].upper()

    def _look_up(self, word: str, tag: str | None, level: float | None, ahead: Ahead | None) -> str | None:
        entry = self.lexicon.get(word)
        is_acronym = False
        if word == word.upper() and not (entry and entry.rank == GOLD):
            word, is_acronym = word.lower(), tag == "NNP"
            entry = self.lexicon.get(word)
        said = None
        if entry and (entry.rank == GOLD or not is_acronym):
            said = entry.say(tag, parent_tag(tag), at_end=ahead is not None and ahead.vowel is None)
        if said is None or (is_acronym and PRIMARY not in said):
            spelled = self.spell(word)
            if spelled is not None:
                return spelled
        return None if said is None else restress(said, level)

    def _ending(self, word: str, tag: str | None, level: float | None, ahead: Ahead) -> str | None:
        """A known stem with -s, -ed or -ing."""
        british = self.british
        raised = 0.5 if level is None else level
        for stems, sound, stem_level in (
            (suffixes.plural_stems(word), suffixes.plural_sound, level),
            (suffixes.past_stems(word), suffixes.past_sound, level),
            (suffixes.gerund_stems(word), suffixes.gerund_sound, raised),
        ):
            stem = next((stem for stem in stems if self._is_known(stem)), None)
            said = self._look_up(stem, tag, stem_level, ahead) if stem else None
            if said and (whole := sound(said, british=british)):
                return whole
        return None

    def _article(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        return "ɐ" if tag == "DT" else "ˈA"

    def _an(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        return self.spell(word) if word == "AN" and tag.startswith("NN") else "ɐn"

    def _am(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        if word == "AM" and tag.startswith("NN"):
            return self.spell(word)
        strong = ahead.vowel is None or word != "am" or (level is not None and level > 0)
        return self._gold("am") if strong else "ɐm"

    def _i(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        return SECONDARY + "I" if word == "I" and tag == "PRP" else None

    def _by(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        return "bˈI" if tag.startswith("RB") else None

    def _to(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        if word == "TO" and tag not in ("TO", "IN"):
            return None
        return self._gold("to") if ahead.vowel is None else "tʊ" if ahead.vowel else "tə"

    def _in(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        if word == "IN" and tag == "NNP":
            return None
        return ("" if tag == "IN" and ahead.vowel is not None else PRIMARY) + "ɪn"

    def _the(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        if word == "THE" and tag != "DT":
            return None
        return "ði" if ahead.vowel else "ðə"

    def _versus(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        return self._look_up("versus", None, None, ahead) if tag == "IN" else None

    def _used(self, word: str, tag: str, level: float | None, ahead: Ahead) -> str | None:
        entry = self.lexicon.get("used")
        if entry is None:
            return None
        return entry.variants["VBD" if tag in ("VBD", "JJ") and ahead.to else "DEFAULT"]


_SPECIAL = {
    "a": Words._article, "an": Words._an, "am": Words._am, "i": Words._i, "by": Words._by, "to": Words._to,
    "in": Words._in, "the": Words._the, "vs": Words._versus, "used": Words._used,
}  # fmt: skip
