"""The character map of a SentencePiece normalizer: a double-array trie from byte sequences to their replacements.

Layout (little-endian): u32 size of the trie in bytes, the trie as u32 units, then replacements that end with a zero
byte. A unit of the trie (Darts-clone): bits 0-7 label, bit 8 has a leaf, bit 9 the offset is in units of 256,
bits 10-31 offset; a leaf has bit 31 set and its value in the others.
"""

from __future__ import annotations

import struct

from sonant.errors import CheckpointError

_LEAF = 1 << 31


class CharsMap:
    """What a stretch of characters is turned into. Reading needs no copy of the map."""

    def __init__(self, blob: bytes, name: str) -> None:
        if len(blob) < 4:
            raise CheckpointError(f"{name}: the character map has {len(blob)} bytes; wanted a trie and its texts")
        size = struct.unpack_from("<I", blob)[0]
        if size % 4 or size + 4 >= len(blob) or not size:
            raise CheckpointError(f"{name}: the character map says {size} bytes of trie and has {len(blob) - 4} in all")
        self._units = struct.unpack_from(f"<{size // 4}I", blob, 4)
        self._texts = blob[4 + size :]
        self._name = name
        if self._texts[-1]:
            raise CheckpointError(f"{name}: the character map is cut off")
        self._cache: dict[str, tuple[int, str] | None] = {}

    def longest(self, text: str, at: int) -> tuple[int, str] | None:
        """How many characters from `at` on are mapped, and to what; None when the first one stays as it is."""
        window = text[at : at + 8]
        if window not in self._cache:
            if len(self._cache) > 4096:
                self._cache.clear()
            self._cache[window] = self._walk(window)
        return self._cache[window]

    def _walk(self, window: str) -> tuple[int, str] | None:
        units = self._units
        place = self._follow(units[0])
        found: tuple[int, str] | None = None
        for size, letter in enumerate(window, 1):
            for byte in letter.encode("utf-8", "surrogatepass"):
                place ^= byte
                if not 0 <= place < len(units) or units[place] & (_LEAF | 0xFF) != byte:
                    return found
                unit = units[place]
                place ^= self._follow(unit)
            if unit >> 8 & 1:
                found = size, self._text(place)
        return found

    @staticmethod
    def _follow(unit: int) -> int:
        return unit >> 10 << ((unit & 1 << 9) >> 6)

    def _text(self, leaf: int) -> str:
        if not 0 <= leaf < len(self._units):
            raise CheckpointError(f"{self._name}: the character map points outside itself")
        start = self._units[leaf] & (_LEAF - 1)
        end = self._texts.find(b"\0", start)
        if start > len(self._texts) or end < 0:
            raise CheckpointError(f"{self._name}: the character map points outside its texts")
        try:
            return self._texts[start:end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self._name}: a text of the character map is not UTF-8") from error
