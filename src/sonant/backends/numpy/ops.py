"""Every op of the opset in NumPy, short and plain: this file is the meaning of the opset.

Each function takes the node's operand arrays and its attributes (dims already integers) and returns a tuple of arrays.
All work in the dtype of their first floating operand, so the same code runs in f32 and in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sonant.backends.backend import Q8_BLOCK, ArrayStates, round_to
from sonant.backends.numpy import random
from sonant.backends.numpy.pointwise import run_steps, sigmoid
from sonant.errors import BackendError

Array = np.ndarray
Attrs = dict[str, Any]
Result = tuple[Array, ...]
FUNCTIONS: dict[str, Callable[..., Result]] = {}
STATEFUL: dict[str, Callable[..., Result]] = {}
"""These also take the ArrayStates of the run as their first argument."""


def _op(function: Callable[..., Result]) -> Callable[..., Result]:
    FUNCTIONS[function.__name__.rstrip("_")] = function
    return function


def _stateful(function: Callable[..., Result]) -> Callable[..., Result]:
    STATEFUL[function.__name__] = function
    return function


def _at(operands: Sequence[Array | None], index: int) -> Array | None:
    return operands[index] if index < len(operands) else None


# --- dense ------------------------------------------------------------------------------------------------------------
def _prologue(x: Array, fused: Sequence[Array], a: Attrs) -> Array:
    y = run_steps(a["prologue"], [x, *fused[: a["n_pro"]]])
    if a["precision"] == "bf16":
        return round_to(y, "bf16").astype(x.dtype)
    return round_to_int8(y, a.get("groups", 1), INT8_BLOCK[a["precision"]]) if a["precision"] in INT8_BLOCK else y


INT8_BLOCK = {"int8": Q8_BLOCK, "int8_row": None}
"""Channels that share a scale, by precision; None: all of a group."""


def round_to_int8(x: Array, groups: int, block: int | None) -> Array:
    """Each block of channels (of a group) as integers times its largest magnitude / 127; zero below 2e-30, where the
    inverse would leave the range of f32."""
    split = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    step = block or split.shape[-1]
    blocks = [split[..., at:at + step] for at in range(0, split.shape[-1], step)]
    rounded = []
    for part in blocks:
        top = np.abs(part).max(-1, keepdims=True)
        inverse = np.divide(127, top, out=np.zeros_like(top), where=~(top <= 2e-30))
        rounded.append(np.rint(part * inverse) * (top / x.dtype.type(127)))
    return np.concatenate(rounded, axis=-1).reshape(x.shape)


def _epilogue(y: Array, bias: Array | None, fused: Sequence[Array], a: Attrs) -> Result:
    y = y if bias is None else y + bias
    return (run_steps(a["epilogue"], [y, *fused[a["n_pro"]:]]),)


@_op
def linear(a: Attrs, x: Array, w: Array, bias: Array | None = None, *fused: Array) -> Result:
    return _epilogue(_prologue(x, fused, a) @ w.T, bias, fused, a)


def _check_rows(op: str, rows: Array, states: ArrayStates, *, written: bool = True) -> None:
    if rows.size and (rows.min() < 0 or rows.max() >= states.n_rows):
        raise BackendError(f"{op}: rows {rows.tolist()} are not all among the {states.n_rows} rows of the states")
    if written and len(np.unique(rows)) < len(rows):
        raise BackendError(f"{op}: a row of {rows.tolist()} is named twice")


def _context(states: ArrayStates, a: Attrs, rows: Array, x: Array) -> Array:
    """x with the slots' left rows before it; the last rows go back to the slots."""
    state = states.arrays[a["state"]]
    _check_rows("a convolution", rows, states)
    joined = np.concatenate([state[rows].astype(x.dtype), x], axis=1)
    state[rows] = joined[:, joined.shape[1] - state.shape[1]:]
    return joined


