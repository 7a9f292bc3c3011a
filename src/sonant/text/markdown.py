"""Markdown → what is read of it: blocks here, what stands inside a line in markdown_inline.py.

Headings end with a stop and a pause, list bullets, quote marks, rules, comments, front matter and the dashes of a table
are silent, the cells of a table are a clause each. The text of a code block is read as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sonant.text.markdown_inline import Content, definitions, write_inline
from sonant.text.script import Script, ScriptWriter

_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)")
_HEADING_CLOSE = re.compile(r"(?:^|[ \t]+)#+$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_PREFIX = re.compile(r"[ \t]*(?:>[ \t]?)*")
_BULLET = re.compile(r"[ \t]*(?:[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|(?=\d{1,9}[.)][ \t]))")
_DEFINITION = re.compile(r" {0,3}\[(?P<id>[^\]\n]{1,200})\]:(?P<rest>.*)$")
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:[^\n]*\n){0,400}?(?:---|\.\.\.)[ \t]*(?:\n|$)")


@dataclass(slots=True)
class Line:
    """One line without its quote marks and its end: original[start:end]."""

    start: int
    end: int
    text: str
    blank: bool = field(init=False)

    def __post_init__(self) -> None:
        self.blank = not self.text.strip()


def read_markdown(text: str, mode: str = "auto") -> Script:
    """The Script of a Markdown text; `mode` is that of markup.py, and `off` reads brackets as Markdown does."""
    reader = _Reader(text, mode)
    reader.blocks()
    return reader.writer.script()


def _lines(text: str) -> Iterator[Line]:
    hidden = list(_comments(text))
    matter = _FRONT_MATTER.match(text)
    at, comment = (matter.end() if matter else 0), 0
    while at < len(text):
        whole = _LINE.match(text, at)
        end = whole.end() if whole else len(text)
        bare_end = end - 1 if text[end - 1] == "\n" else end
        bare_end -= bare_end > at and text[bare_end - 1] == "\r"
        while comment < len(hidden) and hidden[comment][1] <= at:
            comment += 1
        if comment < len(hidden) and hidden[comment][0] <= at + _indent(text, at) and hidden[comment][1] >= bare_end:
            yield Line(at, at, "")
        else:
            prefix = _PREFIX.match(text, at, bare_end)
            start = prefix.end() if prefix and ">" in prefix[0] else at
            yield Line(start, bare_end, text[start:bare_end])
        at = end


def _comments(text: str) -> Iterator[tuple[int, int]]:
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        yield start, end + 3
        start = text.find("<!--", end)


def _indent(text: str, at: int) -> int:
    return len(text[at : at + 40]) - len(text[at : at + 40].lstrip(" \t"))


class _Reader:
    """Walks over the lines and writes each block."""

    def __init__(self, text: str, mode: str) -> None:
        self.mode = mode
        self.writer = ScriptWriter(text)
        self.lines = list(_lines(text))
        self.known = definitions(line.text for line in self.lines)
        self.paragraph: list[Line] = []
        self.at = 0

    def blocks(self) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not self._block(line):
                self.paragraph.append(line)
                self.at += 1
        self._close()

    def _block(self, line: Line) -> bool:
        """Write the block that begins at this line; False when the line goes on with a paragraph."""
        if line.blank:
            self._close()
            self._break("\n\n")
            self.at += 1
        elif fence := _FENCE.match(line.text):
            self._close()
            self._code(fence[1])
        elif _HEADING.match(line.text):
            self._close()
            self._heading(line)
            self.at += 1
        elif self.paragraph and _UNDERLINE.match(line.text) and (len(self.paragraph) == 1 or "=" in line.text):
            self._close(heading=True)
            self.at += 1
        elif _RULE.match(line.text):
            self._close()
            self._break("\n\n")
            self.at += 1
        elif not self.paragraph and (match := _DEFINITION.match(line.text)):
            if match["id"].startswith("^"):
                self.paragraph.append(_cut(line, match.start("rest")))
            self.at += 1
        elif self._is_table():
            self._close()
            self._table()
        elif bullet := _BULLET.match(line.text):
            self._close()
            self.paragraph.append(_cut(line, bullet.end()))
            self.at += 1
        else:
            return False
        return True

    def _close(self, *, heading: bool = False) -> None:
        """Write the paragraph that has been collected."""
        if not self.paragraph:
            return
        self._break("\n")
        write_inline(self.writer, Content(self.paragraph), self.known, self.mode)
        self.paragraph = []
        if heading:
            self._end_heading()

    def _break(self, ends: str) -> None:
        """Line ends, where something stands before; a blank line makes a paragraph."""
        if self.writer.last and not (self.writer.last == "\n" and ends == "\n"):
            self.writer.add(ends)

    def _heading(self, line: Line) -> None:
        opening = _HEADING.match(line.text)
        body = _cut(line, opening.end() if opening else 0)
        stripped = body.text.rstrip()
        if closing := _HEADING_CLOSE.search(stripped):
            stripped = stripped[: closing.start()]
        self._break("\n")
        content = Content([Line(body.start, body.start + len(stripped), stripped)])
        write_inline(self.writer, content, self.known, self.mode)
        self._end_heading()

    def _end_heading(self) -> None:
        if self.writer.last not in ("", "\n", " "):
            self.writer.heading()
            self.writer.add("\n")

    def _code(self, fence: str) -> None:
        """A fenced block: its lines as they stand; a block without an end goes to the end of the text."""
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.text.lstrip(" ").startswith(fence) and not line.text.strip(" " + fence[0]):
                break
            if not line.blank:
                self._break("\n")
                self.writer.show(line.start, line.end)
        self._break("\n")

    def _is_table(self) -> bool:
        if self.at + 1 >= len(self.lines) or "|" not in self.lines[self.at].text:
            return False
        rule = self.lines[self.at + 1].text
        return "|" in rule and "-" in rule and bool(_DELIMITERS.match(rule))

    def _table(self) -> None:
        """A row is a sentence, a cell a clause; the line of dashes is silent."""
        self._row(self.lines[self.at])
        self.at += 2
        while self.at < len(self.lines) and "|" in self.lines[self.at].text:
            self._row(self.lines[self.at])
            self.at += 1

    def _row(self, line: Line) -> None:
        self._break("\n")
        for match in re.finditer(r"(?:\\.|[^|\\])+", line.text):
            cell = match[0].strip()
            if not cell:
                continue
            start = line.start + match.start() + len(match[0]) - len(match[0].lstrip())
            if self.writer.last.isalnum():
                self.writer.add(", ")
            self.writer.space()
            content = Content([Line(start, start + len(cell), cell)])
            write_inline(self.writer, content, self.known, self.mode)
        if self.writer.last.isalnum():
            self.writer.add(".")
        self._break("\n")


def _cut(line: Line, at: int) -> Line:
    return Line(line.start + at, line.end, line.text[at:])
