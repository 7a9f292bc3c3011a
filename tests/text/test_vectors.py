"""The vector file: what is said for every kind of written English. The browser runs the same lines.

A line has an id, a kind and a text; language (en-US), markup (auto), text_format (plain) and limit where they differ;
and what must come out: normalized, phonemes, pauses_s (before each piece).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonant.text import english
from sonant.text.english import Reading

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "vectors" / "english.jsonl").read_text(encoding="utf-8").splitlines()
]
CASE_IDS = {row["id"] for row in ROWS if row["kind"] == "case"}


def reading(row: dict) -> Reading:
    return Reading(markup=row.get("markup", "auto"), text_format=row.get("text_format", "plain"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_vector(row):
    language, how = row.get("language", "en-US"), reading(row)
    if "normalized" in row:
        assert english.normalize(row["text"], language, reading=how) == row["normalized"]
    if "phonemes" in row:
        assert english.phonemize(row["text"], language, reading=how) == row["phonemes"]
    pieces = english.pieces(row["text"], language=language, reading=how)
    if "pauses_s" in row:
        assert [piece.pause_before_s for piece in pieces] == row["pauses_s"]
    for piece in pieces:
        assert all(row["text"][word.start : word.end] == word.text for word in piece.words)
    assert bool(pieces) == bool("".join(english.phonemize(row["text"], language, reading=how).split()))


def test_there_are_many_of_many_kinds():
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert len(ROWS) - len(CASE_IDS) >= 300
    assert len({row["kind"] for row in ROWS}) >= 30
