"""Pulling from a hub that works, that breaks, and that lies."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sonant.errors import CheckpointError, MissingExtra, UnknownName
from sonant.hub.catalog import CATALOG
from sonant.hub.fetch import pull

WEIGHTS, BELLA, MICHAEL = "model.pth", "voices/af_bella.pt", "voices/am_michael.pt"
WANTED = {"config.json", WEIGHTS, BELLA, MICHAEL}


def files_in(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but what the cache keeps of its own."""
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: raw for name, raw in found.items() if not name.startswith((".listing", ".digests"))}


class TestCatalogue:
    @pytest.mark.parametrize("entry", CATALOG.values(), ids=list(CATALOG))
    def test_entries_are_pinned_or_say_why_not(self, entry):
        assert all(source.is_fixed for source in entry.sources) or "commit" in entry.trust
        pins = entry.pins()
        assert pins or entry.trust
        assert all(len(pins[path].sha256) == 64 for path in entry.weights if pins)
        assert all(len(pin.sha256) >= 8 and set(pin.sha256) <= set("0123456789abcdef") for pin in pins.values())

    @pytest.mark.parametrize("entry", CATALOG.values(), ids=list(CATALOG))
    def test_entries_make_sense(self, entry):
        assert entry.weights
        assert len({source.local(path) for source in entry.sources for path in source.weights}) == len(entry.weights)
        assert len([s for s in entry.sources if s.voices or s.voice_index]) == 1
        assert entry.open_twin is None or not any(s.gated for s in CATALOG[entry.open_twin].sources)
        assert entry.open_twin != entry.name
        languages = set(CATALOG[entry.open_twin].languages) if entry.open_twin else set()
        assert languages <= set(entry.languages)

    def test_another_commit_of_any_source_is_another_folder(self):
        entry = CATALOG["pocket-tts-2m-en"]
        folders = {entry.folder}
        for n, source in enumerate(entry.sources):
            moved = (*entry.sources[:n], replace(source, revision="f" * 40), *entry.sources[n + 1 :])
            folders.add(replace(entry, sources=moved).folder)
        assert len(folders) == 4

    def test_kokoro_has_its_54_voices(self):
        assert sum(path.startswith("voices/") for path in CATALOG["kokoro-82m"].pins()) == 54


