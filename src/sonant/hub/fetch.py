"""Pulling a model from the Hugging Face Hub into the cache, file by file, each verified before it counts as there.

The network is huggingface_hub's: its endpoint, token, proxies, offline switch, retries and progress bars (shown on a
terminal only), all set by its own environment variables. Here is what it leaves open: a pinned commit, digests, files
that appear whole or not at all, and a download that goes on where an earlier one stopped, even of another process.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from sonant.errors import CheckpointError, MissingExtra
from sonant.hub import listing as listings
from sonant.hub.catalog import CatalogEntry, Pin
from sonant.hub.listing import Listing, RepositoryFile
from sonant.hub.lock import locked
from sonant.hub.store import LISTING, PARTIAL, discard, lock_path, pulled_folder

_ROUNDS = 10
"""How often a download is taken up again after a break, as long as each round brought bytes."""
_DISK = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EISDIR, errno.ENOTDIR)


_BAD_ANSWERS = (ValueError, TypeError, KeyError, AttributeError)
"""What huggingface_hub raises over an answer that is no listing."""


@dataclass(frozen=True)
class Pulled:
    """`folder` holds the files by their names in the repository; `fetched` are those that were not there before."""

    folder: Path
    files: tuple[RepositoryFile, ...]
    fetched: tuple[RepositoryFile, ...]


def pull(
    entry: CatalogEntry,
    root: Path,
    *,
    voices: Sequence[str] | None = None,
    weights: bool = True,
    endpoint: str | None = None,
) -> Pulled:
    """Bring a model's files into the cache at `root`; what is there already is not asked for again.

    voices: names, None for all. weights: False for the voices alone. endpoint: another hub than huggingface_hub's own
    choice (HF_ENDPOINT). Raises MissingExtra, UnknownName (a voice), CheckpointError (cannot be reached, refused, not
    what is pinned).
    """
    folder = pulled_folder(entry, root)
    with locked(lock_path(entry, root)):
        source = _Source(entry, folder, endpoint)
        found = listings.read(folder / LISTING, entry.revision) or source.listing()
        files = listings.wanted(entry, found, voices, weights=weights)
        missing = [file for file in files if not _is_there(folder / file.path, file)]
        for file in missing:
            source.fetch(file)
        if missing:
            discard(folder / PARTIAL)
    return Pulled(folder, tuple(files), tuple(missing))


def _is_there(path: Path, file: RepositoryFile) -> bool:
    return path.is_file() and file.size_bytes in (None, path.stat().st_size)


class _Source:
    """A repository at its pinned commit, and the folder that its files go to."""

    def __init__(self, entry: CatalogEntry, folder: Path, endpoint: str | None) -> None:
        self.entry, self.folder, self.endpoint = entry, folder, endpoint
        self.pins = entry.pins()

    def listing(self) -> Listing:
        """Ask for it, check it against the pins, keep it."""
        hub, entry = _hub(), self.entry
        with _explained(entry, "the list of files", *_BAD_ANSWERS):
            info = hub.HfApi(endpoint=self.endpoint, library_name="sonant").model_info(
                entry.source, revision=entry.revision, files_metadata=True
            )
            files = [
                RepositoryFile(s.rfilename, s.size, s.lfs.sha256 if s.lfs else None, s.blob_id)
                for s in info.siblings or ()
            ]
        if info.sha != entry.revision:
            raise CheckpointError(f"{entry.source}: answered revision {info.sha}, wanted {entry.revision}")
        found = listings.checked(files, entry.source)
        for file in found:
            _check_pin(entry, file, self.pins.get(file.path))
        listings.save(self.folder / LISTING, entry.revision, found)
        return found

    def fetch(self, file: RepositoryFile) -> None:
        part, target = self.folder / PARTIAL / file.path, self.folder / file.path
        with _explained(self.entry, file.path):
            part.parent.mkdir(parents=True, exist_ok=True)
            if not self._copied(file, part):
                self._download(file, part)
            if problem := self._problem(file, part):
                part.unlink()
                raise CheckpointError(
                    f"{self.entry.source}: {file.path} {problem}; the file was deleted. Pull again; if it happens "
                    "again, the server does not have what sonant's catalogue pins"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, target)

    def _copied(self, file: RepositoryFile, part: Path) -> bool:
        """From huggingface_hub's own cache, where another program has the same file of the same commit."""
        cached = _hub().try_to_load_from_cache(self.entry.source, file.path, revision=self.entry.revision)
        if not isinstance(cached, str) or self._problem(file, Path(cached)):
            return False
        shutil.copyfile(cached, part)
        return True

    def _download(self, file: RepositoryFile, part: Path) -> None:
        """Go on where `part` ends. huggingface_hub resumes within one call; across calls and processes we do."""
        hub, http_get = _hub(), _hub("huggingface_hub.file_download").http_get
        url = hub.hf_hub_url(self.entry.source, file.path, revision=self.entry.revision, endpoint=self.endpoint)
        # unpacked by nobody on the way: ranges count the bytes of the file
        headers = hub.utils.build_hf_headers(library_name="sonant") | {"Accept-Encoding": "identity"}
        for round_ in range(_ROUNDS):
            have = _size_of(part)
            if file.size_bytes is not None and have > file.size_bytes:
                part.unlink()
                have = 0
            try:
                with open(part, "ab") as out:
                    http_get(
                        url,
                        out,
                        resume_size=have,
                        headers=headers,
                        expected_size=file.size_bytes,
                        displayed_filename=file.path,
                    )
                    out.flush()
                    os.fsync(out.fileno())
            except _transport_errors():
                if _size_of(part) <= have or round_ == _ROUNDS - 1:
                    raise
            else:
                return

    def _problem(self, file: RepositoryFile, path: Path) -> str | None:
        """What is wrong with the content of `path`, None if it is the file that is wanted."""
        size, pin = path.stat().st_size, self.pins.get(file.path)
        sha256, git_sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with open(path, "rb") as content:
            while block := content.read(1 << 20):
                sha256.update(block)
                if file.sha256 is None:
                    git_sha1.update(block)
        found = sha256.hexdigest()
        for wanted in (pin.sha256 if pin else None, file.sha256):
            if wanted is not None and not found.startswith(wanted):
                return f"arrived with SHA-256 {found[:16]}…, wanted {wanted[:16]}…"
        # the blob id of a file outside git is that of its pointer, not of its content
        if file.sha256 is None and file.git_sha1 not in (None, git_sha1.hexdigest()):
            return f"arrived with git id {git_sha1.hexdigest()[:16]}…, wanted {str(file.git_sha1)[:16]}…"
        return None


