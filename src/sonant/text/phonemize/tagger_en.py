"""Parts of speech for English, as far as pronunciation needs them: a hashed linear tagger, left to right.

The weights (data/en.tagger) were trained by tools/train_tagger.py; the tag set is Penn's, cut to what a
lexicon variant or a special word asks for. A token whose tag is already known (marks, numbers) is context only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from sonant.errors import CheckpointError

MAGIC = b"SONTAG1\n"
HEADER = struct.Struct("<8sII")
TAGS = (
    "NN", "NNP", "VB", "VBD", "VBN", "VBP", "VBG", "VBZ", "MD", "JJ", "RB", "DT", "WDT",
    "IN", "RP", "TO", "PRP", "PRP$", "POS", "CC", "EX", "UH", "CD", "MARK",
)  # fmt: skip
_COARSE = {
    "NNS": "NN", "NNPS": "NNP", "JJR": "JJ", "JJS": "JJ", "RBR": "RB", "RBS": "RB", "PDT": "DT", "WP": "WDT",
    "WP$": "WDT", "WRB": "WDT", "FW": "NN", "LS": "CD",
}  # fmt: skip


def coarse(tag: str) -> str:
    """Penn's tag cut to TAGS."""
    tag = _COARSE.get(tag, tag)
    return tag if tag in TAGS else "MARK"


def shape(word: str) -> str:
    """How a word is written: lower, Title, UPPER, one capital, mixed."""
    if word.islower():
        return "l"
    if word.isupper():
        return "I" if len(word) == 1 else "U"
    return "T" if word[:1].isupper() and word[1:].islower() else "m"


def known_tag(word: str) -> str | None:
    """The tag of a token that needs no model: MARK without letters or digits, CD with a digit."""
    if any(letter.isdigit() for letter in word):
        return "CD"
    return None if any(letter.isalpha() for letter in word) else "MARK"


def written_features(words: Sequence[str]) -> list[list[int]]:
    """Hashes of the features of each token that do not depend on tags."""
    plain = ["", "", *("#" if known_tag(word) == "CD" else word.lower() for word in words), "", ""]
    shapes = [shape(word) for word in words]
    rows = []
    for i, word in enumerate(words):
        before2, before, own, after, after2 = plain[i : i + 5]
        opening = "^" if not before or before in ".?!\"“”'‘`:—…" else "-"
        names = (
            "w" + own,
            "s3" + own[-3:] + shapes[i],
            "s2" + own[-2:],
            "s4" + own[-4:],
            "p3" + own[:3],
            "c" + shapes[i] + opening,
            "C" + own + shapes[i] + opening,
            "-1" + before,
            "+1" + after,
            "-2" + before2,
            "+2" + after2,
            "-" + before + " " + own,
            "+" + own + " " + after,
            "b" + before + " " + after,
            "+s" + after[-3:],
            "-s" + before[-3:],
            "h" if "-" in word else "n",
        )
        rows.append([crc32(name.encode()) for name in names])
    return rows


def history_features(word: str, tag1: str, tag2: str, after: str) -> list[int]:
    """Hashes of the features of a token that depend on the two tags before it."""
    names = ("t" + tag1, "tt" + tag2 + tag1, "tw" + tag1 + word, "ta" + tag1 + after, "T" + tag2 + tag1 + word[-3:])
    return [crc32(name.encode()) for name in names]


class Tagger:
    """Maps the weights; `tag` reads them. The sum of the rows a token's features hash to, and its greatest column."""

    def __init__(self, path: Path) -> None:
        """Map `path`. Raises CheckpointError when it is missing, truncated or of another format."""
        import numpy as np

        try:
            data = np.memmap(path, dtype=np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"tagger {path.name}: cannot be mapped ({error})") from error
        magic, rows, columns = HEADER.unpack(data[: HEADER.size].tobytes()) if len(data) >= HEADER.size else (b"", 0, 0)
        if magic != MAGIC or columns != len(TAGS) or len(data) != HEADER.size + rows * columns:
            raise CheckpointError(f"tagger {path.name}: not a sonant tagger of {len(TAGS)} tags")
        self._weights = data[HEADER.size :].view(np.int8).reshape(rows, columns)
        self._mask = rows - 1

    def tag(self, words: Sequence[str], known: Sequence[str | None] | None = None) -> list[str]:
        """One of TAGS for every token; `known` gives the tags that are not to be guessed."""
        mask, weights = self._mask, self._weights
        known = known or [known_tag(word) for word in words]
        written = written_features(words)
        tags, tag1, tag2 = [], "^", "^"
        for i, word in enumerate(words):
            tag = known[i]
            if tag is None:
                after = words[i + 1].lower() if i + 1 < len(words) else ""
                hashes = written[i] + history_features(word.lower(), tag1, tag2, after)
                scores = weights[[value & mask for value in hashes]].sum(axis=0, dtype="int32")
                tag = TAGS[int(scores.argmax())]
            tags.append(tag)
            tag1, tag2 = tag, tag1
        return tags
