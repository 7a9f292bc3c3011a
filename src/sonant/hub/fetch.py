"""Pulling a model from the Hugging Face Hub into the cache, file by file, each verified before it counts as there.

The network is huggingface_hub's: its endpoint, token, proxies, offline switch, retries and progress bars (shown on a
terminal only), all set by its own environment variables. Here is what it leaves open: a pinned commit, digests, files
that appear whole or not at all, and a download that goes on where an earlier one stopped, even of another process.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from sonant.errors import CheckpointError, MissingExtra, UnknownName
from sonant.hub import listing as listings
from sonant.hub.digests import Digests
from sonant.hub.entry import CatalogEntry, Source
from sonant.hub.listing import Listing, RepositoryFile
from sonant.hub.lock import locked
from sonant.hub.store import PARTIAL, discard, listing_path, lock_path, pulled_folder

_ROUNDS = 10
"""How often a download is taken up again after a break, as long as each round brought bytes."""
_DISK = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EISDIR, errno.ENOTDIR)


_BAD_ANSWERS = (ValueError, TypeError, KeyError, AttributeError)
"""What huggingface_hub raises over an answer that is no listing."""


@dataclass(frozen=True)
class Pulled:
    """`folder` holds the files; `fetched` are those that were not there before."""

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
        digests = Digests(entry, root)
        repositories = [_Repository(entry, source, root, digests, endpoint) for source in entry.sources]
        if voices and not any(r.has_voices for r in repositories):
            raise UnknownName("voice", voices[0], ())
        files = [(r, file) for r in repositories for file in r.voice_files(voices)]
        # the weights come last, the main ones last of all: whoever waits for the big file has the rest already
        files += [(r, file) for r in reversed(repositories) if weights for file in r.weight_files()]
        for repository, file in files:
            repository.check(file)
        for repository in dict.fromkeys(r for r, file in files if r.source.gated and not r.has(file)):
            repository.knock()
        for repository, file in files:
            repository.bring(file)
        fetched = tuple(file for r in repositories for file in r.fetched)
        if fetched:
            discard(folder / PARTIAL)
    return Pulled(folder, tuple(file for _, file in files), fetched)


class _Repository:
    """One source of a model, and the folder that its files go to."""

    def __init__(
        self, entry: CatalogEntry, source: Source, root: Path, digests: Digests, endpoint: str | None
    ) -> None:
        self.entry, self.source, self.digests, self.endpoint = entry, source, digests, endpoint
        self.home = pulled_folder(entry, root)
        self.listing_path = listing_path(entry, root, source)
        self.fetched: list[RepositoryFile] = []
        self._listing: Listing | None = None

    @property
    def has_voices(self) -> bool:
        return bool(self.source.voices or self.source.voice_index)

    def weight_files(self) -> list[RepositoryFile]:
        needed = self.source.weights or self.source.optional
        return listings.weight_files(self.source, self.listing()) if needed else []

    def voice_files(self, names: Sequence[str] | None) -> list[RepositoryFile]:
        """The files of these voices, and the index that names them. Fetches the index."""
        if not self.has_voices or (names is not None and not names):
            return []
        there = self.listing().named()
        if self.source.voice_index is None:
            paths = listings.chosen(listings.folder_voices(self.source, self.listing()), names)
            return [there[path] for path in paths]
        index = there.get(self.source.voice_index)
        if index is None:
            raise CheckpointError(f"{self.source.repository}: has no {self.source.voice_index}")
        self.check(index)
        raw = self.bring(index).read_bytes()
        # an index may be ahead of the files; a voice without its file is none
        voices = [voice for voice in listings.indexed_voices(self.source, raw) if voice.path in there]
        return [index, *(there[path] for path in listings.chosen(voices, names))]

    def listing(self) -> Listing:
        """The kept one; else ask for it, check it, keep it."""
        self._listing = self._listing or listings.read(self.listing_path, self.source) or self._asked()
        return self._listing

    def _asked(self) -> Listing:
        hub, source = _hub(), self.source
        with _explained(self, "the list of files", *_BAD_ANSWERS):
            info = hub.HfApi(endpoint=self.endpoint, library_name="sonant").model_info(
                source.repository, revision=source.revision, files_metadata=True
            )
            files = [
                RepositoryFile(s.rfilename, s.size, s.lfs.sha256 if s.lfs else None, s.blob_id)
                for s in info.siblings or ()
            ]
        found = listings.checked(Listing(info.sha, tuple(files)), source)
        listings.save(self.listing_path, source, found)
        return found

    def check(self, file: RepositoryFile) -> None:
        """Whether the listing announces the file that is wanted, if it is known which."""
        self.digests.check_listed(self.source.local(file.path), file, self.source.repository)

    def knock(self) -> None:
        """Ask whether a gated repository gives out its files, before others are fetched for nothing."""
        with _explained(self, "its files"):
            _hub().HfApi(endpoint=self.endpoint, library_name="sonant").auth_check(self.source.repository)

    def has(self, file: RepositoryFile) -> bool:
        target = self.home / self.source.local(file.path)
        return target.is_file() and file.size_bytes in (None, target.stat().st_size)

    def bring(self, file: RepositoryFile) -> Path:
        """The file at its place: as it lies there, or fetched and verified."""
        place = self.source.local(file.path)
        part, target = self.home / PARTIAL / place, self.home / place
        if self.has(file):
            return target
        with _explained(self, file.path):
            part.parent.mkdir(parents=True, exist_ok=True)
            if not self._copied(file, part):
                self._download(file, part)
            found, problem = self.digests.judge(place, file, part)
            if problem:
                part.unlink()
                raise CheckpointError(
                    f"{self.source.repository}: {file.path} {problem}; the file was deleted. Pull again; if it "
                    "happens again, the server does not have what sonant's catalogue pins or what was first pulled"
                )
            self.digests.note(place, found)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, target)
        self.fetched.append(file)
        return target

    def _copied(self, file: RepositoryFile, part: Path) -> bool:
        """From huggingface_hub's own cache, where another program has the same file of the same commit."""
        commit, place = self.listing().commit, self.source.local(file.path)
        cached = _hub().try_to_load_from_cache(self.source.repository, file.path, revision=commit)
        if not isinstance(cached, str) or self.digests.judge(place, file, Path(cached))[1]:
            return False
        shutil.copyfile(cached, part)
        return True

    def _download(self, file: RepositoryFile, part: Path) -> None:
        """Go on where `part` ends. huggingface_hub resumes within one call; across calls and processes we do."""
        hub, http_get = _hub(), _hub("huggingface_hub.file_download").http_get
        commit = self.listing().commit
        url = hub.hf_hub_url(self.source.repository, file.path, revision=commit, endpoint=self.endpoint)
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
def _explained(repository: _Repository, what: str, *also: type[BaseException]) -> Iterator[None]:
    """Errors of huggingface_hub, the network and the disk (and `also`) as CheckpointErrors that say what to do."""
    _hub()
    expected: tuple[type[BaseException], ...] = (*_transport_errors(), *also)
    try:
        yield
    except expected as error:
        raise CheckpointError(f"{repository.source.repository}: {what}: {_reason(repository, error)}") from error