class TestWhole:
    def test_everything(self, entry, hub, root):
        pulled = pull(entry, root, endpoint=hub.endpoint)
        assert pulled.folder == root / "hub" / "tiny" / entry.revision
        assert files_in(pulled.folder) == {path: hub.files[path] for path in WANTED}
        assert {file.path for file in pulled.fetched} == WANTED

    def test_the_big_file_comes_last(self, entry, hub, root):
        assert pull(entry, root, endpoint=hub.endpoint).files[-1].path == WEIGHTS

    def test_again_asks_nothing(self, entry, hub, root):
        pull(entry, root, endpoint=hub.endpoint)
        hub.requests.clear()
        assert pull(entry, root, endpoint=hub.endpoint).fetched == ()
        assert hub.requests == []

    def test_a_missing_file_alone_is_fetched(self, entry, hub, root):
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        (folder / BELLA).unlink()
        (folder / MICHAEL).write_bytes(b"short")
        assert {f.path for f in pull(entry, root, endpoint=hub.endpoint).fetched} == {BELLA, MICHAEL}
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}

    def test_some_voices_then_more(self, entry, hub, root):
        folder = pull(entry, root, voices=["am_michael"], endpoint=hub.endpoint).folder
        assert set(files_in(folder)) == {"config.json", WEIGHTS, MICHAEL}
        pull(entry, root, voices=["af_bella", "af_bella"], weights=False, endpoint=hub.endpoint)
        assert set(files_in(folder)) == WANTED

    def test_voices_alone(self, entry, hub, root):
        folder = pull(entry, root, voices=["af_bella"], weights=False, endpoint=hub.endpoint).folder
        assert set(files_in(folder)) == {BELLA}

    @pytest.mark.parametrize("name", ["af_bela", "../../etc/passwd", "voices/af_bella", "/etc/passwd", "README.md", ""])
    def test_voices_are_looked_up(self, entry, hub, root, name):
        with pytest.raises(UnknownName, match="unknown voice"):
            pull(entry, root, voices=[name], endpoint=hub.endpoint)
        assert [r for r in hub.requests if "/resolve/" in r.path] == []

    def test_the_token_goes_to_the_hub_alone(self, entry, hub, root, monkeypatch):
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        pull(entry, root, endpoint=hub.endpoint)
        to_hub = [r for r in hub.requests if not r.path.startswith("/store/")]
        to_store = [r for r in hub.requests if r.path.startswith("/store/")]
        assert {r.headers.get("authorization", r.headers.get("Authorization")) for r in to_hub} == {"Bearer hf_secret"}
        assert to_store
        assert not any("hf_secret" in str(r.headers) for r in to_store)

    def test_what_another_program_has_is_copied(self, entry, hub, root, tmp_path, monkeypatch):
        import huggingface_hub

        snapshot = tmp_path / "hf" / "models--someone--tiny" / "snapshots" / entry.revision
        snapshot.mkdir(parents=True)
        (snapshot / WEIGHTS).write_bytes(hub.files[WEIGHTS])
        (snapshot / "config.json").write_bytes(b"damaged")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        assert hub.asked(WEIGHTS) == []
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}

    def test_without_huggingface_hub(self, entry, root, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(MissingExtra, match=r"downloading models needs .*sonant\[hub\]"):
            pull(entry, root)


class TestBrokenConnections:
    def test_cut_in_the_middle(self, entry, hub, root):
        hub.cuts[WEIGHTS] = [100_000, 50_000]
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}
        ranges = [r.headers.get("range", r.headers.get("Range")) for r in hub.asked(WEIGHTS) if "/store/" in r.path]
        assert ranges == [None, "bytes=100000-", "bytes=150000-"]

    def test_the_next_call_goes_on(self, entry, hub, root):
        hub.cuts[WEIGHTS] = [200_000] + [0] * 100
        with pytest.raises(CheckpointError, match=r"someone/tiny: model\.pth: .*again goes on where it stopped"):
            pull(entry, root, endpoint=hub.endpoint)
        hub.cuts.clear()
        hub.requests.clear()
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        assert [r.headers.get("range", r.headers.get("Range")) for r in hub.asked(WEIGHTS)] == ["bytes=200000-"] * 2
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}

    def test_a_server_without_ranges(self, entry, hub, root):
        hub.ranges = False
        hub.cuts[WEIGHTS] = [200_000]
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}

    def test_too_long_a_part_is_begun_again(self, entry, hub, root):
        part = root / "hub" / "tiny" / entry.revision / ".partial" / WEIGHTS
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x" * 300_000)
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}

    def test_nobody_there(self, entry, hub, root):
        with pytest.raises(CheckpointError, match=r"someone/tiny: the list of files: cannot be reached.*sonant models"):
            pull(entry, root, endpoint="http://127.0.0.1:9")

    @pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
    @pytest.mark.parametrize(
        ("status", "headers", "says"),
        [
            (404, {"X-Error-Code": "EntryNotFound"}, r"not found at revision 0123456789ab"),
            (401, {"X-Error-Code": "GatedRepo"}, r"is gated: accept its licence at .*/someone/tiny, then .* HF_TOKEN"),
            (403, {"X-Error-Code": "GatedRepo"}, r"is gated: accept its licence at .*/someone/tiny, then .* HF_TOKEN"),
            (401, {"X-Error-Code": "RepoNotFound"}, r"no such repository, or it is private.*HF_TOKEN"),
            (
                401,
                {"X-Error-Message": "Invalid credentials in Authorization header"},
                r"no access without the right token; run `hf auth login`, or set HF_TOKEN",
            ),
            (500, {}, r"500.*again goes on"),
        ],
    )
    def test_refusals(self, entry, hub, root, name, status, headers, says):
        hub.statuses[name] = (status, headers)
        with pytest.raises(CheckpointError, match=says) as caught:
            pull(entry, root, endpoint=hub.endpoint)
        assert f"someone/tiny: {name}: " in str(caught.value)
        assert not (root / "hub" / "tiny" / entry.revision / name).exists()

    @pytest.mark.parametrize(
        ("status", "headers", "says"),
        [
            (401, {"X-Error-Code": "GatedRepo"}, "is gated"),
            (401, {"X-Error-Code": "RepoNotFound"}, "no such repository, or it is private"),
            (401, {}, "no access without the right token"),
            (404, {"X-Error-Code": "RevisionNotFound"}, "has no revision 0123456789ab"),
        ],
    )
    def test_refused_listings(self, entry, hub, root, status, headers, says):
        hub.statuses["api"] = (status, headers)
        with pytest.raises(CheckpointError, match=says):
            pull(entry, root, endpoint=hub.endpoint)

    @pytest.mark.parametrize("answer", [b"<html>please log in</html>", b"[]", b'{"id": 3, "siblings": [3]}', b"{}"])
    def test_an_answer_that_is_no_listing(self, entry, hub, root, answer):
        hub.answer = answer
        with pytest.raises(CheckpointError, match="someone/tiny"):
            pull(entry, root, endpoint=hub.endpoint)


