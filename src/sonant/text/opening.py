"""A short first piece, so that the first sound comes soon: the first sentence, a long one only as far as a good place.

The words and their sounds stay as they are; only the piece ends there. Which words begin a clause is the language's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sonant.text.pieces import SpokenSentence, joined_size
from sonant.text.spans import SpokenWord

SHORT_SIZE = 45
"""Phonemes of a sentence that is not cut: about three seconds."""
NEAR_SIZE = 75
"""A good place beyond so many phonemes gives way to a fair one before them."""
LEAST_WORDS = 3
"""Spoken ones, on both sides of a cut: fewer sound lost."""

_MARKS = frozenset(",;:—…)”")
StartsClause = Callable[[SpokenWord, SpokenWord, SpokenWord], bool]
"""Of the word before, the word, and the one after: would a speaker take breath between the first two?"""


def _nowhere(before: SpokenWord, word: SpokenWord, after: SpokenWord) -> bool:
    return False


def open_short(
    sentences: Iterable[SpokenSentence], starts_clause: StartsClause = _nowhere
) -> Iterator[SpokenSentence]:
    """The same sentences, the first that sounds as a piece of its own, or as two parts of which the first is one."""
    opened = False
    for sentence in sentences:
        if opened or not any(word.phonemes for word in sentence.words):
            yield sentence
            continue
        opened = True
        cut = opening(sentence.words, starts_clause)
        if cut < len(sentence.words):
            yield replace(sentence, words=sentence.words[:cut], paragraph_end=False, piece_end=True)
            yield replace(sentence, words=sentence.words[cut:], pause_before_s=0.0)
        else:
            yield replace(sentence, piece_end=True)


def opening(words: tuple[SpokenWord, ...], starts_clause: StartsClause = _nowhere) -> int:
    """How many of the words go into the first piece: all of a short sentence, and where no place is good."""
    if joined_size(words) <= SHORT_SIZE:
        return len(words)
    marks, clauses = [], []
    for at in range(1, len(words)):
        if _spoken(words[:at]) < LEAST_WORDS or _spoken(words[at:]) < LEAST_WORDS or words[at].hugs:
            continue
        if _ends_in_mark(words[at - 1]):
            marks.append(at)
        elif at + 1 < len(words) and starts_clause(words[at - 1], words[at], words[at + 1]):
            clauses.append(at)
    near = [at for places in (marks, clauses) for at in places[:1] if joined_size(words[:at]) <= NEAR_SIZE]
    return near[0] if near else min([*marks, *clauses], default=len(words))


def _spoken(words: tuple[SpokenWord, ...]) -> int:
    """Words as they are said: "$5" are two."""
    return sum(len(word.phonemes.split()) for word in words)


def _ends_in_mark(word: SpokenWord) -> bool:
    """Also one that stands alone, as a dash between spaces does."""
    sound = word.tail if word.phonemes else word.lead
    return sound[-1:] in _MARKS and bool(sound)
