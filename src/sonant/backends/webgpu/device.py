"""A GPU through wgpu-py: the only file that imports it, when a Device is made."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sonant.backends.webgpu import kernels
from sonant.backends.webgpu.plan import Kernel
from sonant.errors import BackendError, MissingExtra

PORTABLE_LIMITS = {"max-storage-buffers-per-shader-stage": kernels.STORAGE_BUFFERS,
                   "max-compute-workgroup-storage-size": 16384, "max-compute-invocations-per-workgroup": 256}
"""What every browser gives: asked for, so that a kernel that needs more fails here too."""
GENEROUS_LIMITS = ("max-buffer-size", "max-storage-buffer-binding-size")
"""As much as the adapter has."""

Step = tuple[Any, Any, tuple[int, ...]]
"""Pipeline, bind group, workgroups."""


class Device:
    """adapter: part of the adapter's name; by default wgpu chooses the fastest."""

    def __init__(self, adapter: str | None = None) -> None:
        self._wgpu = _import_wgpu()
        found = self._find(adapter)
        self.name: str = found.info["device"]
        self._limits = {k: found.limits[k] for k in GENEROUS_LIMITS}
        self._device = found.request_device_sync(required_limits={**PORTABLE_LIMITS, **self._limits})
        self._layouts: dict[int, Any] = {}
        self._pipelines: dict[tuple[str, tuple[tuple[str, int], ...], int], Any] = {}

    def _find(self, adapter: str | None) -> Any:
        known = self._wgpu.gpu.enumerate_adapters_sync()
        if adapter is not None:
            known = [a for a in known if adapter.lower() in a.info["device"].lower()] or self._refuse(adapter, known)
            return known[0]
        found = self._wgpu.gpu.request_adapter_sync(power_preference="high-performance") if known else None
        return found or self._refuse("", known)

    @staticmethod
    def _refuse(wanted: str, known: Sequence[Any]) -> Any:
        names = ", ".join(sorted(a.info["device"] for a in known)) or "none; is a Vulkan driver installed?"
        raise BackendError(f"no GPU named {wanted!r} here: {names}" if wanted else f"no GPU for WebGPU here: {names}")

    # --- pipelines ---
    def pipeline(self, kernel: Kernel, n_buffers: int, title: str) -> Any:
        """The compiled kernel; the same text and overrides are compiled once."""
        text = kernels.source(kernel)
        key = (text, tuple(kernel.overrides.items()), n_buffers)
        if key not in self._pipelines:
            layout = self._device.create_pipeline_layout(bind_group_layouts=[self._layout(n_buffers)])
            try:
                module = self._device.create_shader_module(code=text, label=title)
                self._pipelines[key] = self._device.create_compute_pipeline(
                    layout=layout, compute={"module": module, "entry_point": "main", "constants": kernel.overrides})
            except self._wgpu.GPUError as e:
                raise BackendError(f"the kernel of {title} does not compile: {e}") from e
        return self._pipelines[key]

    def _layout(self, n_buffers: int) -> Any:
        """Binding 0 uniform words, 1 the result, the others read."""
        if n_buffers not in self._layouts:
            types = ["uniform", "storage", *["read-only-storage"] * (n_buffers - 1)]
            entries = [{"binding": i, "visibility": self._wgpu.ShaderStage.COMPUTE, "buffer": {"type": t}}
                       for i, t in enumerate(types)]
            self._layouts[n_buffers] = self._device.create_bind_group_layout(entries=entries)
        return self._layouts[n_buffers]

    def bind_group(self, buffers: Sequence[Any], uniforms: Any, offset: int, size: int) -> Any:
        resources = [{"buffer": uniforms, "offset": offset, "size": size},
                     *({"buffer": b, "offset": 0, "size": b.size} for b in buffers)]
        entries = [{"binding": i, "resource": r} for i, r in enumerate(resources)]
        return self._device.create_bind_group(layout=self._layout(len(buffers)), entries=entries)

    # --- buffers ---
    def allocate(self, n_bytes: int, what: str) -> Any:
        limit = min(self._limits.values())
        if n_bytes > limit:
            raise BackendError(f"{what} needs {n_bytes} bytes, {self.name} binds {limit} at most")
        usage = self._wgpu.BufferUsage
        try:
            return self._device.create_buffer(size=max(n_bytes, 16),
                                              usage=usage.STORAGE | usage.COPY_DST | usage.COPY_SRC)
        except self._wgpu.GPUError as e:
            raise BackendError(f"{self.name} has no room for {what} ({n_bytes} bytes): {e}") from e

    def upload(self, array: np.ndarray, what: str) -> Any:
        buffer = self.allocate(array.nbytes, what)
        self.write(buffer, array)
        return buffer

    def upload_uniforms(self, words: np.ndarray) -> Any:
        return self._device.create_buffer_with_data(data=words, usage=self._wgpu.BufferUsage.UNIFORM)

    def write(self, buffer: Any, array: np.ndarray) -> None:
        if array.size:
            self._device.queue.write_buffer(buffer, 0, np.ascontiguousarray(array))

    def read(self, buffer: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        kind = np.dtype(np.int32 if dtype == "i32" else np.float32)
        if math.prod(shape) == 0:
            return np.zeros(shape, kind)
        data = self._device.queue.read_buffer(buffer, 0, 4 * math.prod(shape))
        return np.frombuffer(data, kind).reshape(shape).copy()

    def play(self, steps: Iterable[Step]) -> None:
        encoder = self._device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        for pipeline, group, workgroups in steps:
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*workgroups)
        compute.end()
        self._device.queue.submit([encoder.finish()])


def _import_wgpu() -> Any:
    try:
        return importlib.import_module("wgpu")
    except ImportError as e:
        raise MissingExtra("the WebGPU backend", "webgpu") from e
