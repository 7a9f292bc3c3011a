"""Finding what in the cache nothing will open again.

Garbage is: a converted checkpoint whose sources are gone or changed, or of another format; packed weights and Plans
that no Program of this sonant has; pulled files of another revision, once the pinned one is there; and what a killed
process left. A converted checkpoint of unknown origin is kept. What a family's files look like today is told by the
engine.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sonant.checkpoint.cache import content_sha256, quick_key
from sonant.checkpoint.safetensors import open_safetensors
from sonant.errors import CheckpointError
from sonant.hub.entry import CatalogEntry
from sonant.hub.lock import locked
from sonant.hub.store import (
    PARTIAL,
    converted_folders,
    discard,
    is_removed,
    lock_path,
    pulled_weights,
    removable,
    size_bytes,
    stale_indexes,
)

ABANDONED_S = 24 * 3600.0
"""Nobody writes one file for a day."""
_TEMPORARY = re.compile(rf"\..+\.tmp|native-.+\.(pack|plan).+|{re.escape(PARTIAL)}")


@dataclass(frozen=True)
class Current:
    """What this sonant would open of one model.

    `filename`, `format` of the converted file; `packs(file)` the names of the packed weights and of the Plans that
    belong beside it, None where that cannot be told on this machine.
    """

    filename: str
    format: str
    packs: Callable[[Path], frozenset[str] | None]


@dataclass(frozen=True)
class Garbage:
    path: Path
    reason: str
    size_bytes: int


def find_garbage(entry: CatalogEntry, root: Path, current: Current) -> list[Garbage]:
    """Of one model; looks only."""
    found = [*_pulled(entry, root)]
    for folder in converted_folders(entry, root):
        reason = _why_converted(folder, current)
        found += [_garbage(folder, reason)] if reason else [*_inside(folder, current)]
    return found


def find_leftovers(root: Path) -> list[Garbage]:
    """Of no model in particular: what killed processes left, and index entries of what is gone."""
    found = [_garbage(path, "its converted file is gone") for path in stale_indexes(root)]
    places = [root, root / "hub", root / "by-stat"]
    return found + [_garbage(p, "abandoned") for place in places for p in _abandoned(place)]


def collect(entry: CatalogEntry, root: Path, current: Current) -> tuple[list[Garbage], bool]:
    """Remove the garbage of one model: (what went, False if a pull is under way and nothing was touched)."""
    if not removable(entry, root):
        return [], True
    with locked(lock_path(entry, root), wait=False) as held:
        if not held:
            return [], False
        found: list[Garbage] = []
        while more := find_garbage(entry, root, current):  # what is removed may be the source of something else
            for one in more:
                discard(one.path)
            found += more
    return found, True


def _garbage(path: Path, reason: str) -> Garbage:
    return Garbage(path, reason, size_bytes(path))


def _pulled(entry: CatalogEntry, root: Path) -> Iterator[Garbage]:
    home = root / "hub" / entry.name
    for folder in sorted(home.iterdir()) if home.is_dir() else ():
        if is_removed(folder):
            yield from [_garbage(folder, "abandoned")] if _is_old(folder) else []
        elif folder.name != entry.folder:
            if pulled_weights(entry, root):
                yield _garbage(folder, f"revision {folder.name[:25]}, not the pinned {entry.folder[:25]}")
        else:
            yield from (_garbage(path, "abandoned") for path in _abandoned(folder))


def _why_converted(folder: Path, current: Current) -> str | None:
    """Why a converted folder is garbage, None if it is not."""
    file = folder / current.filename
    notes = sorted(folder.glob("source-*.json"))
    if not file.is_file():
        if notes:  # what was packed of a file that the user converted
            return None if any(_is_alive(note, None) for note in notes) else "its source is gone"
        return "an abandoned conversion" if _is_old(folder) else None
    try:
        metadata = open_safetensors(file).metadata
    except CheckpointError:
        return "damaged"
    if metadata.get("sonant_format") != current.format:
        return f"of format {metadata.get('sonant_format')}, not {current.format}"
    alive = not notes or any(_is_alive(note, metadata.get("source_sha256")) for note in notes)
    return None if alive else "its source is gone"


def _is_alive(note: Path, sha256: str | None) -> bool:
    """Whether the sources in a note are there with the same content: by stat, else by reading them if it is known."""
    try:
        sources = [Path(path) for path in json.loads(note.read_bytes())]
        if note.stem == f"source-{quick_key(sources)}":
            return True
        return sha256 is not None and content_sha256(sources) == sha256
    except (OSError, ValueError, TypeError, CheckpointError):
        return False


def _inside(folder: Path, current: Current) -> Iterator[Garbage]:
    packs = current.packs(folder / current.filename)
    for path in sorted([*folder.glob("native-*.pack"), *folder.glob("native-*.plan")]):
        if packs is not None and path.name not in packs:
            yield _garbage(path, "packed by or for another version")
    yield from (_garbage(path, "abandoned") for path in _abandoned(folder))


def _abandoned(folder: Path) -> list[Path]:
    children = sorted(folder.iterdir()) if folder.is_dir() else []
    return [p for p in children if (_TEMPORARY.fullmatch(p.name) or is_removed(p)) and _is_old(p)]


def _is_old(path: Path) -> bool:
    """Whether nothing in it was written for a day."""
    newest = 0.0
    for one in [path, *path.rglob("*")]:
        with contextlib.suppress(OSError):
            newest = max(newest, one.stat().st_mtime)
    return time.time() - newest > ABANDONED_S
