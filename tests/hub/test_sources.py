"""Models whose files come from several repositories, of moving branches, without pins, and behind a licence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sonant.errors import CheckpointError, UnknownName
from sonant.hub import gc, store
from sonant.hub.catalog import CATALOG, CatalogEntry, Source
from sonant.hub.fetch import pull

WEIGHTS, VOICES = "house/small", "house/voices"
FIRST, SECOND, THIRD = "a" * 40, "b" * 40, "c" * 40
CURRENT = gc.Current("model.safetensors", "f-1", lambda path: None)
INDEX = [
    {"name": "Zoé", "voice_id": "v-1", "language": "fr", "filename": "emb/zoe.safetensors"},
    {"name": "Max", "voice_id": "v-2", "language": "de", "filename": "emb/max.safetensors"},
    {"name": "Ghost", "voice_id": "v-3", "language": "en", "filename": "emb/ghost.safetensors"},
]


def lines(rows) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode() + b"\n"


@pytest.fixture
def house(hub):
    """Two repositories; the branch of the weights stands at the first commit."""
    weights = {"config.json": b"{}", "model.safetensors": b"one" * 99, "tokenizer.json": b"{}", "README.md": b""}
    voices = {"voices.jsonl": lines(INDEX), "emb/zoe.safetensors": b"zoe", "emb/max.safetensors": b"max"}
    hub.others = {(WEIGHTS, FIRST): weights, (VOICES, SECOND): voices}
    hub.branches = {(WEIGHTS, "main"): FIRST}
    return hub


@pytest.fixture
def entry(monkeypatch):
    made = CatalogEntry(
        name="small",
        family="phonon",
        languages=("en",),
        parameters=3,
        licence="CC-BY-NC-4.0",
        sources=(
            Source(
                repository=WEIGHTS,
                revision="main",
                weights=("config.json", "model.safetensors"),
                optional=("tokenizer.json", "tokenizer.9.json"),
                gated=True,
            ),
            Source(repository=VOICES, revision=SECOND, voice_index="voices.jsonl", into="voices-of-all"),
        ),
        trust="neither a commit nor digests are known",
        open_twin="tiny",
    )
    monkeypatch.setitem(CATALOG, "small", made)
    return made


def names(files) -> list[str]:
    return [file.path for file in files]


class TestSeveralRepositories:
    def test_everything(self, entry, house, root):
        pulled = pull(entry, root, endpoint=house.endpoint)
        assert names(pulled.files) == [
            "voices.jsonl",
            "emb/zoe.safetensors",
            "emb/max.safetensors",
            "tokenizer.json",
            "config.json",
            "model.safetensors",
        ]
        assert set(names(pulled.fetched)) == set(names(pulled.files))
        assert pulled.folder == root / "hub" / "small" / entry.folder
        assert (pulled.folder / "model.safetensors").read_bytes() == b"one" * 99
        assert (pulled.folder / "voices-of-all/emb/zoe.safetensors").read_bytes() == b"zoe"
        assert not (pulled.folder / ".partial").exists()

    def test_again_asks_nothing(self, entry, house, root):
        pull(entry, root, endpoint=house.endpoint)
        house.requests.clear()
        again = pull(entry, root, endpoint=house.endpoint)
        assert (len(again.files), again.fetched) == (6, ())
        assert house.requests == []

    @pytest.mark.parametrize("name", ["Zoé", "zoe", "ZOE", "v-1"])
    def test_a_voice_by_any_of_its_names(self, entry, house, root, name):
        pulled = pull(entry, root, voices=[name], weights=False, endpoint=house.endpoint)
        assert names(pulled.files) == ["voices.jsonl", "emb/zoe.safetensors"]
        assert store.pulled_voice_names(entry, root) == ["Zoé"]
        assert store.pulled_voices(entry, root) == pulled.folder / "voices-of-all"
        assert store.pulled_weights(entry, root) is None

    @pytest.mark.parametrize("name", ["Zoë Bell", "Ghost", "emb/zoe", "../x", ""])
    def test_a_voice_that_is_not_there(self, entry, house, root, name):
        with pytest.raises(UnknownName, match="unknown voice"):
            pull(entry, root, voices=[name], endpoint=house.endpoint)
        assert not any("model.safetensors" in r.path for r in house.requests)

    def test_no_voices_no_index(self, entry, house, root):
        assert "voices.jsonl" not in names(pull(entry, root, voices=[], endpoint=house.endpoint).files)

    def test_a_model_without_voices(self, entry, house, root):
        alone = replace(entry, sources=entry.sources[:1])
        assert len(pull(alone, root, endpoint=house.endpoint).files) == 3
        assert store.pulled_voices(alone, root) is None
        assert store.pulled_voice_names(alone, root) == []
        with pytest.raises(UnknownName, match="unknown voice 'zoe'"):
            pull(alone, root, voices=["zoe"], endpoint=house.endpoint)

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (b"{", "is no index of voices"),
            (b"[1]\n", "is no index of voices"),
            (b'{"name": "x"}\n', "is no index of voices"),
            (b"\xff\n", "is no index of voices"),
            (lines([INDEX[0] | {"filename": "../../evil.safetensors"}]), "refused"),
            (lines([INDEX[0] | {"name": "a\x1b[2Jb"}]), "refused"),
        ],
    )
    def test_an_index_that_is_none(self, entry, house, root, raw, says):
        house.others[VOICES, SECOND]["voices.jsonl"] = raw
        with pytest.raises(CheckpointError, match=says):
            pull(entry, root, endpoint=house.endpoint)

    def test_without_its_index(self, entry, house, root):
        del house.others[VOICES, SECOND]["voices.jsonl"]
        with pytest.raises(CheckpointError, match=r"house/voices: has no voices\.jsonl"):
            pull(entry, root, endpoint=house.endpoint)

    def test_two_commits_of_one_repository(self, house, root):
        """What one commit has beside the files that are taken from it is nobody's concern."""
        house.others = {
            (WEIGHTS, FIRST): {"model.safetensors": b"one", "tokenizer.json": b"old"},
            (WEIGHTS, SECOND): {"model.safetensors": b"another", "tokenizer.json": b"new"},
        }
        sources = (
            Source(repository=WEIGHTS, revision=FIRST, weights=("model.safetensors",)),
            Source(repository=WEIGHTS, revision=SECOND, weights=("tokenizer.json",)),
        )
        made = CatalogEntry(
            name="both", family="x", languages=(), parameters=1, licence="-", sources=sources, trust="none are known"
        )
        folder = pull(made, root, endpoint=house.endpoint).folder
        for listing in folder.glob(".listing*"):
            listing.unlink()
        (folder / "tokenizer.json").unlink()
        assert names(pull(made, root, endpoint=house.endpoint).fetched) == ["tokenizer.json"]
        assert [(folder / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")] == [b"one", b"new"]

    def test_remove_and_collect(self, entry, house, root):
        folder = pull(entry, root, endpoint=house.endpoint).folder
        assert gc.collect(entry, root, CURRENT) == ([], True)
        newer = replace(entry, sources=(entry.sources[0], replace(entry.sources[1], revision=THIRD)))
        house.others[VOICES, THIRD] = house.others[VOICES, SECOND]
        pull(newer, root, endpoint=house.endpoint)
        found, _ = gc.collect(newer, root, CURRENT)
        assert [one.path for one in found] == [folder]
        assert store.remove(newer, root) == [root / "hub" / "small"]


class TestFirstUse:
    """Nothing is pinned: what arrives first is noted, and kept to."""

    def test_digests_are_noted(self, entry, house, root):
        folder = pull(entry, root, endpoint=house.endpoint).folder
        noted = json.loads((folder / ".digests.json").read_bytes())
        assert set(noted) == {
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "voices-of-all/voices.jsonl",
            "voices-of-all/emb/zoe.safetensors",
            "voices-of-all/emb/max.safetensors",
        }
        assert noted["model.safetensors"]["size_bytes"] == 297

    def test_a_branch_that_moves_on_changes_nothing(self, entry, house, root):
        folder = pull(entry, root, endpoint=house.endpoint).folder
        house.others[WEIGHTS, THIRD] = house.others[WEIGHTS, FIRST] | {"model.safetensors": b"two" * 99}
        house.branches[WEIGHTS, "main"] = THIRD
        (folder / "model.safetensors").unlink()
        pull(entry, root, endpoint=house.endpoint)
        assert (folder / "model.safetensors").read_bytes() == b"one" * 99
        assert json.loads((folder / ".listing.json").read_bytes())["commit"] == FIRST

    def test_where_the_listing_was_lost_the_note_still_holds(self, entry, house, root):
        folder = pull(entry, root, endpoint=house.endpoint).folder
        house.others[WEIGHTS, THIRD] = house.others[WEIGHTS, FIRST] | {"model.safetensors": b"two" * 99}
        house.branches[WEIGHTS, "main"] = THIRD
        (folder / ".listing.json").unlink()
        (folder / "model.safetensors").unlink()
        with pytest.raises(CheckpointError, match=r"model\.safetensors arrived with .* wanted .*what was first pulled"):
            pull(entry, root, endpoint=house.endpoint)
        assert not (folder / "model.safetensors").exists()
        store.remove(entry, root)
        pull(entry, root, endpoint=house.endpoint)
        assert (folder / "model.safetensors").read_bytes() == b"two" * 99

    def test_another_size_is_not_even_fetched(self, entry, house, root):
        folder = pull(entry, root, endpoint=house.endpoint).folder
        (folder / ".listing.json").unlink()
        (folder / "model.safetensors").unlink()
        house.others[WEIGHTS, FIRST]["model.safetensors"] += b"!"
        with pytest.raises(CheckpointError, match=r"298 bytes, the first pull got 297; refused; .*models rm small"):
            pull(entry, root, endpoint=house.endpoint)

    @pytest.mark.parametrize("raw", [b"", b"[]", b'{"config.json": {"sha": 3}}'])
    def test_a_damaged_note_is_not_forgotten(self, entry, house, root, raw):
        folder = pull(entry, root, endpoint=house.endpoint).folder
        (folder / ".digests.json").write_bytes(raw)
        with pytest.raises(CheckpointError, match=r"digests\.json: cannot be read .*models rm small"):
            pull(entry, root, endpoint=house.endpoint)

    def test_a_branch_whose_head_is_no_commit(self, entry, house, root):
        house.others[WEIGHTS, "main"] = house.others[WEIGHTS, FIRST]
        del house.others[WEIGHTS, FIRST]
        with pytest.raises(CheckpointError, match="answered revision main, wanted main"):
            pull(entry, root, endpoint=house.endpoint)


class TestGated:
    @pytest.mark.parametrize("status", [401, 403])
    @pytest.mark.parametrize("headers", [{}, {"X-Error-Code": "GatedRepo"}])
    def test_it_says_what_to_do(self, entry, house, root, status, headers):
        house.statuses[f"{WEIGHTS}/model.safetensors"] = (status, headers)
        with pytest.raises(CheckpointError) as caught:
            pull(entry, root, endpoint=house.endpoint)
        assert str(caught.value) == (
            f"house/small: model.safetensors: is gated: accept its licence at {house.endpoint}/house/small, then run "
            "`hf auth login`, or set HF_TOKEN to a token of yours; tiny needs no account: `sonant models pull tiny`"
        )

    def test_the_page_is_that_of_the_hub_in_use(self, command, entry, house):
        house.statuses[f"{WEIGHTS}/model.safetensors"] = (401, {"X-Error-Code": "GatedRepo"})
        result = command("models", "pull", "small", "--voice", "max")
        assert result.returncode == 3
        assert f"accept its licence at {house.endpoint}/house/small, then run" in result.stderr

    @pytest.mark.parametrize("status", [401, 403])
    def test_it_is_said_before_anything_is_fetched(self, entry, house, root, status):
        house.statuses[f"{WEIGHTS}/auth-check"] = (status, {"X-Error-Code": "GatedRepo"})
        with pytest.raises(CheckpointError, match="house/small: its files: is gated: accept its licence at"):
            pull(entry, root, endpoint=house.endpoint)
        assert [r.path for r in house.requests if r.path.endswith(".safetensors")] == []

    def test_its_door_is_not_knocked_at_for_nothing(self, entry, house, root):
        pull(entry, root, endpoint=house.endpoint)
        house.statuses[f"{WEIGHTS}/auth-check"] = (403, {"X-Error-Code": "GatedRepo"})
        pull(entry, root, endpoint=house.endpoint)
        pull(entry, root, voices=["zoe"], weights=False, endpoint=house.endpoint)

    def test_without_a_twin_none_is_named(self, entry, house, root):
        house.statuses[f"{WEIGHTS}/model.safetensors"] = (403, {})
        with pytest.raises(CheckpointError, match=r"a token of yours$"):
            pull(replace(entry, open_twin=None), root, endpoint=house.endpoint)

    def test_an_open_repository_is_not_called_gated(self, entry, house, root):
        house.statuses[f"{VOICES}/emb/zoe.safetensors"] = (403, {})
        with pytest.raises(CheckpointError, match="house/voices") as caught:
            pull(entry, root, endpoint=house.endpoint)
        assert "gated" not in str(caught.value)

    def test_with_the_token_it_arrives(self, entry, house, root, monkeypatch):
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        pull(entry, root, endpoint=house.endpoint)
        assert {r.headers.get("authorization", r.headers.get("Authorization")) for r in house.requests} == {
            "Bearer hf_secret"
        }


def test_the_command(command, entry, house, root):
    result = command("models", "pull", "small", "--voice", "max")
    assert result.returncode == 0, result.stderr
    assert result.stderr == (
        "house/small at main, CC-BY-NC-4.0\n"
        f"house/voices at {SECOND[:12]}\n"
        "neither a commit nor digests are known: what arrives first is believed, and kept to from then on\n"
        "5 files fetched (1 kB), 0 were here\n"
    )
    assert "pulled" in next(line for line in command("models").stdout.splitlines() if line.startswith("small "))
    assert command("models", "path", "small").stdout == f"{store.pulled_folder(entry, root)}\n"
    assert command("models", "gc").returncode == 0
    assert command("models", "rm", "-y", "small").returncode == 0
    assert "sonant models pull small (gated)\n" in command("models").stdout
