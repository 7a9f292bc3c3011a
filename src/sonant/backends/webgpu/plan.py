"""WebGpuPlan: how the webgpu backend computes one Program, as data. Played by this backend and by web/runtime alike.

Everything is fixed but the dim symbols: sizes, grids and uniform words are integer expressions in text
(`expressions.py`), evaluated when the sizes are known. The text of a shader never depends on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sonant.backends.webgpu.expressions import Expression
from sonant.errors import BackendError
from sonant.program import opset

FORMAT = 1
"""Version of the Plan's JSON form."""


@dataclass(frozen=True)
class Kernel:
    """A pipeline: the files joined, each `//#insert <section>` line replaced by that section; its overrides."""

    files: list[str]
    sections: dict[str, list[str]]
    overrides: dict[str, int]


@dataclass(frozen=True)
class Buffer:
    """space: arena, input, output, weight or constant. Its 4-byte elements: the largest of `elements`."""

    space: str
    elements: list[Expression]


@dataclass(frozen=True)
class Symbol:
    """A dim symbol is bound by `value`, an expression of `size`, the size of an axis of an input."""

    name: str
    input: str
    axis: int
    value: Expression


@dataclass(frozen=True)
class Tensor:
    """An input or an output."""

    name: str
    dtype: str
    shape: list[Expression]
    buffer: int


@dataclass(frozen=True)
class Weight:
    """A checkpoint tensor in canonical layout, and the packing step (`packing.py`) that makes its buffer."""

    name: str
    dtype: str
    shape: list[int]
    pack: str
    buffer: int


@dataclass(frozen=True)
class Constant:
    dtype: str
    data: list[float]
    buffer: int


@dataclass(frozen=True)
class Dispatch:
    """node: the op and the value it makes, for messages. `uniforms` are the words of binding 0; bindings are 1, 2, …"""

    node: str
    kernel: int
    bindings: list[int]
    workgroups: list[Expression]
    uniforms: list[Expression]


@dataclass(frozen=True)
class WebGpuPlan:
    program: str
    symbols: list[Symbol]
    inputs: list[Tensor]
    outputs: list[Tensor]
    weights: list[Weight]
    constants: list[Constant]
    buffers: list[Buffer]
    kernels: list[Kernel]
    dispatches: list[Dispatch]

    def to_json(self) -> str:
        """One line per item, so that a recorded Plan reads well in a diff."""
        fields: dict[str, Any] = {"format": FORMAT, "opset": opset.VERSION, **asdict(self)}
        return "{\n" + ",\n".join(f"{json.dumps(k)}: {_lines(k, v)}" for k, v in fields.items()) + "\n}\n"

    @staticmethod
    def from_json(text: str) -> WebGpuPlan:
        """BackendError when the text is malformed or of another version."""
        try:
            data = json.loads(text)
            if (data["format"], data["opset"]) != (FORMAT, opset.VERSION):
                raise BackendError(f"the Plan is of format {data['format']}, opset {data['opset']}; this sonant plays "
                                   f"format {FORMAT}, opset {opset.VERSION}")
            lists = {k: [kind(**item) for item in data[k]] for k, kind in _ITEMS.items()}
            return WebGpuPlan(program=data["program"], **lists)
        except (json.JSONDecodeError, KeyError, TypeError) as e:
            raise BackendError(f"not a webgpu Plan: {type(e).__name__}: {e}") from e

    def expressions(self) -> list[Expression]:
        """Every expression that binding evaluates."""
        found: list[Expression] = []
        for buffer in self.buffers:
            found += buffer.elements
        for tensor in (*self.inputs, *self.outputs):
            found += tensor.shape
        for dispatch in self.dispatches:
            found += [*dispatch.workgroups, *dispatch.uniforms]
        return found

    def buffer_elements(self, values: Mapping[Expression, int]) -> list[int]:
        return [max(values[e] for e in buffer.elements) for buffer in self.buffers]


_ITEMS: dict[str, Any] = {"symbols": Symbol, "inputs": Tensor, "outputs": Tensor, "weights": Weight,
                          "constants": Constant, "buffers": Buffer, "kernels": Kernel, "dispatches": Dispatch}


def _lines(field: str, value: Any) -> str:
    if field == "kernels":
        return json.dumps(value, indent=1)
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return "[\n" + ",\n".join(f"  {json.dumps(v)}" for v in value) + "\n]"
    return json.dumps(value)
