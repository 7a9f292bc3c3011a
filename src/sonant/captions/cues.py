"""Words → cues: cut at the ends of sentences, and where a cue would get too long to read or to stay on a screen.

Every word is in exactly one cue, in order. Cues do not overlap, and each lasts at least a millisecond, which the
formats demand: words that make no sound share the cue of a neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sonant.errors import InputError
from sonant.text.normalize.tables_en import NOT_SENTENCE_END
from sonant.text.segment import sentences
from sonant.types import WordTiming

PAUSE_S = 0.25
"""A gap between words at least this long is a good place to cut."""
_CLAUSE_ENDS = frozenset(",;:—–…、，；：)”")


@dataclass(frozen=True, kw_only=True)
class CueOptions:
    """How large a cue may get. A single word is never cut, even when it is longer.

    max_chars: per line. max_lines: per cue. max_duration_s: from its first word to the end of its last.
    min_duration_s: a shorter cue stays that long, if the pause behind it allows it.
    """

    max_chars: int = 42
    max_lines: int = 2
    max_duration_s: float = 7.0
    min_duration_s: float = 1.0

    def __post_init__(self) -> None:
        for name, low in (("max_chars", 1), ("max_lines", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < low:
                raise InputError(f"{name} is {value!r}; wanted a whole number, {low} or more")
        for name in ("max_duration_s", "min_duration_s"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and value >= 0):
                raise InputError(f"{name} is {value!r}; wanted seconds, 0 or more")


WHOLE = CueOptions(max_chars=2**31, max_lines=1, max_duration_s=math.inf, min_duration_s=0.0)
"""Cut at the ends of sentences only, true times."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A word as a caption shows it. `spaced`: a space goes before it."""

    text: str
    start_ms: int
    end_ms: int
    spaced: bool


@dataclass(frozen=True, slots=True)
class Cue:
    """What stands on the screen from start_ms to end_ms: lines of words."""

    start_ms: int
    end_ms: int
    lines: tuple[tuple[Timed, ...], ...]

    @property
    def words(self) -> tuple[Timed, ...]:
        return tuple(word for line in self.lines for word in line)

    @property
    def text(self) -> str:
        return "\n".join(map(line_text, self.lines))


def line_text(words: Sequence[Timed]) -> str:
    return "".join(" " * (word.spaced and i > 0) + word.text for i, word in enumerate(words))


def sentence_cues(
    words: Sequence[WordTiming], duration_s: float, options: CueOptions, source: str | None = None
) -> list[Cue]:
    """Cues of whole sentences where they fit, of parts of them where not. `source` is the text that the spans of the
    words point into; without it, the words stand one space apart."""
    timed = _timed(words, source)
    groups = [part for a, b in _sentences(words, source) for part in _parts(timed[a:b], options)]
    return _cues(_sounding(groups), duration_s, options)


def word_cues(words: Sequence[WordTiming], duration_s: float) -> list[Cue]:
    """A cue for each word, for as long as it sounds."""
    return _cues(_sounding([[word] for word in _timed(words)]), duration_s, WHOLE)


def phoneme_cues(words: Sequence[WordTiming], duration_s: float) -> list[Cue]:
    """A cue for each phoneme of the words."""
    return word_cues([WordTiming(p.symbol, p.start_s, p.end_s, 0, 0) for w in words for p in w.phonemes], duration_s)


def _timed(words: Sequence[WordTiming], source: str | None = None) -> list[Timed]:
    """Whole milliseconds, never decreasing; a space unless the text had none (there may be markup between words)."""
    result: list[Timed] = []
    now = 0
    for i, word in enumerate(words):
        start = max(now, round(word.start_s * 1000))
        end = max(start, round(word.end_s * 1000))
        if i + 1 < len(words):
            end = max(start, min(end, round(words[i + 1].start_s * 1000)))
        gap = (words[i - 1].char_end, word.char_start) if i else (0, 1)
        spaced = gap[0] < gap[1] if source is None or not i else any(c.isspace() for c in source[slice(*gap)])
        result.append(Timed(" ".join(word.text.split()), start, end, spaced))
        now = end
    return result


def _sounding(groups: list[list[Timed]]) -> list[list[Timed]]:
    """Groups without a millisecond of sound go to the group before them, or to the first that sounds."""
    result: list[list[Timed]] = []
    for group in groups:
        if result and (_length_ms(group) < 1 or _length_ms(result[-1]) < 1):
            result[-1] = result[-1] + group
        else:
            result.append(group)
    return result


