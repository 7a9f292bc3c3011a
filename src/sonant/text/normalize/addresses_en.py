"""Mail and web addresses, file names and paths, #hashtags and @handles: every sign of them counts."""

from __future__ import annotations

import re

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.written_en import Bodies, Written, plain_number, word_tokens
from sonant.text.spans import SAID, SPELLED, Token

_SCHEME = re.compile(r"^(?:(?:https?|ftp|file)://|mailto:|tel:)", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:https?://|ftp://|file://|mailto:|www\.)\S+$|[\w.+-]+@[\w-]+(?:\.[\w-]+)+$|localhost(?::\d+)?(?:/\S*)?$",
    re.IGNORECASE,
)
_DOMAIN = re.compile(r"(?:[\w-]+\.)+([a-z]{2,4})(?:[/:?]\S*)?$", re.IGNORECASE)
_FILE = re.compile(r"[\w./\\~:+-]*?[\w-]\.(?P<extension>[A-Za-z][A-Za-z0-9]{0,4})$")
_PATH = re.compile(r"(?:~|\.{0,2})/[\w.-]+(?:/[\w.-]*)*$|[A-Za-z]:\\\S+$|\\\\\S+$")
_PARTS = re.compile(r"[^\W\d_]+|\d+|.", re.DOTALL)
_TAG = re.compile(r"(?:[#@](?=[^\W\d_])|#\d+(?=[^\W\d_]))[\w-]+$")
_SHARP = re.compile(r"([A-G])#$")


def address(line: list[Written], i: int) -> Bodies | None:
    """Mail and web addresses, character class by character class."""
    core = line[i].core
    domain = _DOMAIN.match(core)
    if not _ADDRESS.match(core) and not (domain and domain[1].lower() in tables.DOMAINS and not core[0].isdecimal()):
        return file_name(line, i)
    core = _SCHEME.sub("", core)
    return [[token for part in _PARTS.findall(core) for token in _part(part, line[i].index)]]


def _part(part: str, index: int) -> list[Token]:
    if part.isdecimal():
        return [Token(numbers.grouped(part), index, SAID)]
    if part in tables.ADDRESS_SYMBOLS:
        return [Token(tables.ADDRESS_SYMBOLS[part], index, SAID)]
    if part.lower() == "www":
        return [Token("www", index, SPELLED, spoken="w w w")]
    if not part.isalpha():
        return []
    # Short unknown parts of an address are spelled, but .gov is said as a word.
    return [Token(part, index, tag=None if part.lower() == "gov" else "ADD")]


def file_name(line: list[Written], i: int) -> Bodies | None:
    """report.pdf, src/main.rs, /usr/local/bin, C:\\Users: the ending as people say it."""
    core, index = line[i].core, line[i].index
    match = _FILE.match(core)
    extension = match["extension"] if match else ""
    if extension.lower() not in tables.EXTENSIONS:
        if not _PATH.match(core):
            return None
        extension = ""
    stem = core[: len(core) - len(extension)] if extension else core
    tokens = []
    for at, part in enumerate(_PARTS.findall(stem)):
        if part.isalpha():
            tokens += word_tokens(part, index)
        elif part.isdecimal():
            tokens.append(Token(plain_number(part), index, SAID))
        elif part not in "-_" and (at or part in "/\\~."):
            tokens += _part(part, index)
    if extension:
        said = tables.EXTENSIONS[extension.lower()] or extension.upper()
        spelled = not tables.EXTENSIONS[extension.lower()]
        shown = " ".join(said) if spelled else ""
        tokens.append(Token(said, index, SPELLED if spelled else SAID, spoken=shown))
    return [tokens]


def social(line: list[Written], i: int) -> Bodies | None:
    """#tag, @name, C#."""
    core, index = line[i].core, line[i].index
    if match := _SHARP.match(core):
        return [[Token(match[1], index, SPELLED), Token("sharp", index)]]
    if not _TAG.match(core):
        return None
    tokens = [Token("hashtag" if core[0] == "#" else "at", index, SAID)]
    for part in _PARTS.findall(core[1:]):
        if part.isalpha():
            tokens += word_tokens(part, index)
        elif part.isdecimal():
            tokens.append(Token(plain_number(part), index, SAID))
    return [tokens]
