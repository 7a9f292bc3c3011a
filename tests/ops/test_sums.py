"""Block sums that a convolution leaves for instance_affine: the bits of the plain op for any tiles and threads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from sonant import _native as native
from sonant.backends.native import NativeBackend
from sonant.program import ops
from sonant.program.program import Program, Value

ISAS = NativeBackend.isas()
THREADS = (1, 2, 5)


@dataclass(frozen=True)
class Conv:
    """A convolution of x [B,T,C] to N channels, with what a generator's have before and after it."""

    name: str
    batch: int
    length: int
    channels: int
    outputs: int
    kernel: int = 3
    op: str = "conv1d"
    weight_dtype: str = "f32"
    residual: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def weight_shape(self) -> tuple[int, int, int]:
        return self.outputs, self.kernel, self.channels // self.attrs.get("groups", 1)

    def record(self, p: Program) -> Value:
        x = ops.leaky_relu(p.input("x", (self.batch, self.length, self.channels)), 0.2)
        operands = (x, p.weight("w", self.weight_shape, self.weight_dtype), p.weight("bias", (self.outputs,)))
        y = p.record(self.op, operands, **self.attrs)[0]
        return ops.add(y, p.input("residual", y.shape)) if self.residual else y


def same(length: int, channels: int, outputs: int, *, kernel: int = 3, dilation: int = 1, batch: int = 1,
         weight_dtype: str = "f32", **attrs: Any) -> Conv:
    """A conv1d that keeps the length."""
    pad = (kernel - 1) * dilation // 2
    name = f"{batch}x{length}x{channels} k{kernel} d{dilation} {attrs.get('precision', 'f32')} {attrs.get('groups', 1)}"
    attrs |= {"dilation": dilation, "pad_left": pad, "pad_right": pad}
    return Conv(f"conv1d {name} to {outputs}", batch, length, channels, outputs, kernel, weight_dtype=weight_dtype,
                attrs=attrs)


def up(length: int, channels: int, outputs: int, kernel: int, stride: int, trim: int, batch: int = 1) -> Conv:
    name = f"conv_transpose1d {batch}x{length}x{channels} k{kernel} s{stride} trim {trim} to {outputs}"
    return Conv(name, batch, length, channels, outputs, kernel, "conv_transpose1d", residual=stride > 2,
                attrs={"stride": stride, "trim_left": trim, "trim_right": trim})


CASES = [
    *(same(t, 8, 20) for t in (1, 7, 127, 128, 129, 255, 1024, 1025)),
    *(same(t, 16, 33, batch=2) for t in (256, 700, 2500)),  # by Winograd
    *(same(3000, 32, n) for n in (1, 3, 5, 22, 64, 130)),
    *(same(1500, 24, 40, kernel=k, dilation=d) for k, d in ((3, 3), (7, 5), (11, 1), (11, 5))),
    same(5000, 128, 128, dilation=5),
    same(900, 128, 300, kernel=1, batch=3),
    same(900, 20, 36, groups=4),
    same(900, 45, 45, kernel=5, groups=45),
    *(same(1400, 40, 70, weight_dtype=w, precision=p, batch=2)
      for w, p in (("bf16", "bf16"), ("q8", "int8"), ("i8", "int8_row"), ("f16", "f32"))),
    Conv("conv1d stride 3", 2, 2000, 12, 50, 7, residual=False, attrs={"stride": 3, "pad_left": 3, "pad_right": 3}),
    up(150, 40, 70, 20, 10, 5),
    up(333, 16, 24, 12, 6, 3, batch=2),
    up(40, 16, 24, 2, 3, 0),  # a phase without a tap
    up(600, 8, 8, 4, 2, 1),
]


