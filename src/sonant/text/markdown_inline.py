"""What stands inside a block of Markdown: emphasis, code, links, images, notes, entities, and the tags of markup.py.

Each pass is linear: openers wait on a stack until their closer comes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from html import unescape
from typing import Protocol

from sonant.text.markup import drop, write_tag
from sonant.text.script import ScriptWriter

_MARK = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])|(?P<code>`+)|(?P<run>\*+|_+|~~)|(?P<open>!?\[)|(?P<close>\])"
    r"|(?P<comment><!--)|(?P<angle><(?:https?://|mailto:)?[^<>\s](?:[^<>\n]{0,400})>)|(?P<entity>&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w{2,24});)"
)
_TARGET = re.compile(
    r"\(\s*(?:<[^<>\n]{0,2000}>|(?:[^\s()]|\([^\s()]{0,500}\)){0,2000})"
    r"(?:\s+(?:\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,500}\)))?\s*\)"
)
_PHONEMES = re.compile(r"\(/([^/\n]{0,400})/\)")
_REFERENCE = re.compile(r"\[([^\[\]\n]{0,200})\]")
_DEFINED = re.compile(r" {0,3}\[([^\]\n]{1,200})\]:")
_AUTOLINK = re.compile(r"<(?:https?://|mailto:)?\S+>$")
_TAG_NAME = re.compile(r"</?[a-zA-Z][\w-]*(?:[\s/][^<>]*)?>$")


class Stretch(Protocol):
    """A part of the original with its text."""

    start: int
    text: str


class Content:
    """The text of a block, its lines joined by line ends, and where each line is in the original."""

    def __init__(self, lines: Sequence[Stretch]) -> None:
        pieces, self._starts, self._origins = [], [], []
        size = 0
        for line in lines:
            text = line.text.rstrip()
            hard = line.text.endswith("  ") or text.endswith("\\")
            text = text[:-1] if text.endswith("\\") else text
            body = text.lstrip()
            self._starts.append(size)
            self._origins.append(line.start + len(text) - len(body))
            pieces.append(body + ("\n" if hard else " "))
            size += len(pieces[-1])
        self.text = "".join(pieces).rstrip()

    def show(self, writer: ScriptWriter, start: int, end: int) -> None:
        """Write text[start:end]: the lines from the original, what joins them as it is here."""
        while start < end:
            at = bisect_right(self._starts, start) - 1
            following = self._starts[at + 1] if at + 1 < len(self._starts) else len(self.text) + 1
            stop = min(end, following - 1)
            if stop > start:
                origin = self._origins[at] + start - self._starts[at]
                writer.show(origin, origin + stop - start)
            if stop < end:
                writer.add(self.text[stop])
            start = stop + 1

    def origin(self, at: int) -> int:
        line = bisect_right(self._starts, at) - 1
        return self._origins[line] + at - self._starts[line]


def definitions(lines: Iterable[str]) -> frozenset[str]:
    """The names that [name]: lines define, lower case."""
    return frozenset(match[1].lower() for line in lines if (match := _DEFINED.match(line)))


# A hidden or replaced stretch: (start, end, what to do). Actions: "" hides; others are named below.
Action = tuple[int, int, str, str]
_LONGEST_LABEL = 500
_HIDE, _TAG, _UNKNOWN, _GIVE, _CHARACTER, _SPACE = "", "tag", "unknown", "give", "character", "space"


def write_inline(writer: ScriptWriter, content: Content, known: frozenset[str], mode: str) -> None:
    """Write what is read of a block."""
    text = content.text
    actions = sorted(_Scan(text, known, mode).actions())
    at = 0
    for start, end, action, detail in actions:
        if start < at:
            continue  # inside of what has been dealt with
        content.show(writer, at, start)
        at = end
        if action == _SPACE:
            writer.space()
        elif action == _CHARACTER:
            writer.show(content.origin(start), content.origin(end - 1) + 1, detail)
        elif action == _GIVE:
            inner = text.index("]", start)
            writer.give(content.origin(start + 1), content.origin(inner - 1) + 1, detail)
        elif (action == _TAG and not write_tag(writer, detail)) or action == _UNKNOWN:
            drop(writer, text[start:end], text[end : end + 1])
    content.show(writer, at, len(text))


class _Scan:
    """One pass over the marks of a block: a method for every group of _MARK, which returns where to go on."""

    def __init__(self, text: str, known: frozenset[str], mode: str) -> None:
        self.text, self.known, self.mode = text, known, mode
        self.found: list[Action] = []
        self.brackets: list[int] = []
        self.comments_close = True
        self.code_ends = _code_ends(text)
        self.openers: dict[str, list[list[int]]] = {"*": [], "_": [], "~": []}
        """By sign: [place, how many are still open]."""

    def actions(self) -> list[Action]:
        at = 0
        while match := _MARK.search(self.text, at):
            handler: Callable[[re.Match[str]], int] = getattr(self, f"_{match.lastgroup}")
            at = handler(match)
        return self.found

    def _escape(self, match: re.Match[str]) -> int:
        self.found.append((match.start(), match.start() + 1, _HIDE, ""))
        return match.end()

    def _code(self, match: re.Match[str]) -> int:
        start, end = match.span()
        closing = self.code_ends.get(start)
        if closing is None:
            return end
        self.found += [(start, end, _HIDE, ""), (closing, closing + end - start, _HIDE, "")]
        return closing + end - start

    def _open(self, match: re.Match[str]) -> int:
        self.brackets.append(match.start())
        return match.end()

    def _comment(self, match: re.Match[str]) -> int:
        end = self.text.find("-->", match.end()) if self.comments_close else -1
        self.comments_close = end >= 0
        if end < 0:
            return match.end()
        self.found.append((match.start(), end + 3, _HIDE, ""))
        return end + 3

    def _entity(self, match: re.Match[str]) -> int:
        if (character := unescape(match[0])) != match[0]:
            self.found.append((*match.span(), _SPACE if character.isspace() else _CHARACTER, character))
        return match.end()

    def _run(self, match: re.Match[str]) -> int:
        start, end = match.span()
        text, sign, size = self.text, self.text[start], end - start
        before, after = text[start - 1 : start], text[end : end + 1]
        opens = bool(after) and not after.isspace() and not (_is_mark(after) and before.isalnum())
        closes = bool(before) and not before.isspace() and not (_is_mark(before) and after.isalnum())
        if sign == "_":  # never inside a word
            opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
        waiting = self.openers[sign]
        if closes:
            while size and waiting:
                opener = waiting[-1]
                paired = min(size, opener[1])
                opener[1] -= paired
                self.found.append((opener[0] + opener[1], opener[0] + opener[1] + paired, _HIDE, ""))
                self.found.append((start, start + paired, _HIDE, ""))
                start, size = start + paired, size - paired
                if not opener[1]:
                    waiting.pop()
        if size and opens:
            waiting.append([start, size])
        return end

    def _close(self, match: re.Match[str]) -> int:
        at = match.end()
        if not self.brackets:
            return at
        text = self.text
        opening = self.brackets.pop()
        image = text[opening] == "!"
        inside = text[opening + 1 + image : at - 1] if at - opening < _LONGEST_LABEL else "["
        # [docs](/docs/) is a link; phonemes have signs that no address has.
        if (given := _PHONEMES.match(text, at)) and not given[1].isascii() and self._may_be_tag(inside):
            self.found.append((opening, given.end(), _GIVE, given[1]))
            return given.end()
        if target := _TARGET.match(text, at):
            return self._link(opening, at, target.end(), image)
        if (reference := _REFERENCE.match(text, at)) and (reference[1] or inside).lower() in self.known:
            return self._link(opening, at, reference.end(), image)
        if inside.startswith("^"):
            self.found.append((opening, at, _HIDE, ""))
        elif inside.lower() in self.known:
            return self._link(opening, at, at, image)
        elif self._may_be_tag(inside) and not image:
            self._tag(opening, at, inside)
        return at

    def _may_be_tag(self, inside: str) -> bool:
        return self.mode != "off" and bool(inside) and "[" not in inside

    def _tag(self, opening: int, end: int, inside: str) -> None:
        if write_tag(ScriptWriter(""), inside):
            self.found.append((opening, end, _TAG, inside))
        elif self.mode == "strict":
            self.found.append((opening, end, _UNKNOWN, inside))

    def _link(self, opening: int, close: int, end: int, image: bool) -> int:
        self.found += [(opening, opening + 1 + image, _HIDE, ""), (close - 1, end, _HIDE, "")]
        return end

    def _angle(self, match: re.Match[str]) -> int:
        tag, (start, end) = match[0], match.span()
        if _AUTOLINK.match(tag) and ("://" in tag or "@" in tag):
            self.found += [(start, start + 1, _HIDE, ""), (end - 1, end, _HIDE, "")]
        elif _TAG_NAME.match(tag):
            is_break = tag[1:3].lower() == "br"
            self.found.append((start, end, _SPACE if is_break else _HIDE, ""))
        return end


def _code_ends(text: str) -> dict[int, int]:
    """For every run of back quotes that has one, the place of the next run of the same length."""
    ends: dict[int, int] = {}
    following: dict[int, int] = {}
    for match in reversed(list(re.finditer("`+", text))):
        size = match.end() - match.start()
        if size in following:
            ends[match.start()] = following[size]
        following[size] = match.start()
    return ends


def _is_mark(character: str) -> bool:
    return not character.isalnum() and not character.isspace()
