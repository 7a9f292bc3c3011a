"""What sizes a Program can be run at: every dim at least zero, every slice inside what it slices, reflections inside.

Shape rules work on symbols and cannot see that T is too short; a backend checks these bounds whenever it binds sizes,
so that no kernel reads past its tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonant.errors import ProgramError
from sonant.program.dims import Dim, DimLike
from sonant.program.program import Node, Program

Bound = tuple[DimLike, DimLike]
"""(a, b) for a <= b."""


class Bounds:
    """The bounds of a Program and of its loop bodies, each different one once."""

    def __init__(self, program: Program) -> None:
        self.name = program.name
        self.bounds: dict[tuple[Dim, Dim], str] = {}
        for p in program.programs():
            for node in p.nodes:
                for low, high in _bounds(node):
                    self._add(Dim.of(low), Dim.of(high), f"{node.op} in {p.name}")

    def _add(self, low: Dim, high: Dim, where: str) -> None:
        gap = high - low
        if gap.is_constant and int(gap) >= 0:
            return
        self.bounds.setdefault((low, high), where)

    def check(self, sizes: Mapping[str, int]) -> None:
        """ProgramError naming the first node that cannot run at these sizes."""
        for (low, high), where in self.bounds.items():
            if low.evaluate(sizes) > high.evaluate(sizes):
                raise ProgramError(f"{where} cannot run at {dict(sizes)}: it needs {low} <= {high}, "
                                   f"here {low.evaluate(sizes)} <= {high.evaluate(sizes)}")


def _bounds(node: Node) -> Iterator[Bound]:
    for v in node.outputs:
        for d in v.shape:
            yield 0, d
    a, x = node.attrs, node.inputs[0]
    assert x is not None
    if node.op == "slice":
        yield 0, a["start"]
        yield a["stop"], x.shape[a["axis"]]
    elif node.op == "pad" and a["mode"] != "zero":
        yield 1 if a["mode"] == "edge" else max(a["left"], a["right"]) + 1, x.shape[a["axis"]]
    elif node.op == "attention" and a["state_k"] and x.program.state(a["state_k"]).kind == "ring":
        yield Dim.of(x.shape[1]) + a["window"] - 1, x.program.state(a["state_k"]).shape[0]
    elif node.op == "stft":
        yield a["n_fft"] // 2 + 1, x.shape[1]
    elif node.op == "conv1d" and a["state"]:
        yield x.shape[1], Dim.of(x.shape[1]) // a["stride"] * a["stride"]  # a whole number of strides
    elif node.op in ("max", "mean"):
        yield 1, x.shape[a["axis"]]
    elif node.op == "loop":
        yield 0, a["trips"]
