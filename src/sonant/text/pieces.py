"""Spoken words → pieces that a model can take at once: whole sentences while they fit, long ones cut at a good place.

Speaking and streaming use these same pieces. No word is dropped, none is repeated: a word longer than the limit goes on
in the next piece, but is listed in the first only.
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
    """What the model gets in one run: `phonemes` (at most the limit), the words, the span of the original text.

    Exact silence goes before and after it, and `speed` multiplies the speaker's. A text of pauses alone is one piece
    without phonemes.
    """

    phonemes: str
    words: tuple[PieceWord, ...]
    start: int
    end: int
    paragraph_end: bool
    pause_before_s: float = 0.0
    pause_after_s: float = 0.0
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """The words of one sentence (or of its part between two cues) with their sounds.

    A sentence without words carries the pause at the end of the text. piece_end: what follows goes into another piece.
    """

    words: tuple[SpokenWord, ...]
    paragraph_end: bool
    pause_before_s: float = 0.0
    speed: float = 1.0
    piece_end: bool = False

    @property
    def size(self) -> int:
        return joined_size(self.words)


def joined_size(words: Iterable[SpokenWord], size: int = 0) -> int:
    """Phonemes when these words come behind `size` others: one space between those that sound."""
    for word in words:
        size += word.size + gap(word, size)
    return size


def gap(word: SpokenWord, size: int) -> int:
    """1 if a space goes before the word, when `size` phonemes are already there."""
    return int(bool(size and word.size and not word.hugs))


def pack(sentences: Iterable[SpokenSentence], limit: int) -> Iterator[Piece]:
    """Pieces of at most `limit` phonemes. Words that make no sound go with the piece before them, or the first one."""
    filling = _Filling()
    for sentence in sentences:
        if sentence.pause_before_s or (sentence.size and sentence.speed != filling.speed):
            yield from filling.close(paragraph_end=False)
            filling.pause_s += sentence.pause_before_s
        if sentence.size:
            yield from filling.release()
            filling.speed = sentence.speed
        for part in split(sentence.words, limit):
            if filling.size and joined_size(part, filling.size) > limit:
                yield from filling.close(paragraph_end=False)
            filling.words += part
            filling.size = joined_size(part, filling.size)
        if sentence.paragraph_end or sentence.piece_end:
            yield from filling.close(paragraph_end=sentence.paragraph_end)
    yield from filling.close(paragraph_end=True)
    yield from filling.last()


class _Filling:
    """The piece being filled, and the one before it, kept back because silent words may still join it."""

    def __init__(self) -> None:
        self.words: list[SpokenWord] = []
        self.size = 0
        self.pause_s = 0.0
        self.speed = 1.0
        self.ready: Piece | None = None

    def close(self, *, paragraph_end: bool) -> Iterator[Piece]:
        """Make a piece of the words that sound; silent ones join the piece before, or wait for the first."""
        if self.size:
            yield from self.release()
            self.ready = replace(
                build(self.words, paragraph_end=paragraph_end), pause_before_s=self.pause_s, speed=self.speed
            )
            self.words, self.size, self.pause_s = [], 0, 0.0
        elif self.ready and self.words:
            self.ready, self.words = _with_silent(self.ready, self.words), []

    def release(self) -> Iterator[Piece]:
        """The piece that was kept back: something that sounds has come, which silent words will go with."""
        if self.ready:
            yield self.ready
            self.ready = None

    def last(self) -> Iterator[Piece]:
        if self.ready:
            yield replace(self.ready, pause_after_s=self.pause_s)
        elif self.pause_s:
            silent = build(self.words, paragraph_end=True) if self.words else Piece("", (), 0, 0, True)
            yield replace(silent, pause_before_s=self.pause_s)


def split(words: tuple[SpokenWord, ...], limit: int) -> Iterator[list[SpokenWord]]:
    """A sentence in parts of at most `limit`: cut after ; : — …, else after , ) ”, else between words."""
    part: list[SpokenWord] = []
    size = 0
    for word in (fragment for whole in words for fragment in _fragments(whole, limit)):
        if joined_size([word], size) > limit:
            cut = _best_cut(part)
            yield part[:cut]
            part = part[cut:]
            if joined_size([*part, word]) > limit:
                # What the good cut left over is itself too long beside a very long word.
                yield part
                part = []
            size = joined_size(part)
        part.append(word)
        size = joined_size([word], size)
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
    """A word that fits, or its parts, of which all but the first are `continued`."""
    if word.size <= limit:
        yield word
        return
    sound, lead = word.phonemes, word.lead
    room = limit - len(word.lead) - len(word.tail)
    while sound:
        cut = sound.rfind(" ", 1, room + 1) if len(sound) > room else len(sound)
        cut = room if cut <= 0 else cut
        rest = sound[cut:].lstrip(" ")
        first = sound is word.phonemes
        yield replace(word, lead=lead, phonemes=sound[:cut], tail="" if rest else word.tail, continued=not first)
        sound, lead = rest, ""


def build(words: list[SpokenWord], *, paragraph_end: bool) -> Piece:
    """The piece of these words."""
    parts: list[str] = []
    at = 0
    placed = []
    for word in words:
        if gap(word, at):
            parts.append(" ")
            at += 1
        first = at + len(word.lead)
        last = first + len(word.phonemes)
        parts += (word.lead, word.phonemes, word.tail)
        at += word.size
        source = word.source
        if not word.continued:
            placed.append(PieceWord(source.text, source.start, source.end, first, last, word.normalized))
    return Piece("".join(parts), tuple(placed), words[0].source.start, words[-1].source.end, paragraph_end)


def _with_silent(piece: Piece, words: list[SpokenWord]) -> Piece:
    end = len(piece.phonemes)
    silent = (PieceWord(w.source.text, w.source.start, w.source.end, end, end, w.normalized) for w in words)
    return replace(piece, words=piece.words + tuple(silent), end=words[-1].source.end)
