"""Where a text that is still being written may be cut: at the ends of sentences that nothing which follows can undo.

`first_cut` depends on the text alone, never on how much of it had come at what time: a cut once found stays the same
however the text goes on. Only `idle` looks at the moment. The sentences are those of segment.py, except that a list
number, a short quotation and, in Markdown, a heading, a table or a block of code stay in one stretch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sonant.errors import TextError
from sonant.text.markdown import read_markdown
from sonant.text.markup import read_markup
from sonant.text.normalize.tables_en import NOT_SENTENCE_END
from sonant.text.open_ends import Blocks, open_block, settled_markdown, settled_marks
from sonant.text.quotes import quotations
from sonant.text.script import Script
from sonant.text.segment import end_is_decided, ends_sentence, is_wrapped
from sonant.text.spans import SourceWord

LONG_CHARS = 200
"""A sentence that goes on for longer is cut behind a clause, when clauses are asked for."""
_ENDLESS_CHARS, _ENDLESS_WORDS = 2 * LONG_CHARS, 400
_LEAST_CLAUSE_CHARS, _LEAST_IDLE_CLAUSE_CHARS = 40, 15
"""A shorter clause sounds lost when it is spoken by itself; when nothing else comes, a shorter one will do."""
_WINDOW_CHARS = 2_000
"""So much of a long text is looked at first."""

_CLOSERS = "\"'”’»)]}*_」』）》】"
_STOPS = frozenset("。！？｡।॥؟۔")
_CLAUSES = frozenset(",;:—–…，、；：،")
# Where no spaces part the words, a unit ends behind a mark.
_UNIT = re.compile(r"[^\s。！？｡，、；：]*[。！？｡，、；：]+[”’」』）》】\"']*|\S+")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z])[.)]$")
_SYMBOLS = frozenset(("So", "Sk", "Mn", "Cf", "Cs", "Co"))
# "It is 3." may go on with a 4, "sonant.io" with another part.
_MAY_GO_ON = re.compile(r"\d\.$|\w[./@:]\w")


@dataclass(frozen=True, kw_only=True)
class CutRules:
    """How the text is read (see Reading), and whether a long sentence is cut behind a clause."""

    markup: str = "auto"
    text_format: str = "plain"
    clauses: bool = False

    def read(self, text: str) -> Script:
        """A tag that cannot be read is an error of the stretch that will have it, so here it counts as text."""
        try:
            return (read_markdown if self.is_markdown else read_markup)(text, self.markup)
        except TextError:
            return Script(text, text)

    @property
    def is_markdown(self) -> bool:
        return self.text_format == "markdown"


def first_cut(
    text: str, start: int, end: int, rules: CutRules, *, complete: bool = False, idle: bool = False
) -> int | None:
    """Where the first stretch of text[start:end] that can be spoken by itself ends; None while there is none.

    The text before `start` was cut off before. complete: nothing will follow `end`. idle: nothing has followed for a
    while, so what seems to be the end of a sentence or a clause is taken for one.
    """
    window = _WINDOW_CHARS
    while start + window < end:
        if (cut := _Scan(text, start, start + window, rules, complete=False).cut()) is not None:
            return start + cut
        window *= 2
    scan = _Scan(text, start, end, rules, complete=complete)
    cut = scan.cut()
    if cut is None and idle:
        cut = scan.cut_when_idle()
    return None if cut is None else start + cut


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word of the visible text, and where the symbols (emoji) that go with it end."""

    word: SourceWord
    end: int


