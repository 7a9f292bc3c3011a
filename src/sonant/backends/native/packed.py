"""Weights as the native kernels read them: packed once, kept in a file beside the checkpoint, mapped afterwards.

The file is `native-<program>-<hash>.pack`: the tensors one after another, each on a 64-byte boundary, in the order of
the Plan's pack keys. The hash covers keys, shapes and the packing version, so a file that does not fit is never opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sonant import _native
from sonant.backends.backend import Weights, round_to
from sonant.backends.native.lower import PackKey
from sonant.errors import BackendError

PACK_VERSION = 2
ALIGNMENT = 64


class PackedWeights:
    """`addresses[i]` is where the tensor of the i-th pack key lies."""

    def __init__(self, name: str, keys: Iterable[tuple[PackKey, tuple[int, ...]]], weights: Weights,
                 cache: Path | None) -> None:
        self.keys = list(keys)
        sizes = [_packed_bytes(key, shape) for key, shape in self.keys]
        starts = np.cumsum([0, *(-(-n // ALIGNMENT) * ALIGNMENT for n in sizes)])
        self.total_bytes = int(starts[-1])
        self.buffer = self._open(name, starts, sizes, weights, cache)
        self.addresses = [self.buffer.ctypes.data + int(s) for s in starts[:-1]]

    def _open(self, name: str, starts: np.ndarray, sizes: list[int], weights: Weights,
              cache: Path | None) -> np.ndarray:
        if cache is None:
            buffer = _aligned(self.total_bytes)
            for (key, shape), start, size in zip(self.keys, starts[:-1], sizes, strict=True):
                _pack(key, shape, weights, buffer[int(start):int(start) + size])
            return buffer
        digest = hashlib.sha256(repr((PACK_VERSION, self.keys)).encode()).hexdigest()[:16]
        path = cache / f"native-{name}-{digest}.pack"
        if not path.is_file() or path.stat().st_size != self.total_bytes:
            self._write(path, starts, sizes, weights)
        return _map(path, self.total_bytes)

    def _write(self, path: Path, starts: np.ndarray, sizes: list[int], weights: Weights) -> None:
        """Tensor by tensor through a small buffer, then an atomic rename: memory stays low, readers never see half."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as out:
                for (key, shape), start, size in zip(self.keys, starts[:-1], sizes, strict=True):
                    one = _aligned(size)
                    _pack(key, shape, weights, one)
                    out.seek(int(start))
                    out.write(one.data)
                out.truncate(self.total_bytes)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def _pack(key: PackKey, shape: tuple[int, ...], weights: Weights, target: np.ndarray) -> None:
    array = _tensor(weights, key.name, shape)
    if key.role == "plain":
        target[:] = round_to(array, key.dtype).reshape(-1).view(np.uint8)
    else:
        _native.pack(key.role, array, key.groups, key.dtype, target)


def _tensor(weights: Weights, name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = weights.get(name)
    if array is None or array.shape != shape or array.dtype != np.float32:
        found = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
        raise BackendError(f"weight {name!r} must be float32 {list(shape)}, found {found}")
    return np.ascontiguousarray(array)


def _packed_bytes(key: PackKey, shape: tuple[int, ...]) -> int:
    if key.role == "plain":
        return int(np.prod(shape)) * 4
    return int(_native.packed_bytes(key.role, list(shape), key.groups, key.dtype))


def _aligned(size: int) -> np.ndarray:
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start:start + size]


def _map(path: Path, size: int) -> np.ndarray:
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8)
