"""Reader and writer of safetensors files (https://github.com/huggingface/safetensors, "Format").

Layout: u64 header length | JSON header, space-padded | bytes of all tensors, no holes.
The reader maps the file and checks everything before it hands out a view: length, JSON schema, duplicate names,
types, offset = shape x element size, no overlap, no hole.
The writer starts every tensor at a multiple of 64 bytes. The format forbids holes, so where a size is not a
multiple of 64 a named filler tensor (`__padding__.N`, u8) follows; the reader here hides the fillers.
"""

from __future__ import annotations

import json
import os
import reprlib
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from sonant.checkpoint.cache import TempFile
from sonant.checkpoint.tensor import (
    DTYPES,
    MAX_DIMS,
    Array,
    Buffer,
    Tensor,
    array_at,
    element_count,
    map_file,
    possible_shape,
)
from sonant.errors import CheckpointError

MAX_HEADER_BYTES = 100_000_000  # the limit of the reference implementation
ALIGN = 64  # a cache line, and the widest SIMD load
PADDING = "__padding__."

_TAGS = {
    "F64": "f64",
    "F32": "f32",
    "F16": "f16",
    "BF16": "bf16",
    "I64": "i64",
    "I32": "i32",
    "I16": "i16",
    "I8": "i8",
    "U64": "u64",
    "U32": "u32",
    "U16": "u16",
    "U8": "u8",
    "BOOL": "bool",
}
_NAMES = {tag: name for name, tag in _TAGS.items()}
_ARRAY_TAGS = {DTYPES[tag]: tag for tag in _NAMES if tag != "bf16"}

_Entry = tuple[str, tuple[int, ...], int, int]  # dtype tag, shape, begin, end (within the data part)


class Checkpoint(Mapping[str, Array]):
    """An open safetensors file: name → read-only numpy view (bf16 as uint16; `tensor` tells them apart)."""

    def __init__(self, path: Path, buffer: Buffer, data_offset: int, entries: dict[str, _Entry], meta: dict[str, str]):
        self.path, self.metadata = path, meta
        self._buffer, self._data_offset, self._entries = buffer, data_offset, entries

    def tensor(self, name: str) -> Tensor:
        entry = self._entries.get(name)
        if entry is None:
            raise CheckpointError(f"{self.path}: has no tensor {name!r} (it has {len(self._entries)})")
        dtype, shape, begin, _ = entry
        return Tensor(array_at(self._buffer, self._data_offset + begin, dtype, shape), dtype)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name][1]

    def dtype(self, name: str) -> str:
        return self._entries[name][0]

    def __getitem__(self, name: str) -> Array:
        if name not in self._entries:
            raise KeyError(name)
        return self.tensor(name).array

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def open_safetensors(path: str | os.PathLike[str]) -> Checkpoint:
    """Map `path` and check its header; no tensor is read. CheckpointError if anything is out of place."""
    path = Path(path)
    buffer = map_file(path)
    if len(buffer) < 8:
        raise CheckpointError(f"{path}: {len(buffer)} bytes is too short for a safetensors file")
    (header_bytes,) = struct.unpack_from("<Q", buffer)
    limit = min(len(buffer) - 8, MAX_HEADER_BYTES)
    if header_bytes > limit:
        raise CheckpointError(
            f"{path}: the header claims {header_bytes} bytes, at most {limit} are possible; "
            "the file is truncated or not safetensors"
        )
    header = _parse_header(path, buffer[8 : 8 + header_bytes])
    metadata = _checked_metadata(path, header.pop("__metadata__", {}))
    entries = {name: _checked_entry(path, name, entry) for name, entry in header.items()}
    _check_ranges(path, entries, len(buffer) - 8 - header_bytes)
    shown = {name: entry for name, entry in entries.items() if not name.startswith(PADDING)}
    return Checkpoint(path, buffer, 8 + header_bytes, shown, metadata)


def _parse_header(path: Path, raw: bytes) -> dict[str, Any]:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) != len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise CheckpointError(f"{path}: the header names {twice!r} twice")
        return seen

    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:  # ValueError covers JSON and UTF-8 errors
        raise CheckpointError(f"{path}: the safetensors header is not valid JSON ({error})") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: the safetensors header is a {type(header).__name__}, wanted an object")
    return header


def _checked_metadata(path: Path, metadata: object) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(f"{path}: __metadata__ must map strings to strings")
    return metadata


