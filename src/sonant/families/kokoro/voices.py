"""Kokoro voices: packs of style vectors, the folders they lie in, and blends of them.

A pack is [510, 256] float32: row n-1 is the style for n phonemes, its first half for the decoder, its second for the
prosody predictor. A voice is looked up in a listing of the folders; a name is never joined to a path.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sonant.checkpoint.safetensors import Checkpoint, open_safetensors
from sonant.checkpoint.tensor import Tensor, map_file
from sonant.checkpoint.zip_members import Member, ZipMembers
from sonant.errors import CheckpointError, InputError, UnknownName

DATA = Path(__file__).parent / "data"
PACK_ROWS, STYLE_CHANNELS = 510, 256

LANGUAGES = {
    "a": "en-US",
    "b": "en-GB",
    "e": "es",
    "f": "fr-FR",
    "h": "hi",
    "i": "it",
    "j": "ja",
    "p": "pt-BR",
    "z": "zh",
}
GENDERS = {"f": "female", "m": "male"}

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '<(f[248])', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n", re.DOTALL
)
_MAX_NPY_BYTES = PACK_ROWS * STYLE_CHANNELS * 8 + 256
_Pack = NDArray[np.float32]


@dataclass(frozen=True)
class VoicePack:
    """One voice, or a blend. `pack` [rows, channels] float32, read-only."""

    name: str
    pack: _Pack = field(repr=False, compare=False)

    @property
    def language(self) -> str | None:
        """BCP-47, from the first letter of the (first) name; None where the name does not follow the custom."""
        return LANGUAGES.get(self.name[0]) if self._named_by_custom else None

    @property
    def gender(self) -> str | None:
        """female or male, from the second letter; None for a blend of both and where the custom is not followed."""
        genders = {GENDERS[name[1]] if _follows_custom(name) else None for name in _names_in(self.name)}
        return genders.pop() if len(genders) == 1 else None

    @property
    def _named_by_custom(self) -> bool:
        return _follows_custom(_names_in(self.name)[0])

    def style(self, n_phonemes: int) -> _Pack:
        """The style [channels] for a piece of `n_phonemes` phonemes (without the two boundary ids)."""
        if not 1 <= n_phonemes <= len(self.pack):
            raise InputError(
                f"voice {self.name!r}: no style for {n_phonemes} phonemes, wanted 1 to {len(self.pack)}; cut the text"
            )
        row: _Pack = self.pack[n_phonemes - 1]
        return row


class VoiceCatalog:
    """The voices in some folders, earlier folders first, and the packaged one last.

    The folders are listed once, here; packs are read when asked for. Formats: .pt (official), .bin (f32, kokoro-js),
    .f16.bin, .npy, .npz and .safetensors (both: one voice for each array, or one under the file's name).
    """

    def __init__(self, dirs: Sequence[str | os.PathLike[str]] = ()):
        self._readers: dict[str, Callable[[], _Pack]] = {}
        for folder in (*map(Path, dirs), DATA):
            for name, reader in _list_folder(folder).items():
                self._readers.setdefault(name, reader)

    def names(self) -> list[str]:
        return sorted(self._readers)

    def get(self, spec: str) -> VoicePack:
        """A voice by name, the mean of several (`af_heart,am_michael`) or weighted (`af_heart:0.7,am_michael:0.3`).

        UnknownName if a voice is not in the catalog, InputError if the weights make no sense.
        """
        shares = parse_blend(spec)
        packs = [self._read(name) for name, _ in shares]
        if len(packs) == 1:
            return VoicePack(shares[0][0], packs[0])
        shapes = {pack.shape for pack in packs}
        if len(shapes) > 1:
            raise InputError(f"voices {spec!r} have packs of different shapes {sorted(shapes)} and cannot be blended")
        blend = sum(share * pack.astype(np.float64) for (_, share), pack in zip(shares, packs, strict=True))
        return VoicePack(spec.replace(" ", ""), _frozen(np.asarray(blend)))

    def _read(self, name: str) -> _Pack:
        if name not in self._readers:
            raise UnknownName("voice", name, self._readers)
        return self._readers[name]()


def parse_blend(spec: str) -> list[tuple[str, float]]:
    """(name, share) of each voice in `spec`; the shares add up to 1."""
    parts = [part.strip() for part in spec.split(",")]
    if not all(parts):
        raise InputError(f"voice {spec!r}: an empty name; wanted name, name,name or name:weight,name:weight")
    pairs = [part.partition(":") for part in parts]
    if len({colon for _, colon, _ in pairs}) > 1:
        raise InputError(f"voice {spec!r}: some voices have a weight and some have none; give all or none")
    names = [name.strip() for name, _, _ in pairs]
    weights = [_weight(weight, spec) if colon else 1.0 for _, colon, weight in pairs]
    total = sum(weights)
    if not 0 < total < math.inf:
        raise InputError(f"voice {spec!r}: the weights add up to {total:g}; wanted a positive finite sum")
    return [(name, weight / total) for name, weight in zip(names, weights, strict=True)]


def _weight(text: str, spec: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"voice {spec!r}: weight {text.strip()!r} is not a number of at least 0")
    return weight


def read_voices(path: str | os.PathLike[str]) -> dict[str, _Pack]:
    """Every pack in one voice file, by name. CheckpointError if it is damaged or of another shape."""
    path = Path(path)
    listed = _list_file(path)
    if not listed:
        raise CheckpointError(f"{path}: not a voice file; wanted a name ending in {', '.join(_FORMATS)}")
    return {name: reader() for name, reader in listed.items()}


def _names_in(spec: str) -> list[str]:
    return [part.partition(":")[0] for part in spec.split(",")]


def _follows_custom(name: str) -> bool:
    return len(name) > 2 and name[0] in LANGUAGES and name[1] in GENDERS and name[2] == "_"


def _list_folder(folder: Path) -> dict[str, Callable[[], _Pack]]:
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise CheckpointError(f"{folder}: the voice folder cannot be listed ({error.strerror or error})") from error
    out: dict[str, Callable[[], _Pack]] = {}
    for path in files:
        for name, reader in _list_file(path).items():
            out.setdefault(name, reader)
    return out


def _list_file(path: Path) -> dict[str, Callable[[], _Pack]]:
    for suffix, lister in _FORMATS.items():
        stem = path.name.removesuffix(suffix)
        if stem != path.name and _NAME.fullmatch(stem):
            return lister(path, stem)
    return {}


def _one(read: Callable[[Path], NDArray[np.generic]], path: Path, stem: str) -> dict[str, Callable[[], _Pack]]:
    return {stem: lambda: _checked(read(path), path)}


def _read_raw(path: Path, dtype: str) -> NDArray[np.generic]:
    raw, kind = map_file(path), np.dtype(dtype)
    wanted = PACK_ROWS * STYLE_CHANNELS * kind.itemsize
    if len(raw) != wanted:
        hint = "; it is a zip file: kokoro-onnx's voices file must be named .npz" if raw[:2] == b"PK" else ""
        raise CheckpointError(f"{path}: {len(raw)} bytes, wanted {wanted} ([510, 256] of {kind}){hint}")
    return np.frombuffer(raw, kind).reshape(PACK_ROWS, STYLE_CHANNELS)


def _read_pt(path: Path) -> NDArray[np.generic]:
    from sonant.checkpoint.torch_zip import open_torch  # not for voices that are safetensors

    value = open_torch(path)
    if not isinstance(value, Tensor):
        raise CheckpointError(f"{path}: holds a {type(value).__name__}, wanted one tensor")
    if value.dtype not in ("f16", "bf16", "f32"):
        raise CheckpointError(f"{path}: holds {value.dtype} numbers, wanted floats")
    return value.f32()


def _read_npy(path: Path) -> NDArray[np.generic]:
    return _parse_npy(map_file(path)[:], path)


def _list_npz(path: Path, stem: str) -> dict[str, Callable[[], _Pack]]:
    archive = ZipMembers(map_file(path), str(path))
    named = {member.name.removesuffix(".npy"): member for member in archive.members.values()}
    return {name: partial(_read_npz, archive, member, path) for name, member in named.items() if _NAME.fullmatch(name)}


def _read_npz(archive: ZipMembers, member: Member, path: Path) -> _Pack:
    if member.size_bytes > _MAX_NPY_BYTES:
        raise CheckpointError(
            f"{path}: {member.name} claims {member.size_bytes} bytes; a voice has {_MAX_NPY_BYTES} at most"
        )
    return _checked(_parse_npy(archive.content(member), path), path)


def _parse_npy(raw: bytes, path: Path) -> NDArray[np.generic]:
    """The one form of .npy that numpy writes for C-ordered little-endian floats (numpy.lib.format, version 1)."""
    match = _NPY.match(raw[:256])
    shape = tuple(int(n) for n in match[2].split(b",") if n.strip()) if match else ()
    kind = np.dtype("<" + match[1].decode()) if match else np.dtype("<f4")
    if match is None or len(raw) - match.end() != math.prod(shape) * kind.itemsize:
        raise CheckpointError(
            f"{path}: not a whole .npy array of little-endian floats in C order; save it so with numpy"
        )
    return np.frombuffer(raw, kind, offset=match.end()).reshape(shape)


def _list_safetensors(path: Path, stem: str) -> dict[str, Callable[[], _Pack]]:
    checkpoint = open_safetensors(path)
    keys = {stem: next(iter(checkpoint))} if len(checkpoint) == 1 else {name: name for name in checkpoint}
    return {n: partial(_read_safetensors, checkpoint, key) for n, key in keys.items() if _NAME.fullmatch(n)}


def _read_safetensors(checkpoint: Checkpoint, key: str) -> _Pack:
    return _checked(checkpoint.tensor(key).f32(), checkpoint.path)


def _checked(array: NDArray[np.generic], where: Path) -> _Pack:
    """[510, 256] or the official [510, 1, 256]; numbers only."""
    allowed = ((PACK_ROWS, STYLE_CHANNELS), (PACK_ROWS, 1, STYLE_CHANNELS))
    if array.shape not in allowed or array.dtype.kind != "f":
        raise CheckpointError(
            f"{where}: a voice of shape {array.shape} and type {array.dtype}, wanted [510, 256] floats"
        )
    pack = array.reshape(PACK_ROWS, STYLE_CHANNELS)
    if not np.isfinite(pack).all():
        raise CheckpointError(f"{where}: the voice holds NaN or infinity; the file is damaged")
    return _frozen(pack)


def _frozen(array: NDArray[np.generic]) -> _Pack:
    pack = np.ascontiguousarray(array, np.float32)
    pack.flags.writeable = False
    return pack


_FORMATS: Mapping[str, Callable[[Path, str], dict[str, Callable[[], _Pack]]]] = {
    ".f16.bin": partial(_one, partial(_read_raw, dtype="<f2")),
    ".bin": partial(_one, partial(_read_raw, dtype="<f4")),
    ".pt": partial(_one, _read_pt),
    ".npy": partial(_one, _read_npy),
    ".npz": _list_npz,
    ".safetensors": _list_safetensors,
}
