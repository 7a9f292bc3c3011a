"""Where the time of a text goes: every node of every Program that it runs, beside what the machine could do."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sonant.backends.native import NativeBackend
from sonant.backends.native.ceilings import Ceilings, measure_ceilings
from sonant.backends.native.timed import Runs, TimedBackend
from sonant.checkpoint.cache import default_cache_root
from sonant.engine.load import available_cores, load_driver
from sonant.engine.synthesizer import Synthesizer
from sonant.options import LoadOptions
from sonant.program.cost import cost
from sonant.program.dims import Dim, product
from sonant.program.program import Node

__all__ = ["Ceilings", "Profile", "Row", "ceilings_of", "profile", "rows_of"]

_STORED_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "q8": 34 / 32, "i8": 1}


@dataclass(frozen=True)
class Row:
    """A node, or several of a kind. runs: of all of them; seconds, flop, bytes and floor_s are sums over the runs.
    floor_s: the least time that the ceilings allow."""

    program: str
    op: str
    layer: str
    runs: int
    seconds: float
    flop: float
    bytes: float
    floor_s: float

    @property
    def roofline(self) -> float:
        """The share of the attainable speed that was reached; above 1 where data was nearer than it counts as."""
        return self.floor_s / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Profile:
    """One text. wall_s: of speaking it; audio_s: of its sound. Times of Programs that run side by side overlap."""

    ceilings: Ceilings
    rows: tuple[Row, ...]
    wall_s: float
    audio_s: float

    def grouped(self, key: Callable[[Row], tuple[str, str, str]]) -> list[Row]:
        """Rows of one (program, op, layer) put together, the longest first."""
        groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
        for row in self.rows:
            groups[key(row)].append(row)
        return sorted((_together(k, rows) for k, rows in groups.items()), key=lambda row: -row.seconds)

    def to_json(self) -> dict[str, Any]:
        """Everything, a row for each node."""
        rows = [{**asdict(row), "roofline": row.roofline} for row in self.rows]
        return {"wall_s": self.wall_s, "audio_s": self.audio_s, "ceilings": asdict(self.ceilings), "nodes": rows}


def profile(
    model: str, text: str, options: LoadOptions, *, weights: Path | None, voices: Path | None, cache: Path | None,
    voice: str | None = None,
) -> Profile:
    """Speak the text twice and keep the times of the second. Raises what `load` and `speak` raise."""
    native = _backend(options)
    ceilings = measure_ceilings(native)
    backend = TimedBackend(native)
    root = cache or default_cache_root(os.environ)
    synth = Synthesizer(model, load_driver(model, backend, options, weights, voices, root))
    synth.speak(text, voice=voice)
    backend.clear()
    start = time.perf_counter()
    speech = synth.speak(text, voice=voice)
    wall_s = time.perf_counter() - start
    rows = [row for runs in backend.runs.values() for row in rows_of(runs, ceilings)]
    return Profile(ceilings, tuple(rows), wall_s, speech.duration_s)


def ceilings_of(options: LoadOptions) -> Ceilings:
    """What this machine can do at best with these threads and this instruction set. Raises UnknownName (isa)."""
    return measure_ceilings(_backend(options))


def _backend(options: LoadOptions) -> NativeBackend:
    return NativeBackend(threads=options.threads or available_cores(), isa=options.isa)


def rows_of(runs: Runs, ceilings: Ceilings) -> Iterable[Row]:
    """A row for each node. A node without weights has the layer of the one before."""
    program = runs.executable.program
    all_weights = sum(int(product(w.shape)) * _STORED_BYTES[w.dtype] for w in program.weights.values())  # bytes
    layer = ""
    for node, times, seconds in zip(runs.executable.nodes, _times(runs), runs.seconds, strict=True):
        found = cost(node, runs.sizes, position=runs.position)
        layer = layer_of(node) or layer
        n = runs.count * times
        parts = ((found.weight_bytes, all_weights), (found.activation_bytes, found.activation_bytes))
        floor_s = ceilings.floor_s(found.flop, node.attrs.get("precision", "f32"), parts)
        moved = found.weight_bytes + found.activation_bytes
        yield Row(program.name, node.op, layer, n, float(seconds), n * found.flop, n * moved, n * floor_s)


def layer_of(node: Node) -> str:
    """What its first weight belongs to, such as decoder.generator.resblocks.*; numbers of layers as stars."""
    name = next((v.name for v in node.inputs if v is not None and v.kind == "weight"), "")
    return ".".join("*" if part.isdigit() else part for part in name.split(".")[:-1])


def _times(runs: Runs) -> Iterable[int]:
    """How often each node runs in one run: those of a loop's body as often as it may go round."""
    trips: dict[int, int] = {}
    for program in runs.executable.fused.programs():
        here = trips.get(id(program), 1)
        for node in program.nodes:
            if node.op == "loop":
                trips[id(node.attrs["body"])] = here * Dim.of(node.attrs["trips"]).evaluate(runs.sizes)
            if node.op != "reshape":
                yield here


def _together(key: tuple[str, str, str], rows: list[Row]) -> Row:
    sums = [sum(getattr(row, name) for row in rows) for name in ("runs", "seconds", "flop", "bytes", "floor_s")]
    return Row(*key, *sums)
