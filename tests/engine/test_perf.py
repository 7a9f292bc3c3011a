"""The profile of a text: what is counted, by which ceiling it is measured, what is printed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from sonant.backends.native import NativeBackend
from sonant.backends.native.ceilings import Ceilings, measure_ceilings
from sonant.backends.native.timed import TimedBackend
from sonant.cli.perf import describe, drawn, table
from sonant.engine.perf import Profile, rows_of
from sonant.program import ops
from sonant.program.program import Program

CEILINGS = Ceilings("made up", 1, {"f32": 1e9, "int8": 4e9}, {1 << 20: 1e9, 1 << 28: 1e8})


def network() -> tuple[Program, dict[str, np.ndarray]]:
    p = Program("model.net")
    x = ops.linear(p.input("x", (1, "T", 32)), p.weight("layers.3.fc.weight", (64, 32)))
    p.outputs = [ops.transpose(ops.layer_norm(x), (0, 2, 1))]
    return p, {"layers.3.fc.weight": np.ones((64, 32), np.float32)}


@pytest.fixture
def profile() -> Profile:
    backend = TimedBackend(NativeBackend(threads=1))
    executable = backend.load(*network())
    for length in (5, 5, 7):
        executable.run({"x": np.ones((1, length, 32), np.float32)})
    rows = [row for runs in backend.runs.values() for row in rows_of(runs, CEILINGS)]
    return Profile(CEILINGS, tuple(rows), 0.5, 2.0)


def test_every_run_of_every_node_is_counted(profile: Profile) -> None:
    found = {row.op: row for row in profile.grouped(lambda row: (row.program, row.op, row.layer))}
    assert set(found) == {"linear", "layer_norm", "transpose"}
    linear = found["linear"]
    assert (linear.program, linear.layer, linear.runs) == ("model.net", "layers.*.fc", 3)
    assert linear.flop == 2 * (5 + 5 + 7) * 64 * 32
    assert linear.bytes == 3 * 64 * 32 * 4 + 17 * (32 + 64) * 4
    assert found["transpose"].layer == "layers.*.fc"  # of the node before
    assert all(row.seconds > 0 for row in found.values())


def test_the_floor_is_the_slower_of_arithmetic_and_traffic() -> None:
    assert CEILINGS.floor_s(1e9, "f32", [(1e6, 1e6)]) == 1.0
    assert CEILINGS.floor_s(1e9, "int8", []) == 0.25
    assert CEILINGS.floor_s(1e9, "int8_row", []) == 0.25
    assert CEILINGS.floor_s(1e9, "bf16", []) == 1.0  # computed as f32
    assert CEILINGS.floor_s(0, "f32", [(1e6, 2e6), (1e6, 1e6)]) == pytest.approx(1e-2 + 1e-3)
    assert CEILINGS.bandwidth(1e12) == 1e8


def test_the_same_results_as_without_times() -> None:
    given = {"x": np.random.default_rng(0).standard_normal((1, 9, 32)).astype(np.float32)}
    plain, timed = (b.load(*network()).run(given)[0] for b in (
        NativeBackend(threads=1), TimedBackend(NativeBackend(threads=1))))  # fmt: skip
    assert np.array_equal(plain, timed)


def test_table_json_and_picture(profile: Profile) -> None:
    text = table(profile)
    assert "rtf 0.250" in text
    assert "model.net linear layers.*.fc" in text
    assert len(json.loads(json.dumps(profile.to_json()))["nodes"]) == 6  # of two lengths
    picture = ElementTree.fromstring(drawn(profile))
    assert sum(e.tag.endswith("text") for e in picture) == 3


def test_measured_ceilings() -> None:
    found = measure_ceilings(NativeBackend(threads=1), budget_s=0.01)
    assert found.flops["f32"] > 1e8
    assert min(found.read.values()) > 1e8
    assert "GFLOP/s" in describe(found)
