"""One Plan, two players: wgpu-py (naga) here and web/runtime in Node (Tint), both equal to the NumPy backend.

Without wgpu, a GPU driver or `npm ci` in web/runtime the tests that need them are skipped, and fail where
SONANT_REQUIRE_WEBGPU=1 says that they must run. SONANT_RECORD=1 writes the recorded Plan anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sonant.backends.backend import CancelFlag
from sonant.backends.numpy import NumpyBackend
from sonant.backends.webgpu import WebGpuBackend, WebGpuPlan, kernels, lower
from sonant.backends.webgpu.expressions import compile_all
from sonant.backends.webgpu.packing import pack, packed_elements
from sonant.backends.webgpu.pointwise import EXPRESSIONS
from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.errors import BackendError, Cancelled, MissingExtra
from sonant.program import ops, opset
from sonant.program.passes import fuse
from sonant.program.program import Program

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "programs" / "webgpu_proof.json"
RUNTIME = ROOT / "web" / "runtime"
SHADERS = ROOT / "src" / "sonant" / "shaders"
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")  # where Debian's chromium package has it
TOLERANCE = 1e-5  # of the largest result: sums of up to a hundred products in another order, polynomials of 5e-7

Arrays = dict[str, np.ndarray]


def unavailable(reason: str) -> None:
    if os.environ.get("SONANT_REQUIRE_WEBGPU") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


# --- players ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def backend() -> WebGpuBackend:
    try:
        return WebGpuBackend()
    except (MissingExtra, BackendError) as e:
        unavailable(str(e))
        raise


class Node:
    """Plays Plans with web/runtime/play.mjs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = dict(os.environ)
        if SWIFTSHADER.exists():
            self.environment.setdefault("VK_ICD_FILENAMES", str(SWIFTSHADER))

    def play(self, plan: Path | WebGpuPlan, weights: Arrays, *inputs: Arrays) -> list[Arrays]:
        if isinstance(plan, WebGpuPlan):
            path = self.folder / "plan.json"
            path.write_text(plan.to_json())
            plan = path
        write_safetensors(self.folder / "weights.safetensors", weights)
        files = []
        for i, arrays in enumerate(inputs):
            write_safetensors(self.folder / f"in{i}.safetensors", arrays)
            files += [f"in{i}.safetensors", f"out{i}.safetensors"]
        command = ["node", RUNTIME / "play.mjs", plan, SHADERS, "weights.safetensors", *files]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return [{k: np.array(v) for k, v in open_safetensors(self.folder / f"out{i}.safetensors").items()}
                for i in range(len(inputs))]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    if shutil.which("node") is None:
        unavailable("node is not installed")
    if not (RUNTIME / "node_modules" / "webgpu").is_dir():
        unavailable("the npm package webgpu is not installed: npm ci in web/runtime")
    if not SWIFTSHADER.exists() and "VK_ICD_FILENAMES" not in os.environ:
        unavailable(f"no Vulkan driver for node: {SWIFTSHADER} (Debian's chromium) or VK_ICD_FILENAMES")
    return Node(tmp_path)


# --- programs ---------------------------------------------------------------------------------------------------------
def proof_program() -> Program:
    """Every fused form: linear with gelu, conv1d after affine and snake with a residual, depthwise, strided."""
    p = Program("webgpu_proof")
    x = p.input("x", ["B", "T", 13])
    scale, shift = p.input("scale", ["B", 1, 18]), p.input("shift", ["B", 1, 18])
    gate = ops.sigmoid(ops.affine(x, p.weight("gain", [13]), 0.25))  # a chain of its own: it is an output too
    h = ops.gelu(ops.linear(gate, p.weight("up.w", [18, 13]), p.weight("up.b", [18])))  # [B, T, 18]
    active = ops.snake(ops.affine(h, scale, shift), p.weight("alpha", [18]))
    residual = ops.conv1d(active, p.weight("res.w", [18, 3, 18]), p.weight("res.b", [18]), dilation=2, pad_left=2,
                          pad_right=2)
    h = ops.add(residual, h)
    h = ops.conv1d(h, p.weight("depth.w", [18, 5, 1]), p.weight("depth.b", [18]), groups=18, pad_left=4)
    y = ops.conv1d(ops.leaky_relu(h, 0.1), p.weight("down.w", [7, 4, 18]), stride=2, pad_left=1, pad_right=1)
    p.outputs = [ops.tanh(y), gate]
    return p


