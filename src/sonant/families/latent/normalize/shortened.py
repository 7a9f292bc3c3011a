"""Words that are shorter or longer than they should be: Sgt. → Sergeant, sooo → so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sonant.families.latent.normalize.languages import Language
from sonant.families.latent.normalize.numbers import without_end
from sonant.text.phonemize import lexicon

_LETTERS = re.compile("[A-Za-z]+")
_STRETCHED = re.compile("([aeiouyhwAEIOUYHW])\\1{2,}")


def abbreviation(word: str, language: Language) -> str | None:
    """A word of the table, its full stop part of it."""
    body, end = without_end(word)
    if end.startswith("."):
        body, end = body + ".", end[1:]
    full = language.abbreviations.get(body)
    return full + end if full else None


def rank(words: Sequence[str], language: Language) -> list[str] | None:
    """Lt Col, which would be read word by word."""
    if len(words) < 2:
        return None
    second, end = without_end(words[1])
    full = language.ranks.get(f"{words[0]} {second}")
    return (full + end).split(" ") if full else None


def elongation(word: str, language: Language) -> str | None:
    """An English word with a letter held (sooo): one is left, or two of a vowel where that is the word (gooood).

    ptts leaves one always, and makes gooood a god.
    """
    body, end = without_end(word)
    if language.code != "en" or not _LETTERS.fullmatch(body) or body.isupper() or not _STRETCHED.search(body):
        return None
    short = _STRETCHED.sub(r"\1", body)
    double = _STRETCHED.sub(_doubled_vowel, body)
    known = _english_words().get(double.lower()) if double != short else None
    return (double if known and known.rank == lexicon.GOLD else short) + end


def _doubled_vowel(match: re.Match[str]) -> str:
    return match[1] * (2 if match[1] in "aeiouAEIOU" else 1)


@cache
def _english_words() -> lexicon.Lexicon:
    return lexicon.Lexicon(Path(lexicon.__file__).parents[1] / "data" / "en-us.lex")
