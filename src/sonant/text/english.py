"""English text → pieces of phonemes, each word with its place in the original. The front end of English voices.

segment.py → normalize/en.py → phonemize/en.py → pieces.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from sonant.errors import InputError, UnknownName
from sonant.text.normalize.en import normalize as normalize_words
from sonant.text.normalize.tables_en import NOT_SENTENCE_END
from sonant.text.phonemize.en import Phonemizer
from sonant.text.pieces import Piece, PieceWord, SpokenSentence, gap, pack
from sonant.text.segment import sentences
from sonant.text.spans import MARK, Sentence, SourceWord, SpokenWord, Token

LANGUAGES = ("en-US", "en-GB")
# Kokoro's longest input without the two end marks.
LIMIT = 510
_SPACED_AFTER = frozenset(",;:.!?")

__all__ = ["LANGUAGES", "LIMIT", "Piece", "PieceWord", "SourceWord", "iter_pieces", "normalize", "phonemize", "pieces"]


def pieces(text: str, *, language: str = "en-US", limit: int = LIMIT) -> list[Piece]:
    """All pieces of `text`, in order; every source word is in them exactly once, unless it is longer than a piece.

    Text without anything to say gives []. Raises UnknownName for a language that is not in LANGUAGES and
    InputError for a limit below 16.
    """
    return list(iter_pieces(text, language=language, limit=limit))


def iter_pieces(text: str, *, language: str = "en-US", limit: int = LIMIT) -> Iterator[Piece]:
    """The same pieces one by one: the first is ready as soon as its sentences are read."""
    if limit < 16:
        raise InputError(f"limit {limit} is too small: a piece needs room for a word, at least 16 phonemes")
    return pack(_spoken(text, language), limit)


def phonemize(text: str, language: str = "en-US") -> str:
    """The phonemes of a text, one line per paragraph."""
    lines = [""]
    for sentence in _spoken(text, language):
        for word in sentence.words:
            lines[-1] += " " * gap(word, len(lines[-1])) + word.lead + word.phonemes + word.tail
        if sentence.paragraph_end and lines[-1]:
            lines.append("")
    return "\n".join(lines).rstrip("\n")


def normalize(text: str, language: str = "en-US") -> str:
    """The text as it is spoken: numbers, money, dates and abbreviations in words; one line per paragraph."""
    lines = [""]
    for sentence in sentences(text, NOT_SENTENCE_END):
        shown = _normalized_words(sentence, _check(language))
        lines[-1] = " ".join(filter(None, [lines[-1], *shown]))
        if sentence.paragraph_end and lines[-1]:
            lines.append("")
    return "\n".join(lines).rstrip("\n")


def _check(language: str) -> str:
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    return language


@lru_cache(maxsize=len(LANGUAGES))
def _phonemizer(language: str) -> Phonemizer:
    return Phonemizer(language)


def _spoken(text: str, language: str) -> Iterator[SpokenSentence]:
    phonemizer = _phonemizer(_check(language))
    for sentence in sentences(text, NOT_SENTENCE_END):
        tokens = normalize_words(sentence.words, british=language == "en-GB")
        words = tuple(_join(sentence, tokens, phonemizer.phonemize(tokens)))
        if not any(word.phonemes for word in words):
            # A row of stars or dots is a break, not a sentence: the model would babble on marks alone.
            words = tuple(SpokenWord(word.source) for word in words)
        yield SpokenSentence(words, sentence.paragraph_end)


def _join(sentence: Sentence, tokens: Sequence[Token], sounds: Sequence[str]) -> Iterator[SpokenWord]:
    """Tokens back into source words. Marks before the first sound lead, marks after the last one close."""
    at = 0
    for index, source in enumerate(sentence.words):
        first = at
        while at < len(tokens) and tokens[at].word == index:
            at += 1
        own, said = tokens[first:at], sounds[first:at]
        voiced = [i for i, token in enumerate(own) if token.kind != MARK and said[i]]
        if not voiced:
            # A mark on its own (a dash between spaces) has no letters, so it is all lead.
            yield SpokenWord(source, lead="".join(said))
            continue
        start, end = voiced[0], _group_end(own, voiced[-1])
        body = _glue(own[start:end], said[start:end])
        shown = _glue(own[start:end], [token.shown for token in own[start:end]])
        yield SpokenWord(source, "".join(said[:start]), body, "".join(said[end:]), shown)


def _group_end(tokens: Sequence[Token], last: int) -> int:
    """Past the last token that sounds and the glued ones whose sound it holds."""
    end = last + 1
    while end < len(tokens) and tokens[end].glued:
        end += 1
    return end


def _glue(tokens: Sequence[Token], parts: Sequence[str]) -> str:
    """Parts of one source word: glued ones and dashes touch, everything else is a word apart."""
    text = ""
    before: Token | None = None
    for token, part in zip(tokens, parts, strict=True):
        behind_dash = before is not None and before.kind == MARK and before.text not in _SPACED_AFTER
        touches = token.glued or token.kind == MARK or behind_dash
        text += part if touches or not text or not part else " " + part
        before = token
    return text


def _normalized_words(sentence: Sentence, language: str) -> Iterator[str]:
    tokens = normalize_words(sentence.words, british=language == "en-GB")
    at = 0
    for index in range(len(sentence.words)):
        first = at
        while at < len(tokens) and tokens[at].word == index:
            at += 1
        own = tokens[first:at]
        lead = 0
        while lead < len(own) and own[lead].kind == MARK:
            lead += 1
        shown = _glue(own[lead:], [token.shown for token in own[lead:]])
        yield "".join(token.text for token in own[:lead]) + shown
