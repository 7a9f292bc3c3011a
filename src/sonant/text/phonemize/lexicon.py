"""The pronunciation lexicon: one memory-mapped file per language, nothing parsed when it opens.

Layout (little-endian), written by tools/build_lexicon.py:

    magic "SONLEX1\\n" | u32 entries | u32 entries per block | u32 blocks | u32 alphabet bytes
    alphabet, UTF-8, padded with spaces to a multiple of 4: phoneme code i is its i-th character
    u32 block offsets [blocks + 1], counted from the first block
    blocks of entries, sorted by key; in a block each key shares a prefix with the key before it

    entry:   u8 shared | u8 suffix length | suffix | u8 rank << 4 | variants | variants
    variant: u8 tag code | u8 length, 255 for "spell it" | phoneme codes

The first variant of an entry is the default. Keys are ASCII, so comparing bytes compares words.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from sonant.errors import CheckpointError

MAGIC = b"SONLEX1\n"
HEADER = struct.Struct("<8sIIII")
TAGS = ("DEFAULT", "NOUN", "VERB", "ADJ", "ADV", "None", "VBD", "VBN", "VBP", "DT")
SPELL_IT = 255
GOLD, SILVER, BRONZE = 4, 3, 2
# No key is longer, so a longer word needs no search and is not worth remembering.
LONGEST_KEY = 64
_CACHE_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """How one word is said: `variants` by part of speech, and how much the entry is trusted (GOLD, SILVER, BRONZE)."""

    rank: int
    variants: dict[str, str | None]

    def say(self, tag: str | None, parent: str | None, *, at_end: bool = False) -> str | None:
        """Phonemes for a tag, else for its parent (`NOUN` of `NNS`), else the default; None means: spell it."""
        variants = self.variants
        if len(variants) == 1:
            return variants["DEFAULT"]
        if at_end and "None" in variants:
            return variants["None"]
        for key in (tag, parent):
            if key in variants:
                return variants[key]
        return variants["DEFAULT"]


class Lexicon:
    """Read-only map from a word to its Entry. Opening maps the file; a look-up reads one block."""

    def __init__(self, path: Path) -> None:
        """Map `path`. Raises CheckpointError when the file is missing, truncated or of another format."""
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"lexicon {path.name}: cannot be mapped ({error})") from error
        if len(self._map) < HEADER.size:
            raise CheckpointError(f"lexicon {path.name}: truncated header")
        self.entries: int
        magic, self.entries, self._per_block, self._blocks, alphabet = HEADER.unpack_from(self._map)
        if magic != MAGIC:
            raise CheckpointError(f"lexicon {path.name}: not a sonant lexicon (magic {magic!r})")
        index = HEADER.size + alphabet
        self._start = index + 4 * (self._blocks + 1)
        if self._start > len(self._map):
            raise CheckpointError(f"lexicon {path.name}: truncated index")
        self._offsets = memoryview(self._map)[index : self._start].cast("I")
        if self._start + self._offsets[self._blocks] != len(self._map):
            raise CheckpointError(f"lexicon {path.name}: {len(self._map)} bytes, the index wants another size")
        letters = self._map[HEADER.size : index].decode("utf-8").rstrip(" ")
        self._decode = dict(enumerate(letters))
        self._cache: dict[str, Entry | None] = {}

    def __len__(self) -> int:
        return self.entries

    def __contains__(self, word: str) -> bool:
        return self.get(word) is not None

    def get(self, word: str) -> Entry | None:
        """The entry of `word`, of its capitalised form or of its lower-case form, else None."""
        if word in self._cache:
            return self._cache[word]
        if len(word) > LONGEST_KEY:
            return None
        entry = self._find(word)
        if entry is None or entry.rank == SILVER:
            # A gold entry in another case is worth more than a silver one in this case.
            other = self.other_case(word)
            grown = self._find(other) if other else None
            if grown is not None and (entry is None or grown.rank > entry.rank):
                entry = grown
        if len(self._cache) >= _CACHE_WORDS:
            self._cache.clear()
        self._cache[word] = entry
        return entry

    @staticmethod
    def other_case(word: str) -> str | None:
        """`Word` for `word` and the other way round; None when that changes nothing or the word is one letter."""
        lower = word.lower()
        if len(word) < 2:
            return None
        if word == lower:
            other = word.capitalize()
            return other if other != word else None
        return lower if word == lower.capitalize() else None

    def _find(self, word: str) -> Entry | None:
        if not word.isascii():
            return None
        key = word.encode("ascii")
        low, high = 0, self._blocks
        while high - low > 1:
            middle = (low + high) // 2
            if self._first_key(middle) <= key:
                low = middle
            else:
                high = middle
        return self._scan(low, key) if self._blocks else None

    def _first_key(self, block: int) -> bytes:
        at = self._start + self._offsets[block]
        return self._map[at + 2 : at + 2 + self._map[at + 1]]

    def _scan(self, block: int, key: bytes) -> Entry | None:
        """Walk one block; entries are sorted, so the walk stops at the first key behind `key`."""
        data = self._map[self._start + self._offsets[block] : self._start + self._offsets[block + 1]]
        at, current = 0, b""
        while at < len(data):
            shared, suffix = data[at], data[at + 1]
            at += 2
            current = current[:shared] + data[at : at + suffix]
            at += suffix
            if current == key:
                return self._entry(data, at)
            if current > key:
                return None
            variants = data[at] & 15
            at += 1
            for _ in range(variants):
                length = data[at + 1]
                at += 2 + (0 if length == SPELL_IT else length)
        return None

    def _entry(self, data: bytes, at: int) -> Entry:
        rank, count = data[at] >> 4, data[at] & 15
        at += 1
        variants: dict[str, str | None] = {}
        for _ in range(count):
            tag, length = TAGS[data[at]], data[at + 1]
            at += 2
            if length == SPELL_IT:
                variants[tag] = None
                continue
            variants[tag] = data[at : at + length].decode("latin-1").translate(self._decode)
            at += length
        return Entry(rank, variants)
