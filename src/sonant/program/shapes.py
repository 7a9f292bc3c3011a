"""Shape and dtype rules, one per kind of op; called while a Program is recorded and again when it is verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sonant.errors import ProgramError
from sonant.program.dims import Dim, DimLike, simplify

if TYPE_CHECKING:
    from sonant.program.program import Value

Shape = tuple[DimLike, ...]
Signature = tuple[Shape, str]
Inputs = Sequence["Value | None"]
Attrs = dict[str, Any]


def _value(v: Value | None) -> Value:
    if v is None:
        raise ProgramError("a required operand is missing")
    return v


def _has(inputs: Inputs, index: int) -> bool:
    return len(inputs) > index and inputs[index] is not None


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ProgramError(message)


def same_dim(a: DimLike, b: DimLike, what: str) -> None:
    require(Dim.of(a) == Dim.of(b), f"{what}: {a} is not {b}")


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    rank = max(len(s) for s in shapes)
    out: list[DimLike] = []
    for axis in range(rank):
        size: DimLike = 1
        for s in shapes:
            i = axis - rank + len(s)
            if i < 0 or s[i] == 1 or s[i] == size:
                continue
            require(size == 1, f"shapes {[tuple(map(str, s)) for s in shapes]} do not broadcast")
            size = s[i]
        out.append(size)
    return tuple(out)


def same(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    return [(x.shape, x.dtype)]


def broadcast(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    values = [_value(v) for v in inputs]
    dtypes = {v.dtype for v in values}
    require(len(dtypes) == 1, f"operands of one dtype wanted, got {sorted(dtypes)}")
    return [(broadcast_shapes([v.shape for v in values]), values[0].dtype)]


def pointwise(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    values = [_value(v) for v in inputs]
    return [(broadcast_shapes([v.shape for v in values]), values[0].dtype)]


def cast(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    require(attrs["dtype"] in ("f32", "i32"), f"cast to f32 or i32, not {attrs['dtype']!r}")
    return [(_value(inputs[0]).shape, attrs["dtype"])]


def linear(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, w = _value(inputs[0]), _value(inputs[1])
    require(len(w.shape) == 2, f"linear weight must be [N,C], got {w.shape_text}")
    same_dim(x.shape[-1], w.shape[1], "channels of x and of the linear weight")
    return [((*x.shape[:-1], w.shape[0]), "f32")]


def conv1d(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, w = _value(inputs[0]), _value(inputs[1])
    require(len(x.shape) == 3 and len(w.shape) == 3, f"conv1d wants x [B,T,C], w [N,K,C/groups]; got {x.shape_text} {w.shape_text}")
    b, t, c = x.shape
    n, k, cg = w.shape
    same_dim(c, Dim.of(cg) * attrs["groups"], "channels of x and groups * C/groups of the conv1d weight")
    reach = (int(k) - 1) * attrs["dilation"] + 1
    if attrs["state"]:
        require(attrs["pad_left"] == 0 == attrs["pad_right"], "a conv1d with a state takes its left rows from it: no padding")
        require(_has(inputs, 3), "a conv1d with a state needs rows")
        return [((b, simplify(Dim.of(t) // attrs["stride"]), n), "f32")]
    length = (Dim.of(t) + attrs["pad_left"] + attrs["pad_right"] - reach) // attrs["stride"] + 1
    return [((b, simplify(length), n), "f32")]


def conv_transpose1d(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, w = _value(inputs[0]), _value(inputs[1])
    require(len(x.shape) == 3 and len(w.shape) == 3, f"conv_transpose1d wants x [B,T,C], w [N,K,C/groups]; got {x.shape_text} {w.shape_text}")
    b, t, c = x.shape
    n, k, cg = w.shape
    same_dim(c, Dim.of(cg) * attrs["groups"], "channels of x and groups * C/groups of the conv_transpose1d weight")
    if attrs["state"]:
        require(attrs["trim_left"] == 0, "a conv_transpose1d with a state is causal: trim_left must be 0")
        require(_has(inputs, 3), "a conv_transpose1d with a state needs rows")
        return [((b, simplify(Dim.of(t) * attrs["stride"]), n), "f32")]
    length = (Dim.of(t) - 1) * attrs["stride"] + int(k) - attrs["trim_left"] - attrs["trim_right"]
    return [((b, simplify(length), n), "f32")]


def embedding(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    ids, table = _value(inputs[0]), _value(inputs[1])
    require(ids.dtype == "i32", f"embedding ids must be i32, got {ids.dtype}")
    return [((*ids.shape, table.shape[1]), "f32")]


def lstm(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, w_ih, w_hh, bias = (_value(v) for v in inputs)
    directions, gates, c = w_ih.shape
    hidden = w_hh.shape[2]
    same_dim(x.shape[2], c, "channels of x and of lstm w_ih")
    same_dim(gates, Dim.of(hidden) * 4, "rows of lstm w_ih and four gates")
    require(tuple(bias.shape) == (directions, gates), f"lstm bias must be [D,4H], got {bias.shape_text}")
    return [((x.shape[0], x.shape[1], simplify(Dim.of(directions) * hidden)), "f32")]


def attention(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    q, k, v = (_value(v) for v in inputs[:3])
    heads, kv_heads = attrs["heads"], attrs["kv_heads"] or attrs["heads"]
    require(attrs["mask"] in ("none", "causal"), f"attention mask must be none or causal, got {attrs['mask']!r}")
    same_dim(Dim.of(q.shape[2]) * kv_heads, Dim.of(k.shape[2]) * heads, "head sizes of q and k")
    same_dim(k.shape[2], v.shape[2], "channels of k and v")
    if attrs["state_k"]:
        require(_has(inputs, 3) and _has(inputs, 4), "attention with states needs rows and position")
    return [(q.shape, "f32")]


def instance_affine(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, gamma, beta = (_value(v) for v in inputs)
    for v in (gamma, beta):
        same_dim(v.shape[-1], x.shape[2], "channels of x and of gamma, beta")
    coefficients: Signature = ((x.shape[0], 1, x.shape[2]), "f32")
    return [coefficients, coefficients]


def concat(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    values = [_value(v) for v in inputs]
    axis, first = attrs["axis"], values[0]
    for v in values[1:]:
        require(v.dtype == first.dtype and len(v.shape) == len(first.shape), "concat wants equal dtypes and ranks")
        for i, (a, b) in enumerate(zip(v.shape, first.shape, strict=True)):
            if i != axis:
                same_dim(a, b, f"axis {i} of a concat along {axis}")
    total = sum((Dim.of(v.shape[axis]) for v in values), Dim.of(0))
    shape = list(first.shape)
    shape[axis] = simplify(total)
    return [(tuple(shape), first.dtype)]


def slice_(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    shape = list(x.shape)
    shape[attrs["axis"]] = simplify(Dim.of(attrs["stop"]) - attrs["start"])
    return [(tuple(shape), x.dtype)]


def reshape(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    return [(tuple(simplify(d) for d in attrs["shape"]), _value(inputs[0]).dtype)]


def transpose(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(sorted(attrs["perm"]) == list(range(len(x.shape))), f"perm {attrs['perm']} does not fit rank {len(x.shape)}")
    return [(tuple(x.shape[i] for i in attrs["perm"]), x.dtype)]


def pad(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(attrs["mode"] in ("zero", "reflect"), f"pad mode must be zero or reflect, got {attrs['mode']!r}")
    shape = list(x.shape)
    shape[attrs["axis"]] = simplify(Dim.of(shape[attrs["axis"]]) + attrs["left"] + attrs["right"])
    return [(tuple(shape), x.dtype)]


def gather(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, index = _value(inputs[0]), _value(inputs[1])
    require(index.dtype == "i32" and len(index.shape) == 2, f"gather index must be i32 [B,T], got {index.dtype} {index.shape_text}")
    return [((*index.shape, x.shape[2]), x.dtype)]


def interpolate(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(attrs.get("mode", "nearest") in ("nearest", "linear"), f"interpolate mode {attrs.get('mode')!r}")
    return [((x.shape[0], simplify(Dim.of(x.shape[1]) * attrs["factor"]), x.shape[2]), "f32")]


def reduce(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    shape = list(x.shape)
    shape[attrs["axis"]] = 1
    return [(tuple(shape), x.dtype)]


def stft(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    b, s = _value(inputs[0]).shape
    return [((b, simplify(Dim.of(s) // attrs["hop"] + 1), 2 * (attrs["n_fft"] // 2 + 1)), "f32")]


def istft(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    b, f, c = _value(inputs[0]).shape
    same_dim(c, 2 * (attrs["n_fft"] // 2 + 1), "channels of an istft input")
    return [((b, simplify((Dim.of(f) - 1) * attrs["hop"])), "f32")]


def randn(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    seed = _value(inputs[0])
    return [((seed.shape[0], simplify(Dim.of(attrs["length"])), attrs["channels"]), "f32")]


def sample(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    return [((_value(inputs[0]).shape[0],), "i32")]


def state_read(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    rows, spec = _value(inputs[0]), _value(inputs[0]).program.state(attrs["state"])
    return [((rows.shape[0], *spec.shape), spec.dtype)]


def nothing(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    return []


def loop(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    body, n_carry = attrs["body"], attrs["n_carry"]
    values = [_value(v) for v in inputs]
    require(len(body.inputs) == len(values) + 1, f"the loop body takes {len(body.inputs)} inputs, {len(values)} operands + step given")
    for inner, outer in zip(body.inputs, values, strict=False):
        require(inner.shape == outer.shape and inner.dtype == outer.dtype,
                f"loop operand {outer} does not fit body input {inner}")
    for inner, out in zip(body.inputs[:n_carry], body.outputs[:n_carry], strict=True):
        require(inner.shape == out.shape and inner.dtype == out.dtype, f"the carry {inner} comes back as {out}")
    stacked = body.outputs[n_carry + attrs["has_done"]:]
    trips = simplify(Dim.of(attrs["trips"]))
    return [*((v.shape, v.dtype) for v in values[:n_carry]), *(((trips, *v.shape), v.dtype) for v in stacked), ((1,), "i32")]
