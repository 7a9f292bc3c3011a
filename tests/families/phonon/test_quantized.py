"""A tiny Phonon stored in q8: what becomes q8, that it speaks bit for bit as one that is quantized at load, what that
costs; and the same weights from a GGUF."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np
import phonon_models as models
import pytest

import sonant
from sonant.backends.backend import CancelFlag
from sonant.checkpoint.quantize import Quantized
from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.engine import quantize as engine
from sonant.engine.load import current_files
from sonant.errors import CheckpointError, InputError
from sonant.families.latent.heads import FILENAME, AlignmentHeads, written_heads
from sonant.families.latent.takes import LatentSpeaker
from sonant.hub.catalog import CATALOG
from sonant.hub.gc import find_garbage
from sonant.options import SpeakOptions

MODEL, TEXT = "phonon-31m-en", "Hello there. Yes."
OPTIONS = SpeakOptions(seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint as a user has it."""
    made = models.write(tmp_path_factory.mktemp("phonon"), models.shapes(), models.config("plain"))
    golden.write_tokenizer(made, 4000)
    write_safetensors(made / "default-voice.safetensors", {"audio_prompt": models.voice()[None] * 0.5})
    (made / FILENAME).write_text(written_heads(AlignmentHeads(((1, 0),), lead_frames=0.0, lead_source="assumed")))
    return made


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def plan(folder: Path, cache: Path) -> engine.Plan:
    return engine.plan(CATALOG[MODEL], folder, cache)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("q8") / "phonon.safetensors"


@pytest.fixture(scope="module")
def stored(plan: engine.Plan, target: Path) -> Quantized:
    return engine.store(plan, target)


def load(weights: Path, cache: Path, device: str = "numpy", **given: Any) -> sonant.Synthesizer:
    return sonant.load(MODEL, weights=weights, cache=cache, device=device, threads=1, **given)


def speaker(synth: sonant.Synthesizer) -> LatentSpeaker:
    return synth._driver  # type: ignore[return-value]


def test_the_matrices_of_the_dense_ops_are_in_q8_and_nothing_else(
    plan: engine.Plan, stored: Quantized, target: Path
) -> None:
    before, after = open_safetensors(plan.converted), open_safetensors(target)
    q8 = {name for name in after if after.dtype(name) == "i8"}
    assert q8 == plan.matrices == {tensor.name for tensor in stored.tensors}
    assert "flow_lm.transformer.layers.0.self_attn.in_proj.weight" in q8
    assert "flow_lm.flow_net.adaln.weight" in q8
    assert not [name for name in q8 if name.endswith((".bias", ".scale", ".embed.weight"))]
    assert "flow_lm.out_eos.weight" not in q8  # decides the length
    for name in set(before) - q8:
        np.testing.assert_array_equal(after[name], before[name], strict=True)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_it_speaks_as_quantizing_at_load_does(
    folder: Path, stored: Quantized, target: Path, cache: Path, device: str
) -> None:
    """Bit for bit: the same integers and scales come to the backend. A q8 file is loaded in q8 without being told."""
    if device == "cpu":
        pytest.importorskip("sonant._native")
    wanted = speaker(load(folder, cache, device, precision="q8")).takes(TEXT, OPTIONS, CancelFlag())
    floats = speaker(load(folder, cache, device)).takes(TEXT, OPTIONS, CancelFlag())
    for given in ({}, {"precision": "q8"}):
        found = speaker(load(target, cache, device, **given)).takes(TEXT, OPTIONS, CancelFlag())
        for ours, theirs, others in zip(found, wanted, floats, strict=True):
            np.testing.assert_array_equal(ours.latents, theirs.latents, strict=True)
            assert not np.array_equal(ours.latents[0], others.latents[0])


def test_another_precision_than_its_own(stored: Quantized, target: Path, cache: Path) -> None:
    with pytest.raises(InputError, match=r"phonon\.safetensors is in q8; it cannot be loaded in bf16"):
        load(target, cache, precision="bf16")


