"""The smallest speech generator of the autoregressive kind, as families will write theirs: four Programs over states.

`prefill` reads a prefix, `step` makes one token a row, `looped` makes many in one run, `codec` turns tokens into
samples. Sizes are tiny; every mechanism is the real one.
"""

from __future__ import annotations

import zlib

import numpy as np

from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.program import Program, Value

VOCABULARY, STOP, CHANNELS, HEADS, KV_HEADS, CAPACITY, LAYERS = 24, 14, 16, 4, 2, 48, 2
WINDOW, RING = 6, 35  # of the codec's attention: RING - WINDOW + 1 frames in one run at most
STRIDE, KERNEL = 3, 7  # of the codec's transposed convolution: each sample is made of up to three frames
SITE = 7
B, T, N = Dim.symbol("B"), Dim.symbol("T"), Dim.symbol("N")

PRECISIONS = {"f32": "f32", "bf16": "bf16", "q8": "int8"}
"""The arithmetic that goes with weights of each dtype here."""

PER_SLOT: dict[str, tuple[tuple[str | int, ...], str]] = {
    "rows": (("B",), "i32"), "temperature": (("B",), "f32"), "top_k": (("B",), "i32"), "top_p": (("B",), "f32"),
    "seed": (("B", 2), "i32"), "cap": (("B",), "i32"),
}
"""What a stream chooses for itself; nothing here changes the shape of a run."""


def _weight(p: Program, name: str, *shape: int, dtype: str = "f32") -> Value:
    return p.weight(name, shape, dtype)