def _is_index(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _checked_entry(path: Path, name: str, entry: object) -> _Entry:
    where = f"{path}: tensor {name!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{where}: wanted exactly dtype, shape and data_offsets")
    dtype = _TAGS.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise CheckpointError(f"{where}: dtype {reprlib.repr(entry['dtype'])} is not one of {', '.join(_TAGS)}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not all(_is_index(n) for n in shape) or not possible_shape(shape):
        raise CheckpointError(f"{where}: shape {reprlib.repr(shape)} is not a list of at most {MAX_DIMS} sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_index(n) for n in offsets):
        raise CheckpointError(f"{where}: data_offsets {reprlib.repr(offsets)} is not [begin, end]")
    begin, end = offsets
    wanted = element_count(shape) * DTYPES[dtype].itemsize
    if end - begin != wanted:
        raise CheckpointError(f"{where}: shape {shape} of {dtype} is {wanted} bytes, data_offsets hold {end - begin}")
    return dtype, tuple(shape), begin, end


def _check_ranges(path: Path, entries: dict[str, _Entry], data_bytes: int) -> None:
    """Tensors must tile the data part: a range outside, an overlap and a hole are all refused."""
    at = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if end > data_bytes:
            raise CheckpointError(
                f"{path}: tensor {name!r} ends at byte {end} of {data_bytes}; the file is truncated, fetch it again"
            )
        if begin != at:
            raise CheckpointError(f"{path}: tensor {name!r} starts at byte {begin}, wanted {at} (overlap or hole)")
        at = end
    if at != data_bytes:
        raise CheckpointError(f"{path}: {data_bytes - at} bytes after the last tensor belong to none")


class SafetensorsWriter:
    """Writes tensors one by one, in any order, into a file that appears only when all of them are there.

    `with SafetensorsWriter(path, {name: (dtype, shape)}, metadata) as writer: writer.write(name, array)`.
    Leaving the block with an error, or with a tensor missing, leaves no file behind.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        specs: Mapping[str, tuple[str, Sequence[int]]],
        metadata: Mapping[str, str] | None = None,
    ):
        self.path = Path(path)
        self._specs = {name: (dtype, tuple(shape)) for name, (dtype, shape) in specs.items()}
        header, self._offsets = _layout(self._specs, dict(metadata or {}))
        self._todo = set(self._specs)
        self._temp = TempFile(self.path)
        self._temp.write(header)
        self._data_offset = len(header)

    def write(self, name: str, array: Array) -> None:
        if name not in self._todo:
            state = "was already written" if name in self._specs else "was not announced"
            raise CheckpointError(f"{self.path}: tensor {name!r} {state}")
        dtype, shape = self._specs[name]
        if array.dtype != DTYPES[dtype] or array.shape != shape:
            raise CheckpointError(
                f"{self.path}: tensor {name!r} came as {array.dtype} {array.shape}, wanted {dtype} {shape}"
            )
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self._temp.write(raw, self._data_offset + self._offsets[name])
        self._todo.discard(name)

    def __enter__(self) -> SafetensorsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._temp.discard()
            return
        if self._todo:
            self._temp.discard()
            raise CheckpointError(f"{self.path}: never written: {', '.join(sorted(self._todo)[:10])}")
        end = max((self._offsets[name] + _size(spec) for name, spec in self._specs.items()), default=0)
        self._temp.commit(self._data_offset + end + -end % ALIGN)


def write_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Array | Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write all `tensors` (numpy arrays, or Tensor where the type is bf16) to `path`, atomically."""
    tagged = {name: value if isinstance(value, Tensor) else _tagged(name, value) for name, value in tensors.items()}
    specs = {name: (tensor.dtype, tensor.shape) for name, tensor in tagged.items()}
    with SafetensorsWriter(path, specs, metadata) as writer:
        for name, tensor in tagged.items():
            writer.write(name, tensor.array)


def _tagged(name: str, array: Array) -> Tensor:
    tag = _ARRAY_TAGS.get(array.dtype)
    if tag is None:
        raise CheckpointError(f"tensor {name!r}: numpy type {array.dtype} has no safetensors name")
    return Tensor(array, tag)


def _size(spec: tuple[str, tuple[int, ...]]) -> int:
    return element_count(spec[1]) * DTYPES[spec[0]].itemsize


def _layout(specs: dict[str, tuple[str, tuple[int, ...]]], metadata: dict[str, str]) -> tuple[bytes, dict[str, int]]:
    """The finished header and the offset of each tensor. Sizes that are whole lines go first and need no filler."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    offsets: dict[str, int] = {}
    at = fillers = 0
    for name, spec in sorted(specs.items(), key=lambda item: _size(item[1]) % ALIGN != 0):
        if name.startswith(PADDING) or name == "__metadata__":
            raise CheckpointError(f"tensor name {name!r} is reserved by the file format")
        dtype, shape = spec
        offsets[name], end = at, at + _size(spec)
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [at, end]}
        at = end + -end % ALIGN
        if at != end:
            header[f"{PADDING}{fillers}"] = {"dtype": "U8", "shape": [at - end], "data_offsets": [end, at]}
            fillers += 1
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    raw += b" " * (-(8 + len(raw)) % ALIGN)
    return struct.pack("<Q", len(raw)) + raw, offsets
