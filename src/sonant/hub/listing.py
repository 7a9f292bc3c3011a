"""What a repository holds at one commit, and which of its files a model needs.

Names in a listing are the server's word: one that could leave the folder it is put in refuses the whole listing, and
a voice is found by looking its name up, never by joining it to a path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sonant.checkpoint.cache import write_atomic
from sonant.errors import CheckpointError, UnknownName
from sonant.hub.catalog import CatalogEntry

_VOICE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class RepositoryFile:
    """One file: `sha256` where the Hub stores it outside git, else the `git_sha1` of its blob."""

    path: str
    size_bytes: int | None
    sha256: str | None
    git_sha1: str | None


Listing = tuple[RepositoryFile, ...]


def checked(files: Iterable[RepositoryFile], where: str) -> Listing:
    """The same files; CheckpointError if a name is unsafe or a digest is none."""
    out = tuple(files)
    for file in out:
        if not _is_safe(file.path):
            raise CheckpointError(f"{where}: lists a file {file.path!r}, which would lie outside its folder; refused")
        for digest in (file.sha256, file.git_sha1):
            if digest is not None and not _DIGEST.fullmatch(digest):
                raise CheckpointError(f"{where}: {file.path} has digest {digest!r}, wanted 40 or 64 hexadecimal digits")
    return out


def _is_safe(path: str) -> bool:
    parts = path.split("/")
    return not any(part in ("", ".", "..") for part in parts) and not any(c in path for c in "\\:\0")


def voices_in(entry: CatalogEntry, listing: Listing) -> dict[str, RepositoryFile]:
    """Voice name → its file."""
    folder, ending = entry.voices
    out = {}
    for file in listing:
        parent, _, leaf = file.path.rpartition("/")
        name = leaf.removesuffix(ending)
        if parent == folder and name != leaf and _VOICE.fullmatch(name):
            out[name] = file
    return out


def wanted(
    entry: CatalogEntry, listing: Listing, voices: Sequence[str] | None, *, weights: bool
) -> list[RepositoryFile]:
    """The files to have: the model's (unless without `weights`) and the named `voices`, None for all of them."""
    by_path = {file.path: file for file in listing}
    missing = [path for path in entry.weights if path not in by_path] if weights else []
    if missing:
        raise CheckpointError(f"{entry.source}: has no {', '.join(missing)} at revision {entry.revision[:12]}")
    known = voices_in(entry, listing)
    for name in voices or ():
        if name not in known:
            raise UnknownName("voice", name, known)
    chosen = [known[name] for name in dict.fromkeys(known if voices is None else voices)]
    # the big file last: whoever waits for it has the voices already
    return chosen + ([by_path[path] for path in entry.weights] if weights else [])


def save(path: Path, revision: str, listing: Listing) -> None:
    known = {"revision": revision, "files": [asdict(file) for file in listing]}
    write_atomic(path, (json.dumps(known, indent=1) + "\n").encode())


def read(path: Path, revision: str) -> Listing | None:
    """The listing saved here (a commit never changes), None if there is none that can be used."""
    try:
        known = json.loads(path.read_bytes())
        files = [RepositoryFile(**file) for file in known["files"]]
        return checked(files, str(path)) if known["revision"] == revision else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # asked for again
