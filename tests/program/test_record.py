"""Recording: shapes are inferred at once, and every rule that a node can break is reported by name, where it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sonant.errors import ProgramError
from sonant.program import ops, opset
from sonant.program.dims import Dim
from sonant.program.program import Program, StateSpec, Value

T = Dim.symbol("T")


class Sheet:
    """A Program with one of everything to record with."""

    def __init__(self) -> None:
        self.p = Program("sheet")
        self.x = self.p.input("x", (2, "T", 6))
        self.flat = self.p.input("flat", (2, 6))
        self.ids = self.p.input("ids", (2, "T"), "i32")
        self.rows = self.p.input("rows", (2,), "i32")
        self.signal = self.p.input("signal", (2, "S"))
        self.seed = self.p.input("seed", (2, 2), "i32")
        self.real = self.p.input("real", (2,))
        for name, kind, shape in (("kv", "kv", (8, 6)), ("kv2", "kv", (8, 6)), ("left", "context", (2, 6)),
                                  ("note", "carry", (3,)), ("ring", "ring", (8, 6)), ("ring2", "ring", (8, 6))):
            self.p.add_state(name, kind, shape)

    def w(self, *shape: int, dtype: str = "f32") -> Value:
        return self.p.weight("w" + "_".join(map(str, shape)) + dtype, shape, dtype)


Case = Callable[[Sheet], object]


def _loop(s: Sheet, *, n_carry: int = 1, outputs: int = 1, step: str = "i32", has_done: int = 0) -> object:
    body = Program("body")
    carry = body.input("carry", (2, 6))
    body.input("step", (1,), step)
    body.outputs = [ops.tanh(carry)] * outputs
    return s.p.record("loop", [s.flat], body=body, n_carry=n_carry, trips=3, has_done=has_done)


def _loop_changing_its_carry(s: Sheet) -> object:
    body = Program("body")
    carry = body.input("carry", (2, 6))
    body.input("step", (1,), "i32")
    body.outputs = [ops.sum(carry, 1)]
    return ops.loop([s.flat], body, n_carry=1, trips=3)


def _loop_with_foreign_state(s: Sheet) -> object:
    body = Program("body")
    carry = body.input("carry", (2, 6))
    body.input("step", (1,), "i32")
    body.add_state("other", "carry", ())
    body.outputs = [carry]
    return s.p.record("loop", [s.flat], body=body, n_carry=1, trips=3)


def _loop_with_foreign_weight(s: Sheet) -> object:
    body = Program("body")
    carry = body.input("carry", (2, 6))
    body.input("step", (1,), "i32")
    body.outputs = [ops.linear(carry, body.weight("own", (6, 6)))]
    return s.p.record("loop", [s.flat], body=body, n_carry=1, trips=3)


def _kv(s: Sheet, **changes: object) -> object:
    given = {"rows": s.rows, "position": s.rows, "heads": 2, "scale": 1.0, "state_k": "kv", "state_v": "kv2", **changes}
    return ops.attention(s.x, s.x, s.x, **given)  # type: ignore[arg-type]


def _ring(s: Sheet, **changes: object) -> object:
    return _kv(s, **{"state_k": "ring", "state_v": "ring2", "mask": "causal", "window": 3, **changes})


def _weights(s: Sheet, **changes: object) -> object:
    given = {"q": s.x, "keys": s.ids, "rows": s.rows, "head_ids": (1,), "heads": 2, "scale": 1.0, "state_k": "kv",
             **changes}
    return ops.attention_weights(**given)  # type: ignore[arg-type]


def _rope(s: Sheet, *, heads: int = 3, layout: str = "halves") -> object:
    return ops.rope(s.x, ops.rope_table(s.rows, length=T, size=2), heads=heads, layout=layout)


def _sample(s: Sheet, **changes: Value) -> object:
    given = {"temperature": s.real, "top_k": s.rows, "top_p": s.real, "seed": s.seed, "frame": s.rows, **changes}
    return ops.sample(s.flat, **given, site=1)


BROKEN: dict[str, tuple[Case, str]] = {
    # records and attributes
    "unknown op": (lambda s: s.p.record("convolve", [s.x]), "no op 'convolve'"),
    "unknown attribute": (lambda s: ops.linear(s.x, s.w(4, 6), bais=1), "no attribute 'bais'; it has"),
    "missing attribute": (lambda s: s.p.record("cast", [s.x]), "needs the attribute 'dtype'"),
    "int attribute": (lambda s: ops.sum(s.x, 1.5), "axis must be an integer, got 1.5"),  # type: ignore[arg-type]
    "bool attribute": (lambda s: ops.sum(s.x, True), "axis must be an integer, got True"),
    "float attribute": (lambda s: ops.leaky_relu(s.x, "f"), "slope must be a number"),  # type: ignore[arg-type]
    "str attribute": (lambda s: ops.cast(s.x, 3), "dtype must be a string"),  # type: ignore[arg-type]
    "dim attribute": (lambda s: ops.slice(s.x, 1, "0", T), "start must be a dim"),  # type: ignore[arg-type]
    "dims attribute": (lambda s: s.p.record("reshape", [s.x], shape="T"), "shape must be a tuple of dims"),
    "ints attribute": (lambda s: s.p.record("transpose", [s.x], perm=(0, "1")), "perm must be a tuple of integers"),
    "program attribute": (lambda s: s.p.record("loop", [s.x], body="b", n_carry=0, trips=1), "body must be a Program"),
    "too few operands": (lambda s: s.p.record("add", [s.x]), "operand b is missing"),
    "too many operands": (lambda s: s.p.record("tanh", [s.x, s.x]), r"takes 1 operands \(x\), got 2"),
    "hole in operands": (lambda s: s.p.record("concat", [s.x, None], axis=1), "an operand of xs"),
    "foreign operand": (lambda s: ops.add(s.x, Sheet().x), "belongs to program"),
    "numbers alone": (lambda s: ops.add(1, 2), "at least one operand must be a Value"),
    "fraction with ids": (lambda s: ops.add(s.ids, 0.5), "cast the operand to f32 first"),
    # pointwise and cast
    "broadcast": (lambda s: ops.add(s.x, s.w(5)), "do not broadcast"),
    "mixed dtypes": (lambda s: ops.add(s.x, s.ids), "operands of one dtype wanted"),
    "cast": (lambda s: ops.cast(s.x, "f16"), "cast to f32 or i32, not 'f16'"),
    # dense
    "linear rank": (lambda s: ops.linear(s.x, s.w(4, 1, 6)), r"linear weight must be \[N,C\]"),
    "linear channels": (lambda s: ops.linear(s.x, s.w(4, 5)), "channels of x and of the linear weight: 6 is not 5"),
    "linear bias": (lambda s: ops.linear(s.x, s.w(4, 6), s.w(6)), r"bias of linear must be f32 \[4\]"),
    "linear by a result": (lambda s: ops.linear(s.x, ops.tanh(s.w(4, 6))), "must be a weight of the Program"),
    "linear on ids": (lambda s: ops.linear(s.ids, s.w(4, 6)), "linear wants x in f32"),
    "precision": (lambda s: ops.linear(s.x, s.w(4, 6), precision="f16"), "one of f32, bf16, int8, int8_row, got 'f16'"),
    "precision int8": (lambda s: ops.linear(s.x, s.w(4, 6), precision="int8"), "precision int8 is for q8 weights"),
    "precision int8_row": (lambda s: ops.linear(s.x, s.w(4, 6), precision="int8_row"), "i8 weights go together"),
    "i8 in floats": (lambda s: ops.linear(s.x, s.w(4, 6, dtype="i8")), "int8_row and i8 weights go together"),
    "n_pro": (lambda s: ops.linear(s.x, s.w(4, 6), n_pro=-1), "n_pro must be 0 or more"),
    "conv1d rank": (lambda s: ops.conv1d(s.flat, s.w(4, 3, 6)), r"conv1d wants x \[B,T,C\]"),
    "conv1d channels": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), groups=2), "channels of x and groups"),
    "conv1d groups": (lambda s: ops.conv1d(s.x, s.w(4, 3, 2), groups=3), "4 channels out do not split into 3 groups"),
    "conv1d stride": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), stride=0), "stride must be 1 or more"),
    "conv1d dilation": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), dilation=0), "dilation must be 1 or more"),
    "conv1d padding": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), pad_left=-1), "pad_left must be 0 or more"),
    "conv1d state padded": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), rows=s.rows, state="left", pad_left=2),
                            "takes its left rows from it"),
    "conv1d state rows": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), state="left"), "rows, which go with a state, is"),
    "conv1d state unknown": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), rows=s.rows, state="lost"),
                             "no state 'lost'; it has"),
    "conv1d state length": (lambda s: ops.conv1d(s.x, s.w(4, 4, 6), rows=s.rows, state="left"), r"f32 \[3, 6\], got"),
    "conv1d state kind": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), rows=s.rows, state="kv"), "kind context"),
    "conv1d stride past kernel": (lambda s: ops.conv1d(s.x, s.w(4, 3, 6), rows=s.rows, state="left", stride=4),
                                  r"f32 \[-1, 6\]"),
    "conv_transpose1d trim": (lambda s: ops.conv_transpose1d(s.x, s.w(4, 3, 6), rows=s.rows, state="left", trim_left=1),
                              "is causal: no trim"),
    "conv_transpose1d state": (lambda s: ops.conv_transpose1d(s.x, s.w(4, 3, 6), stride=2, rows=s.rows, state="left"),
                               r"f32 \[1, 6\], got"),
    "embedding ids": (lambda s: ops.embedding(s.x, s.w(4, 6)), "embedding ids must be i32, got f32"),
    "embedding table": (lambda s: ops.embedding(s.ids, s.w(6)), "table must be"),
    "lstm gates": (lambda s: ops.lstm(s.x, s.w(1, 12, 6), s.w(1, 12, 4), s.w(1, 12)), "four gates"),
    "lstm w_hh": (lambda s: ops.lstm(s.x, s.w(1, 12, 6), s.w(2, 12, 3), s.w(1, 12)), "w_hh must be"),
    "lstm directions": (lambda s: ops.lstm(s.x, s.w(3, 12, 6), s.w(3, 12, 3), s.w(3, 12)), "one or two directions"),
    "lstm bias": (lambda s: ops.lstm(s.x, s.w(1, 12, 6), s.w(1, 12, 3), s.w(12)), "bias of lstm must be"),
    "lstm rank": (lambda s: ops.lstm(s.flat, s.w(1, 12, 6), s.w(1, 12, 3), s.w(1, 12)), "lstm wants x"),
    "attention mask": (lambda s: ops.attention(s.x, s.x, s.x, heads=2, scale=1, mask="window"), "got 'window'"),
    "attention heads": (lambda s: ops.attention(s.x, s.x, s.x, heads=4, scale=1), "do not split into 4 heads"),
    "attention kv_heads": (lambda s: ops.attention(s.x, s.x, s.x, heads=3, kv_heads=2, scale=1), "not a multiple of 2"),
    "attention no heads": (lambda s: ops.attention(s.x, s.x, s.x, heads=0, scale=1), "heads must be 1 or more"),
    "attention q and k": (lambda s: ops.attention(s.x, s.signal, s.signal, heads=2, scale=1), "wants q, k, v"),
    "attention v": (lambda s: ops.attention(s.x, s.x, s.flat, heads=2, scale=1), "v must be f32"),
    "attention one state": (lambda s: _kv(s, state_v=""), "needs both state_k and state_v, or neither"),
    "attention same state": (lambda s: _kv(s, state_v="kv"), "must be two states"),
    "attention state unknown": (lambda s: _kv(s, state_k="k"), "no state 'k'"),
    "attention state kind": (lambda s: _kv(s, state_k="left"), "both kv or both ring"),
    "attention kv and ring": (lambda s: _kv(s, state_v="ring"), "both kv or both ring"),
    "attention ring mask": (lambda s: _ring(s, mask="none"), "want a causal mask and a window"),
    "attention ring without window": (lambda s: _ring(s, window=0), "want a causal mask and a window"),
    "attention ring window": (lambda s: _ring(s, window=9), "a window within their capacity"),
    "attention rows": (lambda s: _kv(s, rows=None), "rows, which go with states, is missing"),
    "attention position": (lambda s: _kv(s, position=None), "position, which goes with states, is missing"),
    "attention position dtype": (lambda s: _kv(s, position=s.real), r"must be i32 \[2\], got f32"),
    "attention_weights q": (lambda s: _weights(s, q=s.flat), r"q must be f32 \[B, T, C\]"),
    "attention_weights keys": (lambda s: _weights(s, keys=s.x), r"keys must be i32 \[2, N\]"),
    "attention_weights rows": (lambda s: _weights(s, rows=s.real), "rows must be i32"),
    "attention_weights no heads": (lambda s: _weights(s, head_ids=()), "head_ids must name some of the 2 heads"),
    "attention_weights head": (lambda s: _weights(s, head_ids=(0, 2)), r"got \[0, 2\]"),
    "attention_weights heads": (lambda s: _weights(s, heads=4), "do not split into 4 heads"),
    "attention_weights kv_heads": (lambda s: _weights(s, heads=3, kv_heads=2), "not a multiple of 2"),
    "attention_weights state": (lambda s: _weights(s, state_k="ring"), "state_k must be of kind kv"),
    "rope_table position": (lambda s: ops.rope_table(s.real, length=T, size=4), "position must be i32"),
    "rope_table size": (lambda s: ops.rope_table(s.rows, length=T, size=3), "size must be even, got 3"),
    "rope_table theta": (lambda s: ops.rope_table(s.rows, length=T, size=2, theta=0.0), "theta must be positive"),
    "rope layout": (lambda s: _rope(s, layout="thirds"), "must be interleaved or halves, got 'thirds'"),
    "rope heads": (lambda s: _rope(s, heads=2), "6 channels do not split into 2 even heads"),
    "rope table": (lambda s: ops.rope(s.x, s.x, heads=3), r"the table of rope must be f32 \[2, T, 2\]"),
    "rope x": (lambda s: ops.rope(s.flat, s.x, heads=1), "x must be f32"),
    # norms
    "layer_norm weight": (lambda s: ops.layer_norm(s.x, s.w(5)), r"weight of layer_norm must be f32 \[6\]"),
    "instance_affine": (lambda s: ops.instance_affine(s.x, s.w(5), s.w(6)), "gamma, beta: 5 is not 6"),
    "instance_affine rank": (lambda s: ops.instance_affine(s.flat, s.w(6), s.w(6)), "instance_affine wants x"),
    # shape and time
    "concat nothing": (lambda s: s.p.record("concat", [], axis=0), "at least one operand"),
    "concat ranks": (lambda s: ops.concat([s.x, s.flat], 1), "equal dtypes and ranks"),
    "concat sizes": (lambda s: ops.concat([s.flat, s.signal], 0), "axis 1 of a concat along 0"),
    "concat axis": (lambda s: ops.concat([s.flat, s.flat], 2), r"axis 2 is not one of \[2, 6\]"),
    "slice axis": (lambda s: ops.slice(s.flat, -1, 0, 1), "axis -1 is not one of"),
    "reshape": (lambda s: ops.reshape(s.x, (2, T * 5)), "elements of"),
    "expand": (lambda s: ops.expand(s.flat, (2, 12)), "does not expand to"),
    "expand rank": (lambda s: ops.expand(s.x, (6,)), "more axes than"),
    "transpose": (lambda s: ops.transpose(s.x, (0, 1)), "does not fit rank 3"),
    "pad mode": (lambda s: ops.pad(s.x, 1, 1, 1, "wrap"), "pad mode must be zero, reflect or edge, got 'wrap'"),
    "pad negative": (lambda s: ops.pad(s.x, 1, -1, 1), "left must be 0 or more"),
    "gather index": (lambda s: ops.gather(s.x, s.x), "gather index must be i32"),
    "gather rank": (lambda s: ops.gather(s.flat, s.ids), "gather wants x"),
    "interpolate mode": (lambda s: ops.interpolate(s.x, 2, "cubic"), "must be nearest or linear, got 'cubic'"),
    "interpolate factor": (lambda s: ops.interpolate(s.x, 0), "factor must be 1 or more"),
    "cumsum_turns rank": (lambda s: ops.cumsum_turns(s.flat), r"f32 \[B,T,C\] wanted"),
    "reduce axis": (lambda s: ops.mean(s.x, 3), "axis 3 is not one of"),
    # signal, random
    "stft rank": (lambda s: ops.stft(s.x, 8, 2), "the signal of stft must be"),
    "stft hop": (lambda s: ops.stft(s.signal, 8, 0), "hop must be 1 or more"),
    "istft channels": (lambda s: ops.istft(s.x, 8, 2), r"the spectrum of istft must be f32 \[B, F, 10\]"),
    "randn seed": (lambda s: ops.randn(s.rows, s.rows, length=T, channels=1, site=0), "seed must be i32"),
    "randn frame": (lambda s: ops.randn(s.seed, s.real, length=T, channels=1, site=0), "frame must be i32"),
    "randn channels": (lambda s: ops.randn(s.seed, s.rows, length=T, channels=0, site=0), "channels must be 1 or more"),
    "sample temperature": (lambda s: _sample(s, temperature=s.rows), r"temperature must be f32 \[2\], got i32"),
    "sample top_k": (lambda s: _sample(s, top_k=s.real), "top_k must be i32"),
    "sample top_p": (lambda s: _sample(s, top_p=s.rows), "top_p must be f32"),
    "sample seed": (lambda s: _sample(s, seed=s.rows), "seed must be i32"),
    "sample frame": (lambda s: _sample(s, frame=s.real), "frame must be i32"),
    # states and loops
    "state_read unknown": (lambda s: ops.state_read(s.rows, "lost"), "no state 'lost'"),
    "state_read rows": (lambda s: ops.state_read(s.real, "note"), "rows must be i32"),
    "state_write shape": (lambda s: ops.state_write(s.rows, s.flat, "note"), r"must be f32 \[2, 3\], got f32 \[2, 6\]"),
    "state_write dtype": (lambda s: ops.state_write(s.rows, ops.slice(s.ids, 1, 0, 3), "note"), "must be f32"),
    "state twice": (lambda s: s.p.add_state("note", "carry", (4,)), "declared twice"),
    "state kind": (lambda s: s.p.add_state("n", "stack", ()), "state kind must be one of"),
    "state dtype": (lambda s: s.p.add_state("n", "kv", (3, 2), "bf16"), "f32 or i32, not 'bf16'"),
    "state shape": (lambda s: s.p.add_state("n", "kv", (-3, 2)), "of integers, 0 or more"),
    "loop nothing": (lambda s: ops.loop([], Program("body"), n_carry=0, trips=1), "at least one operand"),
    "loop carries": (lambda s: _loop(s, n_carry=2), "2 carries wanted, 1 operands given"),
    "loop outputs": (lambda s: _loop(s, outputs=0), "gives 0 outputs, 1 wanted"),
    "loop no done": (lambda s: _loop(s, has_done=1), "gives 1 outputs, 2 wanted"),
    "loop has_done": (lambda s: _loop(s, has_done=2), "has_done is 0 or 1"),
    "loop step": (lambda s: _loop(s, step="f32"), "step, the last input of a loop body, must be i32"),
    "loop operands": (lambda s: s.p.record("loop", [s.flat], body=Program("b"), n_carry=0, trips=1), "takes 0 inputs"),
    "loop carry shape": (_loop_changing_its_carry, "comes back as"),
    "loop state": (_loop_with_foreign_state, "is not a state of the Program around it"),
    "loop weight": (_loop_with_foreign_weight, "is not a weight of the Program around it"),
    # names
    "input twice": (lambda s: s.p.input("x", (2,)), "declared twice"),
    "input dtype": (lambda s: s.p.input("h", (2,), "f16"), "must be one of f32, i32, not 'f16'"),
    "input named as a result": (lambda s: s.p.input("%0", (2,)), "% is kept for the results"),
    "weight named as an input": (lambda s: s.p.weight("x", (2,)), "the name 'x' is taken"),
    "weight of another shape": (lambda s: (s.w(2, 3), s.p.weight("w2_3f32", (3, 2))), "asked for again as f32"),
    "weight dtype": (lambda s: s.w(2, 3, dtype="q4"), "must be one of f32, f16, bf16, q8, i8, not 'q4'"),
    "constant text": (lambda s: s.p.constant("1"), "made of numbers"),
    "constant too large": (lambda s: s.p.constant(2**40), "does not fit i32"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(name: str) -> None:
    record, message = BROKEN[name]
    with pytest.raises(ProgramError, match=message):
        record(Sheet())


def test_every_op_with_a_rule_of_its_own_is_broken_above() -> None:
    broken = {name.split()[0] for name in BROKEN} | {"broadcast", "slice", "max", "sum", "mean"}
    own = {o.name for o in opset.OPS.values() if not o.pointwise}
    assert own - broken <= {"pointwise"}


def test_the_message_says_where_and_what() -> None:
    s = Sheet()
    with pytest.raises(ProgramError, match=r"sheet: linear\(x: f32 \[2, T, 6\], w4_5f32: f32 \[4, 5\]\)"):
        ops.linear(s.x, s.w(4, 5))


def test_shapes_are_inferred() -> None:
    s = Sheet()
    shapes = {
        ops.linear(s.x, s.w(4, 6)): (2, T, 4),
        ops.conv1d(s.x, s.w(4, 3, 6), pad_left=1, pad_right=1): (2, T, 4),
        ops.conv1d(s.x, s.w(4, 3, 6), stride=2, pad_left=1, pad_right=1): (2, (T + 1) // 2, 4),
        ops.conv1d(s.x, s.w(4, 3, 6), rows=s.rows, state="left"): (2, T, 4),
        ops.conv_transpose1d(s.x, s.w(4, 4, 6), stride=2, trim_left=1, trim_right=1): (2, 2 * T, 4),
        ops.conv_transpose1d(s.x, s.w(4, 5, 6), stride=2, rows=s.rows, state="left"): (2, 2 * T, 4),
        ops.embedding(s.ids, s.w(9, 5)): (2, T, 5),
        ops.lstm(s.x, s.w(2, 12, 6), s.w(2, 12, 3), s.w(2, 12)): (2, T, 6),
        ops.concat([s.x, s.x], 1): (2, 2 * T, 6),
        ops.slice(s.x, 1, 2, T): (2, T - 2, 6),
        ops.reshape(s.x, (2 * T, 3, 2)): (2 * T, 3, 2),
        ops.expand(s.w(6), (2, T, 6)): (2, T, 6),
        ops.transpose(s.x, (2, 0, 1)): (6, 2, T),
        ops.pad(s.x, 1, 1, 2): (2, T + 3, 6),
        ops.gather(s.x, s.ids): (2, T, 6),
        ops.interpolate(s.x, 3): (2, 3 * T, 6),
        ops.sum(s.x, 1): (2, 1, 6),
        ops.stft(s.signal, 8, 2): (2, Dim.symbol("S") // 2 + 1, 10),
        ops.randn(s.seed, s.rows, length=3 * T, channels=5, site=0): (2, 3 * T, 5),
        ops.state_read(s.rows, "note"): (2, 3),
        ops.add(s.x, s.w(6)): (2, T, 6),
    }
    for value, shape in shapes.items():
        assert value.shape == shape, value
        assert all(type(d) in (int, Dim) for d in value.shape)


def test_attributes_are_kept_in_one_form() -> None:
    s = Sheet()
    p = s.p
    ops.leaky_relu(s.x, np.float32(0.5))  # type: ignore[arg-type]
    ops.sum(s.x, np.int64(1))  # type: ignore[arg-type]
    ops.reshape(s.x, [2, T - T + 6, T])
    leaky, total, shaped = p.nodes
    assert leaky.attrs == {"slope": 0.5}
    assert type(total.attrs["axis"]) is int
    assert shaped.attrs["shape"] == (2, 6, T)
    assert type(shaped.attrs["shape"][1]) is int


def test_constants_of_equal_bits_are_one() -> None:
    p = Program("p")
    assert p.constant(1.0) is p.constant(np.float64(1))
    assert p.constant(1.0) is not p.constant(1)
    assert p.constant(0.0) is not p.constant(-0.0)
    assert p.constant(float("nan")) is p.constant(float("nan"))
    assert p.constant([1, 2]).dtype == "i32"
    assert p.constant(True).dtype == "i32"
    assert len(p.constants) == 6


def test_symbols_come_in_the_order_of_the_inputs() -> None:
    p = Program("p")
    p.input("a", (1, "2*F+1", 3))
    p.input("b", ("T", "F"))
    assert p.symbols() == ["F", "T"]


def test_a_state_spec_is_a_value() -> None:
    assert StateSpec("k", "kv", (3, 2)) == StateSpec("k", "kv", (3, 2))
    p = Program("p")
    assert p.add_state("k", "kv", (3, 2)) == p.add_state("k", "kv", [3, 2]) == "k"
