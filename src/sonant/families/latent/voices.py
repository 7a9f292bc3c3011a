"""Voices of latent language models: the files they lie in, found by name, and what a file may hold.

A voice is looked up in a listing of folders, made once; a name is never joined to a path. A file of a voice
(.safetensors) holds one of
    emb, audio_prompt       [P, D] or [1, P, D]: rows of the language model's width, used as they are
    speaker_wavs            [V, P] or [1, V, P]: latents of a speaker encoder, projected with the checkpoint's matrix
    <layer>/cache, /offset  [2, 1, T, H, size]: keys and values as pocket_tts exports them, with rotated pairs, and how
                            many of the T positions are filled
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sonant.checkpoint.safetensors import Checkpoint, open_safetensors
from sonant.errors import CheckpointError, UnknownName
from sonant.families.latent.frames import VoicePrompt
from sonant.layers.transformer import TransformerShape
from sonant.types import VoiceInfo

ENDING, INDEX = ".safetensors", "voices.jsonl"
MOST_POSITIONS = 512
"""Of a voice: 40 s. More would leave no room for speech."""

_CACHE = re.compile(r"transformer\.layers\.(\d+)\.self_attn/cache")
_OFFSETS = ("offset", "current_end")


@dataclass(frozen=True)
class VoiceFile:
    """Where a voice lies, and its BCP-47 language where the listing says so."""

    name: str
    path: Path
    language: str | None


class VoiceCatalog:
    """The voices in some folders, earlier folders first. Each is listed once, here."""

    def __init__(self, folders: Sequence[Path], language: str | None, single: Sequence[Path] = ()) -> None:
        """language: of the voices in a folder without an index. single: files that are voices, where they are there."""
        self._files: dict[str, VoiceFile] = {}
        for folder in folders:
            for file in _indexed(folder) if (folder / INDEX).is_file() else _listed(folder, language):
                self._files.setdefault(file.name, file)
        for path in single:
            if path.is_file():
                self._files.setdefault(path.stem, VoiceFile(path.stem, path, language))

    def infos(self) -> list[VoiceInfo]:
        return [VoiceInfo(f.name, f.language, None) for _, f in sorted(self._files.items())]

    def names(self) -> list[str]:
        return sorted(self._files)

    def find(self, name: str) -> VoiceFile:
        """Raises UnknownName."""
        if name not in self._files:
            raise UnknownName("voice", name, self._files)
        return self._files[name]


def _listed(folder: Path, language: str | None) -> list[VoiceFile]:
    """Each .safetensors file of a folder by its name."""
    found = sorted(folder.glob(f"*{ENDING}")) if folder.is_dir() else []
    return [VoiceFile(path.name.removesuffix(ENDING), path, language) for path in found]


def _indexed(folder: Path) -> list[VoiceFile]:
    """Those of voices.jsonl (name, filename, language) whose files are here."""
    index, inside = folder / INDEX, folder.resolve()
    out = []
    try:
        lines = [json.loads(line) for line in index.read_text("utf-8").splitlines() if line.strip()]
        for line in lines:
            name, path, language = line["name"], (folder / line["filename"]).resolve(), line.get("language")
            if not isinstance(name, str) or not path.is_relative_to(inside):
                raise CheckpointError(f"{index}: {line!r:.200} does not name a file of this folder")
            if path.is_file():
                out.append(VoiceFile(name, path, language if isinstance(language, str) else None))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{index}: cannot be read ({error!r}); pull the voices again") from error
    return out


@dataclass(frozen=True)
class VoiceReader:
    """What a checkpoint needs to know of itself to read voices. projection [D, V]; before [1, D]: the row that stands
    before a voice given as rows, None where there is none."""

    lm: TransformerShape
    projection: np.ndarray | None
    before: np.ndarray | None

    def read(self, file: VoiceFile) -> VoicePrompt:
        """The voice in a file. Raises CheckpointError for a file of another model or kind."""
        checkpoint = open_safetensors(file.path)
        caches = {int(m[1]): name for name in checkpoint if (m := _CACHE.fullmatch(name))}
        if caches:
            return VoicePrompt(file.name, keys_values=self._caches(checkpoint, caches))
        rows = self._rows(checkpoint)
        return self.prompt(file.name, rows)

    def prompt(self, name: str, rows: np.ndarray) -> VoicePrompt:
        """A voice of these rows [P, D], the row that stands before them not among them."""
        whole = rows if self.before is None else np.concatenate([self.before, rows])
        _check_length(name, len(whole))
        return VoicePrompt(name, np.ascontiguousarray(whole, np.float32))

    def project(self, latents: np.ndarray) -> np.ndarray:
        """Rows [P, D] of latents [P, V]. Raises CheckpointError where the checkpoint lacks the matrix."""
        rows: np.ndarray = latents @ self._matrix.T
        return rows

    @property
    def _matrix(self) -> np.ndarray:
        if self.projection is None:
            raise CheckpointError("this checkpoint has no matrix that makes voice rows of latents; take the one that "
                                  "can clone (its name ends in -cloning)")
        return self.projection

    def _rows(self, checkpoint: Checkpoint) -> np.ndarray:
        width = self.lm.width
        for name in ("emb", "audio_prompt"):
            if name in checkpoint:
                return _matrix(checkpoint, name, columns=width)
        if "speaker_wavs" in checkpoint:
            return self.project(_matrix(checkpoint, "speaker_wavs", rows=self._matrix.shape[1]).T)
        found = ", ".join(sorted(checkpoint)[:5])
        raise CheckpointError(f"{checkpoint.path}: holds {found}; wanted emb, audio_prompt, speaker_wavs or the "
                              "exported cache of a voice")

    def _caches(self, checkpoint: Checkpoint, caches: Mapping[int, str]) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        if sorted(caches) != list(range(self.lm.layers)):
            raise CheckpointError(f"{checkpoint.path}: has the cache of {len(caches)} layers, this model has "
                                  f"{self.lm.layers}; is it a voice of another model?")
        return tuple(self._cache(checkpoint, caches[i]) for i in range(self.lm.layers))

    def _cache(self, checkpoint: Checkpoint, name: str) -> tuple[np.ndarray, np.ndarray]:
        """k and v [P, kv_width]: the filled positions, heads beside each other."""
        array, lm = checkpoint.tensor(name).f32(), self.lm
        length = _filled(checkpoint, name.removesuffix("/cache"))
        good = array.ndim == 5 and array.shape[:2] == (2, 1) and array.shape[3:] == (lm.kv_heads, lm.head_size)
        if not good or not 0 < length <= array.shape[2]:
            raise CheckpointError(f"{checkpoint.path}: {name} is {list(array.shape)} with {length} positions, wanted "
                                  f"[2, 1, T, {lm.kv_heads}, {lm.head_size}]; is it a voice of another model?")
        _check_length(str(checkpoint.path), length)
        k, v = array[:, 0, :length].reshape(2, length, lm.kv_width)
        if not (np.isfinite(k).all() and np.isfinite(v).all()):
            raise CheckpointError(f"{checkpoint.path}: {name} holds NaN or infinity; the file is damaged")
        return np.ascontiguousarray(k), np.ascontiguousarray(v)


def _filled(checkpoint: Checkpoint, module: str) -> int:
    """How many positions of an exported cache are filled: a number, or, in old files, the length of a tensor."""
    for kind in _OFFSETS:
        name = f"{module}/{kind}"
        if name in checkpoint:
            array = checkpoint[name]
            return int(array.reshape(-1)[0]) if kind == "offset" and array.size else len(array)
    raise CheckpointError(f"{checkpoint.path}: no {module}/offset beside the cache; is it an exported voice?")


def _matrix(checkpoint: Checkpoint, name: str, *, rows: int | None = None, columns: int | None = None) -> np.ndarray:
    """A tensor [R, C], or [1, R, C], of the size that is given."""
    array = checkpoint.tensor(name).f32()
    found = array.shape
    array = array[0] if array.ndim == 3 and len(array) == 1 else array
    if array.ndim != 2 or rows not in (None, array.shape[0]) or columns not in (None, array.shape[1]):
        wanted = f"[{rows or 'P'}, {columns or 'P'}]"
        raise CheckpointError(f"{checkpoint.path}: {name} is {list(found)}, wanted {wanted}; is it a voice of another "
                              "model?")
    if not np.isfinite(array).all():
        raise CheckpointError(f"{checkpoint.path}: {name} holds NaN or infinity; the file is damaged")
    return array


def _check_length(what: str, positions: int) -> None:
    if positions > MOST_POSITIONS:
        raise CheckpointError(f"{what}: a voice of {positions} positions; {MOST_POSITIONS} at most leave room to speak")
