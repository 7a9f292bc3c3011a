"""The two written forms: text that says the same each time, JSON that comes back whole or is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import inputs_of, programs, weights_of

from sonant.backends.numpy import NumpyBackend
from sonant.errors import ProgramError
from sonant.program import ops, opset
from sonant.program.dims import Dim
from sonant.program.passes import fuse
from sonant.program.program import Program
from sonant.program.serialize import from_json, to_json, to_text

T = Dim.symbol("T")


def everything() -> Program:
    """A loop, states, constants, a weight in bf16, dims with floor divisions."""
    p = Program("everything")
    x, rows = p.input("x", (1, "2*T+1", 4)), p.input("rows", (1,), "i32")
    p.add_state("left", "context", (1, 4))
    p.add_state("count", "counter", (), "i32")
    body = Program("everything.body")
    carry, lent = body.input("carry", (1, "T", 4)), body.input("lent", (4,))
    step = body.input("step", (1,), "i32")
    y = ops.leaky_relu(ops.affine(carry, lent, 0.1), 0.2)
    body.outputs = [y, ops.greater(step, 2), ops.mean(y, 1)]
    down = ops.conv1d(x, p.weight("k", (4, 3, 4), "bf16"), stride=2, precision="bf16")
    streamed = ops.conv1d(down, p.weight("s", (4, 2, 4)), rows=rows, state="left")
    ops.state_write(rows, ops.add(ops.state_read(rows, "count"), 1), "count")
    numbers = p.constant([0.5, -0.0, 1e-7, 3.0])
    final, stack, count = ops.loop([streamed, numbers], body, n_carry=1, trips=T, has_done=True)
    p.outputs = [final, stack, count, ops.slice(x, 1, T - 1, T // 2 + T)]
    return p


TEXT = """\
program everything (opset 3)
  input x: f32 [1, 2*T+1, 4]
  input rows: i32 [1]
  state left: context f32 [1, 4]
  state count: counter i32 []
  weight k: bf16 [4, 3, 4]
  weight s: f32 [4, 2, 4]
  constant c0: i32 [] = 1
  constant c1: f32 [4] = [ 5.e-01, -0.e+00,  1.e-07,  3.e+00]
  %0: f32 [1, T, 4] = conv1d(x, k) {stride=2, precision="bf16"}
  %1: f32 [1, T, 4] = conv1d(%0, s, -, rows) {state="left"}
  %2: i32 [1] = state_read(rows) {state="count"}
  %3: i32 [1] = add(%2, c0)
  () = state_write(rows, %3) {state="count"}
  %4: f32 [1, T, 4], %5: f32 [T, 1, 1, 4], %6: i32 [1] = loop(%1, c1) {body=everything.body, n_carry=1, trips=T, \
has_done=1}
    program everything.body (opset 3)
      input carry: f32 [1, T, 4]
      input lent: f32 [4]
      input step: i32 [1]
      constant c0: f32 [] = 0.1
      constant c1: i32 [] = 2
      %0: f32 [1, T, 4] = affine(carry, lent, c0)
      %1: f32 [1, T, 4] = leaky_relu(%0) {slope=0.2}
      %2: i32 [1] = greater(step, c1)
      %3: f32 [1, 1, 4] = mean(%1) {axis=1}
      return %1, %2, %3
  %7: f32 [1, T//2+1, 4] = slice(x) {axis=1, start=T-1, stop=T+T//2}
  return %4, %5, %6, %7"""


def test_the_text_form() -> None:
    assert to_text(everything()) == TEXT


def test_json_comes_back_whole() -> None:
    for program in (everything(), fuse(everything())):
        back = from_json(to_json(program))
        assert to_text(back) == to_text(program)
        assert to_json(back) == to_json(program)
        for (_, one), (_, other) in zip(program.constants.values(), back.constants.values(), strict=True):
            assert one.tobytes() == other.tobytes()


@given(programs(), st.integers(1, 4))
def test_what_comes_back_computes_the_same(program: Program, t: int) -> None:
    back = from_json(to_json(program))
    assert to_text(back) == to_text(program)
    outputs = []
    for p in (program, back):
        executable = NumpyBackend().load(p, weights_of(p))
        with np.errstate(all="ignore"):
            outputs.append(executable.run(inputs_of(p, t), states=executable.create_states(1)))
    for one, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_constants_that_json_has_no_word_for() -> None:
    p = Program("p")
    x = p.input("x", (1,))
    p.outputs = [ops.maximum(x, float("-inf")), ops.add(x, float("nan"))]
    back = from_json(to_json(p))
    assert to_json(back) == to_json(p)


def test_another_opset_version_is_refused() -> None:
    data = json.loads(to_json(everything()))
    data["opset"] = opset.VERSION + 1
    with pytest.raises(ProgramError, match=f"is of opset {opset.VERSION + 1}, this sonant reads {opset.VERSION}"):
        from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"program"', "{}", "[" * 100_000, '{"opset": 1}', "\x00"])
def test_what_is_no_program_at_all_is_refused(text: str) -> None:
    with pytest.raises(ProgramError, match="not a serialized Program"):
        from_json(text)


def test_a_declared_shape_that_is_not_the_inferred_one_is_refused() -> None:
    data = json.loads(to_json(everything()))
    data["nodes"][0]["outputs"][0]["shape"] = [1, "T", 5]
    with pytest.raises(ProgramError, match="the file says f32"):
        from_json(json.dumps(data))


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every object, list and leaf inside `data`."""
    found = [path] if path else []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        found += _places(value, (*path, key))
    return found


DATA = to_json(everything())
PLACES = _places(json.loads(DATA))
JUNK = st.sampled_from([None, True, -1, 0, 3, 2**70, 1.5, "", "T", "x", "%0", "linear", "T//0", [], [1], ["T"], [None],
                        {}, {"name": "x"}, [[1]], float("inf"), "f32", "body", "2**9**9"])


@settings(max_examples=600)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.one_of(JUNK, st.just("__remove__"))), min_size=1, max_size=3))
def test_malformed_json_is_a_program_error_or_a_program(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    data = json.loads(DATA)
    for path, value in changes:
        inside = data
        try:
            for key in path[:-1]:
                inside = inside[key]
            if value == "__remove__":
                del inside[path[-1]]
            else:
                inside[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    try:
        program = from_json(json.dumps(data))
    except ProgramError:
        return
    to_text(program)
    assert to_json(from_json(to_json(program))) == to_json(program)


@given(st.integers(0, len(DATA) - 1), st.text(max_size=3))
def test_a_file_cut_or_overwritten_is_a_program_error_or_a_program(at: int, text: str) -> None:
    for broken in (DATA[:at], DATA[:at] + text + DATA[at + len(text):]):
        with contextlib.suppress(ProgramError):
            from_json(broken)
