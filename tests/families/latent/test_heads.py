"""Alignment heads as checkpoint data: where they are found, what is refused, and that the published ones fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.errors import CheckpointError, InputError
from sonant.families.latent.heads import (
    FILENAME,
    METADATA_KEY,
    AlignmentHeads,
    HeadQuality,
    find_heads,
    parse_heads,
    write_heads,
    written_heads,
)
from sonant.families.phonon.heads import PUBLISHED as PHONON
from sonant.families.pocket.heads import PUBLISHED as POCKET

QUALITY = HeadQuality(correlation=0.99, monotone_share=0.97, mean_peak=0.6, n_texts=8, start_error_s=0.04)
HEADS = AlignmentHeads(((3, 0), (2, 7), (3, 4)), -2.5, "aligner", QUALITY)
KNOWN = AlignmentHeads(((1, 1),), 0.0, "published")


def written(**changes: Any) -> str:
    return json.dumps({**json.loads(written_heads(HEADS)), **changes})


def test_written_and_read(tmp_path: Path) -> None:
    assert write_heads(tmp_path, HEADS, {"model": "tiny", "texts": ["a"]}) == tmp_path / FILENAME
    assert find_heads(tmp_path, {}, KNOWN) == HEADS
    assert write_heads(tmp_path / "other.json", KNOWN, {}) == tmp_path / "other.json"
    assert parse_heads((tmp_path / "other.json").read_text(), "") == KNOWN


def test_in_the_metadata_of_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"x": np.zeros(1, np.float32)}, {METADATA_KEY: written_heads(HEADS)})
    assert find_heads(tmp_path, open_safetensors(path).metadata, KNOWN) == HEADS


def test_the_file_goes_before_the_metadata_before_what_the_family_knows(tmp_path: Path) -> None:
    assert find_heads(tmp_path, {}, None) is None
    assert find_heads(tmp_path, {}, KNOWN) == KNOWN
    assert find_heads(tmp_path, {METADATA_KEY: written_heads(HEADS)}, KNOWN) == HEADS
    write_heads(tmp_path, KNOWN, {})
    assert find_heads(tmp_path, {METADATA_KEY: written_heads(HEADS)}, None) == KNOWN


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("not JSON", "cannot be read"),
        ("[]", "not of format"),
        (written(format="sonant-heads-0"), "not of format"),
        (written(heads=[]), "at least one"),
        (written(heads=[[3, 0], [3, 0]]), "each once"),
        (written(heads=[[3, -1]]), "at least one"),
        (written(heads=[[3]]), "cannot be read"),
        (written(heads=[[3, 0.5]]), "0.5 is not a whole number"),
        (written(heads=[[True, 0]]), "not a whole number"),
        (written(heads=3), "cannot be read"),
        (written(lead_frames="1"), "'1' is not a number"),
        (written(lead_frames=float("nan")), "lead_frames is nan"),
        (written(lead_frames=51), "lead_frames is 51"),
        (written(lead_source="guess"), "lead_source is 'guess'"),
        (written(quality={}), "is missing"),
        (written(quality=[]), "is not an object"),
        (written(quality={**json.loads(written_heads(HEADS))["quality"], "correlation": 1.5}), "three shares"),
        (written(quality={**json.loads(written_heads(HEADS))["quality"], "speed": 1}), "unknown speed"),
        (written(more=1), "unknown more"),
        (json.dumps({k: v for k, v in json.loads(written_heads(HEADS)).items() if k != "lead_frames"}), "missing"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_anything_else_is_refused(bad: str, said: str, tmp_path: Path) -> None:
    (tmp_path / FILENAME).write_text(bad)
    with pytest.raises(CheckpointError, match=re.escape(said)) as refused:
        find_heads(tmp_path, {}, KNOWN)
    assert str(tmp_path / FILENAME) in str(refused.value)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / FILENAME).write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointError, match="cannot be read"):
        find_heads(tmp_path, {}, KNOWN)


def test_values_are_checked_where_they_are_made() -> None:
    for heads in ((), ((0, 1), (0, 1)), ((-1, 0),)):
        with pytest.raises(InputError):
            AlignmentHeads(heads, 0.0, "energy")
    with pytest.raises(InputError):
        HeadQuality(correlation=0.5, monotone_share=0.5, mean_peak=0.5, n_texts=0)


def test_heads_that_the_model_does_not_have() -> None:
    assert HEADS.check(4, 8, "tiny") is HEADS
    for layers, heads in ((3, 8), (4, 7)):
        assert not HEADS.fit(layers, heads)
        with pytest.raises(CheckpointError, match=r"tiny: alignment heads .* not in this model of \d layers"):
            HEADS.check(layers, heads, "tiny")


def test_published_heads_are_in_their_models() -> None:
    """Layers and heads by shared/families/phonon-pocket-qwen3.md, sections 1.1 and 2.1."""
    for heads in PHONON.values():
        heads.check(6, 8, "phonon")
    for name, heads in POCKET.items():
        sizes = {"_24l": (24, 16), "_18m": (8, 8), "_7m": (8, 8), "_2m": (8, 3)}
        heads.check(*next((size for part, size in sizes.items() if part in name), (6, 16)), name)
