"""The smallest release at its full size, in the places that `sonant models pull` puts its files; random weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import latent_golden as golden
import numpy as np
import pytest

import sonant
from sonant.checkpoint.name_map import TensorSpec
from sonant.checkpoint.safetensors import write_safetensors
from sonant.errors import CheckpointError
from sonant.families.pocket.config import parse, released
from sonant.families.pocket.weights import pocket_tensors
from sonant.hub.catalog import find
from sonant.hub.store import pulled_folder

NAME = "pocket-tts-2m-en"
TOKENIZER = Path(__file__).parents[1] / "latent" / "data" / "symbols.model"


def torch_shape(spec: TensorSpec) -> tuple[int, ...]:
    """As the checkpoint has it."""
    if spec.layout == "conv1d":
        n, k, c = spec.shape
        return n, c, k
    if spec.layout == "conv_transpose1d":
        n, k, c = spec.shape
        return c * spec.groups, n // spec.groups, k
    return spec.shape


def pull(cache: Path) -> Path:
    """What a pull leaves: weights, tokenizer and one voice as an exported cache."""
    entry = find(NAME)
    folder, config = pulled_folder(entry, cache), parse(released(entry.recipe or ""), NAME)
    weights, tokenizer = (folder / place for place in entry.weights)
    weights.parent.mkdir(parents=True)
    tensors = {n: golden.random_tensor(n, torch_shape(s)) for n, s in pocket_tensors(config).items()}
    assert sum(t.size for t in tensors.values()) == pytest.approx(entry.parameters, rel=0.01)
    write_safetensors(weights, tensors)
    tokenizer.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(TOKENIZER, tokenizer)
    voices = weights.parent / "embeddings"
    voices.mkdir()
    voice = {}
    for i in range(config.lm.layers):
        cache_shape = (2, 1, 20, config.lm.kv_heads, config.lm.head_size)
        voice[f"transformer.layers.{i}.self_attn/cache"] = golden.random_array(f"voice {i}", cache_shape, 0.5)
        voice[f"transformer.layers.{i}.self_attn/offset"] = np.array([20], np.int64)
    write_safetensors(voices / "alba.safetensors", voice)
    return weights


def test_a_pulled_model_speaks(tmp_path: Path) -> None:
    pull(tmp_path)
    synth = sonant.load(NAME, cache=tmp_path, threads=2)
    assert [v.name for v in synth.voices()] == ["alba"]
    assert not synth.capabilities.cloning
    speech = synth.speak("Hello there, my friend.")
    assert speech.sample_rate == 24_000
    assert speech.word_source == "attention", "its heads are published"
    assert [w.text for w in speech.words] == ["Hello", "there,", "my", "friend."]
    np.testing.assert_array_equal(sonant.load(NAME, cache=tmp_path, threads=1).speak("Hello there, my friend.").samples,
                                  speech.samples)


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    weights = pull(tmp_path)
    golden.write_tokenizer(weights.parent, 4100)
    with pytest.raises(CheckpointError, match="4100 pieces"):
        sonant.load(NAME, weights=weights, cache=tmp_path)