def grouped_program() -> Program:
    """Two groups, odd group sizes; a linear without bias on rows without time; bf16 products; rank 4 broadcasting."""
    p = Program("grouped")
    x, rows = p.input("x", ["B", "2*T+1", 6]), p.input("rows", ["B", 9])
    grid, column = p.input("grid", ["B", "T", 5, 3]), p.input("column", ["T", 1, 3])
    y = ops.conv1d(x, p.weight("w", [10, 3, 3]), groups=2, stride=3, pad_left=1)
    z = ops.linear(rows, p.weight("rows.w", [5, 9]), precision="bf16")
    middle = p.input("middle", ["B", 1, 5, 1])
    p.outputs = [y, z, ops.mul(ops.add(grid, column), middle), ops.reshape(z, [x.shape[0], 5, 1])]
    return p


ARITY = {name: len(row.inputs) for name, row in opset.OPS.items() if row.pointwise and name != "pointwise"}


def pointwise_program() -> Program:
    """Every pointwise op as an output of its own. The second half of a is positive, b is never zero."""
    p = Program("every_pointwise_op")
    a, b = p.input("a", ["N"]), p.input("b", ["N"])
    operands = [a, b, p.input("c", ["N"])]
    for name, arity in ARITY.items():
        given = [ops.abs(a)] if name in ("log", "sqrt") else operands[:arity]
        if name == "where":
            given = [ops.greater(a, 0.0), b, float("-inf")]
        attrs = {"slope": 0.2} if name == "leaky_relu" else {}
        p.outputs.append(getattr(ops, name)(*given, *attrs.values()))
    return p


