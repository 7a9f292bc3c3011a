"""A small model on a hub of our own."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sonant.hub import catalog
from sonant.hub import entry as entries

fake = runpy.run_path(str(Path(__file__).with_name("fake_hub.py")))

FILES = {
    "README.md": b"# tiny",
    "config.json": b'{"n_token": 3}',
    "model.pth": bytes(range(256)) * 1000,
    "samples/voices/x.pt": b"not a voice",
    "voices/af_bella.pt": b"bella" * 100,
    "voices/am_michael.pt": b"michael" * 100,
    "voices/README.md": b"no voice either",
}
CHUNK_BYTES = 10_000
LARGE = {"model.pth", "voices/af_bella.pt", "voices/am_michael.pt"}


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """The catalogue's entry of the small model; its digests are pinned."""
    pins = {"model.pth": {"sha256": hashlib.sha256(FILES["model.pth"]).hexdigest(), "size_bytes": 256_000}}
    # as a voice whose publisher states eight digits only
    pins["voices/af_bella.pt"] = {"sha256": hashlib.sha256(FILES["voices/af_bella.pt"]).hexdigest()[:8]}
    folder = tmp_path / "pins"
    folder.mkdir()
    (folder / "tiny.json").write_text(json.dumps({"files": pins}), "utf-8")
    monkeypatch.setattr(entries, "PINS", folder)
    made = catalog.CatalogEntry(
        name="tiny",
        family="kokoro",
        languages=("en-US",),
        parameters=1_000_000,
        licence="Apache-2.0",
        sources=(
            catalog.Source(
                repository=fake["REPOSITORY"],
                revision=fake["REVISION"],
                weights=("config.json", "model.pth"),
                voices=("voices", ".pt"),
            ),
        ),
        extra="tiny",
        download_bytes=257_000,
    )
    monkeypatch.setitem(catalog.CATALOG, "tiny", made)
    return made


@pytest.fixture
def hub(monkeypatch):
    """The server; nothing of the user's own huggingface_hub is seen, and no test waits between attempts."""
    library = pytest.importorskip("huggingface_hub", reason="pip install 'sonant[hub]'")
    from huggingface_hub import file_download

    monkeypatch.setattr(library.constants, "HF_HUB_CACHE", "no-such-folder")
    monkeypatch.setattr(library.constants, "HF_TOKEN_PATH", "no-such-file")
    # a broken connection loses the chunk that is on its way: 10 MB by default, more than our files have
    monkeypatch.setattr(library.constants, "DOWNLOAD_CHUNK_SIZE", CHUNK_BYTES)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda seconds: None))
    with fake["FakeHub"](files=dict(FILES), large=set(LARGE)).running() as running:
        yield running


class Command:
    """`sonant` in a process of its own, which knows the small model; keyword arguments are environment variables."""

    def __init__(self, entry, environment):
        self.environment = environment
        self.code = (
            "from pathlib import Path; from sonant.hub import catalog, entry; from sonant.hub.catalog import *; "
            f"entry.PINS = Path({str(entries.PINS)!r}); catalog.CATALOG[{entry.name!r}] = {entry!r}; "
            f"from huggingface_hub import constants; constants.DOWNLOAD_CHUNK_SIZE = {CHUNK_BYTES}; "
            "from sonant.cli.main import main; main()"
        )

    def start(self, *arguments, **more):
        return subprocess.Popen(
            [sys.executable, "-c", self.code, *arguments],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            **({"stderr": subprocess.DEVNULL} | more),
        )

    def __call__(self, *arguments, **environment):
        return subprocess.run(
            [sys.executable, "-c", self.code, *arguments],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def command(entry, hub, root, tmp_path):
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING", "SONANT_")) and "_proxy" not in k
    }
    ours = {"SONANT_CACHE": str(root), "HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
    path = {"PYTHONPATH": str(Path(catalog.__file__).parents[2])}
    return Command(entry, kept | ours | path)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "cache"
