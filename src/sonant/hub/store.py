"""Where models lie in the cache, what is there, and taking it away.

<root>/hub/<model>/<commit>/       pulled files, each verified before it got its name here
                   .partial/       what is still on its way
                   .digests.json   what arrived of files that nothing is pinned of
<root>/<model>-<16 digits>/        a converted checkpoint (checkpoint/cache.py) with the backend's packed weights,
                   source-*.json   and the files it was converted from: gc looks whether they are still there
                   or, of a converted file that the user gave, the packed weights and such a note alone
<root>/by-stat/                    which source became which converted checkpoint
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sonant.checkpoint.cache import default_cache_root, quick_key, write_atomic
from sonant.errors import CheckpointError
from sonant.hub.entry import CatalogEntry, Source

PARTIAL, DIGESTS = ".partial", ".digests.json"
_CONVERTED = re.compile(r"-[0-9a-f]{16}")
_REMOVED = ".removed-"


def cache_root(environ: Mapping[str, str]) -> Path:
    """The folder that SONANT_CACHE names, else each system's custom."""
    chosen = environ.get("SONANT_CACHE")
    return Path(chosen) if chosen else default_cache_root(environ)


def pulled_folder(entry: CatalogEntry, root: Path) -> Path:
    """Where this model's files are pulled to, there or not."""
    return root / "hub" / entry.name / entry.folder


def listing_path(entry: CatalogEntry, root: Path, source: Source) -> Path:
    """Where the listing of one of its repositories is kept."""
    n = entry.sources.index(source)
    return pulled_folder(entry, root) / (f".listing-{n}.json" if n else ".listing.json")


def lock_path(entry: CatalogEntry, root: Path) -> Path:
    """Held by whoever adds or removes pulled files of this model."""
    return root / "hub" / f"{entry.name}.lock"


def pulled_weights(entry: CatalogEntry, root: Path) -> Path | None:
    """The folder of the pulled model; None unless every file that it needs is there."""
    folder = pulled_folder(entry, root)
    return folder if all((folder / path).is_file() for path in entry.weights) else None


def pulled_voices(entry: CatalogEntry, root: Path) -> Path | None:
    """The folder of the pulled voices, None if there are none."""
    for source in entry.sources:
        if source.voices or source.voice_index:
            folder = pulled_folder(entry, root) / source.local(source.voices[0] if source.voices else "")
            return folder if folder.is_dir() else None
    return None


def pulled_voice_names(entry: CatalogEntry, root: Path) -> list[str]:
    folder = pulled_voices(entry, root)
    if folder is None:
        return []
    for source in entry.sources:
        if source.voices:
            ending = source.voices[1]
            return sorted(path.name.removesuffix(ending) for path in folder.iterdir() if path.name.endswith(ending))
        if source.voice_index and (index := folder / source.voice_index).is_file():
            from sonant.hub.listing import indexed_voices

            voices = indexed_voices(source, index.read_bytes())
            return sorted(voice.name for voice in voices if (folder / voice.path).is_file())
    return []


def converted_folders(entry: CatalogEntry, root: Path) -> list[Path]:
    return sorted(p for p in _children(root) if is_converted(entry, p))


def is_converted(entry: CatalogEntry, path: Path) -> bool:
    rest = path.name.removeprefix(entry.name)
    return rest != path.name and _CONVERTED.fullmatch(rest) is not None and path.is_dir()


def size_bytes(path: Path) -> int:
    """Of a file, or of all files in a folder; what vanishes meanwhile counts nothing."""
    total = 0
    for one in path.rglob("*") if path.is_dir() else [path]:
        with contextlib.suppress(OSError):
            total += one.stat().st_size if one.is_file() else 0
    return total


def remember_sources(converted: Path, sources: Sequence[Path], root: Path) -> None:
    """Note beside a converted file what it was made from. Costs a few stats when it is noted already."""
    if converted.parent.parent != root:
        return  # a file that the user gave and nothing converted
    note = converted.parent / f"source-{quick_key(sources)}.json"
    if note.is_file():
        return
    # a shared cache may be read-only: without a note gc keeps the file, which is the safe side
    with contextlib.suppress(CheckpointError):
        write_atomic(note, json.dumps([os.fspath(path.resolve()) for path in sources]).encode())


def removable(entry: CatalogEntry, root: Path) -> list[Path]:
    """The folders that `remove` takes away: everything pulled and converted of this model."""
    pulled = root / "hub" / entry.name
    return ([pulled] if pulled.is_dir() else []) + converted_folders(entry, root)


def remove(entry: CatalogEntry, root: Path) -> list[Path]:
    """Remove them. Waits for a pull that is under way. CheckpointError where a file is in use (Windows)."""
    from sonant.hub.lock import locked

    with locked(lock_path(entry, root)):
        gone = removable(entry, root)
        for folder in gone:
            discard(folder)
    for index in stale_indexes(root):
        discard(index)
    return gone


def stale_indexes(root: Path) -> list[Path]:
    """Entries of by-stat/ whose converted folder is gone."""
    keys = {path.name.rpartition("-")[2] for path in _children(root) if path.is_dir()}
    return [path for path in _children(root / "by-stat") if path.suffix == ".json" and _key(path) not in keys]


def _key(index: Path) -> str | None:
    try:
        return str(json.loads(index.read_bytes())["key"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def discard(path: Path) -> None:
    """Remove a file or a folder. A folder loses its name first: whoever looks sees all of it or nothing."""
    import secrets  # these two are slow to import, and every load imports this module
    import shutil

    try:
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
            return
        if not is_removed(path):
            path = path.rename(path.with_name(_REMOVED + secrets.token_hex(8)))
        shutil.rmtree(path)
    except FileNotFoundError:
        return  # another process was first
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be removed ({error.strerror or error}); is another process using it?"
        ) from error


def is_removed(path: Path) -> bool:
    """A folder that lost its name, and whose remover was killed before it was done."""
    return path.name.startswith(_REMOVED)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be listed ({error.strerror or error})") from error
