"""The dense ops on the native backend: linear, conv1d, conv_transpose1d, lstm, attention."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from harness import Case, check

from sonant.backends.native import NativeBackend
from sonant.backends.numpy.ops import INT8_BLOCK, round_to_int8
from sonant.program import ops
from sonant.program.program import Program, StateSpec

ISAS = NativeBackend.isas()
INT8 = 1e-5
"""Integers are exact and the blocks are summed in f32 as elsewhere. A number whose last f32 bit differs before it is
rounded to an integer may round the other way; with these numbers none does, or only by an error as small."""
BF16 = 2e-5
"""Operands are rounded to bf16 alike on both sides; a prologue whose last f32 bit differs may round the other way."""


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.abs(normal(*shape, seed=seed)) + np.float32(0.1)


def fused(pro: list[np.ndarray], epi: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {**{f"pro{i}": a for i, a in enumerate(pro)}, **{f"epi{i}": a for i, a in enumerate(epi)}}


def dense(
    name: str,
    op: str,
    x: np.ndarray,
    w: np.ndarray,
    *,
    bias: bool = True,
    pro: list[np.ndarray] | None = None,
    epi: list[np.ndarray] | None = None,
    weight_dtype: str = "f32",
    tolerance: float = 1e-5,
    **attrs,
) -> Case:
    operands = fused(pro or [], epi or [])

    def build(p, x, w, b=None, **rest):
        gap = [] if op == "linear" else [None]
        if rest:
            attrs["n_pro"] = len(pro or [])
        values = [x, w, b, *gap, *rest.values()] if rest else [x, w, b]
        return p.record(op, values, **attrs)[0]

    weights = {"w": w, **({"b": normal(len(w), seed=9)} if bias else {})}
    return Case(
        f"{op} {name} {list(x.shape)} {list(w.shape)} {weight_dtype}",
        build,
        {"x": x, **operands},
        weights,
        weight_dtype,
        tolerance=tolerance,
    )


def scaled(*shape: int, seed: int = 1) -> np.ndarray:
    return normal(*shape, seed=seed, scale=1 / np.sqrt(np.prod(shape[1:])))


LINEAR = [
    *(
        dense("", "linear", normal(*x), scaled(n, x[-1]))
        for x, n in (
            ((1, 1, 1), 1),
            ((1, 1, 512), 512),
            ((2, 37, 64), 33),
            ((1, 5, 129), 100),
            ((3, 50, 31), 7),
            ((1, 200, 512), 2048),
            ((13, 40), 65),
            ((0, 8), 5),
        )
    ),
    dense("no bias", "linear", normal(2, 9, 20), scaled(40, 20), bias=False),
    *(dense("", "linear", normal(2, 19, 65), scaled(70, 65), weight_dtype=d) for d in ("f16", "bf16")),
    dense("bf16", "linear", normal(2, 19, 65), scaled(70, 65), weight_dtype="bf16", precision="bf16", tolerance=BF16),
    dense(
        "bf16 one row",
        "linear",
        normal(1, 1, 64),
        scaled(96, 64),
        weight_dtype="bf16",
        precision="bf16",
        tolerance=BF16,
    ),
    dense("gelu", "linear", normal(1, 30, 48), scaled(80, 48), epilogue="gelu 0"),
    dense("gelu_tanh", "linear", normal(1, 30, 48), scaled(80, 48), epilogue="gelu_tanh 0"),
    dense("residual", "linear", normal(2, 30, 48), scaled(48, 48), epi=[normal(2, 30, 48, seed=4)], epilogue="add 0 1"),
    dense(
        "gated",
        "linear",
        normal(2, 30, 48),
        scaled(40, 48),
        epi=[normal(2, 30, 40, seed=4), normal(2, 1, 40, seed=5)],
        epilogue="silu 0; mul 3 1; mul 4 2",
    ),
    dense(
        "modulated",
        "linear",
        normal(2, 30, 48),
        scaled(40, 48),
        pro=[normal(2, 1, 48, seed=4), normal(2, 1, 48, seed=5)],
        prologue="affine 0 1 2",
    ),
]

CONV = [
    *(
        dense("", "conv1d", normal(*x), scaled(*w), **a)
        for x, w, a in (
            ((1, 1, 1), (1, 1, 1), {}),
            ((2, 50, 16), (40, 3, 16), {"pad_left": 1, "pad_right": 1}),
            ((1, 100, 128), (128, 7, 128), {"pad_left": 3, "pad_right": 3}),
            ((1, 300, 33), (65, 11, 33), {"dilation": 5, "pad_left": 25, "pad_right": 25}),
            ((2, 300, 40), (70, 3, 40), {"pad_left": 1, "pad_right": 1}),
            ((1, 700, 64), (40, 7, 64), {"dilation": 3, "pad_left": 18}),
            ((2, 61, 20), (30, 4, 20), {"stride": 3, "pad_left": 1}),
            ((1, 7, 5), (3, 7, 5), {}),
            ((1, 500, 1), (64, 12, 1), {"stride": 6, "pad_left": 3, "pad_right": 3}),
            ((1, 90, 64), (1, 7, 64), {"pad_left": 3, "pad_right": 3}),
            ((2, 40, 64), (96, 3, 16), {"groups": 4, "pad_left": 2}),
            ((2, 77, 45), (45, 5, 1), {"groups": 45, "pad_left": 2, "pad_right": 2}),
            ((1, 40, 8), (16, 3, 1), {"groups": 8, "pad_left": 1, "pad_right": 1}),
            ((1, 3, 24), (24, 11, 24), {"dilation": 3, "pad_left": 15, "pad_right": 15}),
            ((1, 64, 70), (32, 1, 70), {"stride": 2}),
        )
    ),
    dense("no bias", "conv1d", normal(1, 40, 32), scaled(22, 7, 32), bias=False, pad_left=3, pad_right=3),
    *(
        dense("", "conv1d", normal(2, 41, 31), scaled(50, 3, 31), weight_dtype=d, pad_left=1, pad_right=1)
        for d in ("f16", "bf16")
    ),
    dense(
        "bf16",
        "conv1d",
        normal(2, 41, 31),
        scaled(50, 3, 31),
        weight_dtype="bf16",
        precision="bf16",
        tolerance=BF16,
        pad_left=1,
        pad_right=1,
    ),
    dense(
        "leaky", "conv1d", normal(1, 60, 48), scaled(40, 3, 48), prologue="leaky_relu 0 f0.1", pad_left=1, pad_right=1
    ),
    dense(
        "adain snake",
        "conv1d",
        normal(2, 60, 48),
        scaled(48, 3, 48),
        pro=[normal(2, 1, 48, seed=4), normal(2, 1, 48, seed=5), positive(48)],
        prologue="affine 0 1 2; snake 4 3",
        dilation=3,
        pad_left=3,
        pad_right=3,
        epi=[normal(2, 60, 48, seed=6)],
        epilogue="add 0 1",
    ),
    dense(
        "adain leaky",
        "conv1d",
        normal(2, 60, 48),
        scaled(48, 3, 48),
        pro=[normal(2, 1, 48, seed=4), normal(2, 1, 48, seed=5)],
        prologue="affine 0 1 2; leaky_relu 3 f0.2",
        pad_left=1,
        pad_right=1,
        epi=[normal(2, 60, 48, seed=6)],
        epilogue="add 0 1; mul 2 f0.7071",
    ),
    dense(
        "depthwise silu",
        "conv1d",
        normal(1, 50, 32),
        scaled(32, 5, 1),
        groups=32,
        pad_left=2,
        pad_right=2,
        epilogue="silu 0",
    ),
    dense(
        "mixed",
        "conv1d",
        normal(1, 50, 32),
        scaled(20, 3, 32),
        pro=[normal(1, 50, 1, seed=3)],
        prologue="mul 0 1; tanh 2; add 3 f0.5",
        pad_left=2,
        epi=[normal(20, seed=3)],
        epilogue="exp 0; mul 2 1; sin 3",
    ),
]

TRANSPOSE = [
    *(
        dense("", "conv_transpose1d", normal(*x), scaled(*w), **a)
        for x, w, a in (
            ((1, 1, 1), (1, 1, 1), {}),
            ((2, 30, 24), (20, 4, 24), {"stride": 2, "trim_left": 1, "trim_right": 1}),
            ((1, 40, 64), (33, 20, 64), {"stride": 10, "trim_left": 5, "trim_right": 5}),
            ((1, 50, 32), (64, 12, 32), {"stride": 6, "trim_left": 3, "trim_right": 3}),
            ((1, 9, 7), (5, 3, 7), {"stride": 5}),
            ((2, 21, 40), (40, 3, 1), {"stride": 2, "groups": 40, "trim_left": 1}),
            ((2, 21, 16), (24, 5, 4), {"stride": 3, "groups": 4}),
            ((1, 10, 6), (8, 7, 6), {"stride": 1, "trim_left": 3, "trim_right": 3}),
        )
    ),
    *(
        dense(
            "",
            "conv_transpose1d",
            normal(1, 20, 31),
            scaled(40, 6, 31),
            weight_dtype=d,
            stride=3,
            trim_left=1,
            trim_right=2,
        )
        for d in ("f16", "bf16")
    ),
    dense(
        "bf16",
        "conv_transpose1d",
        normal(1, 20, 32),
        scaled(40, 6, 32),
        weight_dtype="bf16",
        precision="bf16",
        tolerance=BF16,
        stride=3,
    ),
    dense(
        "leaky",
        "conv_transpose1d",
        normal(1, 30, 32),
        scaled(16, 4, 32),
        prologue="leaky_relu 0 f0.1",
        stride=2,
        trim_left=1,
        trim_right=1,
        epi=[normal(1, 60, 16, seed=3)],
        epilogue="add 0 1",
    ),
]


def recurrent(b: int, t: int, c: int, h: int, d: int, dtype: str = "f32") -> Case:
    return Case(
        f"lstm {b} {t} {c} {h} {d} {dtype}",
        lambda p, x, w_ih, w_hh, bias: ops.lstm(x, w_ih, w_hh, bias),
        {"x": normal(b, t, c)},
        {
            "w_ih": normal(d, 4 * h, c, scale=c**-0.5),
            "w_hh": normal(d, 4 * h, h, seed=1, scale=h**-0.5),
            "bias": normal(d, 4 * h, seed=2),
        }
        if dtype == "f32"
        else {
            "w_ih": normal(d, 4 * h, c, scale=c**-0.5),
            "w_hh": normal(d, 4 * h, h, seed=1, scale=h**-0.5),
            "bias": np.zeros((d, 4 * h), np.float32),
        },
        dtype,
    )


LSTM = [
    recurrent(1, 1, 3, 4, 1),
    recurrent(2, 40, 65, 32, 2),
    recurrent(1, 60, 128, 256, 2),
    recurrent(3, 9, 7, 5, 2),
    recurrent(1, 30, 64, 33, 2),
]


def attend(b: int, t: int, keys: int, heads: int, kv: int, size: int, **attrs) -> Case:
    def build(p, q, k, v):
        return ops.attention(q, k, v, heads=heads, kv_heads=kv, scale=size**-0.5, **attrs)

    return Case(
        f"attention {b} {t} {keys} {heads} {kv} {size} {attrs}",
        build,
        {
            "q": normal(b, t, heads * size, scale=2),
            "k": normal(b, keys, (kv or heads) * size, seed=1),
            "v": normal(b, keys, (kv or heads) * size, seed=2),
        },
    )


CACHE = (StateSpec("k", "kv", (50, 32)), StateSpec("v", "kv", (50, 32)))


def cached(t: int, positions: list[int], **attrs) -> Case:
    b = len(positions)

    def build(p, q, k, v, rows, position):
        return ops.attention(
            q,
            k,
            v,
            rows=rows,
            position=position,
            heads=4,
            kv_heads=2,
            scale=0.25,
            mask="causal",
            state_k="k",
            state_v="v",
            **attrs,
        )

    return Case(
        f"attention cached {t} {positions} {attrs}",
        build,
        {
            "q": normal(b, t, 64),
            "k": normal(b, t, 32, seed=1),
            "v": normal(b, t, 32, seed=2),
            "rows": np.arange(b, dtype=np.int32)[::-1].copy() + 1,
            "position": np.array(positions, np.int32),
        },
        states=CACHE,
        n_rows=4,
    )


ATTENTION = [
    attend(1, 1, 1, 1, 0, 4),
    attend(2, 50, 50, 4, 0, 16),
    attend(1, 130, 130, 12, 0, 64),
    attend(2, 33, 33, 6, 2, 20),
    attend(1, 40, 40, 4, 0, 16, mask="causal"),
    attend(1, 70, 70, 4, 2, 32, mask="causal", window=9),
    attend(1, 5, 77, 2, 0, 8),
    cached(1, [0, 7]),
    cached(6, [10, 44]),
    cached(1, [49, 20, 3]),
    cached(4, [30, 5], window=8),
]


def with_context(
    op: str, state: tuple[int, int], w: np.ndarray, t: int, weight_dtype: str = "f32", **attrs
) -> Case:
    precision = attrs.get("precision")
    rounded = functools.partial(round_to_int8, groups=attrs.get("groups", 1), block=INT8_BLOCK.get(precision))

    def build(p, x, rows, w, b):
        return getattr(ops, op)(x, w, b, rows=rows, state="c", **attrs)

    return Case(
        f"{op} context {list(w.shape)} {weight_dtype} T={t} {attrs}",
        build,
        {"x": normal(2, t, state[1]), "rows": np.array([2, 0], np.int32)},
        {"w": w, "b": normal(len(w))},
        weight_dtype,
        states=(StateSpec("c", "context", state),),
        n_rows=3,
        round_states=rounded if precision in INT8_BLOCK else lambda state: state,
    )


CONTEXT = [
    with_context("conv1d", (6, 20), scaled(30, 3, 20), 11, dilation=3),
    with_context("conv1d", (6, 20), scaled(30, 7, 20), 1),
    with_context("conv1d", (2, 16), scaled(16, 3, 1), 5, groups=16),
    with_context("conv1d", (2, 16), scaled(8, 4, 16), 8, stride=2),
    with_context("conv1d", (4, 16), scaled(8, 3, 16), 9, dilation=2, prologue="silu 0", epilogue="tanh 0"),
    with_context("conv_transpose1d", (1, 12), scaled(20, 6, 12), 7, stride=3),
    with_context("conv_transpose1d", (1, 12), scaled(20, 4, 12), 1, stride=2),
    with_context("conv_transpose1d", (2, 12), scaled(12, 6, 1), 4, stride=2, groups=12),
]



INTEGERS = (("q8", "f32"), ("q8", "int8"), ("i8", "int8_row"))
"""Weights in integers, and the arithmetic that they are used in."""


def integers(name: str, op: str, x: np.ndarray, w: np.ndarray, **attrs) -> list[Case]:
    return [
        dense(f"{name} {d} {p}", op, x, w, weight_dtype=d, precision=p, tolerance=INT8, **attrs) for d, p in INTEGERS
    ]


OF_INTEGERS = [
    *(
        case
        for x, n in (
            ((1, 1, 1), 1),
            ((1, 1, 512), 96),
            ((1, 1, 96), 1024),
            ((1, 2, 33), 65),
            ((2, 3, 31), 7),
            ((1, 5, 129), 100),
            ((8, 1, 128), 70),
            ((1, 90, 70), 130),
            ((13, 40), 65),
            ((0, 8), 5),
        )
        for case in integers("", "linear", normal(*x), scaled(n, x[-1]))
    ),
    *(
        case
        for x, w, a in (
            ((1, 1, 1), (1, 1, 1), {}),
            ((2, 50, 16), (40, 3, 16), {"pad_left": 1, "pad_right": 1}),
            ((1, 100, 64), (70, 7, 64), {"pad_left": 6}),
            ((1, 60, 33), (65, 3, 33), {"dilation": 5, "pad_left": 10}),
            ((2, 61, 20), (30, 4, 20), {"stride": 3, "pad_left": 1}),
            ((1, 90, 64), (1, 3, 64), {"pad_left": 2}),
            ((2, 40, 140), (24, 3, 35), {"groups": 4, "pad_left": 2}),
            ((2, 77, 45), (45, 5, 1), {"groups": 45, "pad_left": 2, "pad_right": 2}),
            ((1, 40, 8), (16, 3, 1), {"groups": 8, "pad_left": 1, "pad_right": 1}),
        )
        for case in integers("", "conv1d", normal(*x), scaled(*w), **a)
    ),
    *(
        case
        for x, w, a in (
            ((1, 1, 1), (1, 1, 1), {}),
            ((2, 30, 24), (20, 4, 24), {"stride": 2, "trim_left": 1, "trim_right": 1}),
            ((1, 40, 64), (33, 20, 64), {"stride": 10, "trim_right": 10}),
            ((1, 9, 7), (5, 3, 7), {"stride": 5}),
            ((2, 21, 40), (40, 32, 1), {"stride": 16, "groups": 40, "trim_right": 16}),
            ((2, 21, 140), (24, 5, 35), {"stride": 3, "groups": 4}),
        )
        for case in integers("", "conv_transpose1d", normal(*x), scaled(*w), **a)
    ),
    *integers("zeros", "linear", np.pad(normal(1, 3, 32), ((0, 0), (0, 0), (32, 7))), scaled(40, 71)),
    *integers("tiny and huge", "linear", normal(1, 2, 64) * np.repeat(np.float32([1e-35, 1e30]), 32), scaled(33, 64)),
    *integers("elu", "conv1d", normal(1, 60, 48), scaled(40, 3, 48), prologue="elu 0", pad_left=2),
    *integers("no bias", "linear", normal(1, 9, 40), scaled(40, 40), bias=False, epilogue="gelu_tanh 0"),
    *integers("modulated", "linear", normal(2, 30, 48), scaled(40, 48), prologue="affine 0 1 2",
        pro=[normal(2, 1, 48, seed=4), normal(2, 1, 48, seed=5)]),
]  # fmt: skip
for _dtype, _precision in INTEGERS:
    OF_INTEGERS += [
        with_context("conv1d", (6, 20), scaled(30, 3, 20), 11, _dtype, dilation=3, precision=_precision),
        with_context("conv1d", (6, 80), scaled(30, 7, 80), 1, _dtype, precision=_precision),
        with_context("conv1d", (2, 16), scaled(16, 3, 1), 5, _dtype, groups=16, precision=_precision),
        with_context("conv_transpose1d", (1, 12), scaled(20, 6, 12), 7, _dtype, stride=3, precision=_precision),
        with_context(
            "conv_transpose1d", (1, 40), scaled(40, 32, 1), 3, _dtype, stride=16, groups=40, precision=_precision
        ),
    ]

RING = (StateSpec("k", "ring", (50, 32)), StateSpec("v", "ring", (50, 32)))


def ring(t: int, positions: list[int], window: int) -> Case:
    """The ring is full of numbers from before, so that what lies outside the window must not be heard."""
    return replace(cached(t, positions, window=window), name=f"attention ring {t} {positions} {window}", states=RING)


RINGS = [ring(1, [0, 7], 50), ring(1, [1000, 49], 20), ring(6, [44, 99], 45), ring(31, [130, 0], 20), ring(1, [77], 1)]

CASES = [*LINEAR, *CONV, *TRANSPOSE, *LSTM, *ATTENTION, *CONTEXT, *OF_INTEGERS, *RINGS]


DTYPE_OF = {"f32": "f32", "int8": "q8", "int8_row": "i8"}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_dense(case: Case, isa: str) -> None:
    check(case, isa)


def chunked(case_inputs: dict[str, np.ndarray], executable, pieces: list[int]) -> np.ndarray:
    states = executable.create_states(1)
    found, at = [], 0
    for n in pieces:
        given = {"x": case_inputs["x"][:, at : at + n], "rows": np.zeros(1, np.int32)}
        found.append(executable.run(given, states=states)[0])
        at += n
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("precision", list(DTYPE_OF))
@pytest.mark.parametrize(
    ("op", "state", "w", "attrs"),
    [
        ("conv1d", (6, 20), scaled(30, 3, 20), {"dilation": 3}),
        ("conv1d", (6, 70), scaled(30, 7, 70), {"prologue": "elu 0"}),
        ("conv1d", (4, 16), scaled(16, 5, 1), {"groups": 16}),
        ("conv_transpose1d", (1, 20), scaled(30, 6, 20), {"stride": 3}),
        ("conv_transpose1d", (1, 24), scaled(24, 32, 1), {"stride": 16, "groups": 24}),
    ],
    ids=["conv1d", "conv1d_elu", "depthwise", "conv_transpose1d", "depthwise_transpose"],
)
def test_chunks_change_no_bit(
    op: str, state: tuple[int, int], w: np.ndarray, attrs: dict, precision: str, isa: str
) -> None:
    def executable():
        p = streaming_program(op, state, w, {**attrs, "precision": precision})
        return NativeBackend(threads=2, isa=isa).load(p, {"w": w, "b": normal(len(w))})

    inputs = {"x": normal(1, 40, state[1])}
    whole = chunked(inputs, executable(), [40])
    for pieces in ([1] * 40, [7, 20, 13], [39, 1]):
        assert chunked(inputs, executable(), pieces).tobytes() == whole.tobytes()


def streaming_program(op: str, state: tuple[int, int], w: np.ndarray, attrs: dict[str, int]):
    p = Program(op)
    p.add_state("c", "context", state)
    x, rows = p.input("x", (1, "T", state[1])), p.input("rows", (1,), "i32")
    weight = p.weight("w", w.shape, DTYPE_OF[attrs["precision"]])
    p.outputs = [getattr(ops, op)(x, weight, p.weight("b", (len(w),)), rows=rows, state="c", **attrs)]
    return p


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("dtype", "precision"), [("f32", "f32"), *INTEGERS])
def test_a_row_does_not_depend_on_its_neighbours(dtype: str, precision: str, isa: str) -> None:
    x, w = normal(1, 29, 65), scaled(70, 65)
    p = Program("rows")
    p.outputs = [ops.linear(p.input("x", (1, "T", 65)), p.weight("w", w.shape, dtype), precision=precision)]
    executable = NativeBackend(threads=2, isa=isa).load(p, {"w": w})
    whole = executable.run({"x": x})[0]
    for row in range(29):
        assert executable.run({"x": x[:, row : row + 1]})[0].tobytes() == whole[:, row : row + 1].tobytes()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("precision", ["int8", "int8_row"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_int8_hands_on_what_is_not_finite(value: float, precision: str, isa: str) -> None:
    x, w = normal(1, 3, 70), scaled(40, 70)
    x[0, 1, 40] = value
    p = Program("not finite")
    p.outputs = [ops.linear(p.input("x", x.shape), p.weight("w", w.shape, DTYPE_OF[precision]), precision=precision)]
    (y,) = NativeBackend(threads=1, isa=isa).load(p, {"w": w}).run({"x": x})
    assert np.isnan(y[0, 1]).all()
    assert np.isfinite(y[0, [0, 2]]).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("sizes", [[1] * 90, [7] * 12, [30, 1, 30, 20]], ids=["1", "7", "mixed"])
def test_a_ring_in_chunks_is_the_ring_in_others(sizes: list[int], isa: str) -> None:
    """Across several rounds of the ring, among streams at other positions, bit for bit."""
    p = Program("ring")
    for name in ("k", "v"):
        p.add_state(name, "ring", (49, 16))
    q, k, v = (p.input(n, ("B", "T", 16)) for n in "qkv")
    rows, position = p.input("rows", ("B",), "i32"), p.input("position", ("B",), "i32")
    p.outputs = [ops.attention(q, k, v, rows=rows, position=position, heads=2, scale=0.3, mask="causal", window=20,
                               state_k="k", state_v="v")]  # fmt: skip
    given = {n: normal(2, 90, 16, seed=i) for i, n in enumerate("qkv")}

    def play(sizes: list[int], start: int) -> np.ndarray:
        executable = NativeBackend(threads=2, isa=isa).load(p, {})
        states, found, at = executable.create_states(3), [], 0
        for n in sizes:
            if at >= 84:
                break
            piece = {name: np.ascontiguousarray(a[:, at : at + n]) for name, a in given.items()}
            place = {"rows": np.int32([2, 0]), "position": np.int32([at, start + at])}
            found.append(executable.run({**piece, **place}, states=states)[0])
            at += n
        return np.concatenate(found, axis=1)[:, :80]

    assert play(sizes, 5).tobytes() == play([30, 30, 30], 5).tobytes()
