"""The checkpoints that sonant knows by name: what they are, where their files come from and what those files must be.

An entry names a repository and one commit of it, so the same sonant always gets the same files. `pins/<name>.json`
holds their digests; sonant/hub/fetch.py refuses a file that differs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sonant.errors import UnknownName

PINS = Path(__file__).parent / "pins"


@dataclass(frozen=True)
class Pin:
    """What a file must be. `sha256` may be its leading digits only, where its publisher states no more."""

    sha256: str
    size_bytes: int | None = None


@dataclass(frozen=True)
class CatalogEntry:
    """One release: which family reads it, and how a user gets it."""

    name: str
    family: str
    languages: tuple[str, ...]
    parameters: int
    licence: str
    source: str
    """The Hugging Face repository of the official files."""
    extra: str
    """The pip extra that brings the weights."""
    revision: str
    """The commit of `source` that is pulled."""
    weights: tuple[str, ...]
    """The files of the repository without which the model does not run."""
    voices: tuple[str, str]
    """The folder and the ending of voice files: each `<folder>/<voice><ending>` of the repository is a voice."""
    download_bytes: int
    """All files together, about; the listing says it exactly."""

    def pins(self) -> Mapping[str, Pin]:
        """Path in the repository → what that file must be."""
        stated = json.loads((PINS / f"{self.name}.json").read_text("utf-8"))["files"]
        return {path: Pin(**pin) for path, pin in stated.items()}


CATALOG = {
    entry.name: entry
    for entry in (
        CatalogEntry(
            name="kokoro-82m",
            family="kokoro",
            languages=("en-US", "en-GB", "es", "fr-FR", "it", "pt-BR", "hi", "ja", "zh"),
            parameters=81_763_410,
            licence="Apache-2.0",
            source="hexgrad/Kokoro-82M",
            extra="kokoro",
            # `sha` of the Hub's own api/models/hexgrad/Kokoro-82M: the head of main since 2025-04-10
            revision="f3ff3571791e39611d31c381e3a41a3af07b4987",
            weights=("config.json", "kokoro-v1_0.pth"),
            voices=("voices", ".pt"),
            download_bytes=355_480_000,
        ),
    )
}


def find(name: str) -> CatalogEntry:
    if name not in CATALOG:
        raise UnknownName("model", name, CATALOG)
    return CATALOG[name]