def _reason(repository: _Repository, error: BaseException) -> str:
    errors, source = _hub("huggingface_hub.errors"), repository.source
    again = f"`sonant models pull {repository.entry.name}` again goes on where it stopped"
    token = "run `hf auth login`, or set HF_TOKEN to a token of yours"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError) or (source.gated and status in (401, 403)):
        page = f"{repository.endpoint or _hub().constants.ENDPOINT}/{source.repository}"
        twin = repository.entry.open_twin
        instead = f"; {twin} needs no account: `sonant models pull {twin}`" if twin else ""
        return f"is gated: accept its licence at {page}, then {token}{instead}"
    reasons = (
        (errors.OfflineModeIsEnabled, "not here, and HF_HUB_OFFLINE forbids to fetch it; unset it for the pull"),
        (errors.RevisionNotFoundError, f"has no revision {source.revision[:12]} (any more); a newer sonant may know"),
        (errors.RepositoryNotFoundError, f"there is no such repository, or it is private; if you have access, {token}"),
        (errors.EntryNotFoundError, f"not found at revision {source.revision[:12]}; a newer sonant may know"),
    )
    for kind, reason in reasons:
        if isinstance(error, kind):
            return reason
    if isinstance(error, errors.HfHubHTTPError):
        return f"no access without the right token; {token}" if status == 401 else f"{_line(error)}; {again}"
    if isinstance(error, _BAD_ANSWERS):
        return f"the answer is none of a hub ({_line(error)}); is HF_ENDPOINT right, or a login page in the way?"
    if isinstance(error, OSError) and error.errno in _DISK:
        return f"cannot be written ({error.strerror}); {again}"
    return f"cannot be reached or was cut off ({_line(error)}); {again}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