class Net:
    """The transformer, recorded into one Program."""

    def __init__(self, p: Program, dtype: str) -> None:
        self.p, self.dtype = p, dtype
        self.precision = PRECISIONS[dtype]
        for name in ("token", "done"):
            p.add_state(name, "carry", (), "i32")
        p.add_state("position", "counter", (), "i32")
        for i in range(LAYERS):
            for name in ("k", "v"):
                p.add_state(f"{i}.{name}", "kv", (CAPACITY, CHANNELS // HEADS * KV_HEADS))

    def linear(self, name: str, x: Value, n: int) -> Value:
        w = _weight(self.p, name, n, int(x.shape[-1]), dtype=self.dtype)
        return ops.linear(x, w, _weight(self.p, f"{name}.bias", n), precision=self.precision)

    def norm(self, name: str, x: Value) -> Value:
        return ops.layer_norm(x, _weight(self.p, f"{name}.gain", CHANNELS))

    def hidden(self, ids: Value, positions: Value, rows: Value, start: Value) -> Value:
        """ids, positions [B,T]; rows, start [B] → [B,T,C]"""
        x = ops.add(ops.embedding(ids, _weight(self.p, "embed.tokens", VOCABULARY, CHANNELS)),
                    ops.embedding(positions, _weight(self.p, "embed.positions", CAPACITY, CHANNELS)))
        for i in range(LAYERS):
            h = self.norm(f"{i}.before", x)
            kv = CHANNELS // HEADS * KV_HEADS
            q, k, v = (self.linear(f"{i}.{n}", h, c) for n, c in (("q", CHANNELS), ("kk", kv), ("vv", kv)))
            h = ops.attention(q, k, v, rows=rows, position=start, heads=HEADS, kv_heads=KV_HEADS, scale=0.5,
                              mask="causal", state_k=f"{i}.k", state_v=f"{i}.v")
            x = ops.add(x, self.linear(f"{i}.out", h, CHANNELS))
            h = ops.silu(self.linear(f"{i}.up", self.norm(f"{i}.after", x), 2 * CHANNELS))
            x = ops.add(x, self.linear(f"{i}.down", h, CHANNELS))
        return self.norm("final", x)

    def step(self, given: dict[str, Value]) -> tuple[Value, Value, Value]:
        """One token for every row: (done i32 [B], token i32 [B], logits [B,V]); what is done stays as it is."""
        rows, p = given["rows"], self.p
        b = rows.shape[0]
        token, position, was_done = (ops.state_read(rows, s) for s in ("token", "position", "done"))
        h = self.hidden(ops.reshape(token, (b, 1)), ops.reshape(position, (b, 1)), rows, position)  # [B,1,C]
        logits = ops.reshape(self.linear("logits", h, VOCABULARY), (b, VOCABULARY))
        drawn = ops.sample(logits, *(given[n] for n in ("temperature", "top_k", "top_p", "seed")), position, site=SITE)
        token = ops.where(was_done, p.constant(STOP), drawn)
        position = ops.add(position, ops.sub(1, was_done))
        at_cap = ops.greater(position, ops.sub(given["cap"], 1))
        done = ops.maximum(was_done, ops.maximum(ops.equal(token, STOP), at_cap))
        for name, value in (("token", token), ("position", position), ("done", done)):
            ops.state_write(rows, value, name)
        return done, token, logits


def _given(p: Program) -> dict[str, Value]:
    return {name: p.input(name, shape, dtype) for name, (shape, dtype) in PER_SLOT.items()}


def prefill_program(dtype: str = "f32") -> Program:
    """ids [B,T] at positions [B,T] into the slots rows [B]; `following` [B] is the token that the next step reads."""
    p = Program("proof.prefill")
    net = Net(p, dtype)
    ids, positions = p.input("ids", ("B", "T"), "i32"), p.input("positions", ("B", "T"), "i32")
    rows, following = p.input("rows", ("B",), "i32"), p.input("following", ("B",), "i32")
    start = ops.reshape(ops.slice(positions, 1, 0, 1), (B,))
    h = net.hidden(ids, positions, rows, start)
    ops.state_write(rows, ops.add(ops.reshape(ops.slice(positions, 1, T - 1, T), (B,)), 1), "position")
    ops.state_write(rows, following, "token")
    p.outputs = [h]
    return p


def step_program(dtype: str = "f32") -> Program:
    p = Program("proof.step")
    p.outputs = list(Net(p, dtype).step(_given(p)))
    return p


def looped_program(dtype: str = "f32") -> Program:
    """Up to N steps (the length of `trips`) in one run → tokens [N,B], logits [N,B,V], steps run [1]."""
    p = Program("proof.looped")
    p.input("trips", ("N",), "i32")
    given = _given(p)
    body = Program("proof.looped.body")
    inner = _given(body)
    body.input("step", (1,), "i32")
    body.outputs = list(Net(body, dtype).step(inner))
    p.outputs = list(ops.loop(given.values(), body, n_carry=0, trips=N, has_done=True))
    return p


def codec_program(dtype: str = "f32", *, streaming: bool = True) -> Program:
    """tokens [B,T] → samples [B,3T]; without `streaming` the whole at once, by padding and trimming."""
    p = Program("proof.codec")
    tokens = p.input("tokens", ("B", "T"), "i32")
    rows = p.input("rows", ("B",), "i32")
    precision = PRECISIONS[dtype]
    x = ops.embedding(tokens, _weight(p, "codec.tokens", VOCABULARY, 8))
    x = _convolve(p, "codec.in", x, rows, (12, 3, 8), dtype, streaming)
    x = _attend(p, x, rows, dtype, streaming)
    w, bias = _weight(p, "codec.up", 8, KERNEL, 12, dtype=dtype), _weight(p, "codec.up.bias", 8)
    x = ops.leaky_relu(x, 0.1)
    if streaming:
        state = p.add_state("codec.up", "context", ((KERNEL - 1) // STRIDE, 12))
        x = ops.conv_transpose1d(x, w, bias, stride=STRIDE, rows=rows, state=state, precision=precision)
    else:
        x = ops.conv_transpose1d(x, w, bias, stride=STRIDE, trim_right=KERNEL - STRIDE, precision=precision)
    x = _convolve(p, "codec.out", ops.leaky_relu(x, 0.1), rows, (1, 5, 8), dtype, streaming)
    p.outputs = [ops.reshape(ops.tanh(x), (B, T * STRIDE))]
    return p


def _convolve(p: Program, name: str, x: Value, rows: Value, shape: tuple[int, int, int], dtype: str,
              streaming: bool) -> Value:
    n, k, c = shape
    w, bias = _weight(p, name, *shape, dtype=dtype), _weight(p, f"{name}.bias", n)
    precision = PRECISIONS[dtype]
    if not streaming:
        return ops.conv1d(x, w, bias, pad_left=k - 1, precision=precision)
    return ops.conv1d(x, w, bias, rows=rows, state=p.add_state(name, "context", (k - 1, c)), precision=precision)


def _attend(p: Program, x: Value, rows: Value, dtype: str, streaming: bool) -> Value:
    """A layer of attention to the last WINDOW frames, turned by position; its keys and values are in rings."""
    b, t, _ = x.shape
    if streaming:
        position = ops.state_read(rows, p.add_state("codec.position", "counter", (), "i32"))
        frames = ops.sum(ops.expand(p.constant(np.ones((1, 1), np.int32)), (b, t)), 1)
        ops.state_write(rows, ops.add(position, ops.reshape(frames, (b,))), "codec.position")
    else:
        position = ops.sub(rows, rows)
    table = ops.rope_table(position, length=t, size=6)
    h = ops.layer_norm(x)
    q, k, v = (ops.linear(h, _weight(p, f"codec.{n}", 12, 12, dtype=dtype), precision=PRECISIONS[dtype]) for n in "qkv")
    given = {}
    if streaming:
        names = [p.add_state(f"codec.{n}", "ring", (RING, 12)) for n in "kv"]
        given = {"rows": rows, "position": position, "state_k": names[0], "state_v": names[1]}
    h = ops.attention(ops.rope(q, table, heads=2), ops.rope(k, table, heads=2), v, heads=2, scale=0.4, mask="causal",
                      window=WINDOW, **given)
    return ops.add(x, h)


def weights_of(*programs: Program) -> dict[str, np.ndarray]:
    """By name, so that all Programs read the same ones; large enough that streams differ and end at different times."""
    weights = {}
    for name, v in {k: v for p in programs for k, v in p.weights.items()}.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        scale = 1.0 if len(v.shape) == 1 else 1.5 / np.sqrt(np.prod(v.shape[1:]))
        weights[name] = (scale * rng.normal(size=v.shape)).astype(np.float32)
    return weights
