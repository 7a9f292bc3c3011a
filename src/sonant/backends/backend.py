"""What a backend must offer. A backend sees Programs and tensors; it knows nothing of speech.

A backend is one folder under `backends/` with a class that has these methods, and a run of the conformance tests
(`tests/ops`). See docs/extending/backend.md.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from sonant.errors import BackendError
from sonant.program.dims import Dim
from sonant.program.program import Program, StateSpec
from sonant.program.recipe import Recipe

Weights = Mapping[str, np.ndarray]
"""Canonical tensors by name: linear [N,C], conv [N,K,C/groups], lstm [D,4H,C]; float32, C-contiguous."""


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """f32 numbers rounded to what a weight of `dtype` (f32, f16, bf16, q8, i8) can hold, ties to even; still f32."""
    if dtype == "f16":
        return array.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
        return rounded.view(np.float32)
    if dtype == "q8":
        integers, scales = to_q8(array)
        return from_q8(integers, scales)
    if dtype == "i8":
        top = np.abs(array).max(axis=-1, keepdims=True)
        if not np.isfinite(top).all():
            raise BackendError("a weight is not finite: i8 cannot hold it")
        scale = top / np.float32(127)
        restored: np.ndarray = np.rint(np.divide(array, scale, out=np.zeros_like(array), where=scale > 0)) * scale
        return restored
    return array


Q8_BLOCK = 32


def to_q8(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f32 [..., C] as q8: integers int8 [..., C] and scales f16 [..., ceil(C/32)].

    A scale is the largest magnitude of its block / 127, rounded to f16; integers are rounded half to even. Raises
    BackendError for a block beyond the range of f16.
    """
    array = np.ascontiguousarray(array, np.float32)
    starts = np.arange(0, array.shape[-1], Q8_BLOCK)
    exact = np.maximum.reduceat(np.abs(array), starts, axis=-1) / np.float32(127)
    if not (exact < 65520).all():
        raise BackendError("a weight is not finite, or too large for the f16 scale of q8")
    scales = exact.astype(np.float16)
    wide = _by_channel(scales, array.shape[-1])
    ratio = np.divide(array, wide, out=np.zeros_like(array), where=wide > 0)
    return np.clip(np.rint(ratio), -127, 127).astype(np.int8), scales


