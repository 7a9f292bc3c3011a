"""`sonant models`, run as a user runs it. Downloads are tested in tests/hub, against a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sonant.cli.main import main
from sonant.families.kokoro import weights as kokoro
from sonant.hub.catalog import CATALOG
from sonant.hub.lock import locked

ENTRY = CATALOG["kokoro-82m"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache; nothing is installed."""
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kokoro, "installed_parts", lambda: None)
    return tmp_path / "cache"


@pytest.fixture
def pulled(root: Path) -> Path:
    folder = root / "hub" / "kokoro-82m" / ENTRY.revision
    (folder / "voices").mkdir(parents=True)
    for name in (*ENTRY.weights, "voices/af_bella.pt", "voices/am_michael.pt"):
        (folder / name).write_bytes(b"x" * 1_000_000)
    return folder


@pytest.fixture
def converted(root: Path) -> Path:
    folder = root / "kokoro-82m-0123456789abcdef"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 2_000_000)
    return folder


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["models", *arguments], input=given)


class TestList:
    def test_nothing_here_says_how_to_get_it(self, root: Path) -> None:
        assert run("list").output == run().output
        line = run("list").output.splitlines()[0]
        for part in ("kokoro-82m", "82 M", "en-US,en-GB", "Apache-2.0", "sonant models pull kokoro-82m (355 MB)"):
            assert part in line
        assert "pip install 'sonant[kokoro]'" in line
        assert not root.exists()

    def test_models_without_an_extra(self, root: Path) -> None:
        lines = {line.split()[0]: line for line in run("list").output.splitlines()}
        assert list(lines) == list(CATALOG)
        assert lines["phonon-31m-en"].endswith("Apache-2.0    sonant models pull phonon-31m-en")
        assert lines["pocket-tts-2m-en-cloning"].endswith("sonant models pull pocket-tts-2m-en-cloning (gated)")

    def test_what_is_here(self, pulled: Path, converted: Path) -> None:
        assert "pulled 4 MB, converted 2 MB, 2 pulled voices" in run("list").output

    def test_json(self, pulled: Path, converted: Path) -> None:
        state, *others = json.loads(run("list", "--json").output)
        assert not any(other["pulled"] or other["installed"] or other["converted"] for other in others)
        assert state["repositories"] == [{"name": ENTRY.source, "revision": ENTRY.revision, "gated": False}]
        assert [state["pinned"], others[0]["pinned"]] == [True, False]
        assert state["revision"] == ENTRY.revision
        assert state["languages"][:2] == ["en-US", "en-GB"]
        assert (state["installed"], state["pulled"], state["converted"]) == (False, True, True)
        assert (state["pulled_bytes"], state["converted_bytes"]) == (4_000_000, 2_000_000)
        assert state["pulled_voices"] == ["af_bella", "am_michael"]

    def test_installed_packages(self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        part = tmp_path / "part.bin"
        part.write_bytes(b"x" * 3_000_000)
        monkeypatch.setattr(kokoro, "installed_parts", lambda: [part])
        assert run("list").output.splitlines()[0].endswith("installed 3 MB")


class TestPath:
    def test_cache_and_model(self, root: Path, pulled: Path) -> None:
        assert run("path").output == f"{root}\n"
        assert run("path", "kokoro-82m").output == f"{pulled}\n"

    @pytest.mark.parametrize("name", ["kokoro-82m", "phonon-31m-en", "pocket-tts-en"])
    def test_not_here(self, root: Path, name: str) -> None:
        result = run("path", name)
        assert result.exit_code == 3
        assert f"sonant models pull {name}" in result.stderr

    @pytest.mark.parametrize("verb", ["path", "rm", "pull"])
    def test_unknown(self, root: Path, verb: str) -> None:
        result = run(verb, "kokoro-82")
        assert result.exit_code == 2
        assert "unknown model 'kokoro-82'; did you mean 'kokoro-82m'?" in result.stderr
        assert run(verb, "../../etc").exit_code == 2


class TestRemove:
    def test_names_asks_and_removes(self, pulled: Path, converted: Path) -> None:
        result = run("rm", "kokoro-82m", given="n\n")
        assert f"{pulled.parent}  4 MB\n{converted}  2 MB\n" in result.output
        assert pulled.exists()
        assert run("rm", "kokoro-82m", "--dry-run").exit_code == 0
        assert pulled.exists()
        run("rm", "kokoro-82m", given="y\n")
        assert not pulled.exists()
        assert not converted.exists()

    def test_without_asking(self, pulled: Path, root: Path) -> None:
        assert run("rm", "-y", "kokoro-82m").exit_code == 0
        assert not pulled.exists()
        assert run("rm", "-y", "kokoro-82m").output == f"nothing of kokoro-82m is in {root}\n"


class TestGarbage:
    def test_dry_run_then_removal(self, converted: Path) -> None:
        """The fake converted file is damaged, so it is garbage."""
        line = f"{converted}  2 MB  damaged\n"
        dry = run("gc", "--dry-run")
        assert dry.stdout == line
        assert dry.stderr == "2 MB would be freed\n"
        assert converted.exists()
        wet = run("gc")
        assert wet.stdout == line
        assert wet.stderr == "2 MB freed\n"
        assert not converted.exists()
        assert run("gc").stdout == ""

    def test_while_another_process_pulls(self, root: Path, converted: Path) -> None:
        with locked(root / "hub" / "kokoro-82m.lock"):
            result = run("gc")
        assert "kokoro-82m is being pulled or removed by another process: left alone" in result.stderr
        assert converted.exists()


def test_pull_without_the_extra(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    result = run("pull", "kokoro-82m")
    assert result.exit_code == 1
    assert "downloading models needs an optional package: pip install 'sonant[hub]'" in result.stderr
