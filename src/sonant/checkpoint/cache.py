"""The conversion cache: files made once from other files, safe with several processes at once.

A cached file is found by the stat of its sources (path, size, mtime: a quick key, no reading) and named by their
content (SHA-256), so that a moved or touched source costs a hash, not a conversion. Files appear by rename only:
whoever looks sees a whole file or none, and two processes that convert at once both end with the same one.
Which folder is used is the caller's choice; `default_cache_root` only knows each system's custom.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sonant.errors import CheckpointError

_ABANDONED_S = 24 * 3600.0


def default_cache_root(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """`sonant` under the user's cache folder: XDG_CACHE_HOME or ~/.cache, ~/Library/Caches, %LOCALAPPDATA%."""
    if platform == "win32":
        base = environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "sonant" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "sonant"
    base = environ.get("XDG_CACHE_HOME")
    # the XDG specification: a relative path is invalid and to be ignored
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "sonant"


class TempFile:
    """A file beside `target` that becomes `target` on commit and vanishes on discard."""

    def __init__(self, target: Path):
        self.target = target
        import tempfile  # slow to import, and only whoever converts needs it

        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _sweep(target)
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        except OSError as error:
            raise CheckpointError(f"{target}: cannot be written ({error.strerror or error})") from error
        self.path = Path(name)
        self._file = os.fdopen(handle, "wb")

    def write(self, content: bytes | memoryview, offset: int = 0) -> None:
        with self._mended():
            self._file.seek(offset)
            self._file.write(content)

    def commit(self, size_bytes: int) -> None:
        """Give the file its final size (zeros to the end, where nothing was written) and its name."""
        with self._mended():
            self._file.truncate(size_bytes)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.chmod(self.path, 0o644)  # mkstemp makes it private; a shared cache must be readable
            os.replace(self.path, self.target)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    @contextlib.contextmanager
    def _mended(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard()
            raise CheckpointError(f"{self.target}: cannot be written ({error.strerror or error})") from error


def _sweep(target: Path) -> None:
    """Remove what a killed process left beside `target`; nobody writes for a day."""
    for path in target.parent.glob(f".{target.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_S:
                path.unlink()


def write_atomic(target: Path, content: bytes) -> None:
    temp = TempFile(target)
    temp.write(content)
    temp.commit(len(content))


def quick_key(sources: Sequence[Path], salt: str = "") -> str:
    """A key of where the sources lie, how big they are and when they were changed; reads no content."""
    digest = hashlib.sha256(salt.encode())
    for path in sources:
        try:
            info = path.stat()
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be opened ({error.strerror or error})") from error
        digest.update(f"{path.resolve()}\0{info.st_size}\0{info.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def content_sha256(sources: Sequence[Path]) -> str:
    """SHA-256 of the sources' bytes, joined in order."""
    digest = hashlib.sha256()
    for path in sources:
        try:
            with open(path, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from error
    return digest.hexdigest()


@dataclass(frozen=True)
class ConversionCache:
    """Files of one kind: `<root>/<prefix>-<hash>/<filename>`. `salt` changes when the format of the file does."""

    root: Path
    prefix: str
    filename: str
    salt: str

    def find(self, sources: Sequence[Path]) -> Path | None:
        """The finished file for these sources, by stat alone."""
        try:
            known = json.loads(self._index(sources).read_bytes())
            target = self._target(known["key"])
            return target if target.stat().st_size == known["size_bytes"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # no or unreadable index: made again below

    def get(self, sources: Sequence[Path], build: Callable[[Path, str], None], usable: Callable[[Path], bool]) -> Path:
        """The file for these sources.

        `build(target, sha256)` writes it, atomically, unless a file made from the same content is `usable`
        (the sources were moved or touched since).
        """
        if found := self.find(sources):
            return found
        index = self._index(sources)
        sha256 = content_sha256(sources)
        key = hashlib.sha256(f"{self.salt}\0{sha256}".encode()).hexdigest()[:16]
        target = self._target(key)
        if not (target.exists() and usable(target)):
            try:
                build(target, sha256)
            except CheckpointError:
                # another process may have been first: Windows refuses to replace a file that it has mapped
                if not (target.exists() and usable(target)):
                    raise
        known = {"key": key, "sha256": sha256, "size_bytes": target.stat().st_size}
        write_atomic(index, json.dumps(known).encode())
        return target

    def _index(self, sources: Sequence[Path]) -> Path:
        return self.root / "by-stat" / f"{quick_key(sources, self.prefix + self.salt)}.json"

    def _target(self, key: str) -> Path:
        if not (isinstance(key, str) and key.isalnum()):
            raise ValueError(key)
        return self.root / f"{self.prefix}-{key}" / self.filename
