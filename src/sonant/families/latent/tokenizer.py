"""Unigram tokenizer with byte fallback: text → token ids, each with its place in the text.

The same model comes in two files: tokenizer.json (tokenizer_json.py) and a SentencePiece .model (sentencepiece.py).
Both say how a text is normalized, then the row of pieces with the highest sum of scores is chosen (Viterbi).

Why not the packages `tokenizers` and `sentencepiece`: importing `tokenizers` alone takes 85 ms and brings
huggingface_hub, its offsets of spelled characters are those of the whole run, and the browser needs rules that it can
follow. So they are oracles of the tests, and the offsets here go through the same Traced as every other step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sonant.errors import CheckpointError, InputError
from sonant.families.latent.traced import Traced

SPACE = "▁"
LARGEST_FILE = 64 * 1024 * 1024
_UNKNOWN_PENALTY = 10.0
# Words come again: in the same text, and when a chunk that was cut is encoded on its own.
_REMEMBERED_WORDS, _LONGEST_WORD = 4096, 32
_SURROGATES = re.compile("[\ud800-\udfff]")
_VERSIONED = re.compile(r"tokenizer\.(\d{1,4}(?:\.\d{1,4}){0,3})\.json")


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids; for each the characters of the text that it stands for, and the normalized text it reads.

    The second and later bytes of one character have its span and no text of their own.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    said: tuple[Traced, ...] = field(repr=False)

    def text(self, first: int, last: int) -> Traced:
        """What the tokens [first:last] decode to, without the space before the first."""
        text = Traced.join(self.said[first:last]).translate({SPACE: " "})
        return text[1:] if text.text.startswith(" ") else text


@dataclass(frozen=True)
class Vocabulary:
    """Pieces that text is matched with, and what stands for the rest.

    scores: piece → (id, score). names: every piece with its id. bytes: 256 ids, or empty without byte fallback.
    number: the type scores are summed in; SentencePiece sums float32, and near ties fall accordingly.
    """

    scores: Mapping[str, tuple[int, float]]
    names: Mapping[str, int]
    size: int
    unknown_id: int | None
    lowest: float
    bytes: tuple[int, ...] = ()
    number: Callable[[float], Any] = float

    @property
    def longest(self) -> int:
        return max(map(len, self.scores), default=1)


class Tokenizer:
    """One may serve every thread: nothing in it changes but a bounded memory of words.

    normalize: what happens to the whole text first. split: the stretches in which pieces are sought one by one; it is
    also told where the text starts.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        normalize: Callable[[Traced], Traced],
        split: Callable[[Traced, int], Sequence[Traced]],
    ) -> None:
        self._vocabulary = vocabulary
        self._normalize = normalize
        self._split = split
        self._longest = vocabulary.longest
        self._best_of_word = lru_cache(_REMEMBERED_WORDS)(self._best)

    @staticmethod
    def load(path: str | Path) -> Tokenizer:
        """From a tokenizer.json or a SentencePiece .model. CheckpointError says what is wrong with the file."""
        from sonant.families.latent.sentencepiece import read_sentencepiece
        from sonant.families.latent.tokenizer_json import read_tokenizer_json

        path = Path(path)
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise CheckpointError(f"{path.name} is larger than {LARGEST_FILE >> 20} MiB; wanted a tokenizer")
            data = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"tokenizer {path.name} cannot be read: {error.strerror or error}") from error
        read = read_tokenizer_json if data[:64].lstrip().startswith(b"{") else read_sentencepiece
        return read(data, path.name)

    @property
    def vocab_size(self) -> int:
        return self._vocabulary.size

    def token_id(self, piece: str) -> int:
        """The id of a piece as the file spells it. InputError when the file has no such piece."""
        found = self._vocabulary.names.get(piece)
        if found is None:
            raise InputError(f"the tokenizer has no piece {piece!r}; it has {self.vocab_size} others")
        return found

    def encode(self, text: str | Traced) -> Encoding:
        """Ids and their places: in the text, or in the original of a Traced."""
        traced = Traced.of(text) if isinstance(text, str) else text
        ids: list[int] = []
        said: list[Traced] = []
        spans: list[tuple[int, int]] = []
        origin = traced.start
        for part in self._split(self._normalize(traced), origin):
            best = self._best_of_word if len(part) <= _LONGEST_WORD else self._best
            for first, last, found in best(part.text):
                own = part[first:last]
                numbers = (found,) if found is not None else self._spelled(own.text)
                ids += numbers
                said += (own, *[own[:0]] * (len(numbers) - 1))
                spans += [(own.start, own.end)] * len(numbers)
        return Encoding(tuple(ids), tuple(spans), tuple(said))

    def _spelled(self, letter: str) -> tuple[int, ...]:
        """The bytes of a character that no piece has. A lone surrogate has none, so U+FFFD stands for it."""
        return tuple(self._vocabulary.bytes[byte] for byte in encodable(letter).encode())

    def _best(self, text: str) -> list[tuple[int, int, int | None]]:
        """The pieces of the highest score: [start, end) and the id, None for one to be spelled in bytes."""
        vocabulary, number, size = self._vocabulary, self._vocabulary.number, len(text)
        unknown = number(vocabulary.lowest - _UNKNOWN_PENALTY)
        best: list[Any] = [None] * (size + 1)
        from_where: list[tuple[int, int | None]] = [(0, None)] * (size + 1)
        best[0] = number(0.0)
        for at in range(size):
            so_far, single = best[at], False
            for end in range(at + 1, min(at + self._longest, size) + 1):
                entry = vocabulary.scores.get(text[at:end])
                if entry is None:
                    continue
                single = single or end == at + 1
                score = so_far + number(entry[1])
                if best[end] is None or score > best[end]:
                    best[end], from_where[end] = score, (at, entry[0])
            if not single:
                score = so_far + unknown
                if best[at + 1] is None or score > best[at + 1]:
                    best[at + 1], from_where[at + 1] = score, (at, vocabulary.unknown_id)
        return self._read_back(from_where)

    def _read_back(self, from_where: Sequence[tuple[int, int | None]]) -> list[tuple[int, int, int | None]]:
        """From the end to the start; unknown characters in a row are one token unless they are spelled in bytes."""
        vocabulary = self._vocabulary
        found: list[tuple[int, int, int | None]] = []
        end = len(from_where) - 1
        while end:
            start, piece = from_where[end]
            last = end
            if piece == vocabulary.unknown_id:
                if vocabulary.bytes:
                    piece = None
                elif found and found[-1][2] == piece:
                    last = found.pop()[1]
            found.append((start, last, piece))
            end = start
        return found[::-1]


def encodable(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which UTF-8 cannot write."""
    return _SURROGATES.sub("\ufffd", text)


def versioned_file(folder: Path) -> Path:
    """The file that tokenizer_config.json names for the newest readers (`fast_tokenizer_files`), else tokenizer.json.

    That file brings normalizer rules of its own; tokenizer.json is for text that went through normalize/.
    """
    try:
        config = json.loads((folder / "tokenizer_config.json").read_bytes())
        names = config.get("fast_tokenizer_files", [])
        matches = [match for match in map(_VERSIONED.fullmatch, names) if match]
        known = sorted((tuple(map(int, match[1].split("."))), match[0]) for match in matches)
    except FileNotFoundError:
        known = []
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(f"tokenizer_config.json cannot be read: {error}") from error
    return folder / (known[-1][1] if known else "tokenizer.json")
