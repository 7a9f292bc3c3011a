"""Small random Programs for the property tests, with inputs and weights to run them on."""

from __future__ import annotations

import zlib

import numpy as np
from hypothesis import strategies as st

from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.program import Program, Value

T = Dim.symbol("T")
CHANNELS = (1, 3, 4)
SMOOTH_UNARY = (ops.tanh, ops.sigmoid, ops.relu, ops.abs, ops.sin, ops.silu)
SMOOTH_BINARY = (ops.add, ops.sub, ops.mul, ops.maximum, ops.minimum)


class Recorder:
    """Draws nodes one after another; every value so far is `[B, T', C]` or `[C]` and may be an operand of the next."""

    def __init__(self, draw: st.DrawFn, program: Program, *, loops: bool, smooth: bool) -> None:
        self.draw, self.p, self.smooth = draw, program, smooth
        self.values: list[Value] = []
        self.kinds = ["unary", "binary", "binary", "scalar", "affine", "vector", "linear", "conv1d", "upsample",
                      "norm", "instance", "reshape", "concat", "slice", "weight", "stateful", "where"]
        self.kinds += ["loop"] if loops else []
        self.unary = SMOOTH_UNARY if smooth else (*SMOOTH_UNARY, ops.floor)
        self.binary = SMOOTH_BINARY if smooth else (*SMOOTH_BINARY, ops.greater)

    def pick(self, *, full: bool = True) -> Value:
        return self.draw(st.sampled_from([v for v in self.values if len(v.shape) == 3 or not full]))

    def like(self, x: Value) -> Value:
        """A value that broadcasts into x: x's shape, one row of it, its channels, or x itself."""
        shapes = (x.shape, (x.shape[2],), (x.shape[0], 1, x.shape[2]))
        fitting = [v for v in self.values if v.shape in shapes]
        return self.draw(st.sampled_from(fitting))

    def size(self, sizes: tuple[int, ...] = CHANNELS) -> int:
        return self.draw(st.sampled_from(sizes))

    def weight(self, *shape: int) -> Value:
        # One of two names for each shape: weights are shared between nodes at times.
        which = self.draw(st.sampled_from("ab"))
        return self.p.weight(f"{which}.{'x'.join(map(str, shape))}", shape)

    def add(self, kind: str) -> None:
        made = getattr(self, f"_{kind}")()
        self.values += made if isinstance(made, (list, tuple)) else [made]

    def _unary(self) -> Value:
        return self.draw(st.sampled_from(self.unary))(self.pick(full=False))

    def _binary(self) -> Value:
        x = self.pick()
        pair = [x, self.like(x)]
        return self.draw(st.sampled_from(self.binary))(*(pair if self.draw(st.booleans()) else reversed(pair)))

    def _scalar(self) -> Value:
        number = self.draw(st.sampled_from([0.5, -2.0, 3.0]))
        return self.draw(st.sampled_from(self.binary))(self.pick(full=False), number)

    def _affine(self) -> Value:
        x = self.pick()
        return ops.affine(x, self.like(x), self.like(x))

    def _where(self) -> Value:
        x = self.pick()
        if self.smooth:
            return ops.where(self.weight(1), x, self.like(x))
        return ops.where(ops.greater(self.like(x), 0.25), x, self.like(x))

    def _vector(self) -> Value:
        return ops.mean(self.pick(), 1)

    def _weight(self) -> Value:
        return self.weight(self.size())

    def _linear(self) -> Value:
        x, n = self.pick(), self.size()
        return ops.linear(x, self.weight(n, int(x.shape[2])), self.weight(n) if self.draw(st.booleans()) else None)

    def _conv1d(self) -> Value:
        x, n, k = self.pick(), self.size(), self.size((1, 3))
        return ops.conv1d(x, self.weight(n, k, int(x.shape[2])), self.weight(n), pad_left=k // 2, pad_right=k // 2)

    def _upsample(self) -> Value:
        x, n = self.pick(), self.size()
        if x.shape[1] != T:
            return ops.tanh(x)
        return ops.conv_transpose1d(x, self.weight(n, 3, int(x.shape[2])), stride=2, trim_right=1)

    def _norm(self) -> Value:
        return ops.layer_norm(self.pick())

    def _instance(self) -> list[Value]:
        x = self.pick()
        c = int(x.shape[2])
        return list(ops.instance_affine(x, self.weight(c), self.weight(c)))

    def _reshape(self) -> list[Value]:
        """There and back: two further names of one memory."""
        x = self.pick()
        flat = ops.reshape(x, (Dim.of(x.shape[0]) * x.shape[1], x.shape[2]))
        return [ops.reshape(ops.tanh(flat) if self.draw(st.booleans()) else flat, x.shape)]

    def _concat(self) -> Value:
        x = self.pick()
        joined = ops.concat([x, x], 2)
        return ops.slice(joined, 2, int(x.shape[2]), 2 * int(x.shape[2]))

    def _slice(self) -> Value:
        return ops.slice(self.pick(), 1, 0, 1)

    def _stateful(self) -> Value:
        x = self.pick()
        c = int(x.shape[2])
        name = self.p.add_state(f"left{len(self.p.nodes)}", "context", (2, c))
        rows = self.p.inputs[1]
        before = ops.state_read(rows, name)  # [1,2,C], what the convolution must not have overwritten yet
        y = ops.conv1d(x, self.weight(c, 3, c), rows=rows, state=name)
        after = ops.state_read(rows, name)
        self.values += [ops.tanh(y), ops.sum(before, 1), ops.sum(after, 1)]
        return y

    def _loop(self) -> list[Value]:
        """Two carries, an invariant, and a stacked value; the carries may come back crossed or unchanged."""
        x = self.pick()
        other = self.draw(st.sampled_from([v for v in self.values if v.shape == x.shape]))
        carries, invariant = [x, other], self.like(x)
        body = Program(f"{self.p.name}.body")
        inner = [body.input(name, v.shape, v.dtype) for name, v in zip("uvw", (*carries, invariant), strict=True)]
        step = body.input("step", (1,), "i32")
        recorder = Recorder(self.draw, body, loops=False, smooth=self.smooth)
        recorder.kinds = ["unary", "binary", "scalar", "affine", "reshape", "linear", "norm", "vector"]
        recorder.values = [*inner, ops.reshape(ops.cast(step, "f32"), (1, 1, 1))]
        for _ in range(self.draw(st.integers(1, 5))):
            recorder.add(self.draw(st.sampled_from(recorder.kinds)))
        same = [v for v in recorder.values if v.shape == x.shape]
        outs = [self.draw(st.sampled_from(same)) for _ in range(2)]
        stacked = recorder.pick(full=False)
        done = []
        if self.draw(st.booleans()):
            done = [ops.greater(ops.cast(step, "f32"), 0.5)]  # stops after the second step
        body.outputs = [*outs, *done, stacked]
        trips = self.draw(st.sampled_from([0, 1, 3, T]))
        *final, stack, count = ops.loop([*carries, invariant], body, n_carry=2, trips=trips, has_done=bool(done))
        del stack, count
        return final


@st.composite
def programs(draw: st.DrawFn, *, loops: bool = True, most: int = 14, smooth: bool = False) -> Program:
    """A Program with inputs x [1,T,4], rows [1] and y [1,T,4]; one to four outputs, which may be anything.

    smooth: only ops in which a last-bit difference stays one (no floor, no comparison).
    """
    p = Program("random")
    x = p.input("x", (1, T, 4))
    p.input("rows", (1,), "i32")
    recorder = Recorder(draw, p, loops=loops, smooth=smooth)
    recorder.values = [x, p.input("y", (1, T, 4)), p.weight("gain", (4,)), p.constant([0.5, -0.25, 2.0, 0.0])]
    for _ in range(draw(st.integers(1, most))):
        recorder.add(draw(st.sampled_from(recorder.kinds)))
    p.outputs = draw(st.lists(st.sampled_from(recorder.values), min_size=1, max_size=3))
    if draw(st.booleans()):
        p.outputs.append(recorder.values[-1])
    return p


def inputs_of(program: Program, t: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {v.name: tuple(Dim.of(d).evaluate({"T": t}) for d in v.shape) for v in program.inputs}
    return {v.name: np.zeros(shapes[v.name], np.int32) if v.dtype == "i32"
            else rng.normal(size=shapes[v.name]).astype(np.float32) for v in program.inputs}


def weights_of(program: Program) -> dict[str, np.ndarray]:
    """By name alone: a pass that drops a weight leaves the others as they were."""
    return {name: (0.5 * np.random.default_rng(zlib.crc32(name.encode())).normal(size=v.shape)).astype(np.float32)
            for name, v in program.weights.items()}
