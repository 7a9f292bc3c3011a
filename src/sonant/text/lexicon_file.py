"""The user's own words: a TSV file, a W3C pronunciation lexicon (PLS), or a mapping.

TSV has a word, a tab and its phonemes on each line; # begins a comment. PLS is XML in the phonetic alphabet "ipa",
which ipa.py turns into the voices' own. A word in lower case is found in any case, one with a capital only as written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

from sonant.errors import TextError
from sonant.text.ipa import from_ipa
from sonant.text.script import checked_phonemes

LARGEST_FILE = 64 * 1024 * 1024
_PLS_SUFFIXES = (".pls", ".xml")
_OWN_ALPHABETS = ("x-misaki", "x-kokoro", "misaki", "kokoro")


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a word of a lexicon is said as: phonemes, or other words (`alias`)."""

    phonemes: str = ""
    alias: str = ""


class UserLexicon:
    """Read-only map from a written word to its Spoken."""

    def __init__(self, entries: Mapping[str, Spoken]) -> None:
        self._entries = dict(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, word: str) -> Spoken | None:
        """As written, else in lower case: an entry with a capital stands for that spelling only."""
        return self._entries.get(word) or self._entries.get(word.lower())

    @staticmethod
    def load(source: str | os.PathLike[str] | Mapping[str, str]) -> UserLexicon:
        """From a file (.pls and .xml are PLS, anything else TSV) or from {word: phonemes}.

        Raises TextError naming the line (or the word) and the symbol that no voice knows.
        """
        if isinstance(source, Mapping):
            return UserLexicon({_word(word, repr(word)): _phonemes(said, repr(word)) for word, said in source.items()})
        path = Path(source)
        try:
            found = path.stat()
            if found.st_size > LARGEST_FILE:
                raise TextError(f"lexicon {path.name} is larger than {LARGEST_FILE >> 20} MiB")
            return _read_file(path.absolute(), found.st_mtime_ns, found.st_size)
        except OSError as error:
            raise TextError(f"lexicon {path.name} cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=4)
def _read_file(path: Path, _mtime_ns: int, _size: int) -> UserLexicon:
    """Read again only when it has changed."""
    read = read_pls if path.suffix.lower() in _PLS_SUFFIXES else read_tsv
    return read(path.read_bytes(), path.name)


def read_tsv(data: bytes, name: str = "lexicon") -> UserLexicon:
    """From the bytes of a TSV file."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not UTF-8 (byte {error.start})") from error
    entries: dict[str, Spoken] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, tab, said = line.strip("\r").partition("\t")
        where = f"{name}, line {number}"
        if not tab:
            raise TextError(f"{where}: no tab; wanted a word, a tab and its phonemes")
        entries[_word(word, where)] = _phonemes(said, where)
    return UserLexicon(entries)


def _word(word: Any, where: str) -> str:
    if not isinstance(word, str) or len(word.split()) != 1:
        raise TextError(f"{where}: {word!r} is not one word")
    return word.strip().replace("’", "'")


def _phonemes(said: Any, where: str) -> Spoken:
    phonemes = said.strip() if isinstance(said, str) else ""
    if not phonemes:
        raise TextError(f"{where}: no phonemes; wanted a string of them, as `sonant phonemize` prints")
    return Spoken(checked_phonemes(phonemes, where))


def read_pls(data: bytes, name: str = "lexicon") -> UserLexicon:
    """From the bytes of a PLS document. A DTD is refused, so no entity is ever expanded."""
    return _PlsReader(name).read(data)


class _PlsReader:
    """Collects lexemes while expat walks over the document; the first phoneme or alias of a lexeme counts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.entries: dict[str, Spoken] = {}
        self.alphabet = self.own_alphabet = "ipa"
        self.british = False
        self.graphemes: list[str] = []
        self.said: Spoken | None = None
        self.text: list[str] | None = None

    def read(self, data: bytes) -> UserLexicon:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            raise TextError(f"{self.name}, line {error.lineno}: not well-formed XML ({error})") from error
        return UserLexicon(self.entries)

    @property
    def where(self) -> str:
        return f"{self.name}, line {self.parser.CurrentLineNumber}"

    def _refuse(self, *_: Any) -> None:
        raise TextError(f"{self.where}: a document type is refused; remove <!DOCTYPE …>")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if tag == "lexicon":
            self.alphabet = attributes.get("alphabet", "ipa")
            language = attributes.get("http://www.w3.org/XML/1998/namespace lang", "")
            self.british = language.lower().startswith("en-gb")
        elif tag == "lexeme":
            self.graphemes, self.said = [], None
        elif tag in ("grapheme", "phoneme", "alias"):
            self.text = []
            self.own_alphabet = attributes.get("alphabet", self.alphabet)

    def _characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(" ")[2]
        text = " ".join("".join(self.text or []).split())
        if tag == "grapheme":
            self.graphemes.append(_word(text, self.where))
        elif tag == "phoneme" and self.said is None:
            self.said = self._phoneme(text)
        elif tag == "alias" and self.said is None:
            self.said = Spoken(alias=text)
        elif tag == "lexeme" and self.said:
            self.entries.update(dict.fromkeys(self.graphemes, self.said))
        if tag in ("grapheme", "phoneme", "alias"):
            self.text = None

    def _phoneme(self, text: str) -> Spoken:
        alphabet = self.own_alphabet.lower()
        if alphabet in _OWN_ALPHABETS:
            return _phonemes(text, self.where)
        if alphabet != "ipa":
            raise TextError(f"{self.where}: the alphabet {self.own_alphabet!r} is not known; wanted ipa or x-misaki")
        return _phonemes(from_ipa(text, british=self.british), self.where)
