"""The native backend: C++ kernels compiled per instruction set, chosen at run time. The default on every CPU."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sonant import _native
from sonant.backends.backend import ArrayStates, CancelFlag, States, Weights, bind_sizes, states_of
from sonant.backends.native.lower import DTYPES, MAX_RANK, Bound, NativePlan, lower, played
from sonant.backends.native.packed import PackedWeights
from sonant.errors import BackendError, Cancelled, UnknownName
from sonant.program import opset
from sonant.program.bounds import Bounds
from sonant.program.program import Node, Program
from sonant.program.verify import verify

__all__ = ["NativeBackend", "NativeExecutable"]

BOUND_PLANS_KEPT = 32


class NativeBackend:
    """Runs Programs with the compiled kernels.

    threads: how many threads compute, the caller's included. isa: force an instruction set (see `isas()`), by default
    the best one of this machine. The same isa gives the same bits whatever the number of threads.
    """

    name = "native"

    def __init__(self, *, threads: int, isa: str | None = None) -> None:
        if threads < 1:
            raise BackendError(f"threads must be 1 or more, got {threads}")
        if _native.opset_version() != opset.VERSION:
            raise BackendError(f"the compiled module is of opset {_native.opset_version()}, sonant of {opset.VERSION}: "
                               "build it again (make native)")
        available = self.isas()
        if isa is not None and isa not in available:
            raise UnknownName("instruction set", isa, available)
        self.threads, self.isa = threads, isa or available[-1]
        self.pool = _native.Pool(threads)

    @staticmethod
    def isas() -> list[str]:
        """The instruction sets this machine can run, best last."""
        return list(_native.isas())

    def load(self, program: Program, weights: Weights, *, cache: Path | None = None,
             hints: Mapping[str, int] | None = None) -> NativeExecutable:
        return self.load_all([program], weights, cache=cache, hints=hints)[0]

    def load_all(self, programs: Sequence[Program], weights: Weights, *, cache: Path | None = None,
                 hints: Mapping[str, int] | None = None) -> list[NativeExecutable]:
        for program in programs:
            verify(program)
        plans = [lower(program, hints) for program in programs]
        packed = PackedWeights(plans, weights, cache)
        return [NativeExecutable(self, program, plan, packed) for program, plan in zip(programs, plans, strict=True)]


class NativeExecutable:
    """A lowered Program with its packed weights; runs may overlap, each with a workspace of its own."""

    def __init__(self, backend: NativeBackend, program: Program, plan: NativePlan, packed: PackedWeights) -> None:
        self.program, self.backend, self.bounds = program, backend, Bounds(program)
        self.plan, self.packed = plan, packed
        self.table = self._weight_table()
        self._bound: OrderedDict[tuple[int, ...], Bound] = OrderedDict()
        self._lock = threading.Lock()

    def _weight_table(self) -> np.ndarray:
        """Packed weights at even places, constants at odd ones, as the lowering numbers them."""
        self._constants = [np.ascontiguousarray(c) for c in self.plan.constants]
        addresses = [self.packed.addresses[key] for key in self.plan.pack_keys]
        table = np.zeros(2 * max(len(addresses), len(self._constants)), np.int64)
        table[0:2 * len(addresses):2] = addresses
        table[1:2 * len(self._constants):2] = [c.ctypes.data for c in self._constants]
        return table

    @property
    def nodes(self) -> list[Node]:
        """What a run plays, fused, the bodies of loops after what holds them: the places of `seconds`. A loop has no
        time of its own."""
        return [node for program in self.plan.program.programs() for node in played(program)]

    def create_states(self, n_rows: int) -> ArrayStates:
        return ArrayStates(list(self.plan.program.states.values()), n_rows)

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        return self._bind(dict(sizes)).arena_bytes

    def _bind(self, sizes: dict[str, int]) -> Bound:
        key = tuple(sizes[s] for s in self.plan.symbols)
        with self._lock:
            if key in self._bound:
                self._bound.move_to_end(key)
                return self._bound[key]
        self.bounds.check(sizes)
        bound = self.plan.bind(sizes)
        with self._lock:
            self._bound[key] = bound
            while len(self._bound) > BOUND_PLANS_KEPT:
                self._bound.popitem(last=False)
        return bound

    def run(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None,
            cancel: CancelFlag | None = None, threads: int | None = None,
            seconds: np.ndarray | None = None) -> list[np.ndarray]:
        """With `seconds` (f64, one place for each of `nodes`) the time spent in each is added there."""
        if threads is not None and threads < 1:
            raise BackendError(f"{self.program.name}: a run takes 1 thread or more, got {threads}")
        sizes = bind_sizes(self.program, inputs)
        bound = self._bind(sizes)
        given = [np.ascontiguousarray(inputs[v.name]) for v in self.plan.program.inputs]
        outputs = [np.empty(shape, np.int32 if v.dtype == "i32" else np.float32)
                   for shape, v in zip(bound.output_shapes, self.plan.program.outputs, strict=True)]
        state_words = self._state_words(states_of(self.program, states))
        try:
            status = _native.run(bound.code, self.table, _addresses(given), _addresses(outputs), state_words,
                                 bound.arena_bytes, self.backend.isa, self.backend.pool, (cancel or CancelFlag()).cells,
                                 seconds, threads or 0)
        except RuntimeError as e:
            raise BackendError(f"{self.program.name}: {e}") from e
        if status:
            raise Cancelled(f"{self.program.name} was cancelled")
        return outputs

    def _state_words(self, states: ArrayStates) -> np.ndarray:
        words = []
        for name in self.plan.states:
            array = states.arrays[name]
            dims = [*array.shape, *[0] * (MAX_RANK - array.ndim)]
            dtype = DTYPES["i32" if array.dtype == np.int32 else "f32"]
            words.append([int(states.kinds[name] == "ring"), 0, array.ctypes.data, dtype, array.ndim, *dims])
        return np.array(words, np.int64).ravel()


def _addresses(arrays: list[np.ndarray]) -> np.ndarray:
    return np.array([a.ctypes.data for a in arrays], np.int64)
