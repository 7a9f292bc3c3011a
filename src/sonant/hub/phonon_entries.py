"""Gradium's Phonon models. The weights are in one repository each, the voices of all of them in another."""

from __future__ import annotations

from sonant.hub.entry import CatalogEntry, Source

_TRUST = "no digests of its files are known to sonant"
_MOVING = f"neither a commit nor {_TRUST}"
_WEIGHTS = ("config.json", "model.safetensors", "tokenizer.json")
_OPTIONAL = (
    "tokenizer.5.0.0.json",
    "tokenizer_config.json",
    "processor_config.json",
    "generation_config.json",
    "default-voice.safetensors",
)
_VOICES = Source(
    repository="gradium/phonon-voices",
    revision="da6c9ec0d47be8df5c87c730a3aa97187f3229c3",  # pinned by ptts 0.4.2
    voice_index="voices.jsonl",
    into="phonon-voices",
)


def _phonon_40m(languages: tuple[str, ...], short: str) -> CatalogEntry:
    """Their commits are not known to any package that pins them: the branch's head at the first pull."""
    weights = Source(
        repository=f"gradium/phonon-40m-{short}", revision="main", weights=_WEIGHTS, optional=_OPTIONAL, gated=True
    )
    return CatalogEntry(
        name=f"phonon-40m-{short}",
        family="phonon",
        languages=languages,
        parameters=50_535_074,
        licence="CC-BY-NC-4.0",
        sources=(weights, _VOICES),
        trust=_MOVING,
        open_twin="phonon-31m-en" if "en" in languages else None,
    )


PHONON = (
    CatalogEntry(
        name="phonon-31m-en",
        family="phonon",
        languages=("en",),
        parameters=41_091_746,  # 31 M are the language model
        licence="Apache-2.0",
        sources=(
            Source(
                repository="gradium/phonon-31m-en",
                revision="8c64b55ec301728e2d1695bfea87a08a267d0c2d",  # pinned by ptts 0.4.2
                weights=_WEIGHTS,
                optional=_OPTIONAL,
            ),
            _VOICES,
        ),
        trust=_TRUST,
    ),
    *(_phonon_40m((language,), language) for language in ("en", "fr", "de", "es", "pt")),
    _phonon_40m(("en", "fr", "de", "es", "pt"), "multilingual"),
)
