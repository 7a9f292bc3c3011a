"""align-heads through the whole stack: a head planted in the weights of the tiny model is found, kept and used."""

from __future__ import annotations

from pathlib import Path

import latent_golden as golden
import numpy as np
import phonon_models as models
import pytest

import sonant
from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.engine import align_heads as engine

MODEL = "phonon-40m-en"
"""No heads are published for it."""
TEXTS = ("Bread, butter, honey, a few apples, and water.", "First we walked along the river, then we climbed.")
LAYER, HEAD, SIZE, WIDTH = 1, 1, 32, 64
DISTANCE = 30
"""A frame attends to the text this many positions before it, so to the next token in the next frame, until the last."""
PAIR, SHARPNESS = 8, 4e4
"""Of the rotated pairs one that turns by 0.01 a position: the nearest position to DISTANCE wins within 300."""


def plant(folder: Path) -> None:
    """Makes queries and keys of the head the same at every position, so that only their distance counts: channel 0 of
    the normed input is a constant, which is all that the head reads, and its keys are turned by DISTANCE positions."""
    path = folder / "model.safetensors"
    tensors = {name: np.array(array) for name, array in open_safetensors(path).items()}
    layer = f"flow_lm.transformer.layers.{LAYER}"
    tensors[f"{layer}.norm1.weight"][0], tensors[f"{layer}.norm1.bias"][0] = 0.0, 1.0
    both = tensors[f"{layer}.self_attn.in_proj.weight"]
    both[:, 0] = 0.0
    length = np.sqrt(SHARPNESS * np.sqrt(SIZE))
    for first, turn in ((0, 0.0), (WIDTH, DISTANCE * 10_000 ** (-2 * PAIR / SIZE))):  # of the queries, of the keys
        rows = both[first + HEAD * SIZE :][:SIZE]
        rows[:] = 0.0
        rows[2 * PAIR : 2 * PAIR + 2, 0] = length * np.cos(turn), length * np.sin(turn)
    path.unlink()
    write_safetensors(path, tensors)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.write(tmp_path / "m", models.shapes(), {**models.config("plain"), "eos_threshold": 1e9})
    golden.write_tokenizer(tmp_path / "m", 4000)
    write_safetensors(tmp_path / "m" / "default-voice.safetensors", {"audio_prompt": models.voice()[None]})
    return tmp_path / "m"


def load(folder: Path) -> sonant.Synthesizer:
    return sonant.load(MODEL, weights=folder, cache=folder.parent / "cache", threads=1)


def test_a_head_that_is_planted_in_the_weights_is_found_and_used(folder: Path) -> None:
    plant(folder)
    synth = load(folder)
    assert synth.capabilities.word_source != "attention"
    found = engine.find_heads(engine.recorder_of(synth), engine.record(synth, TEXTS))
    assert found.scores[0].head == (LAYER, HEAD)
    assert found.scores[0].score > 3 * found.scores[1].score
    assert found.heads.heads == ((LAYER, HEAD),)
    engine.keep(found, folder, model=MODEL, voice=None, texts=TEXTS)
    speech = load(folder).speak(TEXTS[0])
    assert speech.word_source == "attention"
    assert [w.text for w in speech.words] == TEXTS[0].split()


def test_what_is_recorded(folder: Path) -> None:
    """All heads of every kept frame, over the tokens of the text alone, and the samples of the speech itself."""
    synth = load(folder)
    (record,) = engine.record(synth, TEXTS[:1])
    recorder = engine.recorder_of(synth)
    rows, frames, tokens = record.attention.shape
    assert rows == recorder.n_layers * recorder.n_heads
    assert frames * recorder.frame_samples == len(record.samples)
    assert tokens == record.words[-1].token_end
    np.testing.assert_allclose(record.attention.sum(axis=2), 1, atol=1e-5)  # f32 sums of some 20 weights
    assert [TEXTS[0][w.start : w.end] for w in record.words] == TEXTS[0].split()
    assert np.abs(record.samples[200:] - synth.speak(TEXTS[0]).samples[200:]).max() == 0  # the first are faded in
