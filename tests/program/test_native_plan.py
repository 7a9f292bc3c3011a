"""The bytecode that NativePlan writes, read back word by word, and its run against the reference."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import inputs_of, programs, weights_of

from sonant.backends.backend import Backend
from sonant.backends.native.lower import DTYPES, MAX_RANK, SPACES, Bound, NativePlan, PackKey, fused, lower, plan_of
from sonant.backends.numpy import NumpyBackend
from sonant.errors import BackendError
from sonant.program import ops, opset
from sonant.program.dims import Dim
from sonant.program.program import Program

T = Dim.symbol("T")
NAMES = list(opset.OPS)


@dataclass
class Tensor:
    space: int
    index: int
    offset: int
    dtype: int
    shape: list[int]


@dataclass
class Instruction:
    op: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    attrs: list[int]
    extra: list[int]


def decode(code: np.ndarray) -> list[list[Instruction]]:
    """The blocks of a bound Plan; every word is accounted for."""
    words = code.tolist()
    n_blocks, read = words[0], 1 + words[0]
    blocks = []
    for start in words[1:1 + n_blocks]:
        assert start == read, "blocks follow each other"
        at, block = start + 1, []
        for _ in range(words[start]):
            block.append(_instruction(words[at:at + words[at]]))
            at += words[at]
        blocks.append(block)
        read = at
    assert read == len(words)
    return blocks


def _instruction(words: list[int]) -> Instruction:
    length, opcode, n_in, n_out, n_attr, n_extra = words[:6]
    assert length == 6 + 11 * (n_in + n_out) + n_attr + n_extra
    tensors = [_tensor(words[6 + 11 * i:17 + 11 * i]) for i in range(n_in + n_out)]
    rest = words[6 + 11 * (n_in + n_out):]
    return Instruction(NAMES[opcode], tensors[:n_in], tensors[n_in:], rest[:n_attr], rest[n_attr:])


def _tensor(words: list[int]) -> Tensor:
    assert not any(words[5 + words[4]:])
    return Tensor(*words[:4], words[5:5 + words[4]])


def check(program: Program, plan: NativePlan, bound: Bound, sizes: dict[str, int]) -> None:
    """`program`, fused, is what `bound` plays."""
    blocks = decode(bound.code)
    owners = list(program.programs())
    assert len(blocks) == len(owners)
    for block, owner in zip(blocks, owners, strict=True):
        nodes = [n for n in owner.nodes if n.op != "reshape"]
        assert [i.op for i in block] == [n.op for n in nodes]
        for instruction, node in zip(block, nodes, strict=True):
            for tensor, v in zip(instruction.outputs, node.outputs, strict=True):
                assert tensor.shape == [Dim.of(d).evaluate(sizes) for d in v.shape]
                assert tensor.dtype == DTYPES[v.dtype]
            for tensor in (*instruction.inputs, *instruction.outputs):
                _check_place(tensor, plan, bound)
            assert len(instruction.attrs) == len(node.row.attrs)


def _check_place(t: Tensor, plan: NativePlan, bound: Bound) -> None:
    if t.space == SPACES["arena"]:
        assert t.offset % 64 == 0
        assert t.offset >= 0
        assert t.offset + 4 * int(np.prod(t.shape)) <= bound.arena_bytes
    else:
        assert t.offset == 0
    table = {"input": len(plan.declared.inputs), "output": len(plan.declared.outputs)}
    for space, count in table.items():
        assert t.space != SPACES[space] or t.index < count
    if t.space == SPACES["weight"]:
        assert t.index // 2 < (len(plan.constants) if t.index % 2 else len(plan.pack_shapes))
        if t.index % 2:
            assert t.shape == list(plan.constants[t.index // 2].shape)


@given(programs(most=16), st.integers(1, 9), st.integers(1, 9))
def test_bytecode_of_random_programs_stays_inside(program: Program, one: int, other: int) -> None:
    played = fused(program)
    plan = plan_of(played)
    first = plan.bind({"T": one})
    check(played, plan, first, {"T": one})
    kept = first.code.copy()
    check(played, plan, plan.bind({"T": other}), {"T": other})
    np.testing.assert_array_equal(first.code, kept)  # a bound Plan is not touched by the next one
    np.testing.assert_array_equal(plan.bind({"T": one}).code, kept)


def test_attributes_are_written_as_the_executor_reads_them() -> None:
    p = Program("p")
    x, rows = p.input("x", (1, "T", 6)), p.input("rows", (1,), "i32")
    for name, kind, shape in (("left", "context", (2, 6)), ("k", "kv", (9, 6)), ("v", "kv", (9, 6))):
        p.add_state(name, kind, shape)
    y = ops.conv1d(ops.leaky_relu(x, 0.25), p.weight("w", (6, 3, 6)), rows=rows, state="left", precision="bf16")
    y = ops.attention(y, y, y, rows=rows, position=rows, heads=2, scale=0.5, mask="causal", state_k="k", state_v="v")
    y = ops.pad(ops.transpose(y, (0, 2, 1)), 1, 3, 0, "reflect")
    y = ops.slice(y, 2, T - 1, T)
    p.outputs = [ops.cast(ops.expand(y, (2, 9, 1)), "i32")]
    conv, attention, transpose, pad, cut, expand, cast = decode(lower(p).bind({"T": 5}).code)[0]
    named = dict(zip(opset.op("conv1d").attrs, conv.attrs, strict=True))
    assert {k: named[k] for k in ("state", "precision", "epilogue", "n_pro")} == {
        "state": 0, "precision": 1, "epilogue": -1, "n_pro": 0}
    bits = struct.unpack("<q", struct.pack("<d", 0.25))[0]
    assert conv.extra[named["prologue"]:] == [1, NAMES.index("leaky_relu"), 2, 0, 0, 1, bits]
    assert dict(zip(opset.op("attention").attrs, attention.attrs, strict=True)) == {
        "heads": 2, "kv_heads": 0, "scale": struct.unpack("<q", struct.pack("<d", 0.5))[0], "mask": 1, "window": 0,
        "state_k": 1, "state_v": 2}
    assert (transpose.attrs, transpose.extra) == ([0], [3, 0, 2, 1])
    assert pad.attrs == [1, 3, 0, 1]
    assert cut.attrs == [2, 4, 5]
    assert expand.extra[expand.attrs[0]:] == [3, 2, 9, 1]
    assert cast.attrs == [DTYPES["i32"]]


def test_a_loop_names_its_block_and_its_tensors() -> None:
    p = Program("p")
    x, c = p.input("x", (1, "T", 4)), p.constant([1.0, 2.0, 3.0, 4.0])
    body = Program("body")
    carry = body.input("carry", (1, "T", 4))
    w, c_in = body.input("gain", (4,)), body.input("shift", (4,))
    body.input("step", (1,), "i32")
    y = ops.affine(ops.layer_norm(carry), w, c_in)
    body.outputs = [y, ops.greater(ops.sum(ops.sum(y, 1), 2), 0.0), ops.mean(y, 1)]
    final, stack, count = ops.loop([x, p.weight("gain", (4,)), c], body, n_carry=1, trips=2 * T, has_done=True)
    p.outputs = [final, stack, count]
    plan = lower(p)
    outer, inner = decode(plan.bind({"T": 3}).code)
    assert [i.op for i in inner] == ["layer_norm", "pointwise", "sum", "sum", "pointwise", "mean"]
    (loop,) = outer
    assert loop.attrs == [1, 1, 6, 1]
    assert [t.shape for t in loop.inputs] == [[1, 3, 4], [1, 3, 4], [1, 3, 4], [1, 1, 1], [1, 1, 4], [1]]
    assert [t.shape for t in loop.outputs] == [[1, 3, 4], [6, 1, 1, 4], [1]]
    affine = inner[1]
    assert [t.space for t in affine.inputs] == [SPACES["arena"], SPACES["weight"], SPACES["weight"]]
    assert list(plan.pack_shapes) == [PackKey("gain", "plain", 1, "f32")]
    np.testing.assert_array_equal(plan.constants[affine.inputs[2].index // 2], [1, 2, 3, 4])


def test_one_weight_read_in_two_ways_is_packed_twice() -> None:
    p = Program("p")
    table = p.weight("table", (9, 4), "bf16")
    hidden = ops.embedding(p.input("ids", (1, "T"), "i32"), table)
    p.outputs = [ops.linear(hidden, table)]
    plan = lower(p)
    assert list(plan.pack_shapes) == [PackKey("table", "plain", 1, "bf16"), PackKey("table", "linear", 1, "bf16")]
    look_up, project = decode(plan.bind({"T": 2}).code)[0]
    assert (look_up.inputs[1].dtype, project.inputs[1].dtype) == (DTYPES["f32"], DTYPES["bf16"])


def test_a_rank_that_no_kernel_takes_is_refused() -> None:
    p = Program("p")
    p.outputs = [ops.tanh(p.input("x", (1,) * (MAX_RANK + 1)))]
    with pytest.raises(BackendError, match="rank 6 at most"):
        lower(p)


def test_binding_a_thousand_nodes_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    p = Program("p")
    x = y = p.input("x", (1, "T", 4))
    for i in range(500):
        y = ops.layer_norm(ops.pad(y, 1, 1, 0) if i % 50 == 0 else y)
        y = ops.conv1d(y, p.weight("w", (4, 3, 4)), pad_left=1, pad_right=1)
    p.outputs = [y, x]
    plan = lower(p)
    plan.bind({"T": 1})
    start = time.perf_counter()
    for t in range(2, 12):
        plan.bind({"T": t})
    with capsys.disabled():
        print(f"\nbind of {len(fused(p).nodes)} nodes: {(time.perf_counter() - start) * 100:.2f} ms")  # noqa: T201


def _close(found: np.ndarray, wanted: np.ndarray) -> bool:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    return bool(np.allclose(found, wanted, rtol=0, atol=1e-5 * max(1.0, float(np.abs(wanted).max(initial=0)))))


@settings(max_examples=150)
@given(program=programs(most=10, smooth=True), t=st.integers(1, 40))
def test_native_runs_random_programs_as_numpy(native_backends: dict[str, Backend], program: Program, t: int) -> None:
    weights = weights_of(program)
    reference = NumpyBackend().load(program, weights)
    wanted_states = reference.create_states(2)
    wanted = [a for seed in range(2) for a in reference.run(inputs_of(program, t, seed), states=wanted_states)]
    bits: dict[str, list[bytes]] = {}
    for name, backend in native_backends.items():
        executable = backend.load(program, weights)
        states = executable.create_states(2)
        found = [a for seed in range(2) for a in executable.run(inputs_of(program, t, seed), states=states)]
        for one, other in zip(found, wanted, strict=True):
            assert _close(one, other), name
        for state, array in wanted_states.arrays.items():
            assert _close(states.arrays[state], array), name
        isa = name.rsplit("-", 1)[0]
        now = [a.tobytes() for a in found]
        assert bits.setdefault(isa, now) == now
