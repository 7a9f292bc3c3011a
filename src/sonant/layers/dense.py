"""Linear, convolution and LSTM with their weights, under the names that torch modules give them."""

from __future__ import annotations

from sonant.layers.scope import Scope
from sonant.program import ops
from sonant.program.program import Value


def linear(s: Scope, x: Value, n: int, *, bias: bool = True) -> Value:
    """[..., C] → [..., n]"""
    w = s.matrix("weight", n, int(x.shape[-1]))
    return ops.linear(x, w, s.vector("bias", n) if bias else None, precision=s.precision)


def conv1d(
    s: Scope, x: Value, n: int, kernel: int, *, stride: int = 1, dilation: int = 1, padding: int = 0, bias: bool = True
) -> Value:
    """[B, T, C] → [B, T', n], `padding` zeros on both sides"""
    w = s.matrix("weight", n, kernel, int(x.shape[-1]))
    return ops.conv1d(
        x,
        w,
        s.vector("bias", n) if bias else None,
        stride=stride,
        dilation=dilation,
        pad_left=padding,
        pad_right=padding,
        precision=s.precision,
    )


def conv_transpose1d(
    s: Scope, x: Value, n: int, kernel: int, *, stride: int, padding: int = 0, output_padding: int = 0, groups: int = 1
) -> Value:
    """[B, T, C] → [B, (T-1)*stride + kernel - 2*padding + output_padding, n]"""
    w = s.matrix("weight", n, kernel, int(x.shape[-1]) // groups)
    return ops.conv_transpose1d(
        x,
        w,
        s.vector("bias", n),
        stride=stride,
        trim_left=padding,
        trim_right=padding - output_padding,
        groups=groups,
        precision=s.precision,
    )


def bilstm(s: Scope, x: Value, hidden: int) -> Value:
    """[B, T, C] → [B, T, 2*hidden], forwards then backwards"""
    c = int(x.shape[-1])
    return ops.lstm(
        x, s.matrix("w_ih", 2, 4 * hidden, c), s.matrix("w_hh", 2, 4 * hidden, hidden), s.vector("bias", 2, 4 * hidden)
    )


def layer_norm(s: Scope, x: Value, *, eps: float = 1e-5, names: tuple[str, str] = ("weight", "bias")) -> Value:
    """Over the last axis, with gain and bias."""
    c = int(x.shape[-1])
    return ops.layer_norm(x, s.vector(names[0], c), s.vector(names[1], c), eps=eps)
