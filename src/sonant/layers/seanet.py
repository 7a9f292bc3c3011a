"""SEANet, the causal convolutional ends of Mimi codecs, streamed: what a convolution looks back on is its state.

Weight names as the checkpoints have them: `model.{i}` counts convolutions, residual blocks and activations.
Source: arXiv 2107.03312 as Encodec and Mimi build it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonant.layers.scope import Scope
from sonant.program import ops
from sonant.program.program import Value


@dataclass(frozen=True)
class SeanetShape:
    """dimension: channels at the slow end; filters: at the sample end; ratios: strides from slow to fast."""

    dimension: int
    filters: int
    ratios: tuple[int, ...]
    kernel: int
    last_kernel: int
    residual_kernel: int
    residual_layers: int = 1
    dilation_base: int = 2
    compress: int = 2


def decoder(s: Scope, x: Value, shape: SeanetShape, rows: Value) -> Value:
    """[B, T, dimension] → [B, T*prod(ratios), 1]"""
    s, i, c = s / "model", 1, shape.filters << len(shape.ratios)
    x = causal_conv1d(s / 0, x, c, shape.kernel, rows)
    for ratio in shape.ratios:
        c //= 2
        x = causal_conv_transpose1d(s / (i + 1), ops.elu(x), c, rows, stride=ratio)  # [B,T*ratio,C/2]
        for j in range(shape.residual_layers):
            x = _residual(s / (i + 2 + j), x, shape, rows, shape.dilation_base**j)
        i += 2 + shape.residual_layers
    return causal_conv1d((s / (i + 1)).exact, ops.elu(x), 1, shape.last_kernel, rows)


def encoder(s: Scope, x: Value, shape: SeanetShape, rows: Value) -> Value:
    """[B, T*prod(ratios), 1] → [B, T, dimension]"""
    s, i, c = s / "model", 1, shape.filters
    x = causal_conv1d((s / 0).exact, x, c, shape.kernel, rows)
    for ratio in reversed(shape.ratios):
        for j in range(shape.residual_layers):
            x = _residual(s / (i + j), x, shape, rows, shape.dilation_base**j)
        i += shape.residual_layers
        c *= 2
        x = causal_conv1d(s / (i + 1), ops.elu(x), c, 2 * ratio, rows, stride=ratio)  # [B,T/ratio,2C]
        i += 2
    return causal_conv1d(s / (i + 1), ops.elu(x), shape.dimension, shape.last_kernel, rows)


def _residual(s: Scope, x: Value, shape: SeanetShape, rows: Value, dilation: int) -> Value:
    c = int(x.shape[-1])
    y = causal_conv1d(s / "block" / 1, ops.elu(x), c // shape.compress, shape.residual_kernel, rows, dilation=dilation)
    return ops.add(x, causal_conv1d(s / "block" / 3, ops.elu(y), c, 1, rows))


def causal_conv1d(
    s: Scope, x: Value, n: int, kernel: int, rows: Value, *, stride: int = 1, dilation: int = 1
) -> Value:
    """[B, T, C] → [B, T/stride, n]; before the first input are zeros"""
    c, reach = int(x.shape[-1]), (kernel - 1) * dilation + 1 - stride
    w, bias = (s / "conv").matrix("weight", n, kernel, c), (s / "conv").vector("bias", n)
    if not reach:
        return ops.conv1d(x, w, bias, stride=stride, precision=s.precision)
    state = s.program.add_state(s.path, "context", (reach, c))
    return ops.conv1d(x, w, bias, rows=rows, stride=stride, dilation=dilation, state=state, precision=s.precision)


def causal_conv_transpose1d(
    s: Scope, x: Value, n: int, rows: Value, *, stride: int, groups: int = 1, bias: bool = True
) -> Value:
    """[B, T, C] → [B, T*stride, n], kernel 2*stride; before the first input are zeros"""
    c, s = int(x.shape[-1]), s / "convtr"
    state = s.program.add_state(s.path, "context", (1, c))
    w, b = s.matrix("weight", n, 2 * stride, c // groups), s.vector("bias", n) if bias else None
    return ops.conv_transpose1d(x, w, b, rows=rows, stride=stride, groups=groups, state=state, precision=s.precision)