def noise_for(p: Program) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs and weights."""
    rng = np.random.default_rng(0)
    inputs = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in p.inputs}
    inputs["x"] += np.linspace(-3, 5, inputs["x"].shape[1], dtype=np.float32)[:, None]  # means and pivots off zero
    weights = {k: (rng.standard_normal(w.shape) / 8).astype(np.float32) for k, w in p.weights.items()}
    return inputs, weights


def affine_of(y: Value, p: Program, case: Conv) -> list[Value]:
    """Two of them, as the residual blocks of one stage have."""
    gamma, beta = p.input("gamma", (1, case.outputs)), p.input("beta", (case.batch, 1, case.outputs))
    return [*ops.instance_affine(y, gamma, beta), *ops.instance_affine(y, beta, gamma, eps=1e-2)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_bits_are_those_of_the_plain_op(case: Conv, isa: str) -> None:
    p = Program("summed")
    y = case.record(p)
    p.outputs = [y, *affine_of(y, p, case)]
    plain = Program("plain")
    plain.outputs = affine_of(plain.input("y", y.shape), plain, case)
    inputs, weights = noise_for(p)
    first: list[bytes] = []
    for threads in THREADS:
        backend = NativeBackend(threads=threads, isa=isa)
        summed = backend.load(p, weights)
        assert [len(n.inputs) for n in summed.nodes if n.op == "instance_affine"] == [4, 4]
        made, *found = summed.run(inputs)
        wanted = backend.load(plain, {}).run({"y": made, **{k: inputs[k] for k in ("gamma", "beta")}})
        assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted], f"{threads} threads"
        first = first or [a.tobytes() for a in found]
        assert first == [a.tobytes() for a in found], f"other bits with {threads} threads"


@pytest.mark.parametrize("isa", ISAS)
def test_sums_of_a_streamed_convolution(isa: str) -> None:
    p = Program("p")
    x, rows = p.input("x", (2, 300, 16)), p.input("rows", (2,), "i32")
    p.add_state("left", "context", (4, 16))
    y = ops.conv1d(x, p.weight("w", (24, 3, 16)), dilation=2, rows=rows, state="left")
    gamma = p.weight("gamma", (24,))
    p.outputs = [y, *ops.instance_affine(y, gamma, gamma)]
    plain = Program("plain")
    plain.outputs = list(ops.instance_affine(plain.input("y", y.shape), plain.weight("gamma", (24,)),
                                             plain.weight("gamma", (24,))))
    rng, weights = np.random.default_rng(1), noise_for(p)[1]
    backend = NativeBackend(threads=2, isa=isa)
    streamed = backend.load(p, weights)
    states = streamed.create_states(2)
    for _ in range(2):
        inputs = {"x": rng.standard_normal((2, 300, 16)).astype(np.float32), "rows": np.array([1, 0], np.int32)}
        made, *found = streamed.run(inputs, states=states)
        wanted = backend.load(plain, weights).run({"y": made})
        assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]


@pytest.mark.parametrize(("which", "said"), [(0, "a convolution: f32 sums"), (1, "instance_affine: f32 sums")])
def test_sums_of_another_shape_are_refused(which: int, said: str) -> None:
    case = replace(same(300, 8, 20), residual=False)
    p = Program("p")
    p.outputs = affine_of(case.record(p), p, case)[:2]
    inputs, weights = noise_for(p)
    executable = NativeBackend(threads=1).load(p, weights)
    bound = executable.plan.bind({})
    dims = np.array([4, 1, 3, 4, 20])  # the rank, then the sums of 300 rows
    at = np.flatnonzero((np.lib.stride_tricks.sliding_window_view(bound.code, 5) == dims).all(1))
    bound.code[at[which] + 2] = 2
    plan = native.Plan(bound.code, executable.table, 3, 2, 0, bound.arena_bytes, native.isas()[-1])
    given = [inputs[v.name] for v in p.inputs]
    outputs = [np.zeros((1, 1, 20), np.float32) for _ in range(2)]
    addresses = [np.array([a.ctypes.data for a in arrays], np.int64) for arrays in (given, outputs)]
    with pytest.raises(RuntimeError, match=said):
        plan.run(*addresses, native.States(np.zeros(0, np.int64)), native.Pool(1))
