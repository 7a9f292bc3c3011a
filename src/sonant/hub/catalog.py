"""The checkpoints that sonant knows by name."""

from __future__ import annotations

from dataclasses import dataclass

from sonant.errors import UnknownName


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


CATALOG = {
    entry.name: entry
    for entry in (
        CatalogEntry(
            "kokoro-82m", "kokoro", ("en-US", "en-GB"), 81_763_410, "Apache-2.0", "hexgrad/Kokoro-82M", "kokoro"
        ),
    )
}


def find(name: str) -> CatalogEntry:
    if name not in CATALOG:
        raise UnknownName("model", name, CATALOG)
    return CATALOG[name]
