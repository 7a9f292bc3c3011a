"""Checkpoints whose matrices are stored in q8: written from a family's converted file, and read back.

In the file a q8 tensor `name` [..., C] is two: `name` int8 [..., C], and `name.scale` f16 [..., ceil(C/32)], one scale
for every 32 values along the last axis (the last block of a row may be shorter). What q8 is stands in
backends/backend.py: `to_q8`. All other tensors are as they were. The metadata are those of the converted file, so that
the family that wrote it reads it, and three more keys.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sonant.backends.backend import Q8_BLOCK, from_q8, to_q8
from sonant.checkpoint.cache import content_sha256
from sonant.checkpoint.name_map import LISTED
from sonant.checkpoint.safetensors import Checkpoint, SafetensorsWriter, open_safetensors
from sonant.checkpoint.tensor import DTYPES
from sonant.errors import BackendError, CheckpointError

SCALE = ".scale"
PRECISION, VERSION, QUANTIZED_FROM = "sonant_precision", "sonant_quantized", "quantized_from_sha256"
Q8_VERSION = "q8-1"
"""Changes when what the file means does."""

SLAB = 1 << 16
"""Values that are worked on at once."""

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class TensorError:
    """What storing one tensor in q8 did: the errors are shares of the RMS of what they are errors of.

    worst_block: of the block of 32 values that lost most, against the RMS of that block.
    """

    name: str
    shape: tuple[int, ...]
    bytes_before: int
    bytes_after: int
    rms: float
    worst_block: float
    squares: float
    """Sum of the squares of the values: what a total is weighed by."""


@dataclass(frozen=True)
class Quantized:
    """What became of a file: its q8 tensors, the bytes of all the others, and the size of the file before and after."""

    tensors: tuple[TensorError, ...]
    kept_bytes: int
    bytes_before: int
    bytes_after: int

    @property
    def rms(self) -> float:
        """The error over all q8 tensors, as a share of the RMS of their values."""
        total = sum(t.squares for t in self.tensors)
        return math.sqrt(sum(t.squares * t.rms**2 for t in self.tensors) / total) if total else 0.0


def quantize(source: Path, matrices: Collection[str], target: Path) -> Quantized:
    """Write `target` from the converted file `source`, its `matrices` in q8; one tensor is in memory at a time.

    Raises CheckpointError: a matrix that is not there, that is no float, or that q8 cannot hold.
    """
    checkpoint = open_safetensors(source)
    _check(checkpoint, matrices)
    metadata = checkpoint.metadata | {
        PRECISION: "q8",
        VERSION: Q8_VERSION,
        QUANTIZED_FROM: content_sha256([source]),
    }
    errors, kept_bytes = [], 0
    with SafetensorsWriter(target, _specs(checkpoint, matrices), metadata) as writer:
        for name in checkpoint:
            if name in matrices:
                values = checkpoint.tensor(name).f32()
                before = values.size * DTYPES[checkpoint.dtype(name)].itemsize
                integers, scales, error = _stored(name, values, before, f"{source}: {name}")
                writer.write(name, integers)
                writer.write(name + SCALE, scales)
                errors.append(error)
            else:
                array = checkpoint[name]
                writer.write(name, array)
                kept_bytes += array.nbytes
    return Quantized(tuple(errors), kept_bytes, source.stat().st_size, target.stat().st_size)


def _check(checkpoint: Checkpoint, matrices: Collection[str]) -> None:
    where = checkpoint.path
    if PRECISION in checkpoint.metadata:
        raise CheckpointError(f"{where}: is stored in {checkpoint.metadata[PRECISION]} already")
    missing = sorted(set(matrices) - set(checkpoint))
    if missing:
        raise CheckpointError(f"{where}: has no tensors {', '.join(missing[:LISTED])} to store in q8")
    for name in sorted(matrices):
        if checkpoint.dtype(name) not in ("f32", "f16", "bf16"):
            raise CheckpointError(f"{where}: {name} is {checkpoint.dtype(name)}; only floats can be stored in q8")
        if name + SCALE in checkpoint or 0 in (checkpoint.shape(name) or (0,)):
            raise CheckpointError(f"{where}: {name} cannot be stored in q8: it is empty, or {name + SCALE} exists")


def _specs(checkpoint: Checkpoint, matrices: Collection[str]) -> dict[str, tuple[str, tuple[int, ...]]]:
    out = {}
    for name in checkpoint:
        shape = checkpoint.shape(name)
        if name in matrices:
            out[name] = ("i8", shape)
            out[name + SCALE] = ("f16", _scale_shape(shape))
        else:
            out[name] = (checkpoint.dtype(name), shape)
    return out


def _scale_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], -(-shape[-1] // Q8_BLOCK))


def _stored(
    name: str, values: F32, bytes_before: int, where: str
) -> tuple[NDArray[np.int8], NDArray[np.float16], TensorError]:
    """As `to_q8`, some rows at a time; made sure that it is read back as the same q8."""
    rows = values.reshape(-1, values.shape[-1])
    integers = np.empty(rows.shape, np.int8)
    scales = np.empty(_scale_shape(rows.shape), np.float16)
    lost = squares = worst = 0.0
    step = max(1, SLAB // rows.shape[1])
    for at in range(0, len(rows), step):
        part = rows[at : at + step]
        q8 = _checked_q8(part, where)
        integers[at : at + step], scales[at : at + step] = q8
        part_lost, part_squares = (_by_block(a) for a in (from_q8(*q8) - part, part))
        lost, squares = lost + float(part_lost.sum()), squares + float(part_squares.sum())
        shares = np.divide(part_lost, part_squares, out=np.zeros_like(part_lost), where=part_squares > 0)
        worst = max(worst, float(shares.max()))
    error = TensorError(
        name,
        values.shape,
        bytes_before,
        integers.nbytes + scales.nbytes,
        math.sqrt(lost / squares) if squares else 0.0,
        math.sqrt(worst),
        squares,
    )
    return integers.reshape(values.shape), scales.reshape(_scale_shape(values.shape)), error


def _checked_q8(values: F32, where: str) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    try:
        integers, scales = to_q8(values)
        again = to_q8(restored(integers, scales))
    except BackendError as error:
        raise CheckpointError(f"{where}: {error}") from error
    if not (np.array_equal(again[0], integers) and np.array_equal(again[1], scales)):
        raise CheckpointError(f"{where}: its values are too small for q8")
    return integers, scales


def _by_block(values: F32) -> NDArray[np.float64]:
    """The sum of the squares of every block."""
    starts = np.arange(0, values.shape[-1], Q8_BLOCK)
    sums: NDArray[np.float64] = np.add.reduceat(np.square(values, dtype=np.float64), starts, axis=-1)
    return sums


def restored(integers: NDArray[np.int8], scales: NDArray[np.float16]) -> F32:
    """f32 values [..., C] whose q8 is exactly this: to_q8(restored(*to_q8(x))) == to_q8(x), bit for bit.

    They are those of `from_q8` but for blocks of values below 8e-3, where the scale is a coarse (subnormal) f16: it
    may be so much too large that the largest integer is below 127, and the largest value alone would then give a
    smaller scale. It is raised as far as it still rounds to the same integer.
    """
    values = from_q8(integers, scales)
    channels = integers.shape[-1]
    starts = np.arange(0, channels, Q8_BLOCK)
    peaks = np.maximum.reduceat(np.abs(integers.astype(np.int16)), starts, axis=-1)
    low = peaks < 127
    if not (low & (peaks > 0)).any():
        return values
    wide = scales.astype(np.float32)
    # two steps below the half, so that the quotient cannot round up to it
    highest = np.nextafter(np.nextafter((peaks + np.float32(0.5)) * wide, np.float32(0)), np.float32(0))
    raised = np.minimum(highest, 127 * wide)
    spread = [np.repeat(a, Q8_BLOCK, axis=-1)[..., :channels] for a in (low, peaks, raised)]
    at_peak = spread[0] & (np.abs(integers.astype(np.int16)) == spread[1])
    out: F32 = np.where(at_peak, np.copysign(spread[2], values), values).astype(np.float32)
    return out


class StoredWeights(Mapping[str, F32]):
    """The tensors of a converted file, or of one in q8, as the float32 that a backend packs.

    f32 tensors are views of the mapped file. A q8 tensor is made float32 each time it is asked for, and kept by nobody
    here, so that a model is never whole in memory; a backend that stores it in q8 gets the very same integers and
    scales (`restored`).
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.path, self.metadata = checkpoint.path, checkpoint.metadata
        self.precision = checkpoint.metadata.get(PRECISION)
        """q8, or None for a file of floats."""
        self._checkpoint = checkpoint
        self._names = [name for name in checkpoint if not self._is_scale(name)]
        self._check()

    def _is_scale(self, name: str) -> bool:
        of = name.removesuffix(SCALE)
        return of != name and of in self._checkpoint and self._checkpoint.dtype(of) == "i8"

    def _check(self) -> None:
        found, version = self._checkpoint, self.metadata.get(VERSION)
        if self.precision not in (None, "q8") or (self.precision == "q8" and version != Q8_VERSION):
            raise CheckpointError(
                f"{self.path}: is stored in {self.precision} ({version}), wanted q8 ({Q8_VERSION}); convert it again"
            )
        for name in self._names:
            if found.dtype(name) == "i8":
                scale, shape = name + SCALE, _scale_shape(found.shape(name))
                stated = (found.dtype(scale), found.shape(scale)) if scale in found else None
                if self.precision is None or stated != ("f16", shape):
                    raise CheckpointError(f"{self.path}: {name} is int8, but there is no f16 {scale} {list(shape)}")

    def shape(self, name: str) -> tuple[int, ...]:
        return self._checkpoint.shape(name)

    def __getitem__(self, name: str) -> F32:
        if name not in self._checkpoint or self._is_scale(name):
            raise KeyError(name)
        tensor = self._checkpoint.tensor(name)
        if tensor.dtype != "i8":
            return tensor.f32()
        scales = self._checkpoint[name + SCALE]
        if not (np.isfinite(scales).all() and (scales >= 0).all() and (tensor.array > -128).all()):
            raise CheckpointError(f"{self.path}: {name} holds what q8 does not; the file is damaged, convert it again")
        return restored(tensor.array, scales)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_weights(path: str | os.PathLike[str]) -> StoredWeights:
    """A converted file, in floats or in q8. CheckpointError if anything is out of place."""
    return StoredWeights(open_safetensors(path))

