"""What the files of a model must be: pinned by the catalogue, else what arrived first.

The digest of a file that nothing is pinned of is noted beside the pulled files when it first arrives; from then on it
is as good as a pin, also where a branch moves on or another endpoint is asked. Removing the model forgets it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from sonant.checkpoint.cache import write_atomic
from sonant.errors import CheckpointError
from sonant.hub.entry import CatalogEntry, Pin
from sonant.hub.listing import RepositoryFile
from sonant.hub.store import DIGESTS, pulled_folder


class Digests:
    """Of one model; files are named by their places in its folder."""

    def __init__(self, entry: CatalogEntry, root: Path) -> None:
        self._path = pulled_folder(entry, root) / DIGESTS
        self._forget = f"`sonant models rm {entry.name}` forgets what was first pulled"
        self._pins = entry.pins()
        self._noted = self._read()

    def _read(self) -> dict[str, Pin]:
        if not self._path.is_file():
            return {}
        try:
            return {place: Pin(**pin) for place, pin in json.loads(self._path.read_bytes()).items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{self._path}: cannot be read ({error}); {self._forget}") from error

    def check_listed(self, place: str, file: RepositoryFile, repository: str) -> None:
        """Before the download: a server that announces another file need not send it."""
        pin, size = self._wanted(place), file.size_bytes
        if pin is None:
            return
        where, whose, refused = f"{repository}: {file.path} is listed with", "sonant's catalogue pins", "refused"
        if place not in self._pins:
            whose, refused = "the first pull got", f"refused; {self._forget}"
        if file.sha256 is not None and not file.sha256.startswith(pin.sha256):
            raise CheckpointError(f"{where} SHA-256 {file.sha256[:16]}…, {whose} {pin.sha256[:16]}…; {refused}")
        if None not in (pin.size_bytes, size) and pin.size_bytes != size:
            raise CheckpointError(f"{where} {size} bytes, {whose} {pin.size_bytes}; {refused}")

    def judge(self, place: str, file: RepositoryFile, path: Path) -> tuple[Pin, str | None]:
        """What the content of `path` is, and what is wrong with it: None if it is the file that is wanted."""
        pin = self._wanted(place)
        (sha256, git_sha1), size = _digests(path), path.stat().st_size
        problem = None
        if pin is not None and not sha256.startswith(pin.sha256):
            problem = f"arrived with SHA-256 {sha256[:16]}…, wanted {pin.sha256[:16]}…"
        elif file.sha256 is not None and sha256 != file.sha256:
            problem = f"arrived with SHA-256 {sha256[:16]}…, wanted {file.sha256[:16]}…"
        # the blob id of a file outside git is that of its pointer, not of its content
        elif file.sha256 is None and file.git_sha1 not in (None, git_sha1):
            problem = f"arrived with git id {git_sha1[:16]}…, wanted {str(file.git_sha1)[:16]}…"
        return Pin(sha256, size), problem

    def note(self, place: str, found: Pin) -> None:
        """This file was right. To be written before the file gets its name: so there is none without a note."""
        if self._wanted(place) is None:
            self._noted[place] = found
            noted = {place: asdict(pin) for place, pin in self._noted.items()}
            write_atomic(self._path, (json.dumps(noted, indent=1) + "\n").encode())

    def _wanted(self, place: str) -> Pin | None:
        return self._pins.get(place) or self._noted.get(place)


def _digests(path: Path) -> tuple[str, str]:
    """SHA-256, and the id that git gives a file of this content."""
    sha256 = hashlib.sha256()
    git_sha1 = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with open(path, "rb") as content:
        while block := content.read(1 << 20):
            sha256.update(block)
            git_sha1.update(block)
    return sha256.hexdigest(), git_sha1.hexdigest()
