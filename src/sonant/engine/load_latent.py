"""Bringing up Phonon and Pocket TTS: which files of a folder are the weights, the tokenizer, the voices, the heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sonant.backends.backend import Backend
from sonant.checkpoint.cache import quick_key
from sonant.checkpoint.quantize import StoredWeights
from sonant.checkpoint.safetensors import open_safetensors
from sonant.engine.scheduler import FrameScheduler
from sonant.errors import CheckpointError, InputError
from sonant.families.family import Driver
from sonant.families.frames import FrameModel, Scheduler
from sonant.families.latent.driver import Schedule, Setup
from sonant.families.latent.frames import LatentStream
from sonant.families.latent.heads import AlignmentHeads, find_heads
from sonant.families.latent.source import WEIGHTS, folder_of, is_converted, weight_files
from sonant.families.latent.stated import Stated
from sonant.families.latent.tokenizer import Tokenizer
from sonant.families.latent.voices import VoiceCatalog
from sonant.hub.entry import CatalogEntry
from sonant.hub.store import pulled_voices, remember_sources
from sonant.options import LoadOptions, named_precision

TOKENIZERS = ("tokenizer.json", "tokenizer.model")
OWN_VOICES = ("voices", "embeddings")
"""Folders beside weights that a user gives."""
DEFAULT_VOICE = "default-voice.safetensors"


@dataclass(frozen=True)
class Files:
    """weights: the file that was found, beside which heads, speeds and voices are looked for. converted: sonant's own.
    cache: where the backend keeps what it derives."""

    weights: Path
    converted: Path
    tokenizer: Tokenizer
    cache: Path


def load_phonon(entry: CatalogEntry, backend: Backend, options: LoadOptions, found: Path, voices: list[Path],
                cache: Path) -> Driver:
    """found: a folder with config.json, model.safetensors (or model.q8.gguf) and tokenizer.json, or the file of the
    weights in it; that may be one in q8."""
    from sonant.families.phonon.driver import PhononDriver
    from sonant.families.phonon.heads import PUBLISHED
    from sonant.families.phonon.speed import read_map
    from sonant.families.phonon.weights import LAYOUT

    files = phonon_files(entry, found, cache)
    config, tensors = LAYOUT.open(files.converted)
    folder = files.weights.parent
    catalog = VoiceCatalog([*voices, *_own(folder)], entry.languages[0], [folder / DEFAULT_VOICE])
    setup = _setup(entry, options, files, tensors, catalog, PUBLISHED.get(entry.name))
    return PhononDriver(config, tensors, backend, setup, read_map(folder))


def phonon_files(entry: CatalogEntry, found: Path, cache: Path) -> Files:
    from sonant.families.phonon.weights import LAYOUT

    if is_converted(found):
        return given(entry, found, _tokenizer(found.parent), cache)
    weights, stated = folder_of(found)
    path = LAYOUT.convert(entry.name, weights, stated, cache)
    remember_sources(path, weight_files(weights, stated), cache)
    return Files(weights, path, _tokenizer(weights.parent), path.parent)


def load_pocket(entry: CatalogEntry, backend: Backend, options: LoadOptions, found: Path, voices: list[Path],
                cache: Path) -> Driver:
    """found: the pulled folder, or one with model.safetensors, its tokenizer and, for a model of one's own, its .yaml
    or config.json; or the .safetensors file in it."""
    from sonant.families.pocket.driver import PocketDriver
    from sonant.families.pocket.heads import PUBLISHED
    from sonant.families.pocket.weights import LAYOUT

    files = pocket_files(entry, found, cache)
    config, tensors = LAYOUT.open(files.converted)
    catalog = VoiceCatalog([*voices, *_own(files.weights.parent)], entry.languages[0])
    setup = _setup(entry, options, files, tensors, catalog, PUBLISHED.get(entry.recipe or ""))
    return PocketDriver(config, tensors, backend, setup)


def pocket_files(entry: CatalogEntry, found: Path, cache: Path) -> Files:
    from sonant.families.pocket.weights import LAYOUT

    if is_converted(found):
        return given(entry, found, _tokenizer(found.parent), cache)
    weights, tokenizer = _pocket_files(entry, found)
    stated = _pocket_configuration(entry, weights)
    path = LAYOUT.convert(entry.name, weights, stated, cache)
    remember_sources(path, weight_files(weights, stated), cache)
    return Files(weights, path, tokenizer, path.parent)


def given(entry: CatalogEntry, file: Path, tokenizer: Tokenizer, cache: Path) -> Files:
    """A converted file of the user's own. What the backend packs of it is kept in the cache: it would be wrong as soon
    as the file is another."""
    packed = cache / f"{entry.name}-{quick_key([file])[:16]}"
    remember_sources(packed / WEIGHTS, [file], cache)
    return Files(file, file, tokenizer, packed)


def voice_folders(entry: CatalogEntry, weights: Path | None, voices: Path | None, cache: Path) -> list[Path]:
    """Where voices are looked for: what the user names, then what was pulled with the weights."""
    pulled = pulled_voices(entry, cache) if weights is None else None
    return [folder for folder in (voices, pulled) if folder is not None]


def _own(folder: Path) -> list[Path]:
    return [folder / name for name in OWN_VOICES if (folder / name).is_dir()]


def _tokenizer(folder: Path) -> Tokenizer:
    for name in TOKENIZERS:
        if (folder / name).is_file():
            return Tokenizer.load(folder / name)
    raise CheckpointError(f"{folder}: no {' and no '.join(TOKENIZERS)}; put the model's tokenizer beside its weights")


def _pocket_files(entry: CatalogEntry, found: Path) -> tuple[Path, Tokenizer]:
    """The weights and the tokenizer: where the catalogue has them pulled to, else side by side."""
    pulled = [found / place for place in entry.weights]
    if found.is_dir() and all(path.is_file() for path in pulled):
        weights = next(path for path in pulled if path.name == WEIGHTS)
        return weights, Tokenizer.load(next(path for path in pulled if path.name in TOKENIZERS))
    weights = found / WEIGHTS if found.is_dir() else found
    return weights, _tokenizer(weights.parent)


def _pocket_configuration(entry: CatalogEntry, weights: Path) -> Stated:
    """What lies beside the weights, else what pocket_tts has under the name of the release."""
    from sonant.families.pocket.config import released
    from sonant.families.pocket.yaml_subset import read_yaml

    beside = sorted(weights.parent.glob("*.yaml"))
    if len(beside) > 1:
        raise CheckpointError(f"{weights.parent}: {len(beside)} .yaml files; leave the one of these weights")
    if beside:
        return Stated(read_yaml(beside[0]))
    if (weights.parent / "config.json").is_file():
        return folder_of(weights)[1]
    return released(entry.recipe or entry.name)


def _setup(entry: CatalogEntry, options: LoadOptions, files: Files, tensors: StoredWeights, voices: VoiceCatalog,
           known: AlignmentHeads | None) -> Setup:
    """By itself a file of floats is multiplied in f32, one in q8 in q8. InputError: q8 in anything else."""
    stored = tensors.precision
    precision = named_precision(options.precision, stored or "f32")
    if stored and precision != stored:
        raise InputError(f"{files.weights} is in {stored}; it cannot be loaded in {options.precision}")
    return Setup(tokenizer=files.tokenizer, languages=entry.languages, licence=entry.licence, voices=voices,
                 heads=find_heads(files.weights.parent, _metadata(files), known), schedule=_schedule(options),
                 may_clone=entry.sources[0].gated, precision=precision, cache=files.cache)


def _metadata(files: Files) -> Mapping[str, str]:
    """Of the file as it was published; a GGUF has none that sonant knows."""
    return {} if files.weights.suffix == ".gguf" else open_safetensors(files.weights).metadata


def _schedule(options: LoadOptions) -> Schedule:
    from sonant.engine.load import available_cores

    threads = options.threads or available_cores()

    def schedule(model: FrameModel[LatentStream]) -> Scheduler[LatentStream]:
        # Two threads do more when both work on the codec, then both on the step, than when each has its own.
        return FrameScheduler(model, threads=threads, overlap=threads > 2)

    return schedule
