"""Weights as the native kernels read them: packed once, kept in a file beside the checkpoint, mapped afterwards.

The file is `native-<programs>-<hash>.pack`: every tensor that these Programs need once, one after another, each on a
64-byte boundary. The hash covers keys, shapes and the packing version, so a file that does not fit is never opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sonant import _native
from sonant.backends.backend import Weights, round_to
from sonant.backends.native.lower import NativePlan, PackKey, lower
from sonant.errors import BackendError
from sonant.program.program import Program
from sonant.program.recipe import Recipe, recorded

PACK_VERSION = 4
ALIGNMENT = 64


def pack_name(programs: Sequence[Program | Recipe]) -> str:
    """The name of the file that `load_all` of these Programs keeps in its cache folder; nothing is read or packed."""
    return _name([lower(recorded(p)) for p in programs])


def _name(plans: Sequence[NativePlan]) -> str:
    digest = hashlib.sha256(repr((PACK_VERSION, _keys(plans))).encode()).hexdigest()[:16]
    return f"native-{'-'.join(p.name for p in plans)}-{digest}.pack"


def _keys(plans: Sequence[NativePlan]) -> list[tuple[PackKey, tuple[int, ...]]]:
    """What the Plans need packed, each once. BackendError: a weight of two shapes."""
    found: dict[PackKey, tuple[int, ...]] = {}
    for plan in plans:
        for key, shape in plan.pack_shapes.items():
            if found.setdefault(key, shape) != shape:
                raise BackendError(f"weight {key.name!r} is {list(found[key])} in one Program, {list(shape)} in "
                                   f"{plan.name}")
    return list(found.items())


class PackedWeights:
    """The tensors of some Plans; `addresses` says where the one of each pack key lies."""

    def __init__(self, plans: Sequence[NativePlan], weights: Weights, cache: Path | None) -> None:
        self.keys = _keys(plans)
        self._pages: mmap.mmap | None = None
        sizes = [_packed_bytes(key, shape) for key, shape in self.keys]
        starts = np.cumsum([0, *(-(-n // ALIGNMENT) * ALIGNMENT for n in sizes)])
        self.total_bytes = int(starts[-1])
        self.buffer = self._open(None if cache is None else cache / _name(plans), starts, sizes, weights)
        self.addresses = {key: self.buffer.ctypes.data + int(start)
                          for (key, _), start in zip(self.keys, starts[:-1], strict=True)}
        self.mapped_bytes = 0 if self._pages is None else self.total_bytes

    def forget(self) -> None:
        """Pages of the mapped file leave memory; whoever reads them brings them back."""
        if self._pages is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._pages.madvise(mmap.MADV_DONTNEED)

    def releases(self, plan: NativePlan) -> np.ndarray:
        """What a run of `plan` needs no more, and after which instruction: rows of (after, address, bytes), flat, for
        native Plans. Nothing where the weights are not of a mapped file."""
        rows: list[tuple[int, int, int]] = []
        if self._pages is not None:
            sizes = {key: _packed_bytes(key, shape) for key, shape in self.keys}
            for key, after in zip(plan.pack_shapes, plan.last_used.tolist(), strict=True):
                rows.append((after, self.addresses[key], sizes[key]))
        return np.array(sorted(rows), np.int64).ravel()

    def _open(self, path: Path | None, starts: np.ndarray, sizes: list[int], weights: Weights) -> np.ndarray:
        if path is None:
            buffer = _aligned(self.total_bytes)
            for (key, shape), start, size in zip(self.keys, starts[:-1], sizes, strict=True):
                _pack(key, shape, weights, buffer[int(start):int(start) + size])
            return buffer
        if not path.is_file() or path.stat().st_size != self.total_bytes:
            try:
                self._write(path, starts, sizes, weights)
            except OSError as error:  # a shared cache may be read-only, or the disk full
                note("%s: cannot be kept (%s); packed in memory, at every start", path, error)
                return self._open(None, starts, sizes, weights)
        self._pages = _map(path, self.total_bytes)
        return np.frombuffer(self._pages, np.uint8)

    def _write(self, path: Path, starts: np.ndarray, sizes: list[int], weights: Weights) -> None:
        """Tensor by tensor through a small buffer: memory stays low."""
        with appearing(path) as out:
            for (key, shape), start, size in zip(self.keys, starts[:-1], sizes, strict=True):
                one = _aligned(size)
                _pack(key, shape, weights, one)
                out.seek(int(start))
                out.write(one.data)
            out.truncate(self.total_bytes)


def note(message: str, *details: object) -> None:
    """A warning in the log `sonant.native`."""
    import logging  # slow to import, and hardly anyone needs it

    logging.getLogger("sonant.native").warning(message, *details)


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that gets its name, atomically, at the end: whoever looks sees a whole one or none."""
    import tempfile  # slow to import, and only whoever writes needs it

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _pack(key: PackKey, shape: tuple[int, ...], weights: Weights, target: np.ndarray) -> None:
    array = _tensor(weights, key.name, shape)
    if key.role == "plain":
        target[:] = round_to(array, key.dtype).reshape(-1).view(np.uint8)
        return
    if _native.packed_in_f32(key.role, list(shape), key.groups):
        array = round_to(array, key.dtype)
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


def _map(path: Path, size: int) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
