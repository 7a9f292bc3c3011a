"""A tensor as it lies in a file: a numpy view and the name of its element type.

bfloat16 has no numpy type, so its bits are held as uint16 and the tag says so. Every reader of this folder
returns these; nothing here knows a file format.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonant.errors import CheckpointError

Array = NDArray[Any]
Buffer = bytes | mmap.mmap

# Little-endian on disk in all three formats; the explicit "<" makes a big-endian host convert on use.
DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype("<f8"),
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "bf16": np.dtype("<u2"),
    "i64": np.dtype("<i8"),
    "i32": np.dtype("<i4"),
    "i16": np.dtype("<i2"),
    "i8": np.dtype("i1"),
    "u64": np.dtype("<u8"),
    "u32": np.dtype("<u4"),
    "u16": np.dtype("<u2"),
    "u8": np.dtype("u1"),
    "bool": np.dtype("?"),
}
MAX_DIMS = 16


@dataclass(frozen=True)
class Tensor:
    """`array` has the shape of the tensor; its numpy type is DTYPES[dtype] (uint16 for bf16)."""

    array: Array
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def f32(self) -> NDArray[np.float32]:
        """The values as float32: a view if they are stored so, else a copy. bf16 is widened exactly."""
        if self.dtype == "bf16":
            return (self.array.astype(np.uint32) << 16).view(np.float32)
        return self.array.astype(np.float32, copy=False)


@dataclass(frozen=True)
class LazyTensor:
    """A tensor whose shape is known and whose float32 values are made on demand (dequantized, folded, mapped)."""

    shape: tuple[int, ...]
    read: Callable[[], Array]

    @staticmethod
    def of(tensor: Tensor) -> LazyTensor:
        return LazyTensor(tensor.shape, tensor.f32)


def map_file(path: Path) -> mmap.mmap:
    """The whole file as read-only memory. CheckpointError if it is missing, unreadable, a directory or empty."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise CheckpointError(f"{path}: the file is empty; delete it and fetch it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be opened ({error.strerror or error})") from error


def possible_shape(shape: Sequence[int]) -> bool:
    """Whether numpy can make such an array; an empty one may still claim dims whose product overflows."""
    return len(shape) <= MAX_DIMS and math.prod(max(n, 1) for n in shape) < 1 << 48


def element_count(shape: Sequence[int]) -> int:
    """Product of the dims as an unbounded integer: a hostile shape cannot wrap around."""
    return math.prod(shape)


def array_at(buffer: Buffer, offset: int, dtype: str, shape: Sequence[int]) -> Array:
    """`shape` elements at `offset` of `buffer`: a read-only view, or a copy where the offset is not aligned.

    The caller has checked that the range lies inside the buffer.
    """
    flat = np.frombuffer(buffer, DTYPES[dtype], element_count(shape), offset)
    array = flat.reshape(tuple(shape))
    return array if array.flags.aligned else array.copy()
