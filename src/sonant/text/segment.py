"""Text → paragraphs → sentences → source words. Every non-space character belongs to exactly one source word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from sonant.text.spans import Sentence, SourceWord

_WORD = re.compile(r"\S+")
_ENDS = frozenset(".!?…。！？")
_CLOSERS = "\"'”’»)]}*_"
_OPENERS = "\"'“‘«([{*_—–-"
_INITIALS = re.compile(r"(?:[A-Z]\.){2,}$")
# 7 lb. 3 oz.
_BEFORE_NUMBERS = frozenset(
    ("rs.", "ext.", "lb.", "lbs.", "oz.", "ft.", "hr.", "hrs.", "yd.", "tsp.", "tbsp.", "deg.", "approx.", "vol.")
)
# J.R.R. Tolkien goes on, "in D.C. He left" does not.
_STARTERS = frozenset(
    (
        "the", "a", "an", "he", "she", "it", "they", "we", "you", "i", "in", "on", "at", "but", "and", "so", "then",
        "this", "that", "these", "those", "his", "her", "their", "our", "my", "if", "when", "while", "after", "before",
        "as", "there", "here", "what", "who", "how", "why", "is", "was", "do", "does", "did", "no", "not", "yes",
    )
)  # fmt: skip
# A line this long without a full stop, followed by a lower-case letter, was wrapped by an editor, not ended.
_WRAPPED_LINE = 40
# A sentence without an end is cut here, so that work per sentence stays bounded.
_LONGEST_SENTENCE = 400


def source_words(text: str) -> list[SourceWord]:
    """Every whitespace-delimited word with its span, in order."""
    return [SourceWord(match.group(), match.start(), match.end()) for match in _WORD.finditer(text)]


def paragraphs(text: str) -> list[list[SourceWord]]:
    """Source words by paragraph: a line end closes one, unless the line was only wrapped."""
    found: list[list[SourceWord]] = []
    last: SourceWord | None = None
    line_start = 0
    for word in source_words(text):
        breaks = text.count("\n", last.end, word.start) if last else 1
        if last is None or (breaks and not is_wrapped(text, line_start, last, word, breaks)):
            found.append([])
        if breaks:
            line_start = word.start
        found[-1].append(word)
        last = word
    return found


def is_wrapped(text: str, line_start: int, last: SourceWord, word: SourceWord, breaks: int) -> bool:
    """Was the one line end between two words only an editor's? The line of `last` begins at `line_start`."""
    return (
        breaks == 1
        and last.end - line_start >= _WRAPPED_LINE
        and (last.text[-1].isalnum() or last.text[-1] in ",-’'")
        and text[word.start].islower()
    )


def sentences(text: str, abbreviations: Set[str] = frozenset()) -> Iterator[Sentence]:
    """Sentences in order. `abbreviations` are lower-case words with their final dot that do not end a sentence."""
    for paragraph in paragraphs(text):
        sentence = Sentence()
        for i, word in enumerate(paragraph):
            sentence.words.append(word)
            if i + 1 == len(paragraph):
                break
            ended = ends_sentence(word.text, paragraph[i + 1].text, abbreviations)
            if ended or len(sentence.words) >= _LONGEST_SENTENCE:
                yield sentence
                sentence = Sentence()
        sentence.paragraph_end = True
        yield sentence


def ends_sentence(word: str, following: str, abbreviations: Set[str]) -> bool:
    """Does a sentence end with `word` when `following` is the next one of its paragraph?"""
    bare = word.rstrip(_CLOSERS)
    if not bare or bare[-1] not in _ENDS:
        return False
    first = following.lstrip(_OPENERS)[:1]
    if first.islower():
        return False
    if bare[-1] != "." or bare.endswith(".."):
        return True
    core = bare.lstrip(_OPENERS).lower()
    if core in abbreviations or (core == "al." and following.startswith("(")):
        return False
    if core in _BEFORE_NUMBERS and first.isdecimal():
        return False
    if _INITIALS.match(bare.lstrip(_OPENERS)) and (first.isupper() or first.isdecimal()):
        return following.rstrip(",.").lower() in _STARTERS
    is_initial = len(core) == 2 and core[0].isalpha() and bare[-2].isupper() and core != "i."
    return not (is_initial and first.isupper())


def end_is_decided(word: str, following: str) -> bool:
    """Will `ends_sentence(word, following)` stay what it is, however `following`, still being written, goes on?"""
    bare = word.rstrip(_CLOSERS)
    if not bare or bare[-1] not in _ENDS:
        return True
    first = following.lstrip(_OPENERS)[:1]
    return bool(first) and (first.islower() or not _INITIALS.match(bare.lstrip(_OPENERS)))
