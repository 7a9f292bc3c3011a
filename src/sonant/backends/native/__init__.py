"""The native backend: C++ kernels compiled per instruction set, chosen at run time. The default on every CPU."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from sonant import _native
from sonant.backends.backend import ArrayStates, CancelFlag, States, Weights, bind_sizes, states_of
from sonant.backends.native.kept import kept_plan
from sonant.backends.native.lower import DTYPES, MAX_RANK, Bound, NativePlan, fused, played
from sonant.backends.native.packed import PackedWeights
from sonant.errors import BackendError, Cancelled, UnknownName
from sonant.program import opset
from sonant.program.program import Node, Program
from sonant.program.recipe import Recipe, recorded

__all__ = ["NativeBackend", "NativeExecutable"]

RESIDENT_BYTES = 310 << 20
"""Of the mapped weights of a backend and its largest workspace together. Beyond it a run lets go of the weights of
other Programs, the fewest first, and if that is not enough of its own, behind it. They stay in the system's file
cache. Programs with states are stepped many times a second: their weights always stay."""
PLANS_KEPT = 32
"""Of one executable, for the shapes of inputs that came last."""


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
        products = {"bf16": ("bf16",), "int8": ("int8_row", "int8")}
        self.fast = tuple(p for kind in _native.fast_products(self.isa) for p in products[kind])
        self.pool = _native.Pool(threads)
        self._packs: WeakSet[PackedWeights] = WeakSet()
        self._workspace_bytes = 0

    @staticmethod
    def isas() -> list[str]:
        """The instruction sets this machine can run, best last."""
        return list(_native.isas())

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None,
             hints: Mapping[str, int] | None = None) -> NativeExecutable:
        return self.load_all([program], weights, cache=cache, hints=hints)[0]

    def load_all(self, programs: Sequence[Program | Recipe], weights: Weights, *, cache: Path | None = None,
                 hints: Mapping[str, int] | None = None) -> list[NativeExecutable]:
        """In `cache` the packed weights are kept, and of a Recipe the Plan too, so that it need not be recorded."""
        plans = [kept_plan(program, cache, hints) for program in programs]
        packed = PackedWeights(plans, weights, cache)
        if not any(plan.declared.states for plan in plans):
            self._packs.add(packed)
        return [NativeExecutable(self, program, plan, packed) for program, plan in zip(programs, plans, strict=True)]

    def note_workspace(self, size_bytes: int) -> None:
        """That of a Plan; the pool keeps the largest."""
        self._workspace_bytes = max(self._workspace_bytes, size_bytes)

    def is_crowded(self, packed: PackedWeights) -> bool:
        """Whether a run has to let go even of its own weights, `packed`."""
        return packed in self._packs and self._workspace_bytes + packed.mapped_bytes > RESIDENT_BYTES

    def make_room(self, packed: PackedWeights) -> None:
        """For a run with the weights `packed`."""
        if packed not in self._packs:
            return
        others = sorted(self._packs - {packed}, key=lambda other: other.mapped_bytes)
        total = self._workspace_bytes + packed.mapped_bytes + sum(other.mapped_bytes for other in others)
        for other in others:
            if total <= RESIDENT_BYTES:
                return
            other.forget()
            total -= other.mapped_bytes


@dataclass(frozen=True)
class _Ready:
    """A Plan bound to the shapes of some inputs."""

    bound: Bound
    plan: _native.Plan
    outputs: tuple[tuple[tuple[int, ...], type], ...]
    """Shape and type of each."""

    def new_outputs(self) -> list[np.ndarray]:
        return [np.empty(shape, dtype) for shape, dtype in self.outputs]


_Key = tuple[bool | tuple[int, ...], ...]
"""Of a bound Plan: whether there was no room, and the shapes of the inputs."""


class NativeExecutable:
    """A lowered Program with its packed weights; runs may overlap, each with a workspace of its own."""

    def __init__(
        self, backend: NativeBackend, source: Program | Recipe, plan: NativePlan, packed: PackedWeights
    ) -> None:
        self.backend, self.plan, self.packed = backend, plan, packed
        self._source = source
        self.table = self._weight_table()
        self._inputs = [(v.name, np.dtype(_TYPES[v.dtype])) for v in plan.declared.inputs]
        self._ready: OrderedDict[_Key, _Ready] = OrderedDict()
        self._states: WeakKeyDictionary[ArrayStates, _native.States] = WeakKeyDictionary()
        self._no_states = ArrayStates([], 0)
        self._lock = threading.Lock()

    def _weight_table(self) -> np.ndarray:
        """Packed weights at even places, constants at odd ones, as the lowering numbers them."""
        self._constants = [np.ascontiguousarray(c) for c in self.plan.constants]
        addresses = [self.packed.addresses[key] for key in self.plan.pack_shapes]
        table = np.zeros(2 * max(len(addresses), len(self._constants)), np.int64)
        table[0:2 * len(addresses):2] = addresses
        table[1:2 * len(self._constants):2] = [c.ctypes.data for c in self._constants]
        return table

    @cached_property
    def program(self) -> Program:
        """As its family recorded it; recorded here if the Plan was kept."""
        return recorded(self._source)

    @cached_property
    def fused(self) -> Program:
        """What a run plays."""
        return fused(self.program)

    @property
    def nodes(self) -> list[Node]:
        """What a run plays, fused, the bodies of loops after what holds them: the places of `seconds`. A loop has no
        time of its own."""
        return [node for program in self.fused.programs() for node in played(program)]

    def create_states(self, n_rows: int) -> ArrayStates:
        return ArrayStates(list(self.plan.declared.states.values()), n_rows)

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        self.plan.bounds.check(sizes)
        return self.plan.bind(sizes).arena_bytes

    def run(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None,
            cancel: CancelFlag | None = None, threads: int | None = None,
            seconds: np.ndarray | None = None) -> list[np.ndarray]:
        """With `seconds` (f64, one place for each of `nodes`) the time spent in each is added there."""
        if threads is not None and threads < 1:
            raise BackendError(f"{self.plan.name}: a run takes 1 thread or more, got {threads}")
        given, ready = self._bind(inputs)
        self.backend.make_room(self.packed)
        outputs = ready.new_outputs()
        try:
            status = ready.plan.run(_addresses(given), _addresses(outputs), self._native_states(states),
                                    self.backend.pool, None if cancel is None else cancel.cells, seconds, threads or 0)
        except RuntimeError as e:
            raise BackendError(f"{self.plan.name}: {e}") from e
        if status:
            raise Cancelled(f"{self.plan.name} was cancelled")
        return outputs

    def prepare(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None) -> NativePrepared:
        given, ready = self._bind(inputs)
        if any(one is not inputs[name] for one, (name, _) in zip(given, self._inputs, strict=True)):
            raise BackendError(f"{self.plan.name}: the inputs of a prepared run must be contiguous")
        return NativePrepared(self, given, ready, self._native_states(states))

    def _bind(self, inputs: Mapping[str, np.ndarray]) -> tuple[list[np.ndarray], _Ready]:
        """The inputs in order, and the Plan for their shapes, which is made the first time that they come."""
        given = [inputs[name] for name, dtype in self._inputs if name in inputs and inputs[name].dtype == dtype]
        shapes: _Key = (self.backend.is_crowded(self.packed), *[a.shape for a in given])
        with self._lock:
            ready = self._ready.get(shapes) if len(given) == len(inputs) == len(self._inputs) else None
            if ready is not None:
                self._ready.move_to_end(shapes)
        if ready is None:
            ready = self._make_ready(bind_sizes(self.plan.declared, inputs))
            with self._lock:
                self._ready[shapes] = ready
                while len(self._ready) > PLANS_KEPT:
                    self._ready.popitem(last=False)
        return [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in given], ready

    def _make_ready(self, sizes: dict[str, int]) -> _Ready:
        self.plan.bounds.check(sizes)
        bound, seen = self.plan.bind(sizes), self.plan.declared
        self.backend.note_workspace(bound.arena_bytes)
        releases = self.packed.releases(self.plan) if self.backend.is_crowded(self.packed) else None
        plan = _native.Plan(bound.code, self.table, len(seen.inputs), len(seen.outputs), len(seen.states),
                            bound.arena_bytes, self.backend.isa, releases)
        types = [_TYPES[v.dtype] for v in seen.outputs]
        return _Ready(bound, plan, tuple(zip(bound.output_shapes, types, strict=True)))

    def _native_states(self, states: States | None) -> _native.States:
        """Checked and read the first time that they come: their arrays stay where they are."""
        known = self._no_states if states is None else states
        found = self._states.get(known) if isinstance(known, ArrayStates) else None
        if found is None:
            seen = self.plan.declared
            checked = states_of(seen, states)
            known = self._no_states if states is None or not seen.states else checked
            found = _native.States(_state_words(list(seen.states), known))
            self._states[known] = found
        return found


class NativePrepared:
    """A run with everything found beforehand: arrays, addresses, Plan."""

    def __init__(
        self, executable: NativeExecutable, given: list[np.ndarray], ready: _Ready, states: _native.States
    ) -> None:
        self._executable, self._ready, self._states, self._given = executable, ready, states, given
        self._outputs = ready.new_outputs()
        self._inputs_at, self._outputs_at = _addresses(given), _addresses(self._outputs)

    def run(self, *, threads: int | None = None) -> list[np.ndarray]:
        backend, plan = self._executable.backend, self._ready.plan
        backend.make_room(self._executable.packed)
        try:
            plan.run(self._inputs_at, self._outputs_at, self._states, backend.pool, None, None, threads or 0)
        except RuntimeError as e:
            raise BackendError(f"{self._executable.plan.name}: {e}") from e
        return self._outputs


_TYPES = {"f32": np.float32, "i32": np.int32}


def _state_words(names: Sequence[str], states: ArrayStates) -> np.ndarray:
    words = []
    for name in names:
        array = states.arrays[name]
        dims = [*array.shape, *[0] * (MAX_RANK - array.ndim)]
        dtype = DTYPES["i32" if array.dtype == np.int32 else "f32"]
        words.append([int(states.kinds[name] == "ring"), 0, array.ctypes.data, dtype, array.ndim, *dims])
    return np.array(words, np.int64).ravel()


def _addresses(arrays: list[np.ndarray]) -> np.ndarray:
    return np.array([a.__array_interface__["data"][0] for a in arrays], np.int64)
