"""A prepared text → chunks of at most 50 tokens, the length of speech that these models learned to say at once.

Cut as the originals do: a sentence ends where tokens of . ! ? end, sentences are put together while they fit, and
Pocket cuts longer ones behind , ; and :. What is then still too long (the originals let the model skip words there) is
cut at the best place that is left, so that nothing is lost.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sonant.errors import TextError
from sonant.families.latent.prepare import Rules
from sonant.families.latent.tokenizer import Encoding, Tokenizer
from sonant.families.latent.traced import Traced

MAX_TOKENS = 50
_SENTENCE_ENDS = ".!...?"
_CLAUSE_ENDS = ",;:"
_WORD = re.compile(r"\S+")
# A long word in small letters before the mark: no abbreviation, whose full stop a rule may take away, is like that.
_PLAIN_BORDER = re.compile(" [a-z]{7,}[.!?]( )(?=[A-Z][a-z])")
_STRETCH = 300
"""Characters: about one chunk and a half."""
_CLOSERS = "\"'”’)]»"
_KINDS = (".!?…", ",;:—–-")
_STOP_TOKENS = 1
"""What the closing stop may add to a part."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The text of one chunk as the model gets it."""

    text: Traced
    encoding: Encoding


def frame_cap(tokens: int, frame_rate_hz: float) -> int:
    """The most frames that so many tokens may take: three tokens a second, and two seconds more."""
    return math.ceil((tokens / 3 + 2) * frame_rate_hz)


def stretches(text: str) -> Iterator[tuple[int, int]]:
    """Where a long text may be read part by part, so that the first chunk need not wait for the last sentence.

    Only between a sentence that is plainly over and one that plainly begins: no rule of the normalizer, of `prepare` or
    of the tokenizer looks across, so the chunks are those of the whole text.
    """
    start = 0
    for match in _PLAIN_BORDER.finditer(text):
        if match.start(1) - start >= _STRETCH:
            yield start, match.start(1)
            start = match.end()
    yield start, len(text)


def cut(
    text: Iterable[Traced], tokenizer: Tokenizer, rules: Rules, max_tokens: int = MAX_TOKENS
) -> Iterator[Prepared]:
    """The chunks of a text, which comes in `stretches`; none of them is empty.

    TextError when one character takes more than a chunk.
    """

    def prepared(part: Traced) -> Prepared:
        ready = rules.prepare(part)
        return Prepared(ready, tokenizer.encode(ready))

    for group in _groups(_segments(text, tokenizer, rules, max_tokens), max_tokens):
        whole = prepared(group)
        if len(whole.encoding.ids) <= max_tokens:
            if whole.encoding.ids:
                yield whole
        else:
            yield from _Fitting(group, tokenizer, prepared, max_tokens).parts()


def _segments(
    text: Iterable[Traced], tokenizer: Tokenizer, rules: Rules, max_tokens: int
) -> Iterator[tuple[int, Traced]]:
    """The sentences with their numbers of tokens; long ones in their clauses where the original does so."""
    clause_ends = frozenset(tokenizer.encode(_CLAUSE_ENDS).ids[1:])
    for tokens, sentence in _sentences(text, tokenizer, rules):
        if tokens <= max_tokens or not rules.splits_long_sentences:
            yield tokens, sentence
        else:
            own = tokenizer.encode(sentence.strip())
            yield from ((end - start, own.text(start, end)) for start, end in _between(own, clause_ends, _is_grouped))


def _sentences(text: Iterable[Traced], tokenizer: Tokenizer, rules: Rules) -> Iterator[tuple[int, Traced]]:
    ends = frozenset(tokenizer.encode(_SENTENCE_ENDS).ids[1:])
    within = _is_decimal if rules.keeps_decimals else _is_nothing
    open_tokens, open_text = 0, Traced("", (), ())
    for stretch in text:
        encoding = tokenizer.encode(rules.prepare(stretch).strip())
        for first, last in _between(encoding, ends, within):
            sentence = encoding.text(first, last)
            if open_tokens:
                sentence = Traced.join((open_text, sentence), " ")
            tokens = open_tokens + last - first
            # The token that ends the stretch may hold more than the mark; then the sentence goes on, as in one text.
            open_tokens, open_text = 0, open_text[:0]
            if last == len(encoding.ids) and last and encoding.ids[-1] not in ends:
                open_tokens, open_text = tokens, sentence
            else:
                yield tokens, sentence
    if open_tokens:
        yield open_tokens, open_text


def _between(
    encoding: Encoding, ends: frozenset[int], within: Callable[[Encoding, int], bool]
) -> Iterator[tuple[int, int]]:
    """Stretches of tokens up to and with a run of `ends`; `within` says that one of them stands inside a number."""
    first = 0
    behind = False
    for at, number in enumerate(encoding.ids):
        if number not in ends and behind and not within(encoding, at):
            yield first, at
            first = at
        behind = number in ends
    yield first, len(encoding.ids)


def _is_nothing(encoding: Encoding, at: int) -> bool:
    return False


