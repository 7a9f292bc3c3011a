"""What is to be read of a text: the visible text, where it stands in the original, pauses, speeds, given phonemes.

markup.py and markdown.py write a Script, english.py reads it. Nothing here knows a language or a syntax.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field

from sonant.errors import TextError
from sonant.text.spans import SourceWord

# Stands for a space inside words that are spoken as one; silent, and no letter.
INNER_SPACE = "\ue000"
_SPACES = re.compile(r"\s")
ALPHABET = frozenset(
    ' !"(),.:;?AIOQSTWYabcdefhijklmnopqrstuvwxyzæçðøŋœɐɑɒɔɕɖəɚɛɜɟɡɣɤɥɨɪɯɰɲɳɴɸɹɻɽɾʁʂʃʈʊʋʌʎʒʔʝʣʤʥʦʧʨʰʲˈˌː\u0303βθχᵊᵝᵻ—“”…'
    "→↓↗↘ꭧ"
)
"""The phoneme symbols that voices are trained on: Kokoro's vocabulary, which is misaki's alphabet and the IPA's."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A change at a place of the visible text: so much exact silence, or another speed from here on."""

    at: int
    pause_s: float | None = None
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """A stretch of the visible text, within one word, that is spoken with exactly these phonemes."""

    start: int
    end: int
    phonemes: str


@dataclass(frozen=True, slots=True)
class Run:
    """Visible text [start:end] that came from original[source_start:source_end]."""

    start: int
    end: int
    source_start: int
    source_end: int


@dataclass(frozen=True, slots=True)
class Script:
    """The reading of one text. `runs` is None when every character is visible."""

    original: str
    visible: str
    runs: tuple[Run, ...] | None = None
    cues: tuple[Cue, ...] = ()
    given: tuple[Given, ...] = ()
    heading_ends: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    """What was left out, in words."""
    _starts: tuple[int, ...] = field(default=(), repr=False)

    def place(self, word: SourceWord) -> SourceWord:
        """The word of the visible text as a word of the original: from its first to its last stretch with a letter."""
        if self.runs is None:
            return word
        own = self._runs_of(self.runs, word.start, word.end)
        heard = [run for run in own if any(map(str.isalnum, self.visible[_clip(run, word)]))] or own
        start, end = _source(heard[0], heard[-1], word.start, word.end)
        return SourceWord(self.original[start:end], start, end)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where visible[start:end], signs without a sound included, is in the original."""
        if self.runs is None:
            return start, end
        own = self._runs_of(self.runs, start, end)
        return _source(own[0], own[-1], start, end)

    def _runs_of(self, runs: tuple[Run, ...], start: int, end: int) -> list[Run]:
        own = []
        at = max(0, bisect_right(self._starts, start) - 1)
        while at < len(runs) and runs[at].start < end:
            if runs[at].end > start:
                own.append(runs[at])
            at += 1
        return own


def _source(first: Run, last: Run, start: int, end: int) -> tuple[int, int]:
    """The original of visible [start:end], which begins in one run and ends in another."""
    source_start, source_end = first.source_start, last.source_end
    if first.end - first.start == first.source_end - first.source_start:
        source_start += max(0, start - first.start)
    if last.end - last.start == last.source_end - last.source_start:
        source_end -= max(0, last.end - end)
    return source_start, source_end


def _clip(run: Run, word: SourceWord) -> slice:
    return slice(max(run.start, word.start), min(run.end, word.end))


class ScriptWriter:
    """Collects a Script from left to right."""

    def __init__(self, original: str) -> None:
        self.original = original
        self._visible: list[str] = []
        self._runs: list[Run] = []
        self._cues: list[Cue] = []
        self._given: list[Given] = []
        self._headings: list[int] = []
        self.notes: list[str] = []
        self.size = 0
        self.last = ""
        """The last visible character."""

    def show(self, start: int, end: int, text: str | None = None) -> None:
        """original[start:end] is visible, as itself or as `text`."""
        shown = self.original[start:end] if text is None else text
        if not shown:
            return
        self._runs.append(Run(self.size, self.size + len(shown), start, end))
        self.add(shown)

    def add(self, text: str) -> None:
        """Visible text that the original does not have: spaces, line ends, the stop of a heading."""
        self._visible.append(text)
        self.size += len(text)
        self.last = text[-1]

    def space(self) -> None:
        """Words on both sides are apart."""
        if self.last and not self.last.isspace():
            self.add(" ")

    def cue(self, *, pause_s: float | None = None, speed: float | None = None) -> None:
        self.space()
        self._cues.append(Cue(self.size, pause_s, speed))

    def give(self, start: int, end: int, phonemes: str) -> None:
        """original[start:end] is one word, spoken as these phonemes. TextError names a symbol no voice knows."""
        phonemes = checked_phonemes(phonemes, repr(self.original[start:end]))
        before = self.size
        self.show(start, end, _SPACES.sub(INNER_SPACE, self.original[start:end]))
        self._given.append(Given(before, self.size, phonemes))

    def heading(self) -> None:
        """What was shown last is a heading: it ends like a sentence, and a pause follows."""
        if self.last.isalnum() or self.last in ")]”\"'’%":
            self.add(".")
        self._headings.append(self.size)

    def script(self) -> Script:
        runs = tuple(self._runs)
        return Script(
            self.original,
            "".join(self._visible),
            runs,
            tuple(self._cues),
            tuple(self._given),
            frozenset(self._headings),
            tuple(self.notes),
            tuple(run.start for run in runs),
        )


def checked_phonemes(phonemes: str, what: str) -> str:
    """The phonemes, ã as two signs as the voices have it. Raises TextError naming the symbols that no voice knows."""
    phonemes = "".join(c if c in ALPHABET else unicodedata.normalize("NFD", c) for c in phonemes)
    unknown = sorted(set(phonemes) - ALPHABET)
    if unknown:
        shown = " ".join(f"{symbol!r} (U+{ord(symbol):04X})" for symbol in unknown)
        raise TextError(f"the phonemes of {what} have {shown}; the alphabet is {''.join(sorted(ALPHABET)).strip()}")
    return phonemes
