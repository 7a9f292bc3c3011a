"""Where an English sentence without a mark may be parted: before a word that begins a clause."""

from __future__ import annotations

from sonant.text.spans import SpokenWord

_BEGIN = frozenset((
    "because", "although", "though", "whereas", "while", "unless", "until", "which", "who", "whose", "when", "where",
    "if", "since",
))  # fmt: skip
_JOIN = frozenset(("and", "but", "or", "so", "yet"))
_SUBJECTS = frozenset((
    "i", "you", "he", "she", "it", "we", "they", "there", "this", "these", "that", "those", "then", "i'm", "you're",
    "he's", "she's", "it's", "we're", "they're", "i'll", "you'll", "we'll", "they'll", "i've", "you've", "we've",
    "they've",
))  # fmt: skip
"""Behind "and" they begin a clause, where a noun may belong to the one before."""
_HOLDS = frozenset((
    "in", "of", "to", "for", "with", "by", "from", "on", "at", "about", "through", "into", "over", "under", "as",
    "than", "and", "or", "but", "that", "not", "even", "just", "only", "especially", "particularly", "exactly",
    "ever", "no", "is", "are", "was", "were", "be", "been", "am", "those", "know", "knows", "knew", "see", "sees",
    "saw", "ask", "asks", "asked", "tell", "tells", "told", "wonder", "wonders", "wondered", "remember", "show",
    "shows", "showed", "decide", "decides", "decided", "learn", "learned", "find", "found", "guess", "matter",
    "matters",
))  # fmt: skip
"""Words that hold on to what follows: of which, even if, I know who."""


def starts_clause(before: SpokenWord, word: SpokenWord, after: SpokenWord) -> bool:
    """Would a speaker take breath before `word`?"""
    if _plain(before) in _HOLDS:
        return False
    return _plain(word) in _BEGIN or (_plain(word) in _JOIN and _plain(after) in _SUBJECTS)


def _plain(word: SpokenWord) -> str:
    return word.source.text.lower().replace("’", "'").strip("\"'“”‘()[]*_,;:.!?—…")
