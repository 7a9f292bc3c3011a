"""The WebGPU backend: plays a WebGpuPlan through wgpu-py. Seed: f32 linear, conv1d and pointwise, without states."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sonant.backends.backend import CancelFlag, Repeated, States, Weights, bind_sizes
from sonant.backends.webgpu.device import Device
from sonant.backends.webgpu.expressions import Expression, compile_all
from sonant.backends.webgpu.lower import lower
from sonant.backends.webgpu.packing import pack
from sonant.backends.webgpu.plan import WebGpuPlan
from sonant.errors import BackendError, Cancelled
from sonant.program.passes import fuse
from sonant.program.program import Program
from sonant.program.recipe import Recipe, recorded

__all__ = ["WebGpuBackend", "WebGpuExecutable", "WebGpuPlan", "lower"]

WORKSPACES_KEPT = 4
UNIFORM_ALIGNMENT = 256
WORKSPACE_SPACES = ("arena", "input", "output")


class WebGpuBackend:
    """Runs Programs on a GPU. adapter: part of the name of the GPU to use; by default the fastest one.

    Runs of one backend follow each other: a GPU has one queue.
    """

    name = "webgpu"
    fast: tuple[str, ...] = ()

    def __init__(self, *, adapter: str | None = None) -> None:
        self.device = Device(adapter)
        self.lock = threading.Lock()

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None,
             hints: Mapping[str, int] | None = None) -> WebGpuExecutable:
        fresh = recorded(program)
        return WebGpuExecutable(self, fresh, weights, lower(fuse(fresh), hints))

    def load_all(self, programs: Sequence[Program | Recipe], weights: Weights, *,
                 cache: Path | None = None) -> list[WebGpuExecutable]:
        return [self.load(p, weights, cache=cache) for p in programs]


class WebGpuExecutable:
    """A Plan with its pipelines compiled and its weights on the device."""

    def __init__(self, backend: WebGpuBackend, program: Program, weights: Weights, plan: WebGpuPlan) -> None:
        self.program, self.backend, self.plan = program, backend, plan
        self._evaluate = compile_all(plan.expressions(), [s.name for s in plan.symbols])
        with backend.lock:
            self._pipelines = [backend.device.pipeline(plan.kernels[d.kernel], len(d.bindings), d.node)
                               for d in plan.dispatches]
            self._fixed = {**self._upload_weights(weights), **self._upload_constants()}
        self._workspaces: OrderedDict[tuple[int, ...], _Workspace] = OrderedDict()

    def _upload_weights(self, weights: Weights) -> dict[int, Any]:
        buffers = {}
        for w in self.plan.weights:
            if w.name not in weights or list(weights[w.name].shape) != w.shape:
                found = list(weights[w.name].shape) if w.name in weights else "nothing"
                raise BackendError(f"weight {w.name} {w.shape} of {self.program.name}: found {found}")
            buffers[w.buffer] = self.backend.device.upload(pack(weights[w.name], w.pack, w.dtype), w.name)
        return buffers

    def _upload_constants(self) -> dict[int, Any]:
        dtypes = {"i32": np.int32, "f32": np.float32}
        return {c.buffer: self.backend.device.upload(np.array(c.data, dtypes[c.dtype]), f"constant {c.buffer}")
                for c in self.plan.constants}

    def prepare(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None) -> Repeated:
        return Repeated(self, inputs, states)

    def create_states(self, n_rows: int) -> States:
        raise BackendError("the webgpu backend has no states yet")

    def peak_bytes(self, sizes: Mapping[str, int]) -> int:
        """Arena, inputs and outputs."""
        elements = self.plan.buffer_elements(self._evaluate(sizes))
        return sum(4 * n for n, b in zip(elements, self.plan.buffers, strict=True) if b.space in WORKSPACE_SPACES)

    def run(self, inputs: Mapping[str, np.ndarray], *, states: States | None = None,
            cancel: CancelFlag | None = None, threads: int | None = None) -> list[np.ndarray]:
        sizes = bind_sizes(self.program, inputs)
        with self.backend.lock:
            workspace = self._workspace(sizes)
            for tensor in self.plan.inputs:
                self.backend.device.write(workspace.buffers[tensor.buffer], inputs[tensor.name])
            if cancel is not None and cancel.is_set:
                raise Cancelled(f"{self.program.name} was cancelled")
            self.backend.device.play(workspace.steps)
            return [self.backend.device.read(workspace.buffers[t.buffer], t.dtype, shape)
                    for t, shape in zip(self.plan.outputs, workspace.output_shapes, strict=True)]

    def _workspace(self, sizes: Mapping[str, int]) -> _Workspace:
        key = tuple(sizes[s.name] for s in self.plan.symbols)
        if key not in self._workspaces:
            values = self._evaluate(sizes)
            self._workspaces[key] = _Workspace(self.backend.device, self.plan, values, self._fixed, self._pipelines)
            while len(self._workspaces) > WORKSPACES_KEPT:
                self._workspaces.popitem(last=False)
        self._workspaces.move_to_end(key)
        return self._workspaces[key]


class _Workspace:
    """A Plan bound to sizes: buffers, uniform words and bind groups. values: of every expression of the Plan."""

    def __init__(self, device: Device, plan: WebGpuPlan, values: Mapping[Expression, int], fixed: Mapping[int, Any],
                 pipelines: Sequence[Any]) -> None:
        self.buffers = dict(fixed)
        for number, (buffer, elements) in enumerate(zip(plan.buffers, plan.buffer_elements(values), strict=True)):
            if buffer.space in WORKSPACE_SPACES:
                self.buffers[number] = device.allocate(4 * elements, f"{buffer.space} {number} of {plan.program}")
        self.output_shapes = [tuple(values[d] for d in t.shape) for t in plan.outputs]
        words = [np.array([values[u] for u in d.uniforms], np.uint32) for d in plan.dispatches]
        uniforms, offsets = _uniform_block(words)
        block = device.upload_uniforms(uniforms)
        self.steps = []
        for d, pipeline, offset in zip(plan.dispatches, pipelines, offsets, strict=True):
            groups = tuple(values[w] for w in d.workgroups)
            bound = [self.buffers[b] for b in d.bindings]
            self.steps.append((pipeline, device.bind_group(bound, block, offset, 4 * len(d.uniforms)), groups))


def _uniform_block(words: list[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """All uniform words in one buffer, each dispatch at a multiple of 256 bytes."""
    starts = np.cumsum([0, *(-(-4 * len(w) // UNIFORM_ALIGNMENT) * UNIFORM_ALIGNMENT for w in words)])
    block = np.zeros(max(int(starts[-1]) // 4, 1), np.uint32)
    for start, w in zip(starts[:-1], words, strict=True):
        block[start // 4:start // 4 + len(w)] = w
    return block, [int(s) for s in starts[:-1]]