@_stateful
def conv1d(states: ArrayStates, a: Attrs, x: Array, w: Array, bias: Array | None = None,
           rows: Array | None = None, *fused: Array) -> Result:
    x = _prologue(x, fused, a)
    if a["state"]:
        assert rows is not None
        x = _context(states, a, rows, x)
    else:
        x = np.pad(x, ((0, 0), (a["pad_left"], a["pad_right"]), (0, 0)))
    n, k, cg = w.shape
    groups, stride, dilation = a["groups"], a["stride"], a["dilation"]
    length = (x.shape[1] - (k - 1) * dilation - 1) // stride + 1
    y = np.zeros((x.shape[0], length, n), x.dtype)
    for g in range(groups):
        channels, out = slice(g * cg, (g + 1) * cg), slice(g * n // groups, (g + 1) * n // groups)
        for tap in range(k):
            start = tap * dilation
            y[..., out] += x[:, start:start + (length - 1) * stride + 1:stride, channels] @ w[out, tap].T
    return _epilogue(y, bias, fused, a)


@_stateful
def conv_transpose1d(states: ArrayStates, a: Attrs, x: Array, w: Array, bias: Array | None = None,
                     rows: Array | None = None, *fused: Array) -> Result:
    x = _prologue(x, fused, a)
    n, k, cg = w.shape
    groups, stride, trim, length = a["groups"], a["stride"], a["trim_left"], x.shape[1] * a["stride"]
    if a["state"]:
        assert rows is not None
        trim = states.arrays[a["state"]].shape[1] * stride
        x = _context(states, a, rows, x)
    else:
        length = (x.shape[1] - 1) * stride + k - trim - a["trim_right"]
    full = np.zeros((x.shape[0], max((x.shape[1] - 1) * stride + k, trim + length), n), x.dtype)
    for g in range(groups):
        channels, out = slice(g * cg, (g + 1) * cg), slice(g * n // groups, (g + 1) * n // groups)
        for tap in range(k):
            full[:, tap:tap + (x.shape[1] - 1) * stride + 1:stride, out] += x[..., channels] @ w[out, tap].T
    return _epilogue(full[:, trim:trim + length], bias, fused, a)


@_op
def embedding(a: Attrs, ids: Array, table: Array) -> Result:
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        raise BackendError(f"embedding: id {int(ids.min())}..{int(ids.max())} outside a table of {len(table)} rows")
    return (table[ids],)


@_op
def lstm(a: Attrs, x: Array, w_ih: Array, w_hh: Array, bias: Array) -> Result:
    hidden = w_hh.shape[2]
    out = np.zeros((x.shape[0], x.shape[1], len(w_ih) * hidden), x.dtype)
    for d in range(len(w_ih)):
        h, c = (np.zeros((x.shape[0], hidden), x.dtype) for _ in range(2))
        gates = x @ w_ih[d].T + bias[d]
        for t in range(x.shape[1]) if d == 0 else range(x.shape[1] - 1, -1, -1):
            i, f, g, o = np.split(gates[:, t] + h @ w_hh[d].T, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            out[:, t, d * hidden:(d + 1) * hidden] = h
    return (out,)


@_stateful
def attention(states: ArrayStates, a: Attrs, q: Array, k: Array, v: Array,
              rows: Array | None = None, position: Array | None = None) -> Result:
    out = np.zeros_like(q)
    if rows is not None:
        _check_rows("attention", rows, states)
    for b in range(len(q)):
        start, keys, values = 0, k[b], v[b]
        if a["state_k"]:
            assert rows is not None
            assert position is not None
            start = int(position[b])
            stop = start + q.shape[1]
            cache_k, cache_v = states.arrays[a["state_k"]][rows[b]], states.arrays[a["state_v"]][rows[b]]
            ring = states.kinds[a["state_k"]] == "ring"
            if start < 0 or (stop > len(cache_k) and not ring):
                raise BackendError(f"attention: positions {start}..{stop - 1} are not all within the capacity "
                                   f"{len(cache_k)} of state {a['state_k']!r}")
            written = np.arange(start, stop) % len(cache_k)
            cache_k[written], cache_v[written] = k[b], v[b]
            first = max(0, start - a["window"] + 1) if ring else 0
            read = np.arange(first, stop) % len(cache_k)
            keys, values, start = cache_k[read].astype(q.dtype), cache_v[read].astype(q.dtype), start - first
        out[b] = _attend(a, q[b], keys, values, start)
    return (out,)


def _attend(a: Attrs, q: Array, k: Array, v: Array, start: int) -> Array:
    """`start`: the place of the first query among the keys."""
    heads, kv_heads = a["heads"], a["kv_heads"] or a["heads"]
    size = q.shape[1] // heads
    qh = q.reshape(len(q), heads, size).transpose(1, 0, 2)
    kh, vh = (np.repeat(m.reshape(len(m), kv_heads, size).transpose(1, 0, 2), heads // kv_heads, 0) for m in (k, v))
    scores = qh @ kh.transpose(0, 2, 1) * q.dtype.type(a["scale"])
    if a["mask"] == "causal":
        age = (start + np.arange(len(q)))[:, None] - np.arange(len(k))[None, :]
        hidden = (age < 0) | ((age >= a["window"]) if a["window"] else False)
        scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y: Array = (weights / weights.sum(-1, keepdims=True)) @ vh
    return y.transpose(1, 0, 2).reshape(q.shape)


@_stateful
def attention_weights(states: ArrayStates, a: Attrs, q: Array, keys: Array, rows: Array) -> Result:
    _check_rows("attention_weights", rows, states, written=False)
    cache, heads = states.arrays[a["state_k"]], a["heads"]
    if keys.size and keys.max() >= cache.shape[1]:
        raise BackendError(f"attention_weights: key {int(keys.max())} is not within the capacity {cache.shape[1]} of "
                           f"state {a['state_k']!r}")
    size, group = q.shape[2] // heads, heads // (a["kv_heads"] or heads)
    out = np.zeros((q.shape[0], q.shape[1], len(a["head_ids"]), keys.shape[1]), q.dtype)
    for b in range(len(q)):
        kept = keys[b] >= 0
        if not kept.any():
            continue
        k = cache[rows[b]][keys[b][kept]].astype(q.dtype)
        for i, h in enumerate(a["head_ids"]):
            of_head = k[:, h // group * size:(h // group + 1) * size]
            scores = q[b, :, h * size:(h + 1) * size] @ of_head.T * q.dtype.type(a["scale"])
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[b, :, i, kept] = (weights / weights.sum(-1, keepdims=True)).T
    return (out,)


@_op
def rope_table(a: Attrs, position: Array) -> Result:
    half = a["size"] // 2
    rate = np.float64(a["theta"]) ** (-np.arange(half) / half)
    angles = (position[:, None] + np.arange(a["length"]))[:, :, None] * rate
    return (np.concatenate([np.cos(angles), np.sin(angles)], -1).astype(np.float32),)


@_op
def rope(a: Attrs, x: Array, table: Array) -> Result:
    half = x.shape[2] // a["heads"] // 2
    pairs = (x.reshape(*x.shape[:2], a["heads"], half, 2) if a["layout"] == "interleaved"
             else x.reshape(*x.shape[:2], a["heads"], 2, half).swapaxes(-1, -2))
    u, v = pairs[..., 0], pairs[..., 1]
    cos, sin = table[:, :, None, :half], table[:, :, None, half:]
    turned = np.stack([u * cos - v * sin, u * sin + v * cos], -1)
    return ((turned if a["layout"] == "interleaved" else turned.swapaxes(-1, -2)).reshape(x.shape),)


# --- norms ------------------------------------------------------------------------------------------------------------
@_op
def layer_norm(a: Attrs, x: Array, weight: Array | None = None, bias: Array | None = None) -> Result:
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + x.dtype.type(a["eps"]))
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias,)


@_op
def instance_affine(a: Attrs, x: Array, gamma: Array, beta: Array) -> Result:
    mean, channels = x.mean(1, keepdims=True), x.shape[2]
    variance = ((x - mean) ** 2).mean(1, keepdims=True)
    scale = (1 + gamma.reshape(-1, 1, channels)) / np.sqrt(variance + x.dtype.type(a["eps"]))
    return scale, beta.reshape(-1, 1, channels) - mean * scale


# --- pointwise --------------------------------------------------------------------------------------------------------
@_op
def pointwise(a: Attrs, x: Array, *rest: Array) -> Result:
    shape = np.broadcast_shapes(x.shape, *(r.shape for r in rest))
    return (np.broadcast_to(run_steps(a["steps"], [x, *rest]), shape),)


@_op
def cast(a: Attrs, x: Array) -> Result:
    return (x.astype(np.int32) if a["dtype"] == "i32" else x.astype(np.float32),)


# --- shape and time ---------------------------------------------------------------------------------------------------
@_op
def concat(a: Attrs, *xs: Array) -> Result:
    return (np.concatenate(xs, axis=a["axis"]),)


@_op
def slice_(a: Attrs, x: Array) -> Result:
    index = [slice(None)] * x.ndim
    index[a["axis"]] = slice(a["start"], a["stop"])
    return (x[tuple(index)],)


@_op
def reshape(a: Attrs, x: Array) -> Result:
    return (x.reshape(a["shape"]),)


@_op
def transpose(a: Attrs, x: Array) -> Result:
    return (x.transpose(a["perm"]),)


@_op
def pad(a: Attrs, x: Array) -> Result:
    widths = [(0, 0)] * x.ndim
    widths[a["axis"]] = (a["left"], a["right"])
    if a["mode"] == "edge":
        return (np.pad(x, widths, mode="edge"),)
    return (np.pad(x, widths, mode="reflect") if a["mode"] == "reflect" else np.pad(x, widths),)


@_op
def gather(a: Attrs, x: Array, index: Array) -> Result:
    if index.size and (index.min() < 0 or index.max() >= x.shape[1]):
        raise BackendError(f"gather: index {int(index.min())}..{int(index.max())} outside {x.shape[1]} rows")
    return (np.take_along_axis(x, index[:, :, None], axis=1),)


@_op
def expand(a: Attrs, x: Array) -> Result:
    return (np.broadcast_to(x, a["shape"]),)


@_op
def interpolate(a: Attrs, x: Array) -> Result:
    factor, length = a["factor"], x.shape[1]
    if a["mode"] == "nearest":
        return (np.repeat(x, factor, axis=1),)
    at = np.clip((np.arange(length * factor) + 0.5) / factor - 0.5, 0, None)
    left = np.floor(at).astype(np.int64)
    part = (at - left).astype(x.dtype)[None, :, None]
    return (x[:, left] * (1 - part) + x[:, np.minimum(left + 1, length - 1)] * part,)


@_op
def cumsum_turns(a: Attrs, x: Array) -> Result:
    factor, length = a["factor"], x.shape[1]
    step = np.rint(np.float64(x) * 2.0**32).astype(np.int64)  # turns per sample in 32-bit fixed point
    phase = np.cumsum(step * factor, axis=1)
    at = np.arange(length * factor)
    # Half-pixel centres in units of half a sample: 2*at + 1 - factor counts from the centre of frame 0.
    halves = np.clip(2 * at + 1 - factor, 0, 2 * factor * (length - 1))
    left = halves // (2 * factor)
    beyond = halves - left * 2 * factor
    following = step[:, np.minimum(left + 1, length - 1)]
    turns = phase[:, left] + (following * beyond[None, :, None] >> 1)
    return (((turns & 0xFFFFFFFF) * 2.0**-32).astype(x.dtype),)


@_op
def sum_(a: Attrs, x: Array) -> Result:
    return (x.sum(a["axis"], keepdims=True),)


@_op
def mean(a: Attrs, x: Array) -> Result:
    return (x.mean(a["axis"], keepdims=True),)


@_op
def max_(a: Attrs, x: Array) -> Result:
    return (x.max(a["axis"], keepdims=True),)


# --- signal -----------------------------------------------------------------------------------------------------------
def _window(n_fft: int, dtype: np.dtype[Any]) -> Array:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)).astype(dtype)


@_op
def stft(a: Attrs, x: Array) -> Result:
    n_fft, hop = a["n_fft"], a["hop"]
    padded = np.pad(x, ((0, 0), (n_fft // 2, n_fft // 2)), mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft, axis=1)[:, ::hop]
    spectrum = np.fft.rfft((frames * _window(n_fft, x.dtype)).astype(np.float64), axis=-1)
    return (np.concatenate([spectrum.real, spectrum.imag], axis=-1).astype(x.dtype),)


@_op
def istft(a: Attrs, x: Array) -> Result:
    n_fft, hop = a["n_fft"], a["hop"]
    bins, window = n_fft // 2 + 1, _window(n_fft, np.dtype(np.float64))
    frames = np.fft.irfft(x[..., :bins].astype(np.float64) + 1j * x[..., bins:], n=n_fft, axis=-1) * window
    length = (x.shape[1] - 1) * hop
    out, weight = np.zeros((len(x), length + n_fft)), np.zeros(length + n_fft)
    for f in range(x.shape[1]):
        out[:, f * hop:f * hop + n_fft] += frames[:, f]
        weight[f * hop:f * hop + n_fft] += window * window
    inner = slice(n_fft // 2, n_fft // 2 + length)
    return ((out[:, inner] / weight[inner]).astype(x.dtype),)


# --- random and sampling ----------------------------------------------------------------------------------------------
@_op
def randn(a: Attrs, seed: Array, frame: Array) -> Result:
    return (random.randn(seed, frame, a["length"], a["channels"], a["site"]).astype(np.float32),)


@_op
def sample(a: Attrs, logits: Array, temperature: Array, top_k: Array, top_p: Array,
           seed: Array, frame: Array) -> Result:
    uniform = random.draw(seed, frame, a["site"])
    ids = [_sample_row(*row) for row in zip(logits, temperature, top_k, top_p, uniform, strict=True)]
    return (np.array(ids, np.int32),)


def _sample_row(logits: Array, temperature: float, top_k: int, top_p: float, uniform: float) -> int:
    if temperature <= 0:
        return int(np.argmax(logits))
    order = np.argsort(-logits, kind="stable")  # equal logits keep id order
    kept = order[: int(top_k)] if 0 < top_k < len(logits) else order
    weights = np.exp((np.float64(logits[kept]) - np.float64(logits[order[0]])) / temperature)
    before = np.concatenate([[0.0], np.cumsum(weights)[:-1]]) / weights.sum()
    inside = before < top_p  # the first is always inside
    inside[0] = True
    ids, weights = kept[inside], weights[inside]
    by_id = np.argsort(ids)
    running = np.cumsum(weights[by_id])
    return int(ids[by_id][min(np.searchsorted(running, uniform * running[-1], side="right"), len(ids) - 1)])


# --- state ------------------------------------------------------------------------------------------------------------
@_stateful
def state_read(states: ArrayStates, a: Attrs, rows: Array) -> Result:
    _check_rows("state_read", rows, states, written=False)
    return (states.arrays[a["state"]][rows],)


@_stateful
def state_write(states: ArrayStates, a: Attrs, rows: Array, value: Array) -> Result:
    _check_rows("state_write", rows, states)
    states.arrays[a["state"]][rows] = value
    return ()
