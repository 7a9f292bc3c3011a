"""Functions that record one node each: the vocabulary in which layers and families are written.

Each takes Values (or Python numbers, which become constants) of one Program and returns the result Value; the meaning
of each is its row in `program/opset.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sonant.errors import ProgramError
from sonant.program.dims import DimLike
from sonant.program.program import Program, Value

Operand = Value | float | int


def _record(op: str, *operands: Operand | None, **attrs: Any) -> Value:
    return _record_all(op, *operands, **attrs)[0]


def _record_all(op: str, *operands: Operand | None, **attrs: Any) -> tuple[Value, ...]:
    values = [v for v in operands if isinstance(v, Value)]
    if not values:
        raise ProgramError(f"{op}: at least one operand must be a Value")
    program, dtype = values[0].program, values[0].dtype
    lifted = [_lift(program, v, dtype) for v in operands]
    while lifted and lifted[-1] is None:
        lifted.pop()
    return program.record(op, lifted, **attrs)


def _lift(program: Program, v: Operand | None, dtype: str) -> Value | None:
    if v is None or isinstance(v, Value):
        return v
    if dtype == "i32" and v != int(v):
        raise ProgramError(f"the number {v} meets an i32 operand: cast the operand to f32 first")
    return program.constant(int(v) if dtype == "i32" else float(v))


def linear(x: Value, w: Value, bias: Value | None = None, **attrs: Any) -> Value:
    return _record("linear", x, w, bias, **attrs)


def conv1d(x: Value, w: Value, bias: Value | None = None, *, rows: Value | None = None, **attrs: Any) -> Value:
    return _record("conv1d", x, w, bias, rows, **attrs)


def conv_transpose1d(x: Value, w: Value, bias: Value | None = None, *, rows: Value | None = None,
                     **attrs: Any) -> Value:
    return _record("conv_transpose1d", x, w, bias, rows, **attrs)


def embedding(ids: Value, table: Value) -> Value:
    return _record("embedding", ids, table)


def lstm(x: Value, w_ih: Value, w_hh: Value, bias: Value) -> Value:
    return _record("lstm", x, w_ih, w_hh, bias)


def attention(q: Value, k: Value, v: Value, *, rows: Value | None = None, position: Value | None = None,
              **attrs: Any) -> Value:
    return _record("attention", q, k, v, rows, position, **attrs)


def attention_weights(q: Value, keys: Value, rows: Value, **attrs: Any) -> Value:
    return _record("attention_weights", q, keys, rows, **attrs)


def rope_table(position: Value, *, length: DimLike, size: int, theta: float = 10000.0) -> Value:
    return _record("rope_table", position, length=length, size=size, theta=theta)


def rope(x: Value, table: Value, *, heads: int, layout: str = "interleaved") -> Value:
    return _record("rope", x, table, heads=heads, layout=layout)


def layer_norm(x: Value, weight: Value | None = None, bias: Value | None = None, *, eps: float = 1e-5) -> Value:
    return _record("layer_norm", x, weight, bias, eps=eps)


def instance_affine(x: Value, gamma: Value, beta: Value, *, eps: float = 1e-5) -> tuple[Value, Value]:
    scale, shift = _record_all("instance_affine", x, gamma, beta, eps=eps)
    return scale, shift


def add(a: Operand, b: Operand) -> Value:
    return _record("add", a, b)


def sub(a: Operand, b: Operand) -> Value:
    return _record("sub", a, b)


def mul(a: Operand, b: Operand) -> Value:
    return _record("mul", a, b)


def div(a: Operand, b: Operand) -> Value:
    return _record("div", a, b)


def minimum(a: Operand, b: Operand) -> Value:
    return _record("minimum", a, b)


def maximum(a: Operand, b: Operand) -> Value:
    return _record("maximum", a, b)


def greater(a: Operand, b: Operand) -> Value:
    return _record("greater", a, b)


def equal(a: Operand, b: Operand) -> Value:
    return _record("equal", a, b)


def atan2(a: Operand, b: Operand) -> Value:
    return _record("atan2", a, b)


def exp(x: Value) -> Value:
    return _record("exp", x)


def log(x: Value) -> Value:
    return _record("log", x)


def sin(x: Value) -> Value:
    return _record("sin", x)


def cos(x: Value) -> Value:
    return _record("cos", x)


def tanh(x: Value) -> Value:
    return _record("tanh", x)


def sigmoid(x: Value) -> Value:
    return _record("sigmoid", x)


def relu(x: Value) -> Value:
    return _record("relu", x)


def silu(x: Value) -> Value:
    return _record("silu", x)


def gelu(x: Value) -> Value:
    return _record("gelu", x)


def gelu_tanh(x: Value) -> Value:
    return _record("gelu_tanh", x)


def elu(x: Value) -> Value:
    return _record("elu", x)


def sqrt(x: Value) -> Value:
    return _record("sqrt", x)


def abs(x: Value) -> Value:
    return _record("abs", x)


def floor(x: Value) -> Value:
    return _record("floor", x)


def round(x: Value) -> Value:
    return _record("round", x)


def leaky_relu(x: Value, slope: float) -> Value:
    return _record("leaky_relu", x, slope=slope)


def snake(x: Value, alpha: Value) -> Value:
    return _record("snake", x, alpha)


def affine(x: Value, scale: Operand, shift: Operand) -> Value:
    return _record("affine", x, scale, shift)


def where(condition: Value, a: Operand, b: Operand) -> Value:
    return _record("where", condition, a, b)


def cast(x: Value, dtype: str) -> Value:
    return _record("cast", x, dtype=dtype)


def concat(values: Iterable[Value], axis: int) -> Value:
    return _record("concat", *values, axis=axis)


def slice(x: Value, axis: int, start: DimLike, stop: DimLike) -> Value:
    return _record("slice", x, axis=axis, start=start, stop=stop)


def reshape(x: Value, shape: Sequence[DimLike]) -> Value:
    return _record("reshape", x, shape=tuple(shape))


def transpose(x: Value, perm: Sequence[int]) -> Value:
    return _record("transpose", x, perm=tuple(perm))


def pad(x: Value, axis: int, left: int, right: int, mode: str = "zero") -> Value:
    return _record("pad", x, axis=axis, left=left, right=right, mode=mode)


def gather(x: Value, index: Value) -> Value:
    return _record("gather", x, index)


def expand(x: Value, shape: Sequence[DimLike]) -> Value:
    return _record("expand", x, shape=tuple(shape))


def interpolate(x: Value, factor: int, mode: str = "nearest") -> Value:
    return _record("interpolate", x, factor=factor, mode=mode)


def cumsum_turns(x: Value, factor: int = 1) -> Value:
    return _record("cumsum_turns", x, factor=factor)


def sum(x: Value, axis: int) -> Value:
    return _record("sum", x, axis=axis)


def mean(x: Value, axis: int) -> Value:
    return _record("mean", x, axis=axis)


def max(x: Value, axis: int) -> Value:
    return _record("max", x, axis=axis)


def stft(x: Value, n_fft: int, hop: int) -> Value:
    return _record("stft", x, n_fft=n_fft, hop=hop)


def istft(x: Value, n_fft: int, hop: int) -> Value:
    return _record("istft", x, n_fft=n_fft, hop=hop)


def randn(seed: Value, frame: Value, *, length: DimLike, channels: int, site: int) -> Value:
    return _record("randn", seed, frame, length=length, channels=channels, site=site)


def sample(logits: Value, temperature: Value, top_k: Value, top_p: Value,
           seed: Value, frame: Value, *, site: int) -> Value:
    return _record("sample", logits, temperature, top_k, top_p, seed, frame, site=site)


def state_read(rows: Value, state: str) -> Value:
    return _record("state_read", rows, state=state)


def state_write(rows: Value, value: Value, state: str) -> None:
    rows.program.record("state_write", (rows, value), state=state)


def loop(operands: Iterable[Value], body: Program, *, n_carry: int, trips: DimLike, has_done: bool = False,
         ) -> tuple[Value, ...]:
    """Final carries, then the stacked values, then the number of steps run."""
    values = tuple(operands)
    if not values:
        raise ProgramError("a loop wants at least one operand")
    for spec in body.states.values():
        values[0].program.add_state(spec.name, spec.kind, spec.shape, spec.dtype)
    for name, weight in body.weights.items():
        values[0].program.weight(name, weight.shape, weight.dtype)  # type: ignore[arg-type]
    return _record_all("loop", *values, body=body, n_carry=n_carry, trips=trips, has_done=int(has_done))