def from_q8(integers: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The f32 numbers [..., C] that integers [..., C] and scales [..., ceil(C/32)] stand for."""
    numbers: np.ndarray = integers * _by_channel(scales, integers.shape[-1])
    return numbers


def _by_channel(scales: np.ndarray, channels: int) -> np.ndarray:
    wide: np.ndarray = np.repeat(scales.astype(np.float32), Q8_BLOCK, axis=-1)[..., :channels]
    return wide


class CancelFlag:
    """Set by the owner of a run from any thread; a backend looks at it between kernels and raises Cancelled."""

    __slots__ = ("cells",)

    def __init__(self) -> None:
        self.cells = np.zeros(1, np.int32)

    def set(self) -> None:
        self.cells[0] = 1

    @property
    def is_set(self) -> bool:
        return bool(self.cells[0])


class States(Protocol):
    """The states of one Program for `n_rows` rows (slot s of R rows owns rows s*R .. s*R+R-1)."""

    n_rows: int

    def reset(self, row: int) -> None:
        """Zeros, but for kv and ring: what those hold beyond the position of a run is never read."""
        ...

    def copy(self, source: int, target: int, positions: int | None = None) -> None:
        """The row `source` into the row `target`; of a kv only its first `positions`, by default all."""
        ...

    def read(self, name: str, row: int) -> np.ndarray: ...

    def write(self, name: str, row: int, value: np.ndarray) -> None: ...


class Prepared(Protocol):
    """A run that is made again and again. One at a time."""

    def run(self, *, threads: int | None = None) -> Sequence[np.ndarray]:
        """The outputs for what the inputs hold now; the next run may write to the same arrays."""
        ...


class Executable(Protocol):
    """A Program made ready by a backend: lowered, weights packed. Safe to run from several threads at once."""

    @property
    def program(self) -> Program: ...

    def run(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None,
            cancel: CancelFlag | None = None, threads: int | None = None) -> list[np.ndarray]:
        """The outputs in order. Sizes are bound by the shapes of `inputs`. threads: how many of the backend's may
        compute, by default all; so that two runs side by side share them."""
        ...

    def prepare(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None) -> Prepared:
        """Runs of these very arrays, contiguous ones, whose numbers change in between."""
        ...

    def create_states(self, n_rows: int) -> States: ...

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        """Workspace that a run with these dim sizes needs, weights and states excluded."""
        ...


class Backend(Protocol):
    name: str

    @property
    def fast(self) -> tuple[str, ...]:
        """Of the precisions of dense ops (opset.py), those that are faster here than f32; the fastest first."""
        ...

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None) -> Executable:
        """`cache`: a folder of this checkpoint's own where the backend may keep what it derives from the weights, and
        of a Recipe what it makes of the Program."""
        ...

    def load_all(self, programs: Sequence[Program | Recipe], weights: Weights, *,
                 cache: Path | None = None) -> Sequence[Executable]:
        """An executable for each; a weight that several of them use is held once."""
        ...


class Repeated:
    """A Prepared of a backend that has nothing to prepare."""

    def __init__(self, executable: Executable, inputs: Mapping[str, np.ndarray], states: States | None) -> None:
        self._executable, self._inputs, self._states = executable, inputs, states

    def run(self, *, threads: int | None = None) -> Sequence[np.ndarray]:
        return self._executable.run(self._inputs, states=self._states, threads=threads)


def _untouched_zeros(shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """Zeros that take memory page by page as they are written to: most rows of a cache never are.

    NumPy's own large arrays ask for huge pages, and one row of keys then takes up to 2 MiB.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size < mmap.PAGESIZE or not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # private: a fork has its own
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # Linux
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(shape)


class ArrayStates:
    """States kept as NumPy arrays [n_rows, *shape]; what the numpy and native backends use."""

    def __init__(self, specs: Sequence[StateSpec], n_rows: int) -> None:
        if n_rows < 0:
            raise BackendError(f"n_rows must be 0 or more, got {n_rows}")
        self.n_rows = n_rows
        self.kinds = {s.name: s.kind for s in specs}
        self.arrays = {s.name: _untouched_zeros((n_rows, *s.shape), np.int32 if s.dtype == "i32" else np.float32)
                       for s in specs}

    def reset(self, row: int) -> None:
        self._check_row(row)
        for name, array in self.arrays.items():
            if self.kinds[name] not in ("kv", "ring"):
                array[row] = 0

    def copy(self, source: int, target: int, positions: int | None = None) -> None:
        self._check_row(source)
        self._check_row(target)
        for name, array in self.arrays.items():
            if self.kinds[name] == "kv":
                array[target, :positions] = array[source, :positions]
            else:
                array[target] = array[source]

    def read(self, name: str, row: int) -> np.ndarray:
        value: np.ndarray = self._array(name)[self._check_row(row)].copy()
        return value

    def write(self, name: str, row: int, value: np.ndarray) -> None:
        array = self._array(name)
        if np.shape(value) != array.shape[1:]:
            raise BackendError(f"state {name!r} holds {list(array.shape[1:])} a row, got {list(np.shape(value))}")
        array[self._check_row(row)] = value

    def _array(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            raise BackendError(f"no state {name!r}; there are {sorted(self.arrays)}")
        return self.arrays[name]

    def _check_row(self, row: int) -> int:
        if not 0 <= row < self.n_rows:
            raise BackendError(f"state row {row} is not one of the {self.n_rows} that there are")
        return row


def bind_sizes(program: Program, inputs: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The size of every dim symbol, from the shapes of `inputs`. BackendError: an input missing, extra or misshapen."""
    names = [v.name for v in program.inputs]
    if set(names) != set(inputs):
        raise BackendError(f"program {program.name} takes inputs {names}, got {sorted(inputs)}")
    sizes: dict[str, int] = {}
    for value in program.inputs:
        array = inputs[value.name]
        wanted = np.int32 if value.dtype == "i32" else np.float32
        if array.dtype != wanted or array.ndim != len(value.shape):
            raise BackendError(f"input {value} of {program.name}: got {array.dtype} {list(array.shape)}")
        for dim, size in zip(value.shape, array.shape, strict=True):
            solved = dim.solve(size) if isinstance(dim, Dim) else None
            if solved is not None and solved[1] >= 0:
                sizes.setdefault(*solved)
    for value in program.inputs:
        shape = tuple(Dim.of(d).evaluate(sizes) for d in value.shape)
        found = inputs[value.name].shape
        if shape != found:
            raise BackendError(f"input {value} of {program.name} must be {list(shape)} here, got {list(found)}")
    return sizes


def states_of(program: Program, states: States | None) -> ArrayStates:
    """`states`, once it is sure that they are those of `program`; none where it keeps none."""
    if not program.states:
        return ArrayStates([], 0)
    if not isinstance(states, ArrayStates):
        raise BackendError(f"program {program.name} keeps states: pass states=create_states(n_rows)")
    for spec in program.states.values():
        array = states.arrays.get(spec.name)
        wanted = np.int32 if spec.dtype == "i32" else np.float32
        if array is None or array.shape != (states.n_rows, *spec.shape) or array.dtype != wanted:
            found = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
            raise BackendError(f"state {spec.name!r} of {program.name} must be {spec.dtype} "
                               f"{[states.n_rows, *spec.shape]}, found {found}: are these another program's states?")
    return states