def _length_ms(group: list[Timed]) -> int:
    return group[-1].end_ms - group[0].start_ms


def _cues(groups: list[list[Timed]], duration_s: float, options: CueOptions) -> list[Cue]:
    cues = []
    shortest_ms = round(min(options.min_duration_s, options.max_duration_s) * 1000)
    for i, group in enumerate(groups):
        start, end = group[0].start_ms, group[-1].end_ms
        free = groups[i + 1][0].start_ms if i + 1 < len(groups) else math.floor(duration_s * 1000)
        held = min(free, start + shortest_ms)
        cues.append(Cue(start, max(end, held, start + 1), _lines(group, options)))
    return cues


def _sentences(words: Sequence[WordTiming], source: str | None) -> Iterator[tuple[int, int]]:
    """First word and past the last one of every sentence, by the rules that the text was spoken with."""
    ends = [sentence.words[-1].end for sentence in sentences(_visible(words, source), NOT_SENTENCE_END)]
    first = at = 0
    for i, word in enumerate(words):
        while at < len(ends) and ends[at] < word.char_end:
            at += 1
        is_last = i + 1 == len(words)
        if is_last or (at < len(ends) and ends[at] <= words[i + 1].char_start):
            yield first, i + 1
            first = i + 1


def _visible(words: Sequence[WordTiming], source: str | None) -> str:
    """The words in their places with the spaces and line ends between them, without any markup."""
    parts = []
    end = 0
    for word in words:
        gap = source[end : word.char_start] if source is not None else " " * (word.char_start - end)
        parts += ["".join(c if c.isspace() else " " for c in gap), word.text]
        end = word.char_end
    return "".join(parts)


def _parts(words: list[Timed], options: CueOptions) -> list[list[Timed]]:
    """A sentence in the fewest cues that fit, of even length, cut rather at commas and pauses: the cheapest path over
    the places between words."""
    cost = [0.0, *[math.inf] * len(words)]
    previous = [0] * (len(words) + 1)
    for start in range(len(words)):
        for end, chars in _fitting_ends(words, start, options):
            found = cost[start] + _badness(words, end, chars, options)
            if found < cost[end]:
                cost[end], previous[end] = found, start
    cuts = [len(words)]
    while cuts[-1] > 0:
        cuts.append(previous[cuts[-1]])
    cuts.reverse()
    return [words[a:b] for a, b in pairwise(cuts)]


def _fitting_ends(words: list[Timed], start: int, options: CueOptions) -> Iterator[tuple[int, int]]:
    """Where a cue that begins with word `start` may end, and its characters; after one word always."""
    lines, width, chars = 1, 0, 0
    for end in range(start + 1, len(words) + 1):
        word = words[end - 1]
        more = len(word.text) + (word.spaced and end - 1 > start)
        chars += more
        if width and width + more > options.max_chars:
            lines, width = lines + 1, len(word.text)
        else:
            width += more
        too_long = word.end_ms - words[start].start_ms > options.max_duration_s * 1000
        if end - start > 1 and (too_long or lines > options.max_lines):
            return
        yield end, chars


def _badness(words: list[Timed], end: int, chars: int, options: CueOptions) -> float:
    """10 for being a cue, up to 4 for being short, less for ending at a comma or a pause."""
    emptiness = max(0.0, 1 - chars / (options.max_chars * options.max_lines))
    badness = 10 + 4 * emptiness**2
    if end == len(words):
        return badness
    pause = words[end].start_ms - words[end - 1].end_ms >= PAUSE_S * 1000
    return badness - (2 if words[end - 1].text[-1:] in _CLAUSE_ENDS else 1 if pause else 0)


def _lines(words: Sequence[Timed], options: CueOptions) -> tuple[tuple[Timed, ...], ...]:
    """As few lines as hold the words, as even as can be."""
    greedy = _greedy_lines(words, options.max_chars)
    if len(greedy) == 1 or len(greedy) > options.max_lines:
        return greedy
    widest = max(len(line_text(line)) for line in greedy)
    for width in range(max(1, len(line_text(words)) // len(greedy)), widest + 1):
        even = _greedy_lines(words, width)
        if len(even) == len(greedy):
            return even
    return greedy


def _greedy_lines(words: Sequence[Timed], width: int) -> tuple[tuple[Timed, ...], ...]:
    lines: list[list[Timed]] = []
    size = 0
    for word in words:
        more = len(word.text) + word.spaced
        if lines and size + more <= width:
            lines[-1].append(word)
            size += more
        else:
            lines.append([word])
            size = len(word.text)
    return tuple(map(tuple, lines))
