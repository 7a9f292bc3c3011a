"""Reader of GGUF files (https://github.com/ggml-org/ggml, docs/gguf.md), versions 2 and 3, little-endian.

Layout: magic | version | counts | metadata: key, type, value | tensors: name, dims, type, offset | data, aligned.
The file is mapped and everything is checked before a tensor is handed out. Dims are written fastest first, so a shape
here is the reverse of the file's. Types: f32, f16, bf16 and q8_0, whose block is an f16 scale and 32 integers. Other
quantizations are named in the error and not read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonant.checkpoint.tensor import (
    Buffer,
    LazyTensor,
    Tensor,
    array_at,
    element_count,
    map_file,
    possible_shape,
)
from sonant.errors import CheckpointError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT, _ALIGNMENT_KEY = 32, "general.alignment"
_MAX_DIMS = 4
_BLOCK = 32
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_PLAIN = {0: "f32", 1: "f16", 30: "bf16"}
_Q8_0 = 8
_Q8_0_BLOCK = np.dtype([("scale", "<f2"), ("integers", "i1", (_BLOCK,))])
_OTHERS = {
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    9: "q8_1",
    10: "q2_K",
    11: "q3_K",
    12: "q4_K",
    13: "q5_K",
    14: "q6_K",
    15: "q8_K",
    24: "i8",
    25: "i16",
    26: "i32",
    27: "i64",
    28: "f64",
}


@dataclass(frozen=True)
class _Info:
    """Of one tensor; `offset` counts from the beginning of the data."""

    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def size_bytes(self) -> int:
        count = element_count(self.shape)
        if self.kind == _Q8_0:
            return count // _BLOCK * _Q8_0_BLOCK.itemsize
        return count * (4 if self.kind == 0 else 2)


class Gguf(Mapping[str, LazyTensor]):
    """An open file: name → tensor, its values as float32 on demand. `metadata`: key → number, str, bool or list."""

    def __init__(self, path: Path, buffer: Buffer, data: int, infos: dict[str, _Info], metadata: dict[str, Any]):
        self.path, self.metadata = path, metadata
        self._buffer, self._data, self._infos = buffer, data, infos

    def dtype(self, name: str) -> str:
        """How a tensor is stored: f32, f16, bf16 or q8_0."""
        return _PLAIN.get(self._infos[name].kind, "q8_0")

    def q8(self, name: str) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """A q8_0 tensor as it is stored: integers [..., C] and scales [..., C / 32]."""
        info = self._infos[name]
        if info.kind != _Q8_0:
            raise CheckpointError(f"{self.path}: tensor {name!r} is {self.dtype(name)}, not q8_0")
        *outer, channels = info.shape
        count = element_count(info.shape) // _BLOCK
        blocks = np.frombuffer(self._buffer, _Q8_0_BLOCK, count, self._data + info.offset)
        scales = blocks["scale"].reshape(*outer, channels // _BLOCK)
        return blocks["integers"].reshape(info.shape), scales

    def _read(self, name: str) -> NDArray[np.float32]:
        info = self._infos[name]
        if info.kind == _Q8_0:
            integers, scales = self.q8(name)
            values: NDArray[np.float32] = integers.astype(np.float32) * np.repeat(scales.astype(np.float32), _BLOCK, -1)
            return values
        dtype = _PLAIN[info.kind]
        return Tensor(array_at(self._buffer, self._data + info.offset, dtype, info.shape), dtype).f32()

    def __getitem__(self, name: str) -> LazyTensor:
        return LazyTensor(self._infos[name].shape, partial(self._read, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)


def open_gguf(path: str | os.PathLike[str]) -> Gguf:
    """Map `path` and check all but the numbers themselves. CheckpointError if anything is out of place."""
    path = Path(path)
    reader = _Reader(path, map_file(path))
    if reader.take(4) != _MAGIC:
        raise CheckpointError(f"{path}: does not begin with GGUF; it is no GGUF file")
    version = reader.number("I")
    if version not in _VERSIONS:
        raise CheckpointError(f"{path}: GGUF version {version}; read are {_VERSIONS[0]} and {_VERSIONS[1]}")
    n_tensors, n_keys = reader.number("Q"), reader.number("Q")
    metadata = _unique(path, "key", (reader.entry() for _ in reader.times(n_keys)))
    infos = _unique(path, "tensor", (reader.info() for _ in reader.times(n_tensors)))
    alignment = metadata.get(_ALIGNMENT_KEY, _ALIGNMENT)
    if type(alignment) is not int or alignment < 8 or alignment & alignment - 1:
        raise CheckpointError(f"{path}: {_ALIGNMENT_KEY} is {alignment!r}, wanted a power of two from 8")
    data = reader.at + -reader.at % alignment
    _check_ranges(path, infos, alignment, len(reader.buffer) - data)
    return Gguf(path, reader.buffer, data, infos, metadata)


def _unique(path: Path, what: str, found: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in found:
        if name in out:
            raise CheckpointError(f"{path}: names the {what} {name!r} twice")
        out[name] = value
    return out


def _check_ranges(path: Path, infos: dict[str, _Info], alignment: int, data_bytes: int) -> None:
    """No tensor outside the file, out of its alignment or over another. Holes are padding, and allowed."""
    end = 0
    for name, info in sorted(infos.items(), key=lambda item: item[1].offset):
        if info.offset % alignment or info.offset < end:
            raise CheckpointError(f"{path}: tensor {name!r} at byte {info.offset} overlaps another, or is not aligned")
        end = info.offset + info.size_bytes
        if end > data_bytes:
            raise CheckpointError(
                f"{path}: tensor {name!r} ends at byte {end} of {data_bytes}; the file is truncated, fetch it again"
            )


class _Reader:
    """Takes values from the front of the file; nothing beyond its end, nothing that the file claims unchecked."""

    def __init__(self, path: Path, buffer: Buffer):
        self.path, self.buffer, self.at = path, buffer, 0

    def take(self, n_bytes: int) -> bytes:
        if n_bytes > len(self.buffer) - self.at:
            raise CheckpointError(f"{self.path}: ends within its header; it is truncated or no GGUF file")
        self.at += n_bytes
        return self.buffer[self.at - n_bytes : self.at]

    def times(self, count: int) -> range:
        """A loop over things of which each takes a byte at least."""
        if count > len(self.buffer) - self.at:
            raise CheckpointError(f"{self.path}: claims {count} entries, more than it has bytes; it is damaged")
        return range(count)

    def number(self, kind: str) -> Any:
        (value,) = struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))
        return value

    def string(self) -> str:
        try:
            return self.take(self.number("Q")).decode("utf-8")
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.path}: a name or value is not UTF-8") from error

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            raise CheckpointError(f"{self.path}: metadata of type {kind}, which GGUF does not have")
        inner, count = self.number("I"), self.number("Q")
        if inner == _ARRAY:
            raise CheckpointError(f"{self.path}: an array of arrays in the metadata; refused")
        if inner not in _SCALARS:
            return [self.value(inner) for _ in self.times(count)]
        size = struct.calcsize("<" + _SCALARS[inner])
        if count > (len(self.buffer) - self.at) // size:
            raise CheckpointError(f"{self.path}: ends within its header; it is truncated or no GGUF file")
        return list(struct.unpack(f"<{count}{_SCALARS[inner]}", self.take(count * size)))

    def entry(self) -> tuple[str, Any]:
        return self.string(), self.value(self.number("I"))

    def info(self) -> tuple[str, _Info]:
        name = self.string()
        where = f"{self.path}: tensor {name!r}"
        n_dims = self.number("I")
        if not 1 <= n_dims <= _MAX_DIMS:
            raise CheckpointError(f"{where}: has {n_dims} dims, wanted 1 to {_MAX_DIMS}")
        shape = tuple(self.number("Q") for _ in range(n_dims))[::-1]
        kind, offset = self.number("I"), self.number("Q")
        if not possible_shape(shape):
            raise CheckpointError(f"{where}: shape {shape} is impossible")
        if kind not in _PLAIN and kind != _Q8_0:
            raise CheckpointError(
                f"{where}: is of type {_OTHERS.get(kind, kind)}; sonant reads f32, f16, bf16 and q8_0. Take the "
                "model's q8 GGUF or its model.safetensors"
            )
        if kind == _Q8_0 and shape[-1] % _BLOCK:
            raise CheckpointError(f"{where}: shape {shape} of q8_0, whose last dim must be a multiple of {_BLOCK}")
        return name, _Info(shape, kind, offset)
