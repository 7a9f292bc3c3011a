"""The opset: every operation a Program may use, in one table. Single source of names, attributes, shapes and meaning.

The NumPy backend (`backends/numpy`) gives each row its exact meaning; `tools/generate_opset.py` writes the C++ table
from this file. Axis letters: B rows of a batch, T time, C channels in, N channels out, K kernel taps, H heads, D per
head. Activations are channels-last. Numbers are f32 unless a row says otherwise; ids, positions and counters are i32.

Steps. A *step list* is a chain of pointwise operations in text, `"affine 0 1 2; snake 3 4"`: register 0 is the subject,
registers 1.. are further operands, each step adds a register, the last is the result; `f0.5` is a literal. The fused op
`pointwise` and the prologues and epilogues of the dense ops are step lists (see `program/steps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sonant.errors import ProgramError
from sonant.program import shapes
from sonant.program.shapes import Signature

if TYPE_CHECKING:
    from sonant.program.program import Value

VERSION = 3
"""Opset version, written into every serialized Program and Plan."""

DTYPES = ("f32", "f16", "bf16", "q8", "i32", "i8")
"""For weights: q8, blocks of 32 along the last axis (the last one may be shorter), integers from -127 to 127 with one
f16 scale, the largest magnitude / 127; i8, the same with the whole last axis as one block and its scale in f32."""

Rule = Callable[[Sequence["Value | None"], dict[str, Any]], list[Signature]]


@dataclass(frozen=True)
class Attr:
    """One attribute: its kind (int, float, str, dim, dims, ints, steps, program) and default, if any."""

    kind: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class Op:
    """One row: `inputs` names every operand in order (`?` optional, `*` any number, last)."""

    name: str
    inputs: tuple[str, ...]
    rule: Rule
    meaning: str
    attrs: dict[str, Attr] = field(default_factory=dict)
    pointwise: bool = False
    effect: bool = False


REQUIRED_INT = Attr("int", required=True)
REQUIRED_STR = Attr("str", required=True)
OPS: dict[str, Op] = {}


def _op(signature: str, rule: Rule, meaning: str, **options: Any) -> None:
    name, inputs = signature.split("(")
    operands = tuple(i.strip() for i in inputs.rstrip(")").split(",") if i.strip())
    flags = {k: options.pop(k) for k in ("pointwise", "effect") if k in options}
    OPS[name] = Op(name, operands, rule, meaning, options, **flags)


def op(name: str) -> Op:
    if name not in OPS:
        raise ProgramError(f"no op {name!r} in opset version {VERSION}")
    return OPS[name]


# --- dense ------------------------------------------------------------------------------------------------------------
# w is a weight of the Program, which backends pack. prologue: steps on x (register 0), before padding. epilogue: steps
# on the biased result. n_pro says how many of the `fused` operands belong to the prologue. precision "bf16" rounds the
# (prologued) x to bf16 before the products; "int8", for q8 weights, rounds each block of 32 channels of a row of x to
# integers times the block's largest magnitude / 127 (f32); "int8_row", for i8 weights, does so with all channels of a
# group as one block. Sums are f32, of exact integers within a block (at a tap).
DENSE = {"prologue": Attr("steps", ""), "epilogue": Attr("steps", ""), "n_pro": Attr("int", 0),
         "precision": Attr("str", "f32")}

_op("linear(x, w, bias?, fused*)", shapes.linear,
    "y[..., n] = sum_c x[..., c] w[n, c] + bias[n]", **DENSE)
_op("conv1d(x, w, bias?, rows?, fused*)", shapes.conv1d,
    "y[b, t, n] = sum_kc x[b, t*stride + k*dilation - pad_left, c] w[n, k, c] + bias[n]; outside x counts as "
    "zero. With a state (kind context, (K-1)*dilation+1-stride rows) the rows before x come from, and the last ones "
    "return to, the slots named by rows[B], each once; T is then a multiple of stride",
    stride=Attr("int", 1), dilation=Attr("int", 1), pad_left=Attr("int", 0), pad_right=Attr("int", 0),
    groups=Attr("int", 1), state=Attr("str", ""), **DENSE)
_op("conv_transpose1d(x, w, bias?, rows?, fused*)", shapes.conv_transpose1d,
    "y[b, t*stride + k - trim_left, n] += x[b, t, c] w[n, k, c]; + bias; length (T-1)*stride + K - trim_left - "
    "trim_right. With a state (kind context, the last (K-1)//stride inputs) the length is T*stride, without trims",
    stride=Attr("int", 1), trim_left=Attr("int", 0), trim_right=Attr("int", 0), groups=Attr("int", 1),
    state=Attr("str", ""), **DENSE)
_op("embedding(ids, table)", shapes.embedding, "y[..., :] = table[ids[...], :]; an id outside the table is an error")
_op("lstm(x, w_ih, w_hh, bias)", shapes.lstm,
    "D directions (the second reads time backwards), gates i f g o, zero initial state; w_ih [D,4H,C], w_hh [D,4H,H], "
    "bias [D,4H]; y [B,T,D*H]")
_op("attention(q, k, v, rows?, position?)", shapes.attention,
    "softmax(q k^T * scale) v per head; mask none | causal (a query sees keys at or before its own position) and, with "
    "window > 0, only the last `window` of them. With states (kind kv) k and v are first written at position[b]..+T of "
    "the slots rows[b] and the keys are all those so far. In states of kind ring position p lies at p % capacity, "
    "capacity >= T + window - 1",
    heads=REQUIRED_INT, kv_heads=Attr("int", 0), scale=Attr("float", required=True), mask=Attr("str", "none"),
    window=Attr("int", 0), state_k=Attr("str", ""), state_v=Attr("str", ""))

_op("attention_weights(q, keys, rows)", shapes.attention_weights,
    "softmax over n of q_h . k[keys[b, n]] * scale for the heads h in `head_ids`, in y [B,T,len(head_ids),N]; k is the "
    "state_k (kind kv) of the slots rows[b] as the attention before has left it, keys are its positions; a key below "
    "zero is left out and gives 0",
    head_ids=Attr("ints", required=True), heads=REQUIRED_INT, kv_heads=Attr("int", 0),
    scale=Attr("float", required=True), state_k=REQUIRED_STR)
_op("rope_table(position)", shapes.rope_table,
    "y[b, t] = cos(a_i) for i < size/2, then sin(a_i); a_i = (position[b] + t) * theta^(-2i/size), rounded once",
    length=Attr("dim", required=True), size=REQUIRED_INT, theta=Attr("float", 10000.0))
_op("rope(x, table)", shapes.rope,
    "rotates the pairs (u, v) of each head of x [B,T,heads*size]: (u cos - v sin, u sin + v cos); pair i is channels "
    "2i, 2i+1 (layout interleaved) or i, i + size/2 (halves)",
    heads=REQUIRED_INT, layout=Attr("str", "interleaved"))

# --- norms ------------------------------------------------------------------------------------------------------------
_op("layer_norm(x, weight?, bias?)", shapes.layer_norm, "over the last axis, biased variance", eps=Attr("float", 1e-5))
_op("instance_affine(x, gamma, beta)", shapes.instance_affine,
    "the (scale, shift) [B,1,C] for which affine(x, scale, shift) = (1+gamma) * (x - mean_t) / sqrt(var_t + eps) + "
    "beta; biased variance over time", eps=Attr("float", 1e-5))

# --- pointwise --------------------------------------------------------------------------------------------------------
for _name, _meaning in (("add", "a + b"), ("sub", "a - b"), ("mul", "a * b"), ("div", "a / b (f32)"),
                        ("minimum", "min(a, b)"), ("maximum", "max(a, b)"), ("greater", "1 if a > b else 0"),
                        ("equal", "1 if a == b else 0"), ("atan2", "angle of (b, a), a = sin part, in (-pi, pi]")):
    _op(f"{_name}(a, b)", shapes.broadcast, _meaning, pointwise=True)
for _name, _meaning in (("exp", "e^x"), ("log", "natural logarithm"), ("sin", "sine, x in radians"), ("cos", "cosine"),
                        ("tanh", ""), ("sigmoid", "1 / (1 + e^-x)"), ("relu", "max(x, 0)"), ("silu", "x sigmoid(x)"),
                        ("gelu", "x Phi(x), exact"), ("gelu_tanh", "the tanh form of gelu"),
                        ("elu", "x if x > 0 else e^x - 1"), ("sqrt", ""), ("abs", ""),
                        ("floor", ""), ("round", "half to even")):
    _op(f"{_name}(x)", shapes.same, _meaning, pointwise=True)
_op("leaky_relu(x)", shapes.same, "x if x > 0 else slope * x", pointwise=True, slope=Attr("float", required=True))
_op("snake(x, alpha)", shapes.broadcast, "x + sin(alpha x)^2 / alpha", pointwise=True)
_op("affine(x, scale, shift)", shapes.broadcast, "x * scale + shift", pointwise=True)
_op("where(c, a, b)", shapes.broadcast, "a where c is not zero, b elsewhere", pointwise=True)
_op("pointwise(x, rest*)", shapes.broadcast, "the step list on broadcast operands, register 0 = x",
    steps=Attr("steps", required=True))
_op("cast(x)", shapes.cast, "to dtype; f32 to i32 truncates toward zero", dtype=REQUIRED_STR)

# --- shape and time ---------------------------------------------------------------------------------------------------
_op("concat(xs*)", shapes.concat, "along axis", axis=REQUIRED_INT)
_op("slice(x)", shapes.slice_, "x[start:stop] along axis", axis=REQUIRED_INT, start=Attr("dim", 0),
    stop=Attr("dim", required=True))
_op("reshape(x)", shapes.reshape, "same elements, new shape", shape=Attr("dims", required=True))
_op("transpose(x)", shapes.transpose, "axes in the order perm", perm=Attr("ints", required=True))
_op("pad(x)", shapes.pad, "along axis, mode zero | reflect (edge not repeated) | edge (repeated)",
    axis=REQUIRED_INT, left=Attr("int", 0), right=Attr("int", 0), mode=Attr("str", "zero"))
_op("gather(x, index)", shapes.gather, "y[b, t, :] = x[b, index[b, t], :]")
_op("expand(x)", shapes.expand, "broadcast axes of size 1 to shape", shape=Attr("dims", required=True))
_op("interpolate(x)", shapes.interpolate,
    "time axis times `factor`; mode nearest (repeat) | linear (half-pixel centres, edges held)", factor=REQUIRED_INT,
    mode=Attr("str", "nearest"))
_op("cumsum_turns(x)", shapes.interpolate,
    "phase in turns, wrapped to [0, 1): x[b, t, c] turns per sample, held for `factor` samples, summed over frames in "
    "32-bit fixed point (exact in any order), linear between frame centres", factor=Attr("int", 1))
_op("sum(x)", shapes.reduce, "over axis (kept with size 1)", axis=REQUIRED_INT)
_op("mean(x)", shapes.reduce, "over axis (kept with size 1)", axis=REQUIRED_INT)
_op("max(x)", shapes.reduce, "over axis (kept with size 1)", axis=REQUIRED_INT)

# --- signal -----------------------------------------------------------------------------------------------------------
_op("stft(x)", shapes.stft,
    "x [B,S] -> [B, S//hop + 1, 2*(n_fft//2+1)], real parts then imaginary; periodic Hann window, centred, reflect "
    "edges",
    n_fft=REQUIRED_INT, hop=REQUIRED_INT)
_op("istft(x)", shapes.istft,
    "the inverse of stft: windowed overlap-add divided by the window-square sum, centre trimmed; (F-1)*hop samples",
    n_fft=REQUIRED_INT, hop=REQUIRED_INT)

# --- random and sampling ----------------------------------------------------------------------------------------------
_op("randn(seed, frame)", shapes.randn,
    "normal numbers [B,T,C] from Philox4x32-10: key = seed[b] (i32 [B,2]), counter = (frame[b] + t, site, c // 4, 0); "
    "Box-Muller on lanes (0,1) and (2,3)", length=Attr("dim", required=True), channels=REQUIRED_INT, site=REQUIRED_INT)
_op("sample(logits, temperature, top_k, top_p, seed, frame)", shapes.sample,
    "one id per row: logits / temperature, the top_k largest (0 = all), of those the smallest set whose probability "
    "reaches top_p, then one uniform Philox draw (counter (frame, site, 0, 0)) against the running sum in id order; "
    "temperature 0 takes the largest", site=REQUIRED_INT)

# --- state and loops --------------------------------------------------------------------------------------------------
_op("state_read(rows)", shapes.state_read, "the values of a state for the slots rows[B]", state=REQUIRED_STR)
_op("state_write(rows, value)", shapes.state_write, "set a state for the slots rows[B], each named once",
    state=REQUIRED_STR, effect=True)
_op("loop(operands*)", shapes.loop,
    "run `body` up to `trips` times. operands: n_carry initial carries, then invariants. The body's inputs are the "
    "carries, the invariants and `step` (i32 [1]); its outputs the next carries, a done flag if has_done (stops when "
    "all are non-zero), then values to stack. Results: final carries, stacked values [trips, ...] (zero after the "
    "stop), steps run (i32 [1])",
    body=Attr("program", required=True), n_carry=REQUIRED_INT, trips=Attr("dim", required=True),
    has_done=Attr("int", 0), effect=True)

DENSE_FUSED_AT = {name: row.inputs.index("fused*") for name, row in OPS.items() if "fused*" in row.inputs}
"""Where the operands of prologue and epilogue begin in each dense op."""
