"""Plans in files: the same as new ones, found by what they were made of, made anew where the file is damaged."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from random_programs import inputs_of, programs, weights_of

from sonant.backends.native import NativeBackend, kept
from sonant.backends.native.kept import kept_names, plan_name, read_plan, write_plan
from sonant.backends.native.lower import NativePlan, lower
from sonant.backends.native.packed import pack_name
from sonant.errors import BackendError, ProgramError
from sonant.program import ops, recipe
from sonant.program.program import Program
from sonant.program.recipe import Recipe

WEIGHTS = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "v": np.ones((3, 4), np.float32)}
recorded: list[str] = []
"""The weights of the Programs that were recorded, in order."""


def network(weight: str = "w", *, offset: float = 0.5) -> Program:
    recorded.append(weight)
    p = Program("network")
    x = p.input("x", (1, "T", 4))
    y = ops.linear(ops.slice(x, 1, 1, x.shape[1]), p.weight(weight, (3, 4)))
    p.outputs = [ops.add(y, p.constant([offset, 1.0, 2.0]))]
    return p


@pytest.fixture(autouse=True)
def _nothing_recorded() -> None:
    recorded.clear()


def run(given: Recipe | Program, cache: Path, weights: dict[str, np.ndarray] = WEIGHTS) -> bytes:
    x = np.arange(20, dtype=np.float32).reshape(1, 5, 4)
    return NativeBackend(threads=1).load(given, weights, cache=cache).run({"x": x})[0].tobytes()


def plan_file(folder: Path) -> Path:
    (found,) = folder.glob("native-*.plan")
    return found


def same(one: NativePlan, other: NativePlan) -> None:
    for name in kept._ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.name, one.dims, list(one.pack_shapes.items())) == (other.name, other.dims,
                                                                   list(other.pack_shapes.items()))
    assert [(c.dtype, c.shape, c.tobytes()) for c in one.constants] == [
        (c.dtype, c.shape, c.tobytes()) for c in other.constants]
    assert list(one.bounds.bounds.items()) == list(other.bounds.bounds.items())
    assert one.bounds.name == other.bounds.name
    assert list(one.declared.states.items()) == list(other.declared.states.items())
    for kind in ("inputs", "outputs"):
        assert [(v.name, v.dtype, v.shape) for v in getattr(one.declared, kind)] == [
            (v.name, v.dtype, v.shape) for v in getattr(other.declared, kind)]


@given(program=programs(most=10))
def test_a_plan_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, program: Program) -> None:
    path, plan = tmp_path_factory.mktemp("plans") / "a.plan", lower(program)
    write_plan(path, plan)
    found = read_plan(path)
    same(found, plan)
    backend = NativeBackend(threads=1)
    weights, values = weights_of(program), inputs_of(program, 3, 0)
    fresh = backend.load(program, weights)
    runs = [type(fresh)(backend, program, p, fresh.packed) for p in (plan, found)]
    one, other = ([y.tobytes() for y in e.run(values, states=e.create_states(2))] for e in runs)
    assert one == other


def test_a_second_load_records_nothing(tmp_path: Path) -> None:
    wanted = run(network(), tmp_path)
    recorded.clear()
    assert [run(Recipe(network), tmp_path, w) for w in (WEIGHTS, {}, {})] == [wanted] * 3
    assert recorded == ["w"]
    assert {p.name for p in tmp_path.iterdir()} == kept_names([Recipe(network)])
    assert plan_file(tmp_path).name == plan_name(Recipe(network))


def test_the_program_of_a_kept_plan_is_recorded_for_who_asks(tmp_path: Path) -> None:
    run(Recipe(network), tmp_path)
    recorded.clear()
    executable = NativeBackend(threads=1).load(Recipe(network), {}, cache=tmp_path)
    assert executable.peak_bytes({"T": 5}) > 0
    with pytest.raises(ProgramError, match=r"slice in network cannot run at \{'T': 0\}: it needs 0 <= T-1"):
        executable.peak_bytes({"T": 0})
    assert recorded == []
    assert [n.op for n in executable.nodes] == ["slice", "linear"]
    assert recorded == ["w"]


def test_what_was_given_and_the_code_are_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [plan_name(Recipe(network)), plan_name(Recipe(network, "v")), plan_name(Recipe(network, offset=0.25)),
             plan_name(Recipe(network), {"T": 9})]
    monkeypatch.setattr(kept, "folder_digest", lambda folder: "another lowering")
    names.append(plan_name(Recipe(network)))
    monkeypatch.undo()
    monkeypatch.setattr(recipe, "code_digest", lambda family: "another family")
    names.append(plan_name(Recipe(network)))
    monkeypatch.undo()
    assert None not in names
    assert len(set(names)) == len(names)
    assert plan_name(Recipe(network)) == names[0]
    first = run(Recipe(network, "w"), tmp_path)
    assert run(Recipe(network, "v"), tmp_path) != first


def test_a_digest_is_of_the_names_and_the_content_of_the_sources(tmp_path: Path) -> None:
    def digest(**files: str) -> str | None:
        for path in tmp_path.iterdir():
            path.unlink()
        for name, content in files.items():
            (tmp_path / f"{name}.py").write_text(content)
        recipe.folder_digest.cache_clear()
        return recipe.folder_digest(tmp_path)

    found = [digest(a="x = 1", b=""), digest(a="x = 2", b=""), digest(a="", b="x = 1"), digest(a="x = 1"),
             digest(a="x = 1", c="")]
    assert len(set(found)) == len(found)
    assert digest(b="", a="x = 1") == found[0]
    assert digest() is None


def test_without_sources_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "folder_digest", lambda folder: None)
    assert plan_name(Recipe(network)) is None
    for _ in range(2):
        run(Recipe(network), tmp_path)
    assert recorded == ["w", "w"]
    assert [p.name for p in tmp_path.iterdir()] == [pack_name([network()])]


@pytest.mark.parametrize("damage", ["a bit", "cut off", "empty", "another format"])
def test_a_damaged_plan_is_made_anew_with_a_note(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    wanted = run(Recipe(network), tmp_path)
    path = plan_file(tmp_path)
    whole = path.read_bytes()
    other = b"\x02\0\0\0\0\0\0\0{}"
    path.write_bytes({"a bit": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], "cut off": whole[:-8], "empty": b"",
                      "another format": hashlib.sha256(other).digest() + other}[damage])
    with pytest.raises(BackendError):
        read_plan(path)
    assert run(Recipe(network), tmp_path) == wanted
    (note,) = caplog.messages
    assert str(path) in note
    assert "made anew" in note
    assert path.read_bytes() == whole


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who may write everywhere has no read-only folder")
def test_a_read_only_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o500)
    _cannot_be_kept(tmp_path, caplog)


def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    _cannot_be_kept(tmp_path / "file", caplog)


def _cannot_be_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It works, packed in memory, and says so."""
    assert run(Recipe(network), folder) == run(network(), folder)
    assert sum("not kept" in m for m in caplog.messages) == 1
    assert sum("packed in memory, at every start" in m for m in caplog.messages) == 2
