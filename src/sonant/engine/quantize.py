"""Storing a model's matrices in q8, and measuring what that changes; behind `sonant quantize`."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.checkpoint.quantize import Quantized, quantize
from sonant.engine.load import find_weights, load
from sonant.engine.load_latent import OWN_VOICES, phonon_files, pocket_files
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import CheckpointError, InputError
from sonant.families.latent.takes import LatentSpeaker
from sonant.hub.catalog import CATALOG, CatalogEntry
from sonant.hub.store import pulled_folder, pulled_voices
from sonant.options import SpeakOptions

if TYPE_CHECKING:
    from sonant.program.program import Program

    _Found = tuple[Path, list[Program], Path]
    """The converted file, the Programs in q8, the file of the weights."""

BESIDE = (
    "tokenizer.json",
    "tokenizer.5.0.0.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "default-voice.safetensors",
    "speed.json",
    "heads.json",
)
"""What a family reads beside a converted file, wherever it lies. The configuration is inside."""


@dataclass(frozen=True)
class Plan:
    """What is to be stored: the family's own file of the model (floats), which tensors of it become q8, the files that
    the model needs beside it, what it was converted from, and the folder of its voices where it has one."""

    converted: Path
    matrices: frozenset[str]
    beside: tuple[Path, ...]
    source: Path
    voices: Path | None


@dataclass(frozen=True)
class TextQuality:
    """One text in floats and in q8.

    frames, eos_frames: of each chunk, when both speak freely. latent_rms: between the latents of the two, the second
    led by the first frame by frame; latent_share and latent_db: of the RMS of the first.
    """

    text: str
    frames: tuple[tuple[int, int], ...]
    eos_frames: tuple[tuple[int | None, int | None], ...]
    latent_rms: float
    latent_share: float

    @property
    def latent_db(self) -> float | None:
        """None where nothing is lost."""
        return 20 * math.log10(self.latent_share) if self.latent_share else None

    @property
    def frames_longer(self) -> int:
        return sum(q8 - f32 for f32, q8 in self.frames)


def plan(entry: CatalogEntry, weights: Path | None, root: Path) -> Plan:
    """Convert the model, if it was not yet. Raises InputError for a model of a family that does not multiply in q8."""
    if entry.family not in _FAMILIES:
        able = sorted({e.name for e in CATALOG.values() if e.family in _FAMILIES})
        raise InputError(
            f"{entry.name} cannot be stored in q8: its family, {entry.family}, multiplies in floats only "
            f"(precision f32, f16 or bf16 when it is loaded). Those that can: {', '.join(able[:8])}, …"
        )
    source = weights or find_weights(entry, root)
    if not isinstance(source, Path):
        raise CheckpointError(f"{entry.name}: lies in several files; give one folder as weights")
    converted, programs, given = _FAMILIES[entry.family](entry, source, root)
    folders = [given.parent / name for name in BESIDE]
    pulled = [pulled_folder(entry, root) / path for path in entry.weights] if weights is None else []
    beside = {path.name: path for path in (*pulled, *folders) if path.name in BESIDE and path.is_file()}
    places = [pulled_voices(entry, root)] if weights is None else [given.parent / name for name in OWN_VOICES]
    voices = next((place for place in places if place is not None and place.is_dir()), None)
    return Plan(converted, matrices_of(programs), tuple(beside.values()), given, voices)


def matrices_of(programs: Iterable[Program]) -> frozenset[str]:
    """The weights that Programs declare in q8."""
    return frozenset(name for p in programs for name, weight in p.weights.items() if weight.dtype in ("q8", "i8"))


def store(found: Plan, target: Path) -> Quantized:
    """Write the q8 file, and what the model needs beside it. InputError where it would replace its own source, and
    where the folder has other files of the names of those: they would be another model's."""
    if target.exists() and any(target.samefile(path) for path in (found.source, found.converted)):
        raise InputError(f"{target} is what it is made from; give another name")
    copies = [(path, target.parent / path.name) for path in found.beside]
    copies = [(path, copy) for path, copy in copies if path.resolve() != copy.resolve()]
    for path, copy in copies:
        if copy.exists() and copy.read_bytes() != path.read_bytes():
            raise InputError(f"{target.parent} has another {path.name}, of another model; choose a folder of its own")
    done = quantize(found.converted, found.matrices, target)
    for path, copy in copies:
        shutil.copyfile(path, copy)
    return done


def compare(
    entry: CatalogEntry,
    weights: Path | None,
    found: Plan,
    target: Path,
    texts: Sequence[str],
    *,
    options: SpeakOptions,
    threads: int | None,
    cache: Path,
) -> Iterator[TextQuality]:
    """Every text with the model in floats (weights as for `plan`) and with the q8 file `target`, in the same voice."""
    if not texts:
        return
    reference, changed = (
        load(entry.name, weights=file, precision=precision, voices=found.voices, threads=threads, cache=cache)
        for file, precision in ((weights, "f32"), (target, "q8"))
    )
    for text in texts:
        yield measure(_speaker(reference), _speaker(changed), text, options)


def _speaker(synth: Synthesizer) -> LatentSpeaker:
    """The driver of a model of _FAMILIES."""
    return cast(LatentSpeaker, synth._driver)


def measure(reference: LatentSpeaker, changed: LatentSpeaker, text: str, options: SpeakOptions) -> TextQuality:
    """Speak a text with both: freely, for the lengths; and `changed` led by the latents of `reference`."""
    cancel = CancelFlag()
    first, free = reference.takes(text, options, cancel), changed.takes(text, options, cancel)
    led = changed.takes(text, options, cancel, led_by=[take.latents for take in first])
    if not first:
        raise InputError(f"nothing was said of {text!r}; quality is measured on texts that can be spoken")
    wanted = np.concatenate([take.latents for take in first]).astype(np.float64)
    lost = np.concatenate([take.latents for take in led]).astype(np.float64) - wanted
    rms = float(np.sqrt(np.mean(lost**2)))
    return TextQuality(
        text,
        tuple((len(a.latents), len(b.latents)) for a, b in zip(first, free, strict=True)),
        tuple((a.eos_frame, b.eos_frame) for a, b in zip(first, free, strict=True)),
        rms,
        rms / float(np.sqrt(np.mean(wanted**2))),
    )


def report(model: str, target: Path, found: Plan, done: Quantized, texts: Sequence[TextQuality]) -> dict[str, Any]:
    """All of it as JSON values."""
    return {
        "format": "sonant-quality-1",
        "model": model,
        "file": target.name,
        "precision": "q8",
        "bytes": {"source": found.source.stat().st_size, "floats": done.bytes_before, "q8": done.bytes_after},
        "kept_bytes": done.kept_bytes,
        "rms": done.rms,
        "tensors": [{k: v for k, v in asdict(tensor).items() if k != "squares"} for tensor in done.tensors],
        "texts": [
            {**asdict(text), "latent_db": text.latent_db, "frames_longer": text.frames_longer} for text in texts
        ],
    }


def _phonon(entry: CatalogEntry, source: Path, root: Path) -> _Found:
    from sonant.families.phonon import model
    from sonant.families.phonon.weights import LAYOUT

    files = phonon_files(entry, source, root)
    config = LAYOUT.open(files.converted)[0]
    made = (model.prefill_program, model.step_program, model.codec_program)
    return files.converted, [make(config, precision="q8") for make in made], files.weights


def _pocket(entry: CatalogEntry, source: Path, root: Path) -> _Found:
    from sonant.families.pocket import model
    from sonant.families.pocket.weights import LAYOUT

    files = pocket_files(entry, source, root)
    config = LAYOUT.open(files.converted)[0]
    made = (model.prefill_program, model.step_program, model.codec_program)
    return files.converted, [make(config, precision="q8") for make in made], files.weights


_FAMILIES: dict[str, Callable[[CatalogEntry, Path, Path], _Found]] = {"phonon": _phonon, "pocket": _pocket}
"""Families whose Programs can multiply in q8."""
