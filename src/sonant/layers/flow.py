"""A flow head: an MLP of residual blocks, modulated by a condition, that turns noise into one latent.

All shifts, scales and gates are rows of one linear over SiLU(condition), `adaln` (blocks in order: shift, 1 + scale,
gate; then the last layer's shift, 1 + scale; the 1 is in the bias). With a fixed number of steps the time embeddings
are constants, `times.{n}`. Source: MAR (arXiv 2406.11838), Lagrangian self-distillation (arXiv 2505.18825).
"""

from __future__ import annotations

from dataclasses import dataclass

from sonant.layers.dense import layer_norm, linear
from sonant.layers.scope import Scope
from sonant.program import ops
from sonant.program.program import Value

TIMES = {"lsd": 2, "flow_matching": 1, "drifting": 0, "pointwise": 0}
"""How many times (of flow) a head of each kind is told: the start and end of a step, its start, none."""


@dataclass(frozen=True)
class FlowShape:
    """Sizes and kind of the head. steps: how often it is applied; drifting and pointwise heads take one."""

    kind: str
    latent: int
    condition: int
    width: int
    depth: int
    steps: int = 1

    @property
    def modulations(self) -> int:
        """Rows of `adaln`, in widths."""
        return 3 * self.depth + 2

    def step_times(self, n: int) -> tuple[float, ...]:
        """What the head is told in step n."""
        return ((), (n / self.steps,), (n / self.steps, (n + 1) / self.steps))[TIMES[self.kind]]


def sample_latent(s: Scope, h: Value, noise: Value, shape: FlowShape) -> Value:
    """Condition h [B, 1, condition], noise [B, 1, latent] → latent [B, 1, latent]"""
    y = linear(s / "cond_embed", h, shape.width)  # [B,1,W]
    if shape.kind == "drifting":
        return _head(s, y, noise, shape)
    if shape.kind == "pointwise":
        return ops.add(noise, _head(s, y, noise, shape))
    z = noise
    for n in range(shape.steps):
        timed = ops.add(y, (s / "times").vector(str(n), shape.width))
        z = ops.add(z, ops.mul(_head(s, timed, z, shape), 1 / shape.steps))
    return z


def _head(s: Scope, y: Value, z: Value, shape: FlowShape) -> Value:
    """The velocity [B, 1, latent] at z, under the condition y [B, 1, width]"""
    width = shape.width
    rows = linear(s / "adaln", ops.silu(y), shape.modulations * width)  # [B,1,(3*depth+2)*W]
    parts = [ops.slice(rows, 2, i * width, (i + 1) * width) for i in range(shape.modulations)]
    x = linear((s / "input_proj").exact, z, width)  # [B,1,W]
    for i in range(shape.depth):
        block, (shift, scale, gate) = s / "res_blocks" / i, parts[3 * i : 3 * i + 3]
        t = ops.affine(layer_norm(block / "in_ln", x, eps=1e-6), scale, shift)
        t = linear(block / "mlp" / 2, ops.silu(linear(block / "mlp" / 0, t, width)), width)
        x = ops.add(x, ops.mul(gate, t))
    shift, scale = parts[-2:]
    return linear((s / "final_layer" / "linear").exact, ops.affine(ops.layer_norm(x, eps=1e-6), scale, shift),
                  shape.latent)
