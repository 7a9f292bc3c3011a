"""The user's own words for models that read letters: a word is written in another way, never given as phonemes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sonant.errors import InputError, TextError
from sonant.families.latent.traced import Traced
from sonant.text.lexicon_file import LARGEST_FILE, read_pls

_PLS_SUFFIXES = (".pls", ".xml")
# Letters of Latin scripts, and what stands between letters in ordinary spelling.
_SPELLING = re.compile(r"[A-Za-zÀ-ÖØ-öø-ſ0-9 .,'’-]+")
_CORE = re.compile(r"(?P<before>\W*)(?P<core>\w.*?)(?P<after>\W*)", re.DOTALL)
_NO_PHONEMES = (
    "lexicon: {what}; this model reads letters and takes no phonemes. Give another spelling (nginx: engine ex), or "
    "speak with a model that has phonemes (Kokoro)"
)


class Respellings:
    """What is read for a written word. A word in lower case is found in any case, one with a capital as written."""

    def __init__(self, find: Callable[[str], str | None] | None = None) -> None:
        self._find = find

    @staticmethod
    def load(source: str | os.PathLike[str] | Mapping[str, str] | None) -> Respellings:
        """From {word: spelling}, a TSV file of the same, or a PLS file with aliases.

        Raises InputError for phonemes, TextError for a file that cannot be read.
        """
        if source is None:
            return Respellings()
        if isinstance(source, Mapping):
            return _of(source)
        path = Path(source)
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise TextError(f"lexicon {path.name} is larger than {LARGEST_FILE >> 20} MiB")
            data = path.read_bytes()
        except OSError as error:
            raise TextError(f"lexicon {path.name} cannot be read: {error.strerror or error}") from error
        return _aliases(data, path.name) if path.suffix.lower() in _PLS_SUFFIXES else _of(_rows(data, path.name))

    def apply(self, text: Traced) -> Traced:
        """Every word of the lexicon in its other spelling, with the signs around it."""
        if self._find is None:
            return text
        return text.respelled_words(self._said)

    def _said(self, word: str) -> str:
        assert self._find
        match = _CORE.fullmatch(word)
        said = self._find(match["core"].replace("’", "'")) if match else None
        return f"{match['before']}{said}{match['after']}" if match and said else word


def _of(entries: Mapping[str, str]) -> Respellings:
    known = {}
    for word, said in entries.items():
        if not isinstance(said, str) or not _SPELLING.fullmatch(said.strip()):
            raise InputError(_NO_PHONEMES.format(what=f"{word!r} is given as {said!r}"))
        known[str(word).strip().replace("’", "'")] = said.strip()
    return Respellings(lambda word: known.get(word) or known.get(word.lower()))


def _rows(data: bytes, name: str) -> dict[str, str]:
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not UTF-8 (byte {error.start})") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, tab, said = line.strip("\r").partition("\t")
        if not tab or len(word.split()) != 1:
            raise TextError(f"{name}, line {number}: wanted one word, a tab and its other spelling")
        found[word] = said
    return found


def _aliases(data: bytes, name: str) -> Respellings:
    lexicon = read_pls(data, name)
    if b"phoneme" in data.replace(b"\0", b""):  # UTF-16 has zeros between the letters
        raise InputError(_NO_PHONEMES.format(what=f"{name} has <phoneme>"))

    def find(word: str) -> str | None:
        spoken = lexicon.get(word)
        return spoken.alias if spoken else None

    return Respellings(find)