class _Scan:
    """One look at a stretch, word by word until a cut is found. Cuts are places in the stretch as written."""

    def __init__(self, text: str, start: int, end: int, rules: CutRules, *, complete: bool) -> None:
        self.original, self.rules, self.complete = text[start:end], rules, complete
        if rules.is_markdown and not complete:  # what is open is not looked at: it may be long
            self.original = self.original[: open_block(self.original, is_first=start == 0)]
        self.script = rules.read(self.original)
        self.visible = self.script.visible
        self.units = list(_units(self.visible))
        line = text.rfind("\n", 0, start) + 1
        self.line_start = line - start
        self.line_first = self.units[0] if self.units else None
        self.size = end - start
        self.clause: int | None = None
        self.idle_clause: int | None = None
        self.in_quotation: int | None = None
        """A sentence end inside of a quotation that may still be closed."""

    def cut(self) -> int | None:
        """The first cut that is certain."""
        for i, unit in enumerate(self.units[1:], 1):
            before = self.units[i - 1]
            following = self._settled_part(unit.word)
            if not following:
                return self._line_end(before)
            is_whole = self.complete or (following == unit.word.text and unit.word.end < len(self.visible))
            ended = self._ends(before, unit, following, is_whole)
            if ended is None:
                return None
            if (ended or i >= _ENDLESS_WORDS) and (at := self._between(before, unit)) is not None:
                return at
            if (clause := self._clause_before(before, unit)) is not None:
                return clause
        return self._line_end(self.units[-1]) if self.units else None

    def cut_when_idle(self) -> int | None:
        """The cut that is likely, when no more text has come for a while."""
        if self.units and self._settled == len(self.original) == self.size:
            last = self.units[-1]
            tail = self.original[self._end(last) :]
            if "\n" in tail or self._seems_to_end(last, spaced=tail[-1:].isspace()):
                return len(self.original)
        return self.idle_clause if self.in_quotation is None else self.in_quotation

    @cached_property
    def _settled(self) -> int:
        if self.complete:
            return len(self.original)
        if self.rules.is_markdown:
            return settled_markdown(self.original)
        return len(self.original) if self.rules.markup == "off" else settled_marks(self.original)

    @cached_property
    def _quotations(self) -> list[tuple[int, int | None]]:
        return quotations(self.original)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self.original)

    def _settled_part(self, word: SourceWord) -> str:
        """What of the word stays as it is read now."""
        end = word.end
        while end > word.start and self.script.span(word.start, end)[1] > self._settled:
            end -= 1
        return self.visible[word.start : end]

    def _ends(self, before: _Unit, unit: _Unit, following: str, is_whole: bool) -> bool | None:
        """Does a sentence end between two words? None while that is not certain."""
        breaks = self.visible.count("\n", before.end, unit.word.start)
        is_number = self._is_list_number(before)
        if breaks:
            wrapped = is_wrapped(self.visible, self.line_start, before.word, unit.word, breaks)
            self.line_start, self.line_first = unit.word.start, unit
            if not wrapped:
                return True
        stopped = before.word.text.rstrip(_CLOSERS)[-1:] in _STOPS
        if before.end < unit.word.start:
            if not is_whole and not end_is_decided(before.word.text, following):
                return None
            stopped = stopped or ends_sentence(before.word.text, following, NOT_SENTENCE_END)
        return self._is_outside_quotations(before, unit) if stopped and not is_number else False

    def _is_list_number(self, unit: _Unit) -> bool:
        """Is it the number of what follows, first on its line or in the stretch?"""
        return unit in (self.units[0], self.line_first) and bool(_LIST_NUMBER.match(unit.word.text))

    def _is_outside_quotations(self, before: _Unit, unit: _Unit) -> bool | None:
        end = self._end(before)
        for opened, closed in self._quotations:
            if closed is None and opened < end and not self.complete:
                self.in_quotation = self._between(before, unit)
                return None
            if closed is not None and opened < end <= closed:
                return False
        return True

    def _end(self, unit: _Unit) -> int:
        return self.script.span(unit.word.start, unit.end)[1]

    def _between(self, before: _Unit, unit: _Unit) -> int | None:
        """The cut between two words: at the line end, else behind what is written together with the first of them."""
        end, start = self._end(before), self.script.span(unit.word.start, unit.end)[0]
        if self.rules.is_markdown and self._blocks.inside(end, start):
            return None
        between = self.original[end:start]
        if "\n" in between:
            return end + between.index("\n") if not self.rules.is_markdown else self._between_blocks(end, start)
        space = next((i for i in reversed(range(len(between))) if between[i].isspace()), None)
        return end if space is None else end + len(between[:space].rstrip())

    def _between_blocks(self, end: int, start: int) -> int:
        """At the first blank line, else before the line that begins the next block: fences and rules stay behind."""
        blank = self._blocks.blank_line(end, start)
        return self.original.rindex("\n", end, start) if blank is None else blank

    def _clause_before(self, before: _Unit, unit: _Unit) -> int | None:
        """Remember the cut when a clause ends there; the one to take, when the sentence has become too long."""
        first = self.units[0].word.start
        if before.word.text.rstrip(_CLOSERS)[-1:] in _CLAUSES and (at := self._between(before, unit)) is not None:
            if before.end - first >= _LEAST_IDLE_CLAUSE_CHARS:
                self.idle_clause = at
            if before.end - first >= _LEAST_CLAUSE_CHARS:
                self.clause = at
        size = unit.word.start - first
        if not self.rules.clauses or size <= LONG_CHARS:
            return None
        return self._between(before, unit) if self.clause is None and size > _ENDLESS_CHARS else self.clause

    def _line_end(self, last: _Unit) -> int | None:
        """The end of the line of `last`, when it is certain that a paragraph ends with it, whatever follows."""
        if self.rules.is_markdown:
            return self._blocks.blank_line(self._end(last), len(self.original))
        at = self.original.find("\n", self._end(last), self._settled)
        return at if at >= 0 and not self._may_be_wrapped(last) else None

    def _may_be_wrapped(self, last: _Unit) -> bool:
        """Would a lower-case letter make a wrapped line of the last one?"""
        at = len(self.visible)
        breaks = self.visible.count("\n", last.end)
        return is_wrapped(self.visible + "a", self.line_start, last.word, SourceWord("a", at, at + 1), breaks)

    def _seems_to_end(self, last: _Unit, *, spaced: bool) -> bool:
        text = last.word.text
        bare = text.rstrip(_CLOSERS)
        ended = bare[-1:] in _STOPS or ends_sentence(text, "Xx", NOT_SENTENCE_END)
        return ended and not self._is_list_number(last) and (spaced or not _MAY_GO_ON.search(bare))


def _units(visible: str) -> Iterator[_Unit]:
    unit: _Unit | None = None
    for match in _UNIT.finditer(visible):
        is_symbol = all(unicodedata.category(sign) in _SYMBOLS for sign in match[0])
        if unit is not None and is_symbol and "\n" not in visible[unit.end : match.start()]:
            unit = _Unit(unit.word, match.end())
            continue
        if unit is not None:
            yield unit
        unit = _Unit(SourceWord(match[0], match.start(), match.end()), match.end())
    if unit is not None:
        yield unit
