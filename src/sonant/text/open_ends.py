"""How far a text that is still being written can be read: what comes may close a tag, a link, a comment, a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LOOK_BACK_CHARS = 3_200
# [tag, [word], [word](/phonemes, or a backslash that may escape what follows: at the very end, not closed.
_OPEN_MARK = re.compile(r"(?:\\|\[[^\[\]\n]{0,200}(?:\](?:\((?:/[^/\n]{0,400}/?)?)?)?)\Z")
# The same for Markdown's [text](target), [text][name], ![image], <tags> and &entities;
_OPEN_TARGET = (
    r"\(\s*(?:<[^<>\n]{0,2000}>?|(?:[^\s()]|\([^\s()]{0,500}\)?){0,2000})"
    r"(?:\s+(?:\"[^\"]{0,500}\"?|'[^']{0,500}'?|\([^()]{0,500}\)?)?)?\s*"
)
_OPEN_LINK = re.compile(
    rf"(?:\\|!?\[[^\[\]\n]{{0,500}}(?:\](?:{_OPEN_TARGET}|\[[^\[\]\n]{{0,200}})?)?"
    r"|!|~|<[^<>\n]{0,400}|&[#\w]{0,24})\Z"
)
_CODE_OR_STRUCK = re.compile(r"`+|~~")
# A line that has only begun may become a list, a heading, a fence, a rule, an underline of the line before.
_OPEN_LINE = re.compile(r"(?:\n|\A)[ \t>]*(?:\d{1,9}[.)]?[ \t]*|[-*+_=#`~|: \t]*)\Z")
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.MULTILINE)
_FRONT_MATTER_START = re.compile(r"---[ \t]*\n")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:[^\n]*\n){0,400}?(?:---|\.\.\.)[ \t]*\n")
_FRONT_MATTER_LINES = 400
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ROW = re.compile(r"[ \t>]*\|")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")


def settled_marks(text: str) -> int:
    """Up to where a plain text with tags (markup.py) reads the same however it goes on."""
    return _open_from(_OPEN_MARK, text)


def settled_markdown(text: str) -> int:
    """The same for Markdown up to its `open_block`."""
    return min(_open_from(_OPEN_LINK, text), _open_from(_OPEN_LINE, text), _open_span(text))


def open_block(text: str, *, is_first: bool) -> int:
    """Where a block of Markdown begins that goes on at the end of the text: front matter, code, a comment, a table.

    is_first: the text begins here, so it may begin with front matter.
    """
    if is_first and _in_front_matter(text):
        return 0
    comment = text.rfind("<!--")
    found = [len(text) if comment < 0 or "-->" in text[comment:] else comment, _last_table(text)]
    found += [start for start, end in _code_blocks(text) if end is None]
    return min(found)


class Blocks:
    """The blocks of a Markdown text in which it is not to be cut."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._code = list(_code_blocks(text))

    def inside(self, end: int, start: int) -> bool:
        """Is what lies between `end` of one word and `start` of the next inside of a heading, a table, or code?

        The rows of a table are lines that begin with a bar.
        """
        text = self._text
        first = text.rfind("\n", 0, end) + 1
        if "\n" not in text[end:start] and _HEADING.match(text, first):
            return True
        last = text.find("\n", start)
        if all(map(_ROW.match, text[first : len(text) if last < 0 else last].split("\n"))):
            return True
        return any(opened < end and (closed is None or start < closed) for opened, closed in self._code)

    def blank_line(self, start: int, end: int) -> int | None:
        """Where the first blank line of text[start:end] begins that ends a paragraph, not in code or a comment."""
        hidden = [*self._code, *(match.span() for match in _COMMENT.finditer(self._text))]
        for match in _BLANK_LINE.finditer(self._text, start, end):
            if not any(first < match.start() and (last is None or match.start() < last) for first, last in hidden):
                return match.start()
        return None


def _open_from(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text, max(0, len(text) - _LOOK_BACK_CHARS))
    return found.start() if found else len(text)


def _open_span(text: str) -> int:
    """Where `code` or ~~struck~~ text begins that its paragraph has not closed yet."""
    blank = [match.end() for match in _BLANK_LINE.finditer(text)]
    marks = list(_CODE_OR_STRUCK.finditer(text, blank[-1] if blank else 0))
    at = 0
    while at < len(marks):
        same = (i for i in range(at + 1, len(marks)) if marks[i][0] == marks[at][0])
        closing = next((i for i in same if marks[i].end() < len(text)), None)  # at the end, it may become longer
        if closing is None:
            return marks[at].start()
        at = closing + 1
    return len(text)


def _in_front_matter(text: str) -> bool:
    if len(text) < 4:
        return "---\n".startswith(text)
    if not _FRONT_MATTER_START.match(text):
        return text.startswith("---") and not text[3:].strip(" \t")
    return not _FRONT_MATTER.match(text) and text.count("\n") <= _FRONT_MATTER_LINES


def _code_blocks(text: str) -> Iterator[tuple[int, int | None]]:
    """Where each fenced block begins and ends; None while it is open."""
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[0].strip().startswith(opened[0].strip()):
            yield opened.start(), fence.end()
            opened = None
    if opened is not None:
        yield opened.start(), None


def _last_table(text: str) -> int:
    """Where the rows at the end of the text begin."""
    begun = len(text.rstrip(" \t>"))
    start = begun if text[begun - 1 : begun] == "\n" else len(text)
    while start > 0 and _ROW.match(text, line := text.rfind("\n", 0, start - 1) + 1, start):
        start = line
    return start if start < begun else len(text)
