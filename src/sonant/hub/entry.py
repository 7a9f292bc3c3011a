"""What the catalogue says of a checkpoint: what it is, where its files come from and what those files must be.

A model's files may come from several repositories (weights here, voices there) and from several commits of one.
`pins/<name>.json` holds the digests of an entry's files, where they are known; sonant/hub/fetch.py refuses a file that
differs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).parent / "pins"
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Pin:
    """What a file must be. `sha256` may be its leading digits only, where its publisher states no more."""

    sha256: str
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """Files of one Hugging Face repository at one commit."""

    repository: str
    revision: str
    """A commit. A branch where no commit is known: its head at the first pull is kept to from then on."""
    weights: tuple[str, ...] = ()
    """The files without which the model does not run."""
    optional: tuple[str, ...] = ()
    """Files that are pulled with the weights where the repository has them."""
    voices: tuple[str, str] | None = None
    """The folder and the ending of voice files: each `<folder>/<voice><ending>` of the repository is a voice."""
    voice_index: str | None = None
    """A file of one JSON object a line (`name`, `voice_id`, `filename`) that says instead which files are voices."""
    into: str = ""
    """The folder, within the model's own, that the files go to."""
    gated: bool = False
    """Whether its licence must be accepted at the Hub before it gives out files."""

    @property
    def is_fixed(self) -> bool:
        return _COMMIT.fullmatch(self.revision) is not None

    def local(self, path: str) -> str:
        """Where a file of the repository lies in the model's own folder."""
        return "/".join(part for part in (self.into, path) if part)


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One release: which family reads it, and how a user gets it."""

    name: str
    family: str
    languages: tuple[str, ...]
    parameters: int
    licence: str
    sources: tuple[Source, ...]
    """The repository of the weights first."""
    extra: str | None = None
    """The pip extra that brings the weights."""
    download_bytes: int | None = None
    """All files together, about, where that is known; the listing says it exactly."""
    recipe: str | None = None
    """The publisher's name of the configuration, where the repository holds no file that states it."""
    trust: str | None = None
    """Why no digests are pinned: what arrives first is believed, and kept to from then on."""
    open_twin: str | None = None
    """For a gated model: a model that does about the same and can be had without an account."""

    @property
    def source(self) -> str:
        return self.sources[0].repository

    @property
    def revision(self) -> str:
        return self.sources[0].revision

    @property
    def weights(self) -> tuple[str, ...]:
        """By their places in the model's own folder."""
        return tuple(source.local(path) for source in self.sources for path in source.weights)

    @property
    def folder(self) -> str:
        """The name of the folder of these files: another commit of any source is another folder."""
        if len({source.revision for source in self.sources}) == 1:
            return self.revision
        whole = " ".join(f"{source.repository}@{source.revision}" for source in self.sources)
        return f"{self.revision[:12]}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"

    def pins(self) -> Mapping[str, Pin]:
        """Place in the model's own folder → what that file must be."""
        if self.trust is not None:
            return {}
        stated = json.loads((PINS / f"{self.name}.json").read_text("utf-8"))["files"]
        return {path: Pin(**pin) for path, pin in stated.items()}
