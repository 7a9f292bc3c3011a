"""What a repository holds at one commit, and which of its files a model needs.

Names in a listing, and in an index of voices, are the server's word: a listing with a name that could leave the folder
it is put in is refused whole, and a voice is found by looking its name up, never by joining it to a path.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sonant.checkpoint.cache import write_atomic
from sonant.errors import CheckpointError, UnknownName
from sonant.hub.entry import Source

_VOICE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class RepositoryFile:
    """One file: `sha256` where the Hub stores it outside git, else the `git_sha1` of its blob."""

    path: str
    size_bytes: int | None
    sha256: str | None
    git_sha1: str | None


@dataclass(frozen=True)
class Listing:
    """The files of a repository at a commit, which is the source's own or where its branch stood."""

    commit: str
    files: tuple[RepositoryFile, ...]

    def named(self) -> dict[str, RepositoryFile]:
        return {file.path: file for file in self.files}


@dataclass(frozen=True)
class Voice:
    """Its name, what else it may be called, and its file in the repository."""

    name: str
    aliases: tuple[str, ...]
    path: str


def checked(listing: Listing, source: Source) -> Listing:
    """The same listing; CheckpointError if it is of another commit, a name is unsafe or a digest is none."""
    where = source.repository
    if not _COMMIT.fullmatch(str(listing.commit)) or (source.is_fixed and listing.commit != source.revision):
        raise CheckpointError(f"{where}: answered revision {listing.commit}, wanted {source.revision}")
    for file in listing.files:
        if not _is_safe(file.path):
            raise CheckpointError(f"{where}: lists a file {file.path!r}, which would lie outside its folder; refused")
        for digest in (file.sha256, file.git_sha1):
            if digest is not None and not _DIGEST.fullmatch(digest):
                raise CheckpointError(f"{where}: {file.path} has digest {digest!r}, wanted 40 or 64 hexadecimal digits")
    return listing


def _is_safe(path: str) -> bool:
    parts = path.split("/")
    return not any(part in ("", ".", "..") for part in parts) and not any(c in path for c in "\\:\0")


def weight_files(source: Source, listing: Listing) -> list[RepositoryFile]:
    """The required ones last: the big file is among them, and whoever waits for it has the rest already."""
    there = listing.named()
    missing = [path for path in source.weights if path not in there]
    if missing:
        raise CheckpointError(f"{source.repository}: has no {', '.join(missing)} at revision {source.revision[:12]}")
    return [there[path] for path in (*source.optional, *source.weights) if path in there]


def folder_voices(source: Source, listing: Listing) -> list[Voice]:
    """The voices of a source that keeps them in one folder, by the names of their files."""
    folder, ending = source.voices or ("", "")
    out = []
    for file in listing.files:
        parent, _, leaf = file.path.rpartition("/")
        name = leaf.removesuffix(ending)
        if source.voices and parent == folder and name != leaf and _VOICE.fullmatch(name):
            out.append(Voice(name, (), file.path))
    return out


def indexed_voices(source: Source, index: bytes) -> list[Voice]:
    """The voices that an index names."""
    where, out = f"{source.repository}: {source.voice_index}", []
    try:
        for line in index.decode("utf-8").splitlines():
            if line.strip():
                row = json.loads(line)
                name, identity, path = (str(row[key]) for key in ("name", "voice_id", "filename"))
                if not (_is_safe(path) and name.isprintable()):
                    raise CheckpointError(f"{where}: names {name!r} a voice, in a file {path!r}; refused")
                out.append(Voice(name, (identity,), path))
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{where} is no index of voices ({error!r})") from error
    return out


def chosen(voices: Sequence[Voice], names: Sequence[str] | None) -> list[str]:
    """The paths of the voices of these names, their letters without case and accents; all for None. UnknownName."""
    if names is None:
        return list(dict.fromkeys(voice.path for voice in voices))
    exact = {voice.name: voice.path for voice in voices}
    folded = {_folded(alias): voice.path for voice in voices for alias in (voice.name, *voice.aliases)}
    out = []
    for name in names:
        path = exact.get(name) or folded.get(_folded(name))
        if path is None:
            raise UnknownName("voice", name, exact)
        out.append(path)
    return list(dict.fromkeys(out))


def _folded(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def save(path: Path, source: Source, listing: Listing) -> None:
    known = {
        "repository": source.repository,
        "revision": source.revision,
        "commit": listing.commit,
        "files": [asdict(file) for file in listing.files],
    }
    write_atomic(path, (json.dumps(known, indent=1) + "\n").encode())


def read(path: Path, source: Source) -> Listing | None:
    """The listing saved here (a commit never changes), None if there is none that can be used."""
    try:
        known = json.loads(path.read_bytes())
        listing = Listing(known["commit"], tuple(RepositoryFile(**file) for file in known["files"]))
        is_ours = (known["repository"], known["revision"]) == (source.repository, source.revision)
        return checked(listing, source) if is_ours else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # asked for again