def _check_pin(entry: CatalogEntry, file: RepositoryFile, pin: Pin | None) -> None:
    """Before the download: a server that announces another file need not send it."""
    if pin is None:
        return
    if file.sha256 is not None and not file.sha256.startswith(pin.sha256):
        raise CheckpointError(
            f"{entry.source}: {file.path} is listed with SHA-256 {file.sha256[:16]}…, sonant's catalogue pins "
            f"{pin.sha256[:16]}…; refused"
        )
    if None not in (pin.size_bytes, file.size_bytes) and pin.size_bytes != file.size_bytes:
        raise CheckpointError(
            f"{entry.source}: {file.path} is listed with {file.size_bytes} bytes, sonant's catalogue pins "
            f"{pin.size_bytes}; refused"
        )


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _hub(module: str = "huggingface_hub") -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra("downloading models", "hub") from error


def _transport_errors() -> tuple[type[BaseException], ...]:
    """What a broken connection raises: HfHubHTTPError's bases name the HTTP library of this huggingface_hub."""
    return (OSError, *_hub("huggingface_hub.errors").HfHubHTTPError.__bases__)


@contextlib.contextmanager
def _explained(entry: CatalogEntry, what: str, *also: type[BaseException]) -> Iterator[None]:
    """Errors of huggingface_hub, the network and the disk (and `also`) as CheckpointErrors that say what to do."""
    _hub()
    expected: tuple[type[BaseException], ...] = (*_transport_errors(), *also)
    try:
        yield
    except expected as error:
        raise CheckpointError(f"{entry.source}: {what}: {_reason(entry, error)}") from error


def _reason(entry: CatalogEntry, error: BaseException) -> str:
    errors = _hub("huggingface_hub.errors")
    again = f"`sonant models pull {entry.name}` again goes on where it stopped"
    token = "set HF_TOKEN to a token of yours, or run `hf auth login`"
    reasons = (
        (errors.OfflineModeIsEnabled, "not here, and HF_HUB_OFFLINE forbids to fetch it; unset it for the pull"),
        (errors.GatedRepoError, f"is gated: accept its terms on its page at the Hub, then {token}"),
        (errors.RevisionNotFoundError, f"has no revision {entry.revision[:12]} (any more); a newer sonant may know"),
        (errors.RepositoryNotFoundError, f"there is no such repository, or it is private; if you have access, {token}"),
        (errors.EntryNotFoundError, f"not found at revision {entry.revision[:12]}; a newer sonant may know"),
    )
    for kind, reason in reasons:
        if isinstance(error, kind):
            return reason
    if isinstance(error, errors.HfHubHTTPError):
        status = getattr(error.response, "status_code", None)
        return f"no access without the right token; {token}" if status == 401 else f"{_line(error)}; {again}"
    if isinstance(error, _BAD_ANSWERS):
        return f"the answer is none of a hub ({_line(error)}); is HF_ENDPOINT right, or a login page in the way?"
    if isinstance(error, OSError) and error.errno in _DISK:
        return f"cannot be written ({error.strerror}); {again}"
    return f"cannot be reached or was cut off ({_line(error)}); {again}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
