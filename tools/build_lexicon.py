"""Compile misaki's English lexicons (Apache-2.0) and CMUdict (BSD) into the files that sonant.text maps.

    pip download --no-deps misaki==0.9.4
    PYTHONPATH=src python tools/build_lexicon.py misaki-0.9.4-py3-none-any.whl cmudict.dict src/sonant/text/data

For each language the gold list is kept whole; a silver word is dropped when gold knows it in the same or the
other case, because gold always wins there. CMUdict (the repository cmusphinx/cmudict) adds the words, mostly names,
that misaki's American lists lack. The result is the same bytes for the same sources.
"""

from __future__ import annotations

import argparse
import json
import struct
import zipfile
from pathlib import Path

from arpabet import read as read_cmudict

from sonant.text.phonemize.lexicon import BRONZE, GOLD, HEADER, MAGIC, SILVER, SPELL_IT, TAGS, Lexicon

PER_BLOCK = 16
Variants = dict[str, "str | None"]


def read_lists(wheel: Path, prefix: str) -> dict[str, tuple[int, Variants]]:
    """word → (rank, variants) from `us` or `gb` of the misaki wheel."""
    with zipfile.ZipFile(wheel) as archive:
        gold, silver = (json.loads(archive.read(f"misaki/data/{prefix}_{name}.json")) for name in ("gold", "silver"))
    words = {key: (GOLD, as_variants(value)) for key, value in gold.items()}
    for key, value in silver.items():
        other = Lexicon.other_case(key)
        if key not in gold and not (other and other in gold):
            words[key] = (SILVER, as_variants(value))
    return words


def read_names(cmudict: Path, known: dict[str, tuple[int, Variants]]) -> dict[str, tuple[int, Variants]]:
    """The words that `known` lacks in either case."""
    return {
        word: (BRONZE, {"DEFAULT": said})
        for word, said in read_cmudict(cmudict)
        if word not in known and word.capitalize() not in known and word.upper() not in known
    }


def as_variants(value: str | Variants) -> Variants:
    """A plain pronunciation as a default variant; the default is always first."""
    if isinstance(value, str):
        return {"DEFAULT": value}
    return {"DEFAULT": value["DEFAULT"], **{tag: said for tag, said in value.items() if tag != "DEFAULT"}}


def pack_entry(previous: bytes, key: bytes, rank: int, variants: Variants, codes: dict[str, int]) -> bytes:
    """One entry, its key cut by what it shares with `previous`."""
    shared = 0
    while shared < min(len(previous), len(key), 255) and previous[shared] == key[shared]:
        shared += 1
    parts = [bytes((shared, len(key) - shared)), key[shared:], bytes((rank << 4 | len(variants),))]
    for tag, said in variants.items():
        if said is None:
            parts.append(bytes((TAGS.index(tag), SPELL_IT)))
        else:
            parts.append(bytes((TAGS.index(tag), len(said), *(codes[letter] for letter in said))))
    return b"".join(parts)


def pack(words: dict[str, tuple[int, Variants]]) -> bytes:
    """The whole file."""
    letters = sorted({letter for _, variants in words.values() for said in variants.values() for letter in said or ""})
    codes = {letter: code for code, letter in enumerate(letters)}
    alphabet = "".join(letters).encode("utf-8")
    alphabet += b" " * (-len(alphabet) % 4)
    blocks, offsets, size = [], [0], 0
    keys = sorted(words)
    for start in range(0, len(keys), PER_BLOCK):
        previous, block = b"", []
        for word in keys[start : start + PER_BLOCK]:
            key = word.encode("ascii")
            block.append(pack_entry(previous, key, *words[word], codes))
            previous = key
        blocks.append(b"".join(block))
        size += len(blocks[-1])
        offsets.append(size)
    header = HEADER.pack(MAGIC, len(words), PER_BLOCK, len(blocks), len(alphabet))
    return header + alphabet + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the misaki 0.9.4 wheel")
    parser.add_argument("cmudict", type=Path, help="cmudict.dict")
    parser.add_argument("out", type=Path, help="folder for en-us.lex, en-gb.lex and en.names.lex")
    options = parser.parse_args()
    american = read_lists(options.wheel, "us")
    for name, words in (
        ("en-us.lex", american),
        ("en-gb.lex", read_lists(options.wheel, "gb")),
        ("en.names.lex", read_names(options.cmudict, american)),
    ):
        data = pack(words)
        (options.out / name).write_bytes(data)
        print(f"{name}: {len(words)} words, {len(data)} bytes")  # noqa: T201 - a command's report


if __name__ == "__main__":
    main()
