"""Phonon's checkpoints: every spelling of their names, what is refused, and the file that is kept of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np
import phonon_models as models
import pytest

from sonant.checkpoint.safetensors import write_safetensors
from sonant.errors import CheckpointError
from sonant.families.latent.source import folder_of
from sonant.families.phonon.frames import condition
from sonant.families.phonon.weights import LAYOUT

AT = "flow_lm.condition_provider.conditioners."
SPELLINGS: dict[str, Callable[[str], str]] = {
    "backbone": lambda n: n.replace("flow_lm.transformer.", "flow_lm.backbone."),
    "flow": lambda n: n.replace("flow_lm.flow_net.", "flow_lm.flow."),
    "in_proj_weight": lambda n: n.replace("in_proj.weight", "in_proj_weight"),
    "mimi.model": lambda n: n.replace("mimi.", "mimi.model.", 1) if n.startswith("mimi.") else n,
    "conv.conv": lambda n: n.replace(".conv.", ".conv.conv.") if n.startswith("mimi.decoder.") else n,
    "convtr.convtr": lambda n: n.replace(".convtr.", ".convtr.convtr.") if n.startswith("mimi.decoder.") else n,
    "conditioner": lambda n: n.replace(f"{AT}transcript_in_segment.", "flow_lm.conditioner."),
    "speaker_proj": lambda n: n.replace(f"{AT}speaker_wavs.output_proj.weight", "flow_lm.speaker_proj_weight"),
}


def write(folder: Path, spell: Callable[[str], str] = lambda n: n, change: dict[str, Any] | None = None,
          config: dict[str, Any] | None = None) -> Path:
    """The tiny checkpoint with names respelled, and tensors added, replaced, or (None) left out."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or models.config("plain")))
    tensors = {spell(n): golden.random_tensor(n, s) for n, s in models.shapes().items()} | (change or {})
    write_safetensors(folder / "model.safetensors", {n: t for n, t in tensors.items() if t is not None})
    return folder


def read(folder: Path) -> tuple[Any, dict[str, np.ndarray]]:
    return LAYOUT.read(*folder_of(folder))


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_gives_the_same_tensors(name: str, tmp_path: Path) -> None:
    _, wanted = read(write(tmp_path / "plain"))
    assert {SPELLINGS[name](n) for n in models.shapes()} != set(models.shapes()), "this spelling changes nothing"
    _, found = read(write(tmp_path / "other", SPELLINGS[name]))
    assert set(found) == set(wanted)
    assert all(np.array_equal(found[n], wanted[n]) for n in wanted)


def test_weight_norm_is_folded(tmp_path: Path) -> None:
    at, name = "mimi.decoder.model.0.conv.", "mimi.decoder.model.0.conv.weight"
    weight = golden.random_tensor(name, models.shapes()[name])
    norm = np.sqrt((weight.astype(np.float64) ** 2).sum(axis=(1, 2), keepdims=True)).astype(np.float32)
    change = {name: None, f"{at}weight_v": weight * 3, f"{at}weight_g": norm}
    found = read(write(tmp_path, change=change))[1][name]
    np.testing.assert_allclose(found, weight.transpose(0, 2, 1), rtol=1e-6, atol=1e-7)  # f32 products of the norm


@pytest.mark.parametrize(("change", "said"), [
    ({"flow_lm.out_norm.bias": None}, "missing: flow_lm.out_norm.bias"),
    ({"flow_lm.extra": np.zeros(3, np.float32)}, "unexpected: flow_lm.extra"),
    ({"flow_lm.bos_emb": np.zeros(9, np.float32)}, "wrong shape: flow_lm.bos_emb"),
    ({"flow_lm.bos_emb": np.full(8, np.nan, np.float32)}, "NaN"),
    ({"flow_lm.backbone.layers.0.norm1.bias": np.zeros(64, np.float32)}, "two spellings"),
    ({"mimi.upsample.convtr.convtr.weight": None}, "missing: mimi.upsample"),
])
def test_tensors_that_do_not_fit_are_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        read(write(tmp_path, change=change))


@pytest.mark.parametrize("name", ["flow_lm.flow_net.w_s_t.mlp.0.weight", "mimi.quantizer.vq.layers.0._codebook.embed",
                                  "mimi.quantizer.logvar_proj.weight", "speaker_mimi.encoder.model.0.conv.weight",
                                  "mimi.encoder.model.0.conv.weight", f"{AT}speaker_wavs.learnt_padding"])
def test_what_only_training_used_is_left(name: str, tmp_path: Path) -> None:
    _, wanted = read(write(tmp_path / "plain"))
    _, found = read(write(tmp_path / "more", change={name: np.zeros((3, 3), np.float32)}))
    assert set(found) == set(wanted)


def test_a_converted_file_is_what_was_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "m")
    config, wanted = read(folder)
    path = LAYOUT.convert("phonon-x", *folder_of(folder), tmp_path / "cache")
    found_config, found = LAYOUT.open(path)
    assert found_config == config
    assert set(found) == set(wanted)
    assert all(np.array_equal(found[n], wanted[n]) for n in wanted)
    assert LAYOUT.convert("phonon-x", *folder_of(folder), tmp_path / "cache") == path


def test_another_configuration_is_another_converted_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "m")
    first = LAYOUT.convert("phonon-x", *folder_of(folder), tmp_path / "cache")
    (folder / "config.json").write_text(json.dumps(models.config("steps")))
    second = LAYOUT.convert("phonon-x", *folder_of(folder), tmp_path / "cache")
    assert first != second
    assert LAYOUT.open(second)[0].flow.steps == 4


def test_a_model_without_conditions_adds_nothing(tmp_path: Path) -> None:
    config = models.config("plain")
    config["conditioners"] = []
    names = [n for n in models.shapes() if "num_speakers" in n or "duration_delta" in n]
    found, weights = read(write(tmp_path, change=dict.fromkeys(names), config=config))
    assert not condition(found, weights, 0.3).any()


def test_a_condition_that_is_not_known_is_refused(tmp_path: Path) -> None:
    config = models.config("plain")
    config["conditioners"].append({"name": "mood", "type": "lut", "lut": {}})
    with pytest.raises(CheckpointError, match="'mood'"):
        read(write(tmp_path, config=config))