class TestLies:
    @pytest.mark.parametrize("name", [WEIGHTS, BELLA, "config.json"])
    def test_other_bytes_than_listed(self, entry, hub, root, name):
        hub.listed[name] = hub.files[name]
        hub.files[name] = hub.files[name][::-1]
        with pytest.raises(CheckpointError, match=rf"{name} arrived with .* wanted .*the file was deleted"):
            pull(entry, root, endpoint=hub.endpoint)
        folder = root / "hub" / "tiny" / entry.revision
        assert not (folder / name).exists()
        assert not (folder / ".partial" / name).exists()
        hub.files[name] = hub.listed[name]
        pull(entry, root, endpoint=hub.endpoint)
        assert files_in(folder) == {path: hub.files[path] for path in WANTED}

    @pytest.mark.parametrize("name", [WEIGHTS, BELLA])
    def test_another_file_than_pinned_is_not_even_fetched(self, entry, hub, root, name):
        hub.files[name] = hub.files[name][::-1]
        with pytest.raises(CheckpointError, match=rf"{name} is listed with SHA-256 .* pins .*refused"):
            pull(entry, root, endpoint=hub.endpoint)
        assert not any("/resolve/" in r.path for r in hub.requests)

    def test_another_size_than_pinned(self, entry, hub, root):
        hub.large.clear()
        hub.files[WEIGHTS] += b"x"
        with pytest.raises(CheckpointError, match=r"listed with 256001 bytes, sonant's catalogue pins 256000"):
            pull(entry, root, endpoint=hub.endpoint)

    def test_a_pin_that_the_listing_does_not_show(self, entry, hub, root):
        """A file that the server keeps in git has no SHA-256 in the listing; its content is checked all the same."""
        hub.large.clear()
        hub.files[WEIGHTS] = hub.files[WEIGHTS][::-1]
        with pytest.raises(CheckpointError, match=r"model\.pth arrived with SHA-256"):
            pull(entry, root, endpoint=hub.endpoint)

    @pytest.mark.parametrize(
        "name",
        [
            "../../x",
            "voices/../../x.pt",
            "/etc/passwd",
            "voices/..",
            "voices//x.pt",
            "a\\..\\b.pt",
            "C:/x.pt",
            "a\0b",
            "",
        ],
    )
    def test_names_that_leave_their_folder(self, entry, hub, root, name):
        hub.files[name] = b"evil"
        with pytest.raises(CheckpointError, match="would lie outside its folder; refused"):
            pull(entry, root, endpoint=hub.endpoint)
        assert [p for p in root.rglob("*") if p.is_file()] == [root / "hub" / "tiny.lock"]

    def test_a_kept_listing_is_not_trusted_either(self, entry, hub, root):
        folder = pull(entry, root, voices=[], endpoint=hub.endpoint).folder
        kept = json.loads((folder / ".listing.json").read_bytes())
        kept["files"].append({"path": "voices/../../x.pt", "size_bytes": 1, "sha256": None, "git_sha1": None})
        (folder / ".listing.json").write_text(json.dumps(kept), "utf-8")
        with pytest.raises(CheckpointError, match="refused"):
            pull(entry, root, endpoint=hub.endpoint)

    @pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"files": [3]}', b'{"files": []}'])
    def test_a_damaged_kept_listing_is_asked_for_again(self, entry, hub, root, raw):
        folder = pull(entry, root, endpoint=hub.endpoint).folder
        (folder / ".listing.json").write_bytes(raw)
        assert pull(entry, root, endpoint=hub.endpoint).fetched == ()

    def test_a_listing_without_the_model(self, entry, hub, root):
        del hub.files[WEIGHTS]
        with pytest.raises(CheckpointError, match=r"has no model\.pth at revision"):
            pull(entry, root, endpoint=hub.endpoint)

    def test_another_revision(self, entry, hub, root):
        hub.answer = hub.listing().replace(entry.revision.encode(), b"f" * 40)
        with pytest.raises(CheckpointError, match="answered revision fff"):
            pull(entry, root, endpoint=hub.endpoint)


