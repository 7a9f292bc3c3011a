"""English text → pieces of phonemes, each word with its place in the original. The front end of English voices.

reading.py → segment.py → normalize/en.py → phonemize/en.py → cues.py → pieces.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from sonant.errors import InputError, UnknownName
from sonant.text.cues import CueReader
from sonant.text.normalize.clauses_en import starts_clause
from sonant.text.normalize.en import normalize as normalize_words
from sonant.text.normalize.given_en import Known, Stretch
from sonant.text.normalize.tables_en import NOT_SENTENCE_END
from sonant.text.opening import open_short
from sonant.text.phonemize.en import Phonemizer
from sonant.text.pieces import Piece, PieceWord, SpokenSentence, gap, pack
from sonant.text.reading import AS_WRITTEN, Reading
from sonant.text.script import Script
from sonant.text.segment import sentences
from sonant.text.spans import MARK, Sentence, SourceWord, SpokenWord, Token

LANGUAGES = ("en-US", "en-GB")
# Kokoro's longest input without the two end marks.
LIMIT = 510
_SPACED_AFTER = frozenset(",;:.!?")

__all__ = [
    "LANGUAGES", "LIMIT", "Piece", "PieceWord", "Reading", "SourceWord", "iter_pieces", "normalize", "phonemize",
    "pieces",
]  # fmt: skip


def pieces(text: str, *, language: str = "en-US", limit: int = LIMIT, reading: Reading = AS_WRITTEN) -> list[Piece]:
    """All pieces of `text`, in order; every source word is in them exactly once, unless it is longer than a piece.

    Text without anything to say gives []. Raises UnknownName for a language that is not in LANGUAGES, InputError for a
    limit below 16, TextError for markup that cannot be read.
    """
    return list(iter_pieces(text, language=language, limit=limit, reading=reading))


def iter_pieces(
    text: str,
    *,
    language: str = "en-US",
    limit: int = LIMIT,
    reading: Reading = AS_WRITTEN,
    first_piece: str = "full",
) -> Iterator[Piece]:
    """The same pieces one by one: the first is ready as soon as its sentences are read. first_piece short: see
    opening.py."""
    if limit < 16:
        raise InputError(f"limit {limit} is too small: a piece needs room for a word, at least 16 phonemes")
    spoken = _spoken(reading.script(text), language, reading)
    return pack(open_short(spoken, starts_clause) if first_piece == "short" else spoken, limit)


def phonemize(text: str, language: str = "en-US", *, reading: Reading = AS_WRITTEN) -> str:
    """The phonemes of a text, one line per paragraph."""
    lines = [""]
    for sentence in _spoken(reading.script(text), language, reading):
        for word in sentence.words:
            lines[-1] += " " * gap(word, len(lines[-1])) + word.lead + word.phonemes + word.tail
        if sentence.paragraph_end and lines[-1]:
            lines.append("")
    return "\n".join(lines).rstrip("\n")


def normalize(text: str, language: str = "en-US", *, reading: Reading = AS_WRITTEN) -> str:
    """The text as it is spoken: numbers, money, dates and abbreviations in words; one line per paragraph."""
    script = reading.script(text)
    british = _check(language) == "en-GB"
    lines = [""]
    given = _GivenWords(script)
    for sentence in sentences(script.visible, NOT_SENTENCE_END):
        known = Known(given.of(sentence), reading.lexicon)
        shown = _shown_words(sentence, normalize_words(sentence.words, british=british, known=known))
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


def _spoken(script: Script, language: str, reading: Reading) -> Iterator[SpokenSentence]:
    """Sentences with their sounds, cut where the text has a pause or another speed."""
    phonemizer = _phonemizer(_check(language))
    cues, given = CueReader(script, reading.paragraph_pause_s, reading.heading_pause_s), _GivenWords(script)
    for sentence in sentences(script.visible, NOT_SENTENCE_END):
        known = Known(given.of(sentence), reading.lexicon)
        tokens = normalize_words(sentence.words, british=language == "en-GB", known=known)
        words = tuple(_join(sentence, tokens, phonemizer.phonemize(tokens)))
        yield from cues.cut(words, paragraph_end=sentence.paragraph_end)
    yield from cues.rest()


class _GivenWords:
    """The given phonemes of a script, handed out sentence by sentence."""

    def __init__(self, script: Script) -> None:
        self._given, self._at = script.given, 0

    def of(self, sentence: Sentence) -> dict[int, list[Stretch]]:
        found: dict[int, list[Stretch]] = {}
        if self._at == len(self._given):
            return found
        for index, word in enumerate(sentence.words):
            while self._at < len(self._given) and self._given[self._at].start < word.end:
                given = self._given[self._at]
                stretch = Stretch(given.start - word.start, given.end - word.start, given.phonemes)
                found.setdefault(index, []).append(stretch)
                self._at += 1
        return found


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


def _shown_words(sentence: Sentence, tokens: Sequence[Token]) -> Iterator[str]:
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
