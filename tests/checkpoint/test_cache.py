"""The conversion cache: keys, atomic files, two processes at once, and folders by custom."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from sonant.checkpoint.cache import (
    ConversionCache,
    TempFile,
    content_sha256,
    default_cache_root,
    quick_key,
    write_atomic,
)
from sonant.errors import CheckpointError


class TestDefaultRoot:
    def test_xdg(self, tmp_path):
        assert default_cache_root({"XDG_CACHE_HOME": str(tmp_path)}, "linux") == tmp_path / "sonant"
        home = Path.home() / ".cache" / "sonant"
        assert default_cache_root({}, "linux") == home
        assert default_cache_root({"XDG_CACHE_HOME": "relative"}, "linux") == home

    def test_others(self, tmp_path):
        assert default_cache_root({}, "darwin") == Path.home() / "Library" / "Caches" / "sonant"
        assert default_cache_root({"LOCALAPPDATA": str(tmp_path)}, "win32") == tmp_path / "sonant" / "Cache"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.bin"
    path.write_bytes(b"weights")
    return path


def cache_in(tmp_path, salt="1"):
    return ConversionCache(tmp_path / "cache", "model", "model.bin", salt)


class Builder:
    def __init__(self):
        self.calls = 0

    def __call__(self, target: Path, sha256: str) -> None:
        self.calls += 1
        write_atomic(target, f"built from {sha256}".encode())


def usable(path: Path) -> bool:
    return path.read_bytes().startswith(b"built")


class TestKeys:
    def test_content_of_joined_files(self, tmp_path):
        for i, part in enumerate((b"ab", b"c")):
            (tmp_path / str(i)).write_bytes(part)
        assert content_sha256([tmp_path / "0", tmp_path / "1"]) == hashlib.sha256(b"abc").hexdigest()

    def test_quick_key_follows_path_size_and_time(self, source, tmp_path):
        before = quick_key([source])
        assert quick_key([source]) == before
        assert quick_key([source], "salt") != before
        os.utime(source, ns=(1, 1))
        touched = quick_key([source])
        assert touched != before
        source.write_bytes(b"longer weights")
        os.utime(source, ns=(1, 1))
        assert quick_key([source]) != touched

    def test_missing(self, tmp_path):
        for key in (quick_key, content_sha256):
            with pytest.raises(CheckpointError, match="nothing"):
                key([tmp_path / "nothing"])


class TestConversion:
    def test_once(self, tmp_path, source):
        cache, build = cache_in(tmp_path), Builder()
        assert cache.find([source]) is None
        target = cache.get([source], build, usable)
        assert cache.find([source]) == target == cache.get([source], build, usable)
        assert build.calls == 1
        assert target.parent.name.startswith("model-")
        assert content_sha256([source]).encode() in target.read_bytes()

    def test_a_touched_or_moved_source_is_not_converted_again(self, tmp_path, source):
        cache, build = cache_in(tmp_path), Builder()
        target = cache.get([source], build, usable)
        os.utime(source, ns=(1, 1))
        assert cache.get([source], build, usable) == target
        moved = source.rename(tmp_path / "moved.bin")
        assert cache.get([moved], build, usable) == target
        assert build.calls == 1

    def test_other_content_and_other_format(self, tmp_path, source):
        build = Builder()
        first = cache_in(tmp_path).get([source], build, usable)
        assert cache_in(tmp_path, "2").get([source], build, usable) != first
        source.write_bytes(b"others!")
        os.utime(source, ns=(1, 1))
        assert cache_in(tmp_path).get([source], build, usable) != first
        assert build.calls == 3

    def test_a_damaged_or_deleted_result_is_made_again(self, tmp_path, source):
        cache, build = cache_in(tmp_path), Builder()
        target = cache.get([source], build, usable)
        target.write_bytes(b"brok")
        assert usable(cache.get([source], build, usable))
        target.unlink()
        assert usable(cache.get([source], build, usable))
        assert build.calls == 3

    @pytest.mark.parametrize("index", [b"", b"[]", b"{}", b'{"key":"../../x","size_bytes":1}', b'{"key":1}', b"\xff"])
    def test_a_damaged_index_is_made_again(self, tmp_path, source, index):
        cache, build = cache_in(tmp_path), Builder()
        target = cache.get([source], build, usable)
        (file,) = (tmp_path / "cache" / "by-stat").iterdir()
        file.write_bytes(index)
        assert cache.find([source]) is None
        assert cache.get([source], build, usable) == target
        assert json.loads(file.read_bytes())["size_bytes"] == target.stat().st_size

    def test_a_build_that_fails_leaves_nothing(self, tmp_path, source):
        def fail(target: Path, sha256: str) -> None:
            raise CheckpointError("no")

        with pytest.raises(CheckpointError):
            cache_in(tmp_path).get([source], fail, usable)
        assert not (tmp_path / "cache").exists()

    def test_another_process_was_first(self, tmp_path, source):
        def second(target: Path, sha256: str) -> None:
            write_atomic(target, b"built by the first")
            raise CheckpointError("cannot be replaced")

        assert usable(cache_in(tmp_path).get([source], second, usable))

    def test_a_cache_that_cannot_be_written(self, tmp_path, source):
        (tmp_path / "cache").write_bytes(b"")
        with pytest.raises(CheckpointError, match="cannot be written"):
            cache_in(tmp_path).get([source], Builder(), usable)


class TestTempFile:
    def test_commit_gives_size_and_name(self, tmp_path):
        temp = TempFile(tmp_path / "deep" / "x")
        temp.write(b"cd", offset=2)
        temp.write(b"ab")
        temp.commit(6)
        assert (tmp_path / "deep" / "x").read_bytes() == b"abcd\0\0"
        assert [p.name for p in (tmp_path / "deep").iterdir()] == ["x"]

    def test_discard(self, tmp_path):
        temp = TempFile(tmp_path / "x")
        temp.discard()
        temp.discard()
        assert list(tmp_path.iterdir()) == []

    def test_what_a_killed_process_left_is_swept(self, tmp_path):
        old, new = TempFile(tmp_path / "x"), TempFile(tmp_path / "x")
        os.utime(old.path, (1, 1))
        write_atomic(tmp_path / "x", b"whole")
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([new.path.name, "x"])
        old.discard()
        new.discard()

    def test_a_reader_keeps_the_file_it_opened(self, tmp_path):
        write_atomic(tmp_path / "x", b"old")
        with open(tmp_path / "x", "rb") as reader:
            write_atomic(tmp_path / "x", b"new")
            assert reader.read() == b"old"
        assert (tmp_path / "x").read_bytes() == b"new"


def _slow_build(target: Path, sha256: str) -> None:
    temp = TempFile(target)
    for i in range(20):
        temp.write(b"built...", offset=8 * i)
        time.sleep(0.005)
    temp.commit(160)


def _convert(root: Path, source: Path, barrier, results) -> None:
    barrier.wait(30)
    target = ConversionCache(root, "model", "model.bin", "1").get([source], _slow_build, usable)
    results.put((str(target), target.read_bytes()))


def test_processes_at_once(tmp_path, source):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    workers = [context.Process(target=_convert, args=(tmp_path / "cache", source, barrier, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert {content for _, content in found} == {b"built..." * 20}
    assert len({target for target, _ in found}) == 1
    assert [p.name for p in Path(found[0][0]).parent.iterdir()] == ["model.bin"]