def test_a_full_or_closed_disk(entry, hub, root, monkeypatch):
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (root / "hub" / "tiny" / entry.revision).mkdir(parents=True)
    monkeypatch.setattr("sonant.hub.listing.save", lambda *args: None)
    with pytest.raises(CheckpointError, match=r"cannot be written \(No space left on device\)"):
        pull(entry, root, endpoint=hub.endpoint)


class TestTwoAtOnce:
    def test_threads_fetch_each_file_once(self, entry, hub, root):
        results = []
        threads = [
            threading.Thread(target=lambda: results.append(pull(entry, root, endpoint=hub.endpoint))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(len(result.fetched) for result in results) == [0, 0, 0, 4]
        assert len([r for r in hub.asked(WEIGHTS) if "/store/" in r.path]) == 1

    def test_processes(self, command, hub, root):
        runs = [command.start("models", "pull", "tiny") for _ in range(2)]
        assert [run.wait(60) for run in runs] == [0, 0]
        assert len([r for r in hub.asked(WEIGHTS) if "/store/" in r.path]) == 1


class TestEnvironment:
    """The command in a process of its own: huggingface_hub reads its variables when it is imported."""

    def test_pull(self, command, hub, entry, root):
        result = command("models", "pull", "tiny", "--voice", "af_bella")
        assert result.returncode == 0, result.stderr
        folder = root / "hub" / "tiny" / entry.revision
        assert result.stdout == f"{folder}\n"
        assert set(files_in(folder)) == {"config.json", WEIGHTS, BELLA}

    def test_no_progress_bars_without_a_terminal(self, command):
        assert command("models", "pull", "tiny").stderr == (
            "someone/tiny at 0123456789ab, Apache-2.0\n4 files fetched (257 kB), 0 were here\n"
        )

    @pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
    def test_progress_bars_on_a_terminal(self, command):
        fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        run = command.start("models", "pull", "tiny", stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            shown += block
        os.close(ours)
        assert run.wait(60) == 0
        assert b"model.pth" in shown
        assert b"100%" in shown

    def test_offline(self, command, root):
        result = command("models", "pull", "tiny", HF_HUB_OFFLINE="1")
        assert result.returncode == 3
        assert "HF_HUB_OFFLINE forbids to fetch it" in result.stderr
        assert result.stderr.count("\n") == 2
        assert command("models", "pull", "tiny", "--voice", "af_bella").returncode == 0
        assert command("models", "pull", "tiny", "--voice", "af_bella", HF_HUB_OFFLINE="1").returncode == 0
        result = command("models", "pull", "tiny", HF_HUB_OFFLINE="1")
        assert result.returncode == 3
        assert "voices/am_michael.pt: not here, and HF_HUB_OFFLINE" in result.stderr

    def test_no_network(self, command):
        result = command("models", "pull", "tiny", HF_ENDPOINT="http://127.0.0.1:9")
        assert result.returncode == 3
        assert "cannot be reached" in result.stderr
        assert "Traceback" not in result.stderr

    def test_token(self, command, hub):
        command("models", "pull", "tiny", HF_TOKEN="hf_of_the_user")
        listing = next(r for r in hub.requests if r.path.startswith("/api/models/"))
        assert "Bearer hf_of_the_user" in str(listing.headers)

    def test_a_killed_pull_is_gone_on_with(self, command, hub, root):
        hub.cuts[WEIGHTS] = [200_000] + [0] * 100
        run = command.start("models", "pull", "tiny", stderr=subprocess.DEVNULL)
        part = next(iter_until(lambda: [p for p in root.rglob("model.pth") if p.stat().st_size == 200_000]))
        run.kill()
        run.wait()
        assert ".partial" in part.parts
        hub.cuts.clear()
        hub.requests.clear()
        assert command("models", "pull", "tiny").returncode == 0
        assert [r.headers.get("range", r.headers.get("Range")) for r in hub.asked(WEIGHTS)] == ["bytes=200000-"] * 2


def iter_until(look):
    """What `look` finds, as soon as it finds something; at most 30 s."""
    waiting = threading.Event()
    for _ in range(600):
        if found := look():
            yield from found
            return
        waiting.wait(0.05)
    raise AssertionError("never happened")


def test_sha256_of_the_weights_is_that_of_the_model_card():
    """README.md of the repository states it; whoever changes the catalogue changes it here too."""
    pin = CATALOG["kokoro-82m"].pins()["kokoro-v1_0.pth"]
    assert pin.sha256 == "496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4"
