"""Spoken words → pieces that a model can take at once: whole sentences while they fit, long ones cut at a good place.

Speaking and streaming use these same pieces. No word is dropped, none is repeated; a word longer than the limit is
continued in the next piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sonant.text.spans import SpokenWord

_STRONG = frozenset(";:—…")
_WEAK = frozenset(",)”")


@dataclass(frozen=True, slots=True)
class PieceWord:
    """A source word, its span in the original text and its phonemes in the piece (an empty range if silent)."""

    text: str
    start: int
    end: int
    phoneme_start: int
    phoneme_end: int
    normalized: str


@dataclass(frozen=True, slots=True)
class Piece:
    """What the model gets in one run: `phonemes` (at most the limit), the words, the span of the original text."""

    phonemes: str
    words: tuple[PieceWord, ...]
    start: int
    end: int
    paragraph_end: bool


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """The words of one sentence with their sounds."""

    words: tuple[SpokenWord, ...]
    paragraph_end: bool

    @property
    def size(self) -> int:
        return joined_size(self.words)


def joined_size(words: Iterable[SpokenWord]) -> int:
    """Phonemes of the words with one space between those that sound."""
    sizes = [word.size for word in words if word.size]
    return sum(sizes) + max(0, len(sizes) - 1)


def pack(sentences: Iterable[SpokenSentence], limit: int) -> Iterator[Piece]:
    """Pieces of at most `limit` phonemes. Words that make no sound go with the piece before them, or the first one."""
    held: list[SpokenWord] = []  # words of the piece being filled
    size = 0
    ready: Piece | None = None  # kept back one step, because silent words may still join it
    for sentence in sentences:
        for part in split(sentence.words, limit):
            added = joined_size(part)
            if size and added and size + 1 + added > limit:
                if ready:
                    yield ready
                ready, held, size = build(held, paragraph_end=False), [], 0
            held += part
            size += added + (1 if size and added else 0)
        if sentence.paragraph_end and held:
            if size:
                if ready:
                    yield ready
                ready, held, size = build(held, paragraph_end=True), [], 0
            elif ready:
                ready, held = _with_silent(ready, held), []
    if ready:
        yield _with_silent(ready, held) if held else ready


def split(words: tuple[SpokenWord, ...], limit: int) -> Iterator[list[SpokenWord]]:
    """A sentence in parts of at most `limit`: cut after ; : — …, else after , ) ”, else between words."""
    part: list[SpokenWord] = []
    size = 0
    for word in (fragment for whole in words for fragment in _fragments(whole, limit)):
        added = word.size + (1 if size and word.size else 0)
        if word.size and size + added > limit:
            cut = _best_cut(part)
            yield part[:cut]
            part = part[cut:]
            size = joined_size(part)
            added = word.size + (1 if size else 0)
        part.append(word)
        size += added
    if part:
        yield part


def _best_cut(part: list[SpokenWord]) -> int:
    """How many words to keep; a cut in the first third would leave a fragment that sounds lost."""
    for marks in (_STRONG, _WEAK):
        for at in range(len(part) - 1, len(part) // 3, -1):
            if part[at].tail[-1:] in marks and part[at].tail:
                return at + 1
    return len(part)


def _fragments(word: SpokenWord, limit: int) -> Iterator[SpokenWord]:
    """A word that fits, or its parts: the same source word again for each, so that times can be joined later."""
    if word.size <= limit:
        yield word
        return
    sound = word.phonemes
    room = limit - len(word.lead) - len(word.tail)
    if room < 1:
        # More marks than the model can take say no more than one of them.
        word = replace(word, lead=word.lead[:1], tail=word.tail[:1])
        room = limit - 2
    lead = word.lead
    while sound:
        cut = sound.rfind(" ", 1, room + 1) if len(sound) > room else len(sound)
        cut = room if cut <= 0 else cut
        rest = sound[cut:].lstrip(" ")
        yield replace(word, lead=lead, phonemes=sound[:cut], tail="" if rest else word.tail)
        sound, lead = rest, ""


def build(words: list[SpokenWord], *, paragraph_end: bool) -> Piece:
    """The piece of these words."""
    parts: list[str] = []
    at = 0
    placed = []
    for word in words:
        if word.size and at:
            parts.append(" ")
            at += 1
        first = at + len(word.lead)
        last = first + len(word.phonemes)
        parts += (word.lead, word.phonemes, word.tail)
        at += word.size
        source = word.source
        placed.append(PieceWord(source.text, source.start, source.end, first, last, word.normalized))
    return Piece("".join(parts), tuple(placed), words[0].source.start, words[-1].source.end, paragraph_end)


def _with_silent(piece: Piece, words: list[SpokenWord]) -> Piece:
    end = len(piece.phonemes)
    silent = (PieceWord(w.source.text, w.source.start, w.source.end, end, end, w.normalized) for w in words)
    return replace(piece, words=piece.words + tuple(silent), end=words[-1].source.end)