def _is_decimal(encoding: Encoding, at: int) -> bool:
    """A full stop with a digit before it and one behind it, white space or not."""
    before, after = encoding.text(max(0, at - 3), at).text, encoding.text(at, at + 2).text
    return before[-1:] == "." and before[-2:-1].isdigit() and after[:1].isdigit()


def _is_grouped(encoding: Encoding, at: int) -> bool:
    """A comma or colon with digits on both sides and no space: 1,000 and 10:30 stay whole.

    pocket_tts cuts there and reads "1, 000".
    """
    before, after = encoding.text(max(0, at - 3), at).text, encoding.said[at].text
    return before[-1:] in _CLAUSE_ENDS and before[-2:-1].isdigit() and after[:1].isdigit()


def _groups(segments: Iterator[tuple[int, Traced]], max_tokens: int) -> Iterator[Traced]:
    """Sentences put together with a space while the sum of their tokens fits."""
    current, size = Traced("", (), ()), 0
    for tokens, sentence in segments:
        if not current:
            current, size = sentence, tokens
        elif size + tokens > max_tokens:
            yield current.strip()
            current, size = sentence, tokens
        else:
            current = Traced.join((current, sentence), " ")
            size += tokens
    if current:
        yield current.strip()


class _Fitting:
    """Cuts one text into parts that fit, each about as long as the others.

    The cut goes behind a sentence end, else behind a comma or dash, else between words; in a word only when it alone is
    too long.
    """

    def __init__(
        self, text: Traced, tokenizer: Tokenizer, prepared: Callable[[Traced], Prepared], max_tokens: int
    ) -> None:
        self.text, self.prepared, self.limit = text, prepared, max_tokens
        self.words = [match.span() for match in _WORD.finditer(text.text)]
        self.sizes = [len(tokenizer.encode(text.text[start:end]).ids) for start, end in self.words]

    def between(self, first: int, last: int) -> Traced:
        return self.text[self.words[first][0] : self.words[last - 1][1]]

    def parts(self) -> Iterator[Prepared]:
        first, left = 0, sum(self.sizes)
        while first < len(self.words):
            last = self._last(first, left)
            part = self.prepared(self.between(first, last))
            while len(part.encoding.ids) > self.limit and last > first + 1:
                last -= 1
                part = self.prepared(self.between(first, last))
            if len(part.encoding.ids) > self.limit:
                yield from self._letters(self.between(first, last))
            elif part.encoding.ids:
                yield part
            left -= sum(self.sizes[first:last])
            first = last

    def _last(self, first: int, left: int) -> int:
        """Where the part that begins at the word `first` ends, when so many tokens are left."""
        room = self.limit - _STOP_TOKENS
        if left <= room:
            return len(self.words)
        target, least = left / math.ceil(left / room), self.limit / 4
        best, best_rank = first + 1, (len(_KINDS) + 1, 0.0)
        size = 0
        for at in range(first, len(self.words) - 1):
            size += self.sizes[at]
            if size > room:
                break
            kind = self._kind(at) if size >= least and left - size >= least else len(_KINDS)
            rank = kind, abs(size - target)
            if rank < best_rank:
                best, best_rank = at + 1, rank
        return best

    def _kind(self, word: int) -> int:
        last = self.text.text[slice(*self.words[word])].rstrip(_CLOSERS)[-1:]
        return next((kind for kind, marks in enumerate(_KINDS) if last and last in marks), len(_KINDS))

    def _letters(self, word: Traced) -> Iterator[Prepared]:
        """A word that is too long, in parts of about the same number of characters."""
        whole = self.prepared(word)
        count = len(whole.encoding.ids)
        if count <= self.limit:
            yield whole
            return
        if len(word) < 2:
            raise TextError(f"the character {word.text!r} takes {count} tokens; a chunk has at most {self.limit}")
        parts = math.ceil(count / max(1, self.limit - _STOP_TOKENS))
        size = min(math.ceil(len(word) / parts), len(word) - 1)
        for at in range(0, len(word), size):
            yield from self._letters(word[at : at + size])


@dataclass(frozen=True, slots=True)
class TokenRange:
    """The tokens of a chunk that a word covers; empty for a word that makes no sound."""

    word: int
    start: int
    end: int


class WordFinder:
    """Leads the tokens of chunks, one chunk after the other, back to the words of the text.

    Each word is given out once, with the chunk in which it begins. words: [start, end) of each, in order.
    """

    def __init__(self, words: Sequence[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in words]
        self._ends = [end for _, end in words]
        self._next = 0

    def find(self, chunk: Prepared) -> list[TokenRange]:
        """The words that begin in this chunk. Silent words between and before them are among them."""
        ranges: dict[int, list[int]] = {}
        for at, (start, end) in enumerate(chunk.encoding.spans):
            for word in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
                if word >= self._next:
                    ranges.setdefault(word, [at, at])[1] = at + 1
        found: list[TokenRange] = []
        at = 0
        for word in range(self._next, max(ranges, default=self._next - 1) + 1):
            start, end = ranges.get(word, (at, at))
            start = max(start, at)
            at = max(at, end)
            found.append(TokenRange(word, start, at))
        self._next += len(found)
        return found

    def rest(self) -> range:
        """The words that no chunk has: silent ones at the end."""
        return range(self._next, len(self._starts))