def random_weights(program: Program, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    made = {}
    for name, v in program.weights.items():
        fan_in = int(np.prod(v.shape[1:])) or 1
        made[name] = (rng.standard_normal(v.shape) / np.sqrt(fan_in)).astype(np.float32)
        if name == "alpha":
            made[name] = np.abs(made[name]) + np.float32(0.5)
    return made


def random_inputs(program: Program, sizes: dict[str, int], seed: int = 1) -> Arrays:
    rng = np.random.default_rng(seed)
    return {v.name: rng.standard_normal([d if isinstance(d, int) else d.evaluate(sizes) for d in v.shape], np.float32)
            for v in program.inputs}


def assert_close(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.shape == b.shape
        worst = np.max(np.abs(a - b)) / np.max(np.abs(b))
        assert worst <= TOLERANCE, f"output {i}: {worst:.2e}"


def check_everywhere(program: Program, sizes: list[dict[str, int]], backend: WebGpuBackend, node: Node) -> None:
    weights = random_weights(program)
    inputs = [random_inputs(program, s, seed) for seed, s in enumerate(sizes)]
    expected = [NumpyBackend().load(program, weights).run(i) for i in inputs]
    executable = backend.load(program, weights)
    for i, e in zip(inputs, expected, strict=True):
        assert_close(executable.run(i), e)
    names = [t.name for t in executable.plan.outputs]
    for outputs, e in zip(node.play(executable.plan, weights, *inputs), expected, strict=True):
        assert_close([outputs[n] for n in names], e)


# --- one Plan everywhere ----------------------------------------------------------------------------------------------
SIZES = [{"B": 1, "T": 11}, {"B": 2, "T": 70}]


def test_the_plan_is_the_recorded_one() -> None:
    text = lower(fuse(proof_program())).to_json()
    if os.environ.get("SONANT_RECORD") == "1":
        RECORDED.write_text(text)
    assert text == RECORDED.read_text()
    assert WebGpuPlan.from_json(text).to_json() == text


@pytest.mark.parametrize("sizes", SIZES)
def test_proof_equals_numpy_through_wgpu(backend: WebGpuBackend, sizes: dict[str, int]) -> None:
    program = proof_program()
    weights, inputs = random_weights(program), random_inputs(program, sizes)
    assert_close(backend.load(program, weights).run(inputs), NumpyBackend().load(program, weights).run(inputs))


def test_proof_equals_numpy_through_node(node: Node) -> None:
    """The recorded file itself, at two sizes."""
    program = proof_program()
    weights, inputs = random_weights(program), [random_inputs(program, s) for s in SIZES]
    names = [t.name for t in WebGpuPlan.from_json(RECORDED.read_text()).outputs]
    for given, outputs in zip(inputs, node.play(RECORDED, weights, *inputs), strict=True):
        assert_close([outputs[n] for n in names], NumpyBackend().load(program, weights).run(given))


def test_groups_broadcasting_and_bf16(backend: WebGpuBackend, node: Node) -> None:
    check_everywhere(grouped_program(), [{"B": 1, "T": 3}, {"B": 3, "T": 9}], backend, node)


def test_every_pointwise_op_is_in_the_table() -> None:
    assert set(EXPRESSIONS) == set(ARITY)


def test_every_pointwise_op(backend: WebGpuBackend, node: Node) -> None:
    program = pointwise_program()
    rng = np.random.default_rng(3)
    edges = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e-8, -1e-3, 3.14159265, 8.0, -8.0, 30.0, -30.0, 87.0, -87.0,
             1e4, -1e4]
    a = np.concatenate([np.float32(edges), rng.standard_normal(200, np.float32) * 4])
    b = np.where(np.abs(a) < 1, np.float32(-0.75), a[::-1]) + (a[::-1] == 0)
    inputs = {"a": a, "b": b.astype(np.float32), "c": np.roll(a, 7)}
    with np.errstate(all="ignore"):
        expected = NumpyBackend().load(program, {}).run(inputs)
    executable = backend.load(program, {})
    outputs = node.play(executable.plan, {}, inputs)[0]
    for name, here, tensor, e in zip(ARITY, executable.run(inputs), executable.plan.outputs, expected, strict=True):
        for found in (here, outputs[tensor.name]):
            np.testing.assert_allclose(found, e, rtol=TOLERANCE, atol=1e-6, err_msg=name)


def test_atan2_and_log_at_their_special_points(backend: WebGpuBackend, node: Node) -> None:
    p = Program("special")
    y, x = p.input("y", ["N"]), p.input("x", ["N"])
    p.outputs = [ops.atan2(y, x), ops.log(x)]
    inputs = {"y": np.float32([0, -0.0, 0, -0.0, 1, -1, 0, 3]), "x": np.float32([-1, -1, 1, 1, 0, 0, 0, 1e-30])}
    with np.errstate(all="ignore"):
        expected = NumpyBackend().load(p, {}).run(inputs)
    plan = lower(fuse(p))
    outputs = node.play(plan, {}, inputs)[0]
    for found in (backend.load(p, {}).run(inputs), [outputs[t.name] for t in plan.outputs]):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
        assert list(np.signbit(found[0])) == list(np.signbit(expected[0]))


def test_every_kernel_file_is_compiled_by_these_tests() -> None:
    plans = [lower(fuse(p())) for p in (proof_program, grouped_program, pointwise_program)]
    assert {f for p in plans for k in p.kernels for f in k.files} == {f.name for f in SHADERS.glob("*.wgsl")}
    assert {row.file for row in kernels.rows().values()} | {"math.wgsl"} == {f.name for f in SHADERS.glob("*.wgsl")}
    assert all(row.compilers == ("naga", "tint") for row in kernels.rows().values())


# --- lowering ---------------------------------------------------------------------------------------------------------
def test_a_result_takes_over_the_memory_of_its_residual(backend: WebGpuBackend) -> None:
    p = Program("donor")
    x = p.input("x", ["B", "T", 4])
    w = p.weight("w", [4, 4])
    a = ops.linear(x, w)
    b = ops.add(ops.linear(ops.exp(a), w), a)
    p.outputs = [ops.linear(b, w)]
    plan = lower(fuse(p))
    assert len(plan.dispatches[-2].bindings) == 3  # x, w, and one buffer for the residual and the result
    weights, inputs = random_weights(p), random_inputs(p, {"B": 2, "T": 5})
    assert_close(backend.load(p, weights).run(inputs), NumpyBackend().load(p, weights).run(inputs))


def test_a_fusion_with_too_many_operands_is_undone(backend: WebGpuBackend) -> None:
    p = Program("wide")
    x = p.input("x", ["B", "T", 4])
    before = [p.input(f"p{i}", ["B", 1, 4]) for i in range(5)]
    after = [p.input(f"e{i}", ["B", "T", 3]) for i in range(5)]
    y = x
    for v in before:
        y = ops.mul(y, v)
    y = ops.linear(y, p.weight("w", [3, 4]), p.weight("b", [3]))
    for v in after:
        y = ops.add(y, v)
    p.outputs = [y]
    plan = lower(fuse(p))
    assert [d.node.split()[0] for d in plan.dispatches] == ["pointwise", "linear", "pointwise"]
    assert max(len(d.bindings) for d in plan.dispatches) <= 8
    weights, inputs = random_weights(p), random_inputs(p, {"B": 2, "T": 5})
    assert_close(backend.load(p, weights).run(inputs), NumpyBackend().load(p, weights).run(inputs))


def test_kernels_are_shared_between_layers_of_different_sizes() -> None:
    p = Program("shared")
    x = p.input("x", ["B", "T", 4])
    for i, (n, c) in enumerate([(6, 4), (5, 6), (9, 5), (3, 9), (4, 3)]):
        x = ops.relu(ops.linear(x, p.weight(f"w{i}", [n, c])))
    p.outputs = [x]
    assert [d.kernel for d in lower(fuse(p)).dispatches] == [0, 1, 1, 1, 2]  # without relu before; with; and after too


def test_a_long_line_of_workgroups_is_folded() -> None:
    p = Program("long")
    x = p.input("x", ["T"])
    p.outputs = [ops.exp(x)]
    plan = lower(fuse(p))
    values = compile_all(plan.expressions(), ["T"])
    for size in (1, 64, 65535 * 64, 65535 * 64 + 1, 30_000_000):
        at = values({"T": size})
        across, lines, _ = (at[w] for w in plan.dispatches[0].workgroups)
        assert across <= 65535
        assert 0 <= across * lines * 64 - size < 64 * (lines + 1)


def test_packing() -> None:
    w = np.arange(30, dtype=np.float32).reshape(5, 3, 2)
    packed = pack(w, "kcn4", "f32")
    assert packed.shape == (3, 2, 8)
    assert packed.size == packed_elements(w.shape, "kcn4")
    assert np.array_equal(packed[..., :5], w.transpose(1, 2, 0))
    assert not packed[..., 5:].any()
    assert pack(np.float32([1 / 3]), "plain", "bf16")[0] == np.float32(0.333984375)


# --- refusals ---------------------------------------------------------------------------------------------------------
def test_an_op_without_a_kernel_is_named() -> None:
    p = Program("up")
    p.outputs = [ops.conv_transpose1d(p.input("x", ["B", "T", 4]), p.weight("w", [4, 3, 4]))]
    with pytest.raises(BackendError, match=r"no kernel for conv_transpose1d .*; it has linear, conv1d, pointwise"):
        lower(fuse(p))


def test_states_are_refused(backend: WebGpuBackend) -> None:
    p = Program("streaming")
    rows = p.input("rows", ["B"], "i32")
    p.add_state("left", "context", [2, 4])
    p.outputs = [ops.conv1d(p.input("x", ["B", "T", 4]), p.weight("w", [4, 3, 4]), rows=rows, state="left")]
    with pytest.raises(BackendError, match="keeps states: left"):
        lower(fuse(p))
    q = proof_program()
    with pytest.raises(BackendError, match="no states yet"):
        backend.load(q, random_weights(q)).create_states(1)


def test_integers_and_unbound_sizes_are_refused() -> None:
    p = Program("ids")
    x = p.input("x", ["T"], "i32")
    p.outputs = [ops.add(x, x)]
    with pytest.raises(BackendError, match="i32"):
        lower(fuse(p))
    q = Program("unbound")
    q.outputs = [ops.exp(q.input("x", ["T*F"]))]
    with pytest.raises(BackendError, match="gives F, T"):
        lower(fuse(q))


def test_without_wgpu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sonant\[webgpu\]'"):
        WebGpuBackend()


def test_an_unknown_adapter_is_named(backend: WebGpuBackend) -> None:
    with pytest.raises(BackendError, match="no GPU named 'abacus' here: "):
        WebGpuBackend(adapter="abacus")


def test_missing_weights_bad_plans_and_cancelled_runs(backend: WebGpuBackend) -> None:
    program = proof_program()
    weights = random_weights(program)
    with pytest.raises(BackendError, match=r"weight gain \[13\] .* nothing"):
        backend.load(program, {k: v for k, v in weights.items() if k != "gain"})
    with pytest.raises(BackendError, match="format 0"):
        WebGpuPlan.from_json(RECORDED.read_text().replace('"format": 1', '"format": 0'))
    with pytest.raises(BackendError, match="not a webgpu Plan"):
        WebGpuPlan.from_json("[]")
    with pytest.raises(BackendError, match=r"a Plan holds .*; only"):
        compile_all(["__import__('os')"], ["T"])
    with pytest.raises(BackendError, match="must be an identifier"):
        compile_all(["T"], ["T=print()"])
    with pytest.raises(BackendError, match="not the name of a shader file"):
        kernels.shader_text("../errors.py")
    flag = CancelFlag()
    flag.set()
    with pytest.raises(Cancelled):
        backend.load(program, weights).run(random_inputs(program, SIZES[0]), cancel=flag)


def test_peak_bytes_counts_what_a_run_allocates(backend: WebGpuBackend) -> None:
    p = Program("peak")
    p.outputs = [ops.exp(p.input("x", ["T"]))]
    assert backend.load(p, {}).peak_bytes({"T": 100}) == 800


def test_the_parts_of_the_node_player() -> None:
    if shutil.which("node") is None:
        unavailable("node is not installed")
    done = subprocess.run(["node", "--test", f"{ROOT / 'tests' / 'web'}/"], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout
