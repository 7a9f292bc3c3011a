"""Every op but the dense ones (test_dense.py) on the native backend, against its meaning in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EXACT, Case, check

from sonant.backends.native import NativeBackend
from sonant.errors import BackendError
from sonant.program import ops
from sonant.program.program import Program, StateSpec

ISAS = NativeBackend.isas()


def normal(*shape: int, seed: int = 0, scale: float = 1.0, offset: float = 0.0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale + offset).astype(np.float32)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.abs(normal(*shape, seed=seed)) + np.float32(0.1)


def integers(low: int, high: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(np.int32)


def unary(name: str, x: np.ndarray, **attrs) -> Case:
    return Case(f"{name}{list(x.shape)}", lambda p, x: getattr(ops, name)(x, **attrs), {"x": x})


UNARY = [
    *(
        unary(n, normal(3, 37, 19, scale=3))
        for n in ("exp", "sin", "cos", "tanh", "sigmoid", "relu", "silu", "gelu", "gelu_tanh", "elu", "abs", "floor",
                  "round")
    ),
    unary("sin", normal(5000, scale=3000)),
    unary("cos", normal(5000, scale=3000)),
    unary("log", positive(4097)),
    unary("sqrt", positive(1)),
    unary("leaky_relu", normal(7, 5), slope=0.1),
    unary("round", np.arange(-40, 40, dtype=np.float32) / 2),
    unary("exp", normal(0, 4)),
]


def binary(name: str, a: np.ndarray, b: np.ndarray) -> Case:
    tolerance = EXACT if a.dtype == np.int32 else 1e-5
    return Case(
        f"{name}{list(a.shape)}{list(b.shape)}{a.dtype}",
        lambda p, a, b: getattr(ops, name)(a, b),
        {"a": a, "b": b},
        tolerance=tolerance,
    )


SHAPES = [
    ((2, 300, 64), (2, 300, 64)),
    ((2, 300, 64), (64,)),
    ((2, 100, 48), (2, 1, 48)),
    ((2, 300, 5), (2, 300, 1)),
    ((3, 3, 7), (3, 1, 7)),
    ((40, 1), (1, 50)),
    ((1, 2, 3, 4, 5, 6), (2, 1, 4, 1, 6)),
    ((1, 20, 600), (600,)),
    ((3, 1, 700), (1, 9, 700)),
    ((1,), (1,)),
    ((0, 4), (4,)),
    ((2, 70, 64), (1,)),
    ((1, 9000, 1), (1, 9000, 1)),
    ((2, 3, 5000), (2, 3, 1)),
    ((5, 3, 2, 400), (3, 1, 400)),
]
BINARY = [
    *(binary("mul", normal(*a), normal(*b, seed=1)) for a, b in SHAPES),
    *(binary("sub", normal(*b), normal(*a, seed=1)) for a, b in SHAPES),
    *(
        binary(n, normal(4, 33), positive(4, 33))
        for n in ("add", "div", "minimum", "maximum", "greater", "atan2", "snake")
    ),
    binary("equal", integers(0, 3, 50).astype(np.float32), integers(0, 3, 50, seed=1).astype(np.float32)),
    binary("atan2", np.float32([0, 0, -0.0, -0.0, 1, -1, 0, 0]), np.float32([1, -1, 1, -1, 0, 0, 0, -0.0])),
    *(
        binary(n, integers(-9, 9, 6, 35), integers(-9, 9, 35, seed=1))
        for n in ("add", "sub", "mul", "minimum", "maximum", "greater", "equal")
    ),
]


def steps(text: str, *operands: np.ndarray, tolerance: float = 1e-5) -> Case:
    names = [f"r{i}" for i in range(len(operands))]
    return Case(
        text,
        lambda p, **v: p.record("pointwise", [v[n] for n in names], steps=text)[0],
        dict(zip(names, operands, strict=True)),
        tolerance=tolerance,
    )


TERNARY = [
    Case(
        "affine",
        lambda p, x, s, t: ops.affine(x, s, t),
        {"x": normal(2, 3000, 24), "s": normal(2, 1, 24, seed=1), "t": normal(2, 1, 24, seed=2)},
    ),
    Case(
        "affine i32",
        lambda p, x, s, t: ops.affine(x, s, t),
        {"x": integers(-9, 9, 33), "s": integers(-9, 9, 33, seed=1), "t": integers(-9, 9, 33, seed=2)},
        tolerance=EXACT,
    ),
    Case(
        "where",
        lambda p, c, a, b: ops.where(c, a, b),
        {"c": integers(0, 2, 2, 50, 1).astype(np.float32), "a": normal(2, 50, 7), "b": normal(7, seed=2)},
        tolerance=EXACT,
    ),
    steps(
        "affine 0 1 2; snake 3 4", normal(1, 4000, 40), normal(1, 1, 40, seed=1), normal(1, 1, 40, seed=2), positive(40)
    ),
    steps("affine 0 1 2; leaky_relu 3 f0.2", normal(2, 900, 33), normal(2, 1, 33, seed=1), normal(2, 1, 33, seed=2)),
    steps(
        "mul 0 0; mul 2 0; affine 3 f0.5 1; tanh 4; add 5 2; sub 6 0; maximum 7 f-0.25", normal(3, 1025), normal(1025)
    ),
    steps("mul 0 f6.283185307179586; sin 1; mul 2 f0.1", normal(1, 7000, 9)),
    steps("exp 0; sin 1", normal(1, 300, 22)),
    Case(
        "nan",
        lambda p, a, b: [ops.relu(a), ops.minimum(a, b), ops.maximum(b, a)],
        {"a": np.float32([np.nan, 1, -1, np.nan]), "b": np.float32([1, np.nan, 0, 2])},
    ),
]


def cast(x: np.ndarray, dtype: str) -> Case:
    return Case(f"cast {dtype}", lambda p, x: ops.cast(x, dtype), {"x": x}, tolerance=EXACT)


def moving(name: str, build, **inputs: np.ndarray) -> Case:
    return Case(name, build, inputs, tolerance=EXACT)


def transposed(perm: tuple[int, ...], *shape: int) -> Case:
    return moving(f"transpose {shape} {perm}", lambda p, x: ops.transpose(x, perm), x=normal(*shape))


MOVES = [
    cast(normal(40, 3, scale=100), "i32"),
    cast(integers(-1 << 30, 1 << 30, 77), "f32"),
    cast(normal(9), "f32"),
    moving(
        "concat 1", lambda p, a, b, c: ops.concat([a, b, c], 1), a=normal(2, 3, 5), b=normal(2, 1, 5), c=normal(2, 0, 5)
    ),
    moving("concat 2", lambda p, a, b: ops.concat([a, b], 2), a=normal(2, 300, 5), b=normal(2, 300, 1)),
    moving("concat long", lambda p, a, b: ops.concat([a, b], 1), a=normal(1, 40000), b=normal(1, 50000)),
    moving("concat i32", lambda p, a, b: ops.concat([a, b], 0), a=integers(0, 9, 3, 2), b=integers(0, 9, 4, 2)),
    moving("slice 1", lambda p, x: ops.slice(x, 1, 2, 7), x=normal(3, 9, 4)),
    moving("slice 2", lambda p, x: ops.slice(x, 2, 3, 4), x=normal(2, 500, 5)),
    moving("slice all", lambda p, x: ops.slice(x, 0, 0, 90000), x=normal(90000)),
    moving("slice none", lambda p, x: ops.slice(x, 1, 2, 2), x=normal(3, 9)),
    *(
        transposed(*c)
        for c in (
            ((0, 2, 1), 2, 37, 51),
            ((1, 0), 1000, 33),
            ((0, 2, 1, 3), 2, 30, 4, 16),
            ((2, 1, 0), 5, 6, 7),
            ((0, 2, 1), 1, 1, 9),
            ((3, 1, 0, 2), 3, 4, 5, 6),
            ((0, 1), 4, 5),
            ((1, 0, 2), 0, 3, 4),
            ((0, 3, 1, 2), 1, 20, 11, 17),
            ((5, 3, 1, 4, 2, 0), 2, 3, 2, 3, 2, 3),
        )
    ),
    moving("pad zero", lambda p, x: ops.pad(x, 1, 3, 2), x=normal(2, 5, 3)),
    moving("pad reflect", lambda p, x: ops.pad(x, 1, 4, 3, "reflect"), x=normal(2, 5, 3)),
    moving("pad edge", lambda p, x: ops.pad(x, 1, 4, 3, "edge"), x=normal(2, 5, 3)),
    moving("pad edge of one", lambda p, x: ops.pad(x, 0, 2, 1, "edge"), x=normal(1, 5)),
    moving("pad last", lambda p, x: ops.pad(x, 2, 1, 0), x=normal(2, 700, 3)),
    moving("gather", lambda p, x, i: ops.gather(x, i), x=normal(2, 11, 6), i=integers(0, 11, 2, 300)),
    moving("expand", lambda p, x: ops.expand(x, (4, 200, 6)), x=normal(4, 1, 6)),
    moving("expand i32", lambda p, x: ops.expand(x, (3, 5)), x=integers(0, 9, 3, 1)),
    Case(
        "embedding",
        lambda p, ids, table: ops.embedding(ids, table),
        {"ids": integers(0, 30, 2, 17)},
        {"table": normal(30, 24)},
        tolerance=EXACT,
    ),
]

TIME = [
    moving("nearest", lambda p, x: ops.interpolate(x, 3), x=normal(2, 40, 5)),
    moving("nearest 1", lambda p, x: ops.interpolate(x, 300), x=normal(1, 77, 1)),
    Case("linear", lambda p, x: ops.interpolate(x, 4, "linear"), {"x": normal(2, 40, 5)}),
    Case("linear odd", lambda p, x: ops.interpolate(x, 7, "linear"), {"x": normal(1, 1, 3)}),
    # Exact but for the last conversion to f32.
    *(
        Case(
            f"cumsum_turns {f} {s}",
            lambda p, x, f=f: ops.cumsum_turns(x, f),
            {"x": positive(*s) * np.float32(0.01)},
            tolerance=1e-7,
        )
        for f, s in ((300, (2, 50, 9)), (1, (1, 33, 2)), (5, (1, 20, 1)), (4, (1, 1, 3)), (64, (3, 100, 1)))
    ),
    Case("cumsum_turns backwards", lambda p, x: ops.cumsum_turns(x, 6), {"x": normal(1, 400, 3)}, tolerance=1e-7),
]

REDUCTIONS = [
    *(
        Case(f"{n} {axis} {s}", lambda p, x, n=n, axis=axis: getattr(ops, n)(x, axis), {"x": normal(*s)})
        for n in ("sum", "mean", "max")
        for axis, s in (
            (1, (2, 301, 5)),
            (2, (3, 40, 129)),
            (0, (7,)),
            (2, (1, 2, 70000)),
            (1, (1, 5000, 130)),
            (1, (3, 1, 4)),
        )
    ),
    Case("sum i32", lambda p, x: ops.sum(x, 0), {"x": integers(-99, 99, 50, 3)}, tolerance=EXACT),
    Case("max i32", lambda p, x: ops.max(x, 1), {"x": integers(-99, 99, 50, 3)}, tolerance=EXACT),
]


def instance(name: str, x: np.ndarray, tolerance: float = 1e-5) -> Case:
    b, _, c = x.shape
    return Case(
        f"instance_affine {name}",
        lambda p, x, g, h: ops.instance_affine(x, g, h),
        {"x": x, "g": normal(b, 1, c, seed=1), "h": normal(c, seed=2)},
        tolerance=tolerance,
    )


NORMS = [
    Case(
        "layer_norm",
        lambda p, x, w, b: ops.layer_norm(x, w, b),
        {"x": normal(2, 50, 129, offset=3)},
        {"w": normal(129), "b": normal(129, seed=1)},
    ),
    Case("layer_norm plain", lambda p, x: ops.layer_norm(x, eps=1e-12), {"x": normal(1, 3, 512)}),
    Case("layer_norm narrow", lambda p, x, w: ops.layer_norm(x, w), {"x": normal(3, 400, 7)}, {"w": normal(7)}),
    instance("odd", normal(2, 1111, 37)),
    instance("long", normal(1, 20000, 64, offset=2)),
    instance("short", normal(1, 5, 130)),
    instance("one row", normal(2, 1, 8)),
    # Mean 1000 times the deviation: the input itself holds the deviation to 1e-4 only, the sums lose nothing more.
    instance("far off", normal(1, 3000, 20, offset=1000)),
]


def spectrum(n: int, hop: int, f: int, b: int = 2) -> Case:
    return Case(f"istft {n}/{hop} F={f}", lambda p, x: ops.istft(x, n, hop), {"x": normal(b, f, 2 * (n // 2 + 1))})


def signal(n: int, hop: int, s: int, b: int = 2) -> Case:
    return Case(f"stft {n}/{hop} S={s}", lambda p, x: ops.stft(x, n, hop), {"x": normal(b, s)})


FOURIER = [
    signal(20, 5, 3000),
    signal(20, 5, 12),
    signal(16, 4, 9),
    signal(1024, 256, 5000),
    signal(400, 160, 2000),
    signal(60, 15, 500),
    signal(64, 16, 333),
    signal(66, 16, 333),
    signal(20, 5, 50000, 1),
    signal(1920, 480, 4000),
    spectrum(20, 5, 4000),
    spectrum(20, 5, 2),
    spectrum(16, 4, 1),
    spectrum(1024, 256, 30),
    spectrum(400, 100, 9),
    spectrum(20, 5, 12000, 1),
    spectrum(64, 16, 50),
    spectrum(96, 24, 70),
    spectrum(60, 20, 100),
    spectrum(1200, 300, 20),
]


def noise(b: int, t: int, c: int) -> Case:
    return Case(
        f"randn {b} {t} {c}",
        lambda p, seed, frame: ops.randn(seed, frame, length=t, channels=c, site=7),
        {"seed": integers(-1 << 31, (1 << 31) - 1, b, 2), "frame": integers(0, 1 << 20, b)},
    )


def sampling(v: int, temperature: float, top_k: int, top_p: float) -> Case:
    b = 40
    return Case(
        f"sample {v} {temperature} {top_k} {top_p}",
        lambda p, logits, temperature, k, top_p, seed, frame: ops.sample(
            logits, temperature, k, top_p, seed, frame, site=3
        ),
        {
            "logits": normal(b, v, scale=3),
            "temperature": np.full(b, temperature, np.float32),
            "k": np.full(b, top_k, np.int32),
            "top_p": np.full(b, top_p, np.float32),
            "seed": integers(0, 1 << 30, b, 2),
            "frame": integers(0, 1000, b),
        },
        tolerance=EXACT,
    )


RANDOM = [
    noise(2, 1000, 9),
    noise(1, 3001, 1),
    noise(2, 77, 4),
    noise(1, 50, 2),
    noise(3, 5, 3),
    noise(1, 200000, 1),
    sampling(50, 0.8, 0, 1.0),
    sampling(1000, 1.0, 40, 0.9),
    sampling(300, 0.0, 5, 0.5),
    sampling(300, 1.3, 0, 0.6),
    sampling(3, 1.0, 10, 0.0),
    sampling(1, 1.0, 0, 1.0),
]

HISTORY = StateSpec("h", "history", (3, 4))
COUNTER = StateSpec("n", "counter", (), "i32")
ROWS = np.array([1, 0], np.int32)


def written(p: Program, rows, value, count):
    before = ops.state_read(rows, "h")
    ops.state_write(rows, ops.add(before, value), "h")
    ops.state_write(rows, ops.add(ops.state_read(rows, "n"), count), "n")
    return [before, ops.state_read(rows, "h")]


def counting(p: Program, start, bound):
    body = Program("body")
    x, limit, step = body.input("x", (2, 3)), body.input("limit", (1,)), body.input("step", (1,), "i32")
    y = ops.add(ops.mul(x, 1.5), ops.cast(step, "f32"))
    done = ops.greater(ops.max(ops.max(y, 0), 1), ops.reshape(limit, (1, 1)))
    body.outputs = [y, done, ops.mul(y, 2.0)]
    return ops.loop([start, bound], body, n_carry=1, trips=12, has_done=True)


def swapping(p: Program, a, b):
    body = Program("swap")
    x, y = body.input("x", (5,)), body.input("y", (5,))
    body.input("step", (1,), "i32")
    body.outputs = [y, x]
    return ops.loop([a, b], body, n_carry=2, trips=3)


STATE = [
    Case(
        "states",
        written,
        {"rows": ROWS, "value": normal(2, 3, 4), "count": np.array([5, 6], np.int32)},
        states=(HISTORY, COUNTER),
    ),
    Case("loop", counting, {"start": normal(2, 3), "bound": np.float32([40])}),
    Case("loop to the end", counting, {"start": normal(2, 3), "bound": np.float32([1e9])}),
    Case("loop that swaps", swapping, {"a": normal(5), "b": normal(5, seed=1)}, tolerance=EXACT),
]


def table_of(t: int, size: int, positions: list[int], **attrs) -> Case:
    return Case(
        f"rope_table {t} {size} {positions} {attrs}",
        lambda p, position: ops.rope_table(position, length=t, size=size, **attrs),
        {"position": np.array(positions, np.int32)},
        tolerance=1e-7,  # angles are f64 on both sides: one rounding
    )


def turned(b: int, t: int, heads: int, size: int, layout: str) -> Case:
    return Case(
        f"rope {b} {t} {heads} {size} {layout}",
        lambda p, x, table: ops.rope(x, table, heads=heads, layout=layout),
        {"x": normal(b, t, heads * size), "table": normal(b, t, size, seed=1)},
    )


def weighed(b: int, t: int, head_ids: tuple[int, ...], keys: list[list[int]], kv: int = 0) -> Case:
    def build(p, q, keys, rows):
        return ops.attention_weights(q, keys, rows, head_ids=head_ids, heads=4, kv_heads=kv, scale=0.3, state_k="k")

    return Case(
        f"attention_weights {b} {t} {head_ids} {len(keys[0])} {kv}",
        build,
        {"q": normal(b, t, 4 * 12, scale=2), "keys": np.array(keys, np.int32), "rows": ROWS[:b]},
        states=(StateSpec("k", "kv", (40, (kv or 4) * 12)),),
    )


ROTARY = [
    table_of(1, 2, [0]),
    table_of(1, 64, [3, 100000]),
    table_of(300, 32, [0, 7, 250]),
    table_of(5, 16, [9], theta=1e6),
    *(turned(b, t, h, s, layout)
      for layout in ("interleaved", "halves")
      for b, t, h, s in ((1, 1, 1, 2), (2, 5, 3, 10), (1, 130, 8, 64))),
    weighed(1, 1, (2,), [[0]]),
    weighed(2, 3, (3, 0), [[5, 6, 7, 9, -1], [0, -1, -1, 39, 3]]),
    weighed(1, 2, (1, 2, 3), [list(range(40))], kv=2),
    weighed(1, 2, (1,), [[-1, -1]]),
]  # fmt: skip

CASES = [*UNARY, *BINARY, *TERNARY, *MOVES, *TIME, *REDUCTIONS, *NORMS, *FOURIER, *RANDOM, *STATE, *ROTARY]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_op(case: Case, isa: str) -> None:
    check(case, isa)


REFUSED = [
    (
        Case(
            "embedding",
            lambda p, ids, table: ops.embedding(ids, table),
            {"ids": np.array([3, 30], np.int32)},
            {"table": normal(30, 4)},
        ),
        r"embedding: id 3\.\.30 outside",
    ),
    (
        Case(
            "attention_weights",
            lambda p, q, keys, rows: ops.attention_weights(
                q, keys, rows, head_ids=(0,), heads=1, scale=1.0, state_k="k"
            ),
            {"q": normal(1, 1, 4), "keys": np.array([[2, 9]], np.int32), "rows": np.zeros(1, np.int32)},
            states=(StateSpec("k", "kv", (9, 4)),),
        ),
        r"attention_weights: key 9 is not within the capacity 9",
    ),
    (
        Case("gather", lambda p, x, i: ops.gather(x, i), {"x": normal(1, 4, 2), "i": np.array([[-1, 2]], np.int32)}),
        r"gather: index -1\.\.2 outside",
    ),
]


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=lambda c: getattr(c, "name", ""))
def test_refused(case: Case, message: str) -> None:
    executable = NativeBackend(threads=2).load(case.program(), dict(case.weights))
    with pytest.raises((RuntimeError, BackendError), match=message):
        executable.run(dict(case.inputs), states=executable.create_states(case.n_rows))


SIZES = (1, 1, 2, 3, 7, 16, 65, 300, 1030)


def random_shapes(rng: np.random.Generator, n: int) -> list[list[int]]:
    """`n` shapes that broadcast with each other, of up to 200,000 elements together."""
    whole = [int(d) for d in rng.choice(SIZES, rng.integers(1, 6))]
    while np.prod(whole) > 200_000:
        whole[int(np.argmax(whole))] = int(rng.choice(SIZES[:5]))
    shapes = [
        [d if rng.random() < 0.6 else 1 for d in whole[rng.integers(0, 2) * rng.integers(0, len(whole)) :]]
        for _ in range(n - 1)
    ]
    return [whole, *shapes]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", range(40))
def test_random_broadcasts(seed: int, isa: str) -> None:
    rng = np.random.default_rng(seed)
    shapes = random_shapes(rng, 4)
    rng.shuffle(shapes[1:])
    operands = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    check(steps("affine 0 1 2; mul 4 3; sub 5 f0.25; maximum 6 1; add 7 7; mul 8 5", *operands), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", range(25))
def test_random_transposes(seed: int, isa: str) -> None:
    rng = np.random.default_rng(seed)
    shape = random_shapes(rng, 1)[0]
    check(transposed(tuple(map(int, rng.permutation(len(shape)))), *shape), isa)
