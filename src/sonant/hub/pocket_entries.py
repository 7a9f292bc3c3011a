"""Kyutai's Pocket TTS models.

Each is in two repositories: a public one, and a gated one that holds the speech encoder too, which makes voices from
recordings. So each has two names here, `<name>` and `<name>-cloning`. The commits are those that pocket_tts 4.0.1
pins; it calls the voices of every model by one commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sonant.hub.entry import CatalogEntry, Source

_PUBLIC, _GATED = "kyutai/pocket-tts-without-voice-cloning", "kyutai/pocket-tts"
_VOICES = "a7056f505a4a8ca72d8b5fb1440071d6f1a35739"
_ENCODER_PARAMETERS = 9_750_000

# commits of the gated repository, of the public one, and of the tokenizer in the public one
_2026_10 = ("db04f0e653473e5c7333c69686ac92b7460b0c1d", _VOICES)
_ENGLISH = "00eac05ed3d16bdc3f6b5d598874019c34a89214"
_SMALL = "08ffc58775e62aad9409511b9591c9af626270f3"
_FIRST = ("3e82814a68665eec246ff649b14c71331f955c06", "1e08e6a23401048648a9fdcfde2f89348215c2a7")
_LATER_24L = ("2dd944b099d06bb9edbd221fef138685711d9bf0", "4e1e0a3e611c51c0b4ed8174fc10f32a54644303")
_MOST = "4e1e0a3e611c51c0b4ed8174fc10f32a54644303"
_FRENCH = "8843db76457a91db32077edf8dfcd1c0e3e755fd"


@dataclass(frozen=True)
class _Release:
    name: str
    recipe: str
    language: str
    parameters: int
    """Without the encoder."""
    commits: tuple[str, str]
    """Of the gated and of the public weights."""
    tokenizer: tuple[str, str]
    """Its path and commit, in the public repository."""


def _plain(language: str, folder: str, tokenizer: str) -> _Release:
    """One of the first multilingual releases."""
    path = f"languages/{folder}/tokenizer.json"
    return _Release(f"pocket-tts-{language}", folder, language, 99_760_000, _FIRST, (path, tokenizer))


def _deep(language: str, folder: str, commits: tuple[str, str], tokenizer: str) -> _Release:
    """24 layers instead of 6."""
    path = f"languages/{folder}/tokenizer.json"
    return _Release(f"pocket-tts-24l-{language}", folder, language, 326_000_000, commits, (path, tokenizer))


def _small(size: str, parameters: int, variant: str = "") -> _Release:
    folder = f"english_{size}{variant.replace('-', '_')}_2026-10"
    tokenizer = (f"languages/{folder}/tokenizer.model", _SMALL)
    return _Release(f"pocket-tts-{size}{variant}-en", folder, "en", parameters, _2026_10, tokenizer)


_RELEASES = (
    _Release(
        "pocket-tts-en", "english", "en", 99_760_000, _2026_10, ("languages/english/tokenizer.json", _ENGLISH)
    ),
    _plain("fr", "french", _FRENCH),
    _plain("de", "german", _MOST),
    _plain("es", "spanish", _MOST),
    _plain("it", "italian", _MOST),
    _plain("pt", "portuguese", _MOST),
    _plain("nl", "dutch", _MOST),
    _deep(
        "en",
        "english_2026-09_24l",
        ("983151f13aaeab1b13c1e5e3c2c383d49a9edf3f", "e7205b6ee50e654a5ea19f0e9df2b0813b05e921"),
        _ENGLISH,
    ),
    _deep("fr", "french_24l", _FIRST, _FRENCH),
    _deep("de", "german_24l", _LATER_24L, _MOST),
    _deep("es", "spanish_24l", _LATER_24L, _MOST),
    _deep("it", "italian_24l", _FIRST, _MOST),
    _deep("pt", "portuguese_24l", _LATER_24L, _MOST),
    _deep("nl", "dutch_24l", _LATER_24L, _MOST),
    _small("18m", 18_180_000),
    _small("7m", 6_870_000),
    _small("2m", 1_920_000),
    # fine-tuned by a reward afterwards
    _small("18m", 18_180_000, "-refl"),
    _small("7m", 6_870_000, "-refl"),
    _small("2m", 1_920_000, "-refl"),
    _Release(
        "pocket-tts-drifting-en",
        "english_drifting_26-09",
        "en",
        98_950_000,
        ("75cfe24e3142233bb81887fed3482e9652bb4a6e", "a5ce31f3eba7a3b0cb9c24ba2015b098f278eaae"),
        ("languages/english_2026-09/tokenizer.json", _ENGLISH),
    ),
)


def _entries(release: _Release) -> Iterator[CatalogEntry]:
    folder = f"languages/{release.recipe}"
    gated, public = release.commits
    path, commit = release.tokenizer
    beside = (
        Source(repository=_PUBLIC, revision=commit, weights=(path,)),
        Source(repository=_PUBLIC, revision=_VOICES, voices=(f"{folder}/embeddings", ".safetensors")),
    )
    for cloning in (False, True):
        weights = Source(
            repository=_GATED if cloning else _PUBLIC,
            revision=gated if cloning else public,
            weights=(f"{folder}/model.safetensors",),
            gated=cloning,
        )
        yield CatalogEntry(
            name=release.name + ("-cloning" if cloning else ""),
            family="pocket",
            languages=(release.language,),
            parameters=release.parameters + (_ENCODER_PARAMETERS if cloning else 0),
            licence="CC-BY-4.0",
            sources=(weights, *beside),
            recipe=release.recipe,
            trust="no digests of its files are known to sonant",
            open_twin=release.name if cloning else None,
        )


POCKET = tuple(entry for release in _RELEASES for entry in _entries(release))
