"""The WGSL kernels that exist (shaders/kernels.json) and the source text of one of them."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from sonant.backends.webgpu.plan import Kernel
from sonant.errors import BackendError

STORAGE_BUFFERS = 8
"""Storage buffers per stage that every WebGPU device has."""


@dataclass(frozen=True)
class KernelRow:
    """One row of kernels.json. An invocation makes tile_rows x tile_outputs results; `workgroup` are its overrides."""

    op: str
    file: str
    compilers: tuple[str, ...]
    features: tuple[str, ...]
    workgroup: MappingProxyType[str, int]
    tile_rows: int
    tile_outputs: int
    weight: MappingProxyType[str, str] | None

    @property
    def workgroup_x(self) -> int:
        return self.workgroup["workgroup_x"]

    @property
    def workgroup_y(self) -> int:
        return self.workgroup.get("workgroup_y", 1)


@functools.cache
def rows() -> MappingProxyType[str, KernelRow]:
    """kernels.json by kernel name."""
    return MappingProxyType({name: _row(data) for name, data in json.loads(shader_text("kernels.json")).items()})


def _row(data: dict[str, Any]) -> KernelRow:
    weight = MappingProxyType(data["weight"]) if data["weight"] else None
    return KernelRow(data["op"], data["file"], tuple(data["compilers"]), tuple(data["features"]),
                     MappingProxyType(data["workgroup"]), data["tile_rows"], data["tile_outputs"], weight)


def ops() -> list[str]:
    """The ops that have a kernel."""
    return list(dict.fromkeys(row.op for row in rows().values()))


@functools.cache
def shader_text(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9_]+\.(wgsl|json)", name):
        raise BackendError(f"{name!r} is not the name of a shader file")
    return (files("sonant") / "shaders" / name).read_text(encoding="utf-8")


def source(kernel: Kernel) -> str:
    """The WGSL of `kernel`: its files joined, with its sections in place of the `//#insert` lines."""
    text = "\n".join(map(shader_text, kernel.files))
    return re.sub(r"^//#insert (\w+)$", lambda m: "\n".join(kernel.sections[m[1]]), text, flags=re.MULTILINE)
