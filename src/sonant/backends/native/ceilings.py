"""What this machine can do at best on the threads of a backend, measured: the roof that times are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sonant import _native
from sonant.backends.native import NativeBackend

BUDGET_S = 0.1
"""Of each measurement; the best of its rounds of about 8 ms counts."""
PASSES = 3
"""A measurement is taken in so many parts, apart from each other: what else runs on the machine comes and goes."""
SIZES_BYTES = tuple(1 << n for n in range(17, 29))
"""Working sets from 128 KiB to 256 MiB, of all threads together: from a core's own cache to memory."""
PRODUCTS = ("f32", "bf16", "int8")
INT8_SCALED = "int8_row"
"""Products of int8, whatever shares a scale."""


@dataclass(frozen=True)
class Ceilings:
    """flops: operations a second by precision, where the instruction set has such products. read: bytes a second by the
    size of the working set in bytes."""

    isa: str
    threads: int
    flops: dict[str, float]
    read: dict[int, float]

    def floor_s(self, flop: float, precision: str, parts: Iterable[tuple[float, float]]) -> float:
        """The least time for `flop` and for moving parts (bytes, size of the set they are from), whichever is longer.
        A precision without products of its own is computed in f32."""
        kind = "int8" if precision == INT8_SCALED else precision
        arithmetic = flop / self.flops.get(kind, self.flops["f32"])
        return max(arithmetic, sum(count / self.bandwidth(working_set) for count, working_set in parts))

    def bandwidth(self, working_set: float) -> float:
        """Bytes a second at the smallest measured size that holds it."""
        size = next((size for size in self.read if size >= working_set), max(self.read))
        return self.read[size]


def measure_ceilings(backend: NativeBackend, budget_s: float = BUDGET_S) -> Ceilings:
    """Takes about (3 + 12) * budget_s seconds and 256 MiB for a moment."""
    isa, pool, part_s = backend.isa, backend.pool, budget_s / PASSES
    rates = dict.fromkeys(PRODUCTS, 0.0)
    read = dict.fromkeys(SIZES_BYTES, 0.0)
    for _ in range(PASSES):
        for kind in PRODUCTS:
            rates[kind] = max(rates[kind], _native.peak_rate(kind, isa, pool, part_s))
        for size in SIZES_BYTES:
            read[size] = max(read[size], _native.read_rate(size, isa, pool, part_s))
    return Ceilings(isa, backend.threads, {kind: rate for kind, rate in rates.items() if rate}, read)
