"""Which attention heads of a checkpoint follow its text, and by how much they are ahead of the sound: checkpoint data.

They are looked for in this order: `heads.json` beside the checkpoint (`sonant align-heads` writes it), the metadata
entry `sonant.alignment_heads` of the safetensors file (the same JSON), what its family knows of published checkpoints.
A checkpoint with none of these has no word times from attention.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sonant.checkpoint.cache import write_atomic
from sonant.errors import CheckpointError, InputError

FILENAME = "heads.json"
METADATA_KEY = "sonant.alignment_heads"
FORMAT = "sonant-heads-1"
MAX_LEAD_FRAMES = 50.0
"""4 s at 12.5 frames a second: far beyond any head that follows the speech."""
LEAD_SOURCES = ("published", "aligner", "energy", "assumed")
Head = tuple[int, int]
"""Layer and query head, both from 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadQuality:
    """How well the mean of the heads followed the text when it was measured, over all frames of `n_texts` texts.

    correlation: of frame and token with the largest weight. monotone_share, mean_peak: as in timing.AttentionQuality.
    start_error_s: median distance of word starts from an aligner's, None where none was at hand.
    """

    correlation: float
    monotone_share: float
    mean_peak: float
    n_texts: int
    start_error_s: float | None = None

    def __post_init__(self) -> None:
        shares = (self.correlation, self.monotone_share, self.mean_peak)
        error_s = 0.0 if self.start_error_s is None else self.start_error_s
        if not all(0.0 <= x <= 1.0 for x in shares) or self.n_texts < 1 or not 0.0 <= error_s < math.inf:
            raise InputError(f"{self}: wanted three shares of 0 to 1, at least one text and an error of seconds")

    @property
    def score(self) -> float:
        """By which heads are compared: the product of the three."""
        return self.correlation * self.monotone_share * self.mean_peak


@dataclass(frozen=True, slots=True)
class AlignmentHeads:
    """The heads whose mean is followed, and how many frames a word sounds after their attention (below 0: before it).

    lead_source: published, aligner (measured against one), energy (against the onsets of sound after pauses), or
    assumed. quality: None where nobody measured it here.
    """

    heads: tuple[Head, ...]
    lead_frames: float
    lead_source: str
    quality: HeadQuality | None = None

    def __post_init__(self) -> None:
        if not self.heads or len(set(self.heads)) != len(self.heads) or min(x for head in self.heads for x in head) < 0:
            raise InputError(f"alignment heads {list(self.heads)}: wanted at least one (layer, head), each once")
        if not abs(self.lead_frames) <= MAX_LEAD_FRAMES:
            raise InputError(f"lead_frames is {self.lead_frames!r}; wanted at most {MAX_LEAD_FRAMES:g} either way")
        if self.lead_source not in LEAD_SOURCES:
            raise InputError(f"lead_source is {self.lead_source!r}; wanted one of {', '.join(LEAD_SOURCES)}")

    def fit(self, n_layers: int, n_heads: int) -> bool:
        """Does a model of this size have them all?"""
        return all(layer < n_layers and head < n_heads for layer, head in self.heads)

    def check(self, n_layers: int, n_heads: int, where: str) -> AlignmentHeads:
        """These heads, if a model of this size has them all. Raises CheckpointError."""
        if not self.fit(n_layers, n_heads):
            raise CheckpointError(
                f"{where}: alignment heads {[list(head) for head in self.heads]} are not in this model of "
                f"{n_layers} layers with {n_heads} heads; they are of another checkpoint: take them away, then measure "
                "with sonant align-heads"
            )
        return self


def find_heads(folder: Path, metadata: Mapping[str, str], known: AlignmentHeads | None) -> AlignmentHeads | None:
    """The alignment heads of a checkpoint: beside it in `folder`, in its `metadata`, or as its family knows them.

    Raises CheckpointError where what is written there is not alignment heads.
    """
    path = folder / FILENAME
    if path.is_file():
        return parse_heads(_read(path), str(path))
    if METADATA_KEY in metadata:
        return parse_heads(metadata[METADATA_KEY], f"{folder}: metadata {METADATA_KEY}")
    return known


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error


def parse_heads(written: str, where: str) -> AlignmentHeads:
    """What `written_heads` wrote; `where` names it in errors. Raises CheckpointError on anything else."""
    try:
        known = json.loads(written)
        if not isinstance(known, dict) or known.get("format") != FORMAT:
            raise CheckpointError(f"{where}: is not of format {FORMAT!r}; delete it, or sonant align-heads again")
        _only(known, {"format", "heads", "lead_frames", "lead_source", "quality"}, {"about"})
        quality = known["quality"]
        if quality is not None:
            _only(quality, {"correlation", "monotone_share", "mean_peak", "n_texts", "start_error_s"}, set())
            quality = HeadQuality(
                correlation=_number(quality["correlation"]),
                monotone_share=_number(quality["monotone_share"]),
                mean_peak=_number(quality["mean_peak"]),
                n_texts=_whole(quality["n_texts"]),
                start_error_s=None if quality["start_error_s"] is None else _number(quality["start_error_s"]),
            )
        heads = tuple((_whole(layer), _whole(head)) for layer, head in known["heads"])
        return AlignmentHeads(heads, _number(known["lead_frames"]), str(known["lead_source"]), quality)
    except (ValueError, TypeError, RecursionError) as error:  # InputError is a ValueError
        raise CheckpointError(f"{where}: cannot be read as alignment heads ({error})") from error


def written_heads(heads: AlignmentHeads, about: Mapping[str, Any] | None = None) -> str:
    """As JSON, for a file or for metadata. about: how they were found, for whoever reads it."""
    fields = {
        "format": FORMAT,
        "heads": [list(head) for head in heads.heads],
        "lead_frames": heads.lead_frames,
        "lead_source": heads.lead_source,
        "quality": asdict(heads.quality) if heads.quality else None,
    }
    return json.dumps(fields if about is None else {**fields, "about": dict(about)}, indent=1) + "\n"


def write_heads(path: Path, heads: AlignmentHeads, about: Mapping[str, Any]) -> Path:
    """Keep heads in a file, or beside the checkpoint where `path` is its folder."""
    target = path / FILENAME if path.is_dir() else path
    write_atomic(target, written_heads(heads, about).encode())
    return target


def _only(given: object, wanted: set[str], optional: set[str]) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"{given!r} is not an object")
    if missing := wanted - set(given):
        raise ValueError(f"{', '.join(sorted(missing))} is missing")
    if unknown := set(given) - wanted - optional:
        raise ValueError(f"unknown {', '.join(sorted(map(str, unknown)))}")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a whole number")
    return value
