"""Shape and dtype rules, one per kind of op; called while a Program is recorded and again when it is verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sonant.errors import ProgramError
from sonant.program.dims import Dim, DimLike, product, simplify

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


def _at(inputs: Inputs, index: int) -> Value | None:
    return inputs[index] if index < len(inputs) else None


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ProgramError(message)


def same_dim(a: DimLike, b: DimLike, what: str) -> None:
    require(Dim.of(a) == Dim.of(b), f"{what}: {a} is not {b}")


def _fits(v: Value | None, what: str, dtype: str, *shape: DimLike | str) -> None:
    """A str in `shape` is an axis letter: any size."""
    if v is None:
        raise ProgramError(f"{what} is missing")
    fits = len(v.shape) == len(shape) and all(isinstance(s, str) or Dim.of(d) == s
                                              for d, s in zip(v.shape, shape, strict=True))
    require(fits and v.dtype == dtype,
            f"{what} must be {dtype} [{', '.join(map(str, shape))}], got {v.dtype} {v.shape_text}")


def _is_weight(w: Value, what: str) -> None:
    """Backends pack what dense ops multiply with, once and ahead of a run."""
    require(w.kind == "weight",
            f"{what} must be a weight of the Program (inside a loop body too), got the {w.kind} {w}")


def _axis(x: Value, axis: int) -> int:
    require(0 <= axis < len(x.shape), f"axis {axis} is not one of {x.shape_text}")
    return axis


def _at_least(attrs: Attrs, least: int, *names: str) -> None:
    for name in names:
        require(attrs[name] >= least, f"{name} must be {least} or more, got {attrs[name]}")


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


def cast(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    require(attrs["dtype"] in ("f32", "i32"), f"cast to f32 or i32, not {attrs['dtype']!r}")
    return [(_value(inputs[0]).shape, attrs["dtype"])]


PRECISIONS = ("f32", "bf16", "int8", "int8_row")
"""Arithmetic of the products of a dense op."""


def _dense(inputs: Inputs, attrs: Attrs, what: str) -> tuple[Value, Value]:
    """x and w, with what all dense ops have in common checked."""
    x, w = _value(inputs[0]), _value(inputs[1])
    require(x.dtype == "f32" and len(x.shape) >= 1, f"{what} wants x in f32, got {x}")
    _is_weight(w, f"the weight of {what}")
    if _at(inputs, 2) is not None:
        _fits(inputs[2], f"the bias of {what}", "f32", w.shape[0])
    precision = attrs["precision"]
    require(precision in PRECISIONS, f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
    require(precision != "int8" or w.dtype == "q8", f"precision int8 is for q8 weights, got {w}")
    require((precision == "int8_row") == (w.dtype == "i8"), 
            f"precision int8_row and i8 weights go together, got {precision} and {w}")
    _at_least(attrs, 0, "n_pro")
    return x, w


def linear(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, w = _dense(inputs, attrs, "linear")
    require(len(w.shape) == 2, f"linear weight must be [N,C], got {w.shape_text}")
    same_dim(x.shape[-1], w.shape[1], "channels of x and of the linear weight")
    return [((*x.shape[:-1], w.shape[0]), "f32")]


def _convolution(inputs: Inputs, attrs: Attrs, what: str) -> tuple[Value, int, int]:
    """x, channels out and kernel size."""
    x, w = _dense(inputs, attrs, what)
    require(len(x.shape) == 3 and len(w.shape) == 3,
            f"{what} wants x [B,T,C], w [N,K,C/groups]; got {x.shape_text} {w.shape_text}")
    _at_least(attrs, 1, "stride", "groups")
    n, k, per_group = map(int, w.shape)
    same_dim(x.shape[2], per_group * attrs["groups"], f"channels of x and groups * C/groups of the {what} weight")
    require(n % attrs["groups"] == 0, f"{n} channels out do not split into {attrs['groups']} groups")
    return x, n, k


def _context(inputs: Inputs, attrs: Attrs, x: Value, rows: int) -> None:
    """The state of a streamed convolution: its last `rows` inputs."""
    spec = x.program.state(attrs["state"])
    require(rows >= 0 and spec.shape == (rows, int(x.shape[2])) and spec.kind == "context" and spec.dtype == "f32",
            f"its state must be of kind context and f32 [{rows}, {x.shape[2]}], got {spec}")
    _fits(_at(inputs, 3), "rows, which go with a state,", "i32", x.shape[0])


def conv1d(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, n, k = _convolution(inputs, attrs, "conv1d")
    _at_least(attrs, 1, "dilation")
    _at_least(attrs, 0, "pad_left", "pad_right")
    reach = (k - 1) * attrs["dilation"] + 1
    if attrs["state"]:
        require(attrs["pad_left"] == 0 == attrs["pad_right"],
                "a conv1d with a state takes its left rows from it: no padding")
        _context(inputs, attrs, x, reach - attrs["stride"])
        return [((x.shape[0], simplify(Dim.of(x.shape[1]) // attrs["stride"]), n), "f32")]
    length = (Dim.of(x.shape[1]) + attrs["pad_left"] + attrs["pad_right"] - reach) // attrs["stride"] + 1
    return [((x.shape[0], simplify(length), n), "f32")]


def conv_transpose1d(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, n, k = _convolution(inputs, attrs, "conv_transpose1d")
    if attrs["state"]:
        require(attrs["trim_left"] == 0 == attrs["trim_right"], "a conv_transpose1d with a state is causal: no trim")
        _context(inputs, attrs, x, (k - 1) // attrs["stride"])
        return [((x.shape[0], simplify(Dim.of(x.shape[1]) * attrs["stride"]), n), "f32")]
    _at_least(attrs, 0, "trim_left")  # trim_right below zero adds rows, as output_padding does
    length = (Dim.of(x.shape[1]) - 1) * attrs["stride"] + k - attrs["trim_left"] - attrs["trim_right"]
    return [((x.shape[0], simplify(length), n), "f32")]


def embedding(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    ids, table = _value(inputs[0]), _value(inputs[1])
    require(ids.dtype == "i32", f"embedding ids must be i32, got {ids.dtype}")
    require(len(table.shape) == 2, f"an embedding table must be [N,C], got {table.shape_text}")
    return [((*ids.shape, table.shape[1]), "f32")]


def lstm(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, w_ih, w_hh, bias = (_value(v) for v in inputs)
    require(len(x.shape) == len(w_ih.shape) == len(w_hh.shape) == 3,
            "lstm wants x [B,T,C], w_ih [D,4H,C], w_hh [D,4H,H]; "
            f"got {x.shape_text} {w_ih.shape_text} {w_hh.shape_text}")
    _is_weight(w_ih, "w_ih of lstm")
    _is_weight(w_hh, "w_hh of lstm")
    directions, gates, c = w_ih.shape
    hidden = w_hh.shape[2]
    require("i8" not in (w_ih.dtype, w_hh.dtype), "an lstm multiplies floats; i8 weights are for precision int8_row")
    same_dim(x.shape[2], c, "channels of x and of lstm w_ih")
    same_dim(gates, Dim.of(hidden) * 4, "rows of lstm w_ih and four gates")
    require(w_hh.shape[:2] == (directions, gates), f"lstm w_hh must be [D,4H,H], got {w_hh.shape_text}")
    require(directions in (1, 2), f"an lstm has one or two directions, not {directions}")
    _fits(bias, "the bias of lstm", "f32", directions, gates)
    return [((x.shape[0], x.shape[1], simplify(Dim.of(directions) * hidden)), "f32")]


def attention(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    q, k, v = (_value(v) for v in inputs[:3])
    _at_least(attrs, 1, "heads")
    _at_least(attrs, 0, "kv_heads", "window")
    heads, kv_heads = attrs["heads"], attrs["kv_heads"] or attrs["heads"]
    require(attrs["mask"] in ("none", "causal"), f"attention mask must be none or causal, got {attrs['mask']!r}")
    require(len(q.shape) == len(k.shape) == 3, f"attention wants q, k, v [B,T,C]; got {q.shape_text} {k.shape_text}")
    require(heads % kv_heads == 0, f"{heads} heads are not a multiple of {kv_heads} kv_heads")
    require(int(q.shape[2]) % heads == 0, f"{q.shape[2]} channels do not split into {heads} heads")
    same_dim(Dim.of(q.shape[2]) * kv_heads, Dim.of(k.shape[2]) * heads, "head sizes of q and k")
    same_dim(q.shape[0], k.shape[0], "rows of q and k")
    _fits(v, "v", "f32", *k.shape)
    require(bool(attrs["state_k"]) == bool(attrs["state_v"]), "attention needs both state_k and state_v, or neither")
    if attrs["state_k"]:
        _kv_states(inputs, attrs, q, k)
    return [(q.shape, "f32")]


def _kv_states(inputs: Inputs, attrs: Attrs, q: Value, k: Value) -> None:
    same_dim(q.shape[1], k.shape[1], "time of q and k, which go into states together")
    specs = [q.program.state(attrs[name]) for name in ("state_k", "state_v")]
    require(attrs["state_k"] != attrs["state_v"], "state_k and state_v must be two states")
    for spec in specs:
        require(spec.kind in ("kv", "ring") and spec.kind == specs[0].kind and spec.dtype == "f32"
                and spec.shape == (specs[0].shape[0], int(k.shape[2])),
                f"the states of attention must be both kv or both ring, f32 [capacity, {k.shape[2]}]; got {spec}")
    require(specs[0].kind == "kv" or (attrs["mask"] == "causal" and 0 < attrs["window"] <= specs[0].shape[0]),
            "ring states want a causal mask and a window within their capacity")
    _fits(_at(inputs, 3), "rows, which go with states,", "i32", q.shape[0])
    _fits(_at(inputs, 4), "position, which goes with states,", "i32", q.shape[0])


def attention_weights(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    q, keys = _value(inputs[0]), _value(inputs[1])
    heads, kv_heads = attrs["heads"], attrs["kv_heads"] or attrs["heads"]
    _fits(q, "q", "f32", "B", "T", "C")
    _fits(keys, "keys", "i32", q.shape[0], "N")
    _fits(_at(inputs, 2), "rows", "i32", q.shape[0])
    require(heads >= 1 and heads % kv_heads == 0, f"{heads} heads are not a multiple of {kv_heads} kv_heads")
    require(int(q.shape[2]) % heads == 0, f"{q.shape[2]} channels do not split into {heads} heads")
    require(bool(attrs["head_ids"]) and all(0 <= h < heads for h in attrs["head_ids"]),
            f"head_ids must name some of the {heads} heads, got {list(attrs['head_ids'])}")
    spec, channels = q.program.state(attrs["state_k"]), int(q.shape[2]) // heads * kv_heads
    require(spec.kind == "kv" and spec.dtype == "f32" and len(spec.shape) == 2 and spec.shape[1] == channels,
            f"state_k must be of kind kv and f32 [capacity, {channels}], got {spec}")
    return [((q.shape[0], q.shape[1], len(attrs["head_ids"]), keys.shape[1]), "f32")]


def rope_table(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    position = _value(inputs[0])
    _fits(position, "position", "i32", "B")
    require(attrs["size"] >= 2 and attrs["size"] % 2 == 0, f"size must be even, got {attrs['size']}")
    require(attrs["theta"] > 0, f"theta must be positive, got {attrs['theta']}")
    return [((position.shape[0], simplify(Dim.of(attrs["length"])), attrs["size"]), "f32")]


def rope(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, table = _value(inputs[0]), _value(inputs[1])
    _fits(x, "x", "f32", "B", "T", "C")
    _at_least(attrs, 1, "heads")
    require(attrs["layout"] in ("interleaved", "halves"),
            f"rope layout must be interleaved or halves, got {attrs['layout']!r}")
    size, rest = divmod(int(x.shape[2]), attrs["heads"])
    require(rest == 0 and size % 2 == 0, f"{x.shape[2]} channels do not split into {attrs['heads']} even heads")
    _fits(table, "the table of rope", "f32", x.shape[0], x.shape[1], size)
    return [(x.shape, "f32")]


def layer_norm(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(len(x.shape) >= 1, "layer_norm wants an axis to work over, got a scalar")
    for i, what in ((1, "weight"), (2, "bias")):
        if _at(inputs, i) is not None:
            _fits(inputs[i], f"the {what} of layer_norm", "f32", x.shape[-1])
    return [(x.shape, x.dtype)]


def instance_affine(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, gamma, beta = (_value(v) for v in inputs)
    require(len(x.shape) == 3, f"instance_affine wants x [B,T,C], got {x.shape_text}")
    for v in (gamma, beta):
        require(len(v.shape) >= 1, "gamma and beta of instance_affine must be [C], [1,C] or [B,C]")
        same_dim(v.shape[-1], x.shape[2], "channels of x and of gamma, beta")
    coefficients: Signature = ((x.shape[0], 1, x.shape[2]), "f32")
    return [coefficients, coefficients]


def concat(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    values = [_value(v) for v in inputs]
    require(bool(values), "concat wants at least one operand")
    first = values[0]
    axis = _axis(first, attrs["axis"])
    for v in values[1:]:
        require(v.dtype == first.dtype and len(v.shape) == len(first.shape), "concat wants equal dtypes and ranks")
        for i, (a, b) in enumerate(zip(v.shape, first.shape, strict=True)):
            if i != axis:
                same_dim(a, b, f"axis {i} of a concat along {axis}")
    shape = list(first.shape)
    shape[axis] = simplify(sum((Dim.of(v.shape[axis]) for v in values), Dim.of(0)))
    return [(tuple(shape), first.dtype)]


def slice_(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    shape = list(x.shape)
    shape[_axis(x, attrs["axis"])] = simplify(Dim.of(attrs["stop"]) - attrs["start"])
    return [(tuple(shape), x.dtype)]


def reshape(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, shape = _value(inputs[0]), tuple(simplify(d) for d in attrs["shape"])
    same_dim(product(x.shape), product(shape), f"elements of {x.shape_text} and of the new shape")
    return [(shape, x.dtype)]


def expand(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, shape = _value(inputs[0]), tuple(simplify(d) for d in attrs["shape"])
    require(len(shape) >= len(x.shape), f"{x.shape_text} has more axes than it is expanded to")
    for d, wanted in zip(reversed(x.shape), reversed(shape), strict=False):
        require(d == 1 or Dim.of(d) == wanted, f"{x.shape_text} does not expand to [{', '.join(map(str, shape))}]")
    return [(shape, x.dtype)]


def transpose(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(sorted(attrs["perm"]) == list(range(len(x.shape))),
            f"perm {attrs['perm']} does not fit rank {len(x.shape)}")
    return [(tuple(x.shape[i] for i in attrs["perm"]), x.dtype)]


def pad(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(attrs["mode"] in ("zero", "reflect", "edge"),
            f"pad mode must be zero, reflect or edge, got {attrs['mode']!r}")
    _at_least(attrs, 0, "left", "right")
    shape, axis = list(x.shape), _axis(x, attrs["axis"])
    shape[axis] = simplify(Dim.of(shape[axis]) + attrs["left"] + attrs["right"])
    return [(tuple(shape), x.dtype)]


def gather(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, index = _value(inputs[0]), _value(inputs[1])
    require(len(x.shape) == 3, f"gather wants x [B,T,C], got {x.shape_text}")
    _fits(index, "gather index", "i32", x.shape[0], "T")
    return [((*index.shape, x.shape[2]), x.dtype)]


def interpolate(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    require(attrs.get("mode", "nearest") in ("nearest", "linear"),
            f"interpolate mode must be nearest or linear, got {attrs.get('mode')!r}")
    require(len(x.shape) == 3 and x.dtype == "f32", f"f32 [B,T,C] wanted, got {x}")
    _at_least(attrs, 1, "factor")
    return [((x.shape[0], simplify(Dim.of(x.shape[1]) * attrs["factor"]), x.shape[2]), "f32")]


def reduce(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    shape = list(x.shape)
    shape[_axis(x, attrs["axis"])] = 1
    return [(tuple(shape), x.dtype)]


def _bins(attrs: Attrs) -> int:
    _at_least(attrs, 2, "n_fft")
    _at_least(attrs, 1, "hop")
    return 2 * (int(attrs["n_fft"]) // 2 + 1)


def stft(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x, channels = _value(inputs[0]), _bins(attrs)
    _fits(x, "the signal of stft", "f32", "B", "S")
    return [((x.shape[0], simplify(Dim.of(x.shape[1]) // attrs["hop"] + 1), channels), "f32")]


def istft(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    x = _value(inputs[0])
    _fits(x, "the spectrum of istft", "f32", "B", "F", _bins(attrs))
    return [((x.shape[0], simplify((Dim.of(x.shape[1]) - 1) * attrs["hop"])), "f32")]


def randn(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    seed = _value(inputs[0])
    _fits(seed, "seed", "i32", "B", 2)
    _fits(inputs[1], "frame", "i32", seed.shape[0])
    _at_least(attrs, 1, "channels")
    return [((seed.shape[0], simplify(Dim.of(attrs["length"])), attrs["channels"]), "f32")]


def sample(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    logits = _value(inputs[0])
    _fits(logits, "logits", "f32", "B", "N")
    rows = logits.shape[0]
    for at, (what, dtype) in enumerate((("temperature", "f32"), ("top_k", "i32"), ("top_p", "f32")), 1):
        _fits(inputs[at], what, dtype, rows)
    _fits(inputs[4], "seed", "i32", rows, 2)
    _fits(inputs[5], "frame", "i32", rows)
    return [((rows,), "i32")]


def state_read(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    rows = _value(inputs[0])
    spec = rows.program.state(attrs["state"])
    _fits(rows, "rows", "i32", "B")
    return [((rows.shape[0], *spec.shape), spec.dtype)]


def state_write(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    rows, value = _value(inputs[0]), _value(inputs[1])
    spec = rows.program.state(attrs["state"])
    _fits(rows, "rows", "i32", "B")
    _fits(value, f"what goes into state {spec.name!r}", spec.dtype, rows.shape[0], *spec.shape)
    return []


def loop(inputs: Inputs, attrs: Attrs) -> list[Signature]:
    body, n_carry, n_plain = attrs["body"], attrs["n_carry"], attrs["n_carry"] + attrs["has_done"]
    values = [_value(v) for v in inputs]
    require(bool(values), "a loop wants at least one operand")
    require(attrs["has_done"] in (0, 1), f"has_done is 0 or 1, not {attrs['has_done']}")
    require(0 <= n_carry <= len(values), f"{n_carry} carries wanted, {len(values)} operands given")
    require(len(body.inputs) == len(values) + 1,
            f"the loop body takes {len(body.inputs)} inputs, {len(values)} operands + step given")
    require(len(body.outputs) >= n_plain, f"the loop body gives {len(body.outputs)} outputs, {n_plain} wanted at least")
    for inner, outer in zip(body.inputs[:-1], values, strict=True):
        require(inner.shape == outer.shape and inner.dtype == outer.dtype,
                f"loop operand {outer} does not fit body input {inner}")
    _fits(body.inputs[-1], "step, the last input of a loop body,", "i32", 1)
    for inner, out in zip(body.inputs[:n_carry], body.outputs[:n_carry], strict=True):
        require(inner.shape == out.shape and inner.dtype == out.dtype, f"the carry {inner} comes back as {out}")
    for spec in body.states.values():
        require(values[0].program.states.get(spec.name) == spec,
                f"the body's {spec} is not a state of the Program around it")
    for w in body.weights.values():
        found = values[0].program.weights.get(w.name)
        require(found is not None and (found.shape, found.dtype) == (w.shape, w.dtype),
                f"the body's weight {w} is not a weight of the Program around it")
    trips = simplify(Dim.of(attrs["trips"]))
    return [*((v.shape, v.dtype) for v in values[:n_carry]),
            *(((trips, *v.shape), v.dtype) for v in body.outputs[n_plain:]), ((1,), "i32")]
