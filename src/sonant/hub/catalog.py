"""The checkpoints that sonant knows by name. An entry names commits, so the same sonant always gets the same files."""

from __future__ import annotations

from sonant.errors import UnknownName
from sonant.hub.entry import CatalogEntry, Pin, Source
from sonant.hub.phonon_entries import PHONON
from sonant.hub.pocket_entries import POCKET

__all__ = ["CATALOG", "CatalogEntry", "Pin", "Source", "find"]

KOKORO = CatalogEntry(
    name="kokoro-82m",
    family="kokoro",
    languages=("en-US", "en-GB", "es", "fr-FR", "it", "pt-BR", "hi", "ja", "zh"),
    parameters=81_763_410,
    licence="Apache-2.0",
    sources=(
        Source(
            repository="hexgrad/Kokoro-82M",
            # `sha` of the Hub's own api/models/hexgrad/Kokoro-82M: the head of main since 2025-04-10
            revision="f3ff3571791e39611d31c381e3a41a3af07b4987",
            weights=("config.json", "kokoro-v1_0.pth"),
            voices=("voices", ".pt"),
        ),
    ),
    extra="kokoro",
    download_bytes=355_480_000,
)

CATALOG = {entry.name: entry for entry in (KOKORO, *PHONON, *POCKET)}


def find(name: str) -> CatalogEntry:
    if name not in CATALOG:
        raise UnknownName("model", name, CATALOG)
    return CATALOG[name]