def test_a_replaced_file_is_not_spoken_with_the_packed_weights_of_the_former(
    stored: Quantized, target: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sonant._native")
    cache = tmp_path / "cache"
    mine = Path(shutil.copytree(target.parent, tmp_path / "mine"))
    file = mine / target.name
    first = speaker(load(file, cache, "cpu")).takes("Yes.", OPTIONS, CancelFlag())[0]
    tensors = {name: np.array(open_safetensors(file)[name]) for name in open_safetensors(file)}
    tensors["flow_lm.transformer.layers.0.linear1.weight"] *= -1
    write_safetensors(file, tensors, open_safetensors(file).metadata)
    second = speaker(load(file, cache, "cpu")).takes("Yes.", OPTIONS, CancelFlag())[0]
    assert not np.array_equal(first.latents[1], second.latents[1])
    assert {path.name for path in mine.iterdir()} == {path.name for path in target.parent.iterdir()}
    found = find_garbage(CATALOG[MODEL], cache, current_files(CATALOG[MODEL]))
    assert [one.reason for one in found] == ["its source is gone"]  # the packs of the former


def test_what_lies_beside_it(folder: Path, stored: Quantized, target: Path) -> None:
    names = {"tokenizer.json", "default-voice.safetensors", FILENAME}
    assert {p.name for p in target.parent.iterdir()} == names | {target.name}
    assert all((target.parent / name).read_bytes() == (folder / name).read_bytes() for name in names)


def test_another_models_files_are_not_overwritten(plan: engine.Plan, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("another")
    with pytest.raises(InputError, match=r"has another tokenizer\.json, of another model"):
        engine.store(plan, tmp_path / "q8.safetensors")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("tokenizer.json", "another")]


def test_beside_its_own_source(plan: engine.Plan, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    target = folder / "q8.safetensors"
    engine.store(plan, target)
    target.unlink()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_twice(stored: Quantized, target: Path, cache: Path, tmp_path: Path) -> None:
    again = engine.plan(CATALOG[MODEL], target, cache)
    with pytest.raises(CheckpointError, match="is stored in q8 already"):
        engine.store(again, tmp_path / "again.safetensors")


class TestQuality:
    def test_floats_against_themselves(self, folder: Path, cache: Path) -> None:
        floats = speaker(load(folder, cache))
        found = engine.measure(floats, floats, TEXT, OPTIONS)
        assert (found.latent_rms, found.latent_db, found.frames_longer) == (0, None, 0)
        assert all(one == other for one, other in (*found.frames, *found.eos_frames))

    def test_q8_against_floats(
        self, folder: Path, plan: engine.Plan, stored: Quantized, target: Path, cache: Path
    ) -> None:
        pair = [speaker(load(weights, cache)) for weights in (folder, target)]
        found = engine.measure(pair[0], pair[1], TEXT, OPTIONS)
        # weights and activations of 8 bits in a random model: a per cent or two of the latents
        assert 1e-4 < found.latent_share < 0.1
        assert found.latent_db == pytest.approx(20 * np.log10(found.latent_share))
        report = json.loads(json.dumps(engine.report(MODEL, target, plan, stored, [found]), allow_nan=False))
        assert report["bytes"]["q8"] == target.stat().st_size < report["bytes"]["floats"]
        assert {t["name"] for t in report["tensors"]} == plan.matrices
        assert report["texts"][0]["frames"] == [list(pair) for pair in found.frames]

    def test_it_is_led_frame_by_frame(self, folder: Path, cache: Path) -> None:
        """What the model is led by decides its frames, not what it made before."""
        driver, cancel = speaker(load(folder, cache)), CancelFlag()
        free = driver.takes("Yes.", OPTIONS, cancel)[0]
        led = driver.takes("Yes.", OPTIONS, cancel, led_by=[free.latents])[0]
        np.testing.assert_array_equal(led.latents, free.latents)
        assert led.eos_frame == free.eos_frame
        other = free.latents.copy()
        other[0] += 1
        led = driver.takes("Yes.", OPTIONS, cancel, led_by=[other])[0]
        np.testing.assert_array_equal(led.latents[0], free.latents[0])
        assert np.abs(led.latents[1] - free.latents[1]).max() > 1e-3
        assert len(led.latents) == len(free.latents)


class TestGguf:
    """A user who has Gradium's q8 file alone."""

    @pytest.fixture
    def gguf(self, folder: Path, tmp_path: Path) -> Path:
        """Matrices of whole blocks in q8_0, the rest in f32."""
        from sonant.backends.backend import to_q8

        source, infos, data = open_safetensors(folder / "model.safetensors"), b"", b""
        for name in source:
            values, raw = np.array(source[name]), name.encode()
            kind, stored = 0, values.tobytes()
            if values.ndim == 2 and values.shape[1] % 32 == 0:
                integers, scales = to_q8(values)
                blocks = zip(scales.ravel(), integers.reshape(-1, 32), strict=True)
                kind, stored = 8, b"".join(s.tobytes() + i.tobytes() for s, i in blocks)
            dims = values.shape[::-1]
            infos += struct.pack("<Q", len(raw)) + raw
            infos += struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
            data += stored + bytes(-len(stored) % 32)
        head = b"GGUF" + struct.pack("<IQQ", 3, len(source), 0) + infos
        (tmp_path / "model.q8.gguf").write_bytes(head + bytes(-len(head) % 32) + data)
        for name in ("config.json", "tokenizer.json", "default-voice.safetensors", FILENAME):
            shutil.copy(folder / name, tmp_path)
        return tmp_path

    @pytest.mark.parametrize("place", [".", "model.q8.gguf"])
    def test_it_speaks(self, gguf: Path, folder: Path, tmp_path: Path, place: str) -> None:
        cache = tmp_path / "cache"
        wanted = speaker(load(folder, cache, precision="q8")).takes("Yes.", OPTIONS, CancelFlag())[0]
        found = speaker(load(gguf / place, cache, precision="q8")).takes("Yes.", OPTIONS, CancelFlag())[0]
        # the text table and the condition, which sonant keeps in floats, are in q8_0 too in this file
        off = np.sqrt(np.mean((found.latents[0] - wanted.latents[0]) ** 2) / np.mean(wanted.latents[0] ** 2))
        assert 0 < off < 0.05

    def test_floats_come_first(self, gguf: Path, folder: Path) -> None:
        from sonant.families.latent.source import folder_of

        assert folder_of(gguf)[0].name == "model.q8.gguf"
        shutil.copy(folder / "model.safetensors", gguf)
        assert folder_of(gguf)[0].name == "model.safetensors"
