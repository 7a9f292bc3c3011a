"""Reads the YAML of pocket_tts configurations: nested maps by indentation, lists of scalars, comments, nothing else.

Anything beyond that (anchors, tags, flow maps, block strings) is refused, so nothing is read as what it is not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sonant.errors import CheckpointError

_QUOTED = re.compile(r"'(?P<single>(?:[^']|'')*)'|\"(?P<double>[^\"\\]*)\"")
_PLAIN = re.compile(r"[\w./:@\-+]+(?: [\w./:@\-+]+)*")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_yaml(path: Path) -> dict[str, Any]:
    """The map that the file holds. CheckpointError with the line that cannot be read."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error
    return _Reader(text, str(path)).map(0)


class _Reader:
    def __init__(self, text: str, where: str) -> None:
        self.where = where
        numbered = [(n, self._uncommented(line)) for n, line in enumerate(text.splitlines(), 1)]
        self.lines = [(n, len(line) - len(line.lstrip(" ")), line.strip()) for n, line in numbered if line.strip()]
        self.at = 0

    def map(self, indent: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while self.at < len(self.lines) and self.lines[self.at][1] >= indent:
            number, found, line = self.lines[self.at]
            if found != indent:
                raise self._error(number, "is indented unexpectedly")
            key, rest = self._key(number, line)
            if key in out:
                raise self._error(number, f"states {key!r} twice")
            self.at += 1
            out[key] = self._scalar(number, rest) if rest else self._nested(indent)
        if not indent and self.at < len(self.lines):
            raise self._error(self.lines[self.at][0], "is indented unexpectedly")
        return out

    def _nested(self, indent: int) -> Any:
        """A list (which may stand at the indentation of its key), a map, or nothing."""
        if self.at == len(self.lines):
            return None
        _, found, line = self.lines[self.at]
        if line.startswith("- ") and found >= indent:
            return self._list(found)
        return self.map(found) if found > indent else None

    def _list(self, indent: int) -> list[Any]:
        out = []
        while self.at < len(self.lines) and self.lines[self.at][1] == indent and self.lines[self.at][2][:2] == "- ":
            number, _, line = self.lines[self.at]
            out.append(self._scalar(number, line[2:].strip()))
            self.at += 1
        return out

    def _key(self, number: int, line: str) -> tuple[str, str]:
        quoted = _QUOTED.match(line)
        key, rest = (self._unquoted(quoted), line[quoted.end():]) if quoted else line.partition(":")[::2]
        if quoted:
            if not rest.startswith(":"):
                raise self._error(number, "is not `key: value`")
            rest = rest[1:]
        elif ":" not in line or not re.fullmatch(r"\w+", key):
            raise self._error(number, "is not `key: value`")
        return key, rest.strip()

    def _scalar(self, number: int, text: str) -> Any:
        quoted = _QUOTED.fullmatch(text)
        if quoted:
            return self._unquoted(quoted)
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if _NUMBER.fullmatch(text):
            return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
        if not _PLAIN.fullmatch(text):
            raise self._error(number, f"has a value that is not a plain one: {text!r:.60}")
        return text

    @staticmethod
    def _unquoted(match: re.Match[str]) -> str:
        double = match["double"]
        return double if double is not None else match["single"].replace("''", "'")

    @staticmethod
    def _uncommented(line: str) -> str:
        """Up to a # that begins the line or follows a space, outside quotes."""
        quote = ""
        for i, c in enumerate(line):
            if quote:
                quote = "" if c == quote else quote
            elif c in "'\"" and (i == 0 or line[i - 1] in " -'"):  # a quote doubled inside one opens it again
                quote = c
            elif c == "#" and (i == 0 or line[i - 1] == " "):
                return line[:i]
        return line

    def _error(self, number: int, what: str) -> CheckpointError:
        return CheckpointError(f"{self.where}, line {number}: {what}")
