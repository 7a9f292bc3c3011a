"""`load`: from a model name to a Synthesizer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sonant.backends.backend import Backend
from sonant.checkpoint.cache import default_cache_root
from sonant.engine.synthesizer import Synthesizer
from sonant.families.family import Driver
from sonant.hub.catalog import CatalogEntry, find
from sonant.options import LoadOptions

PathLike = str | os.PathLike[str]


def load(
    model: str = "kokoro-82m",
    *,
    device: str = "cpu",
    threads: int | None = None,
    precision: str = "f32",
    weights: PathLike | None = None,
    voices: PathLike | None = None,
    isa: str | None = None,
    cache: PathLike | None = None,
) -> Synthesizer:
    """Bring up a model.

    model: a name of the catalogue. device: cpu, or numpy for the slow reference. threads: None for one per core.
    precision: f32, f16 or bf16. weights: a checkpoint file or folder, by default the installed package of the extra.
    voices: a folder of further voices. isa: force an instruction set. cache: where converted files are kept.
    Raises UnknownName (model, device, precision, isa), CheckpointError (weights missing or damaged).
    """
    options = LoadOptions(device=device, threads=threads, precision=precision, isa=isa)
    entry = find(model)
    root = Path(cache) if cache is not None else default_cache_root(os.environ)
    driver = _FAMILIES[entry.family](
        entry, _backend(options), options, Path(weights) if weights else None, Path(voices) if voices else None, root
    )
    return Synthesizer(entry.name, driver)


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
    from sonant.families.kokoro.driver import KokoroDriver
    from sonant.families.kokoro.voices import VoiceCatalog
    from sonant.families.kokoro.weights import ensure_checkpoint, load_safetensors

    path = ensure_checkpoint(weights, cache)
    config, tensors = load_safetensors(path)
    beside = weights / "voices" if weights is not None and (weights / "voices").is_dir() else None
    catalog = VoiceCatalog([d for d in (voices, beside) if d is not None])
    return KokoroDriver(config, tensors, backend, voices=catalog, precision=options.precision, cache=path.parent)


_FAMILIES: dict[str, Callable[..., Driver]] = {"kokoro": _load_kokoro}
