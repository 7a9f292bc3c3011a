"""Pocket TTS against pocket_tts 4.0.1 and the transformers port, stage by stage, on tiny random models of every kind.

Tolerance 1e-5 of a stage's largest magnitude: f32 sums in another order through the layers of both; measured 3e-7 to
3e-6.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np
import pocket_models as models
import pocket_variants as variants
import pytest

from sonant.backends.backend import CancelFlag
from sonant.backends.numpy import NumpyBackend
from sonant.families.latent.frames import ChunkRequest, LatentFrames, VoicePrompt
from sonant.families.pocket import model
from sonant.families.pocket.frames import encode_voice, load_networks

TOLERANCE = 1e-5


def native() -> Any:
    from sonant.backends.native import NativeBackend

    return NativeBackend(threads=2)


BACKENDS: dict[str, Any] = {"numpy": NumpyBackend, "native": native}


class Loaded:
    """A variant on a backend, with what the golden figures were recorded from."""

    def __init__(self, name: str, backend: str, folder: Path) -> None:
        self.figures = models.recorded(name)
        self.config, self.weights = models.read(name, folder)
        steps = variants.STEPS.get(name, 1)
        self.config = replace(self.config, flow=replace(self.config.flow, steps=steps))
        self.backend = BACKENDS[backend]()
        self.heads = variants.PORT_HEADS if name == "port" else ()
        networks = load_networks(self.config, self.weights, self.backend, heads=self.heads)
        self.frames = LatentFrames(networks, n_rows=2)

    def voice(self) -> VoicePrompt:
        clip = golden.random_array("clip", (variants.VOICE, self.config.encoder.latent))
        rows = [clip @ self.weights["flow_lm.speaker_proj_weight"].T]
        if self.config.bos_row is not None:
            rows.insert(0, self.weights["flow_lm.conditioner.embed.weight"][[self.config.bos_row]])
        elif self.config.bos_before_voice:
            rows.insert(0, self.weights["flow_lm.bos_before_voice"][0])
        return VoicePrompt("clip", np.concatenate(rows))

    def error(self, name: str, array: np.ndarray) -> float:
        return golden.error(name, array, self.figures)


def request(voice: VoicePrompt, **changes: Any) -> ChunkRequest:
    given = {"ids": np.array(variants.TEXT), "seed": variants.SEED, "temperature": variants.TEMPERATURE,
             "eos_threshold": 1e9, "frames_after_eos": 2}
    return ChunkRequest(voice=voice, **{**given, **changes})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [*variants.CHANGES, "port"])
def test_frames_and_samples_are_the_official_ones(name: str, backend: str, tmp_path: Path) -> None:
    loaded = Loaded(name, backend, tmp_path)
    frames, config = loaded.frames, loaded.config
    stream = frames.begin(1, request(loaded.voice()), CancelFlag())
    for _ in range(variants.FRAMES):
        frames.step([stream])
    latents = np.stack(stream.latents)
    if name == "port":
        latents = latents * frames.networks.latent_std + frames.networks.latent_mean
        assert loaded.error("heard", np.stack(stream.heard)) <= TOLERANCE
    assert loaded.error("latents", latents) <= TOLERANCE
    samples = decode(loaded, golden.random_array("codec latents", (1, variants.CODEC_FRAMES, config.decoder.latent)))
    assert loaded.error("samples", samples) <= TOLERANCE
    encoder = loaded.backend.load(model.encoder_program(config), loaded.weights)
    clip = golden.random_array("codec samples", (1, 1, 1920 * variants.CODEC_FRAMES), 0.1)
    assert loaded.error("clip_latents", encode_voice(encoder, clip[0, 0], config)) <= TOLERANCE


def decode(loaded: Loaded, latents: np.ndarray, sizes: tuple[int, ...] = (1, 1, 2, 4, 12)) -> np.ndarray:
    """[S] of denormalised latents [1,F,L], in chunks of these sizes."""
    codec, at, out = loaded.frames.networks.codec, 0, []
    states = codec.create_states(1)
    for size in sizes:
        given = {"latents": np.ascontiguousarray(latents[:, at : at + size]), "rows": np.zeros(1, np.int32),
                 "frame": np.array([at], np.int32)}
        out.append(codec.run(given, states=states)[0][0])
        at += size
    return np.concatenate(out)


@pytest.mark.parametrize("name", [*variants.CHANGES, "port"])
def test_hidden_states_and_end_logits_are_the_official_ones(name: str, tmp_path: Path) -> None:
    """On the numpy backend alone, which shows the results inside a Program."""
    loaded = Loaded(name, "numpy", tmp_path)
    frames, width = loaded.frames, loaded.config.lm.width
    stream = frames.begin(0, request(loaded.voice()), CancelFlag())
    program, logits = frames.networks.step.program, []
    for number in range(variants.FRAMES):
        trace: dict[str, np.ndarray] = {}
        given = frames._inputs([stream])
        latent, eos, *_ = frames.networks.step.run(given, states=frames._states, trace=trace)  # type: ignore[call-arg]
        if number == (1 if name == "port" else 0):
            sums = [trace[n.outputs[0].name] for n in program.nodes
                    if n.op == "add" and n.outputs[0].shape[-1] == width][1::2]
            last = sum(key.startswith("hidden.") and key.endswith("peak") for key in loaded.figures) - 1
            if name == "port":  # the port shows its last layer after the norm
                sums[last] = trace[next(n for n in program.nodes if n.op == "layer_norm" and
                                        n.inputs[1] is program.weights["flow_lm.out_norm.weight"]).outputs[0].name]
            for i, hidden in enumerate(sums):
                assert loaded.error(f"hidden.{i}", hidden[0]) <= TOLERANCE, i
        stream.take(latent[0, 0], 0.0, None)
        logits.append(eos[0])
    assert loaded.error("eos", np.array(logits)) <= TOLERANCE


def test_the_cache_of_a_voice_is_the_official_one(tmp_path: Path) -> None:
    """Keys and values as pocket_tts exports them: k and v of the second layer, heads beside each other, rotated."""
    loaded = Loaded("7m", "numpy", tmp_path)
    loaded.frames.begin(0, request(loaded.voice()), CancelFlag())
    states, length = loaded.frames._states, loaded.voice().length
    found = np.stack([states.read(f"flow_lm.transformer.layers.1.{n}", 0)[:length] for n in "kv"])
    assert loaded.error("voice_cache", found) <= TOLERANCE


@pytest.mark.parametrize("number", range(len(variants.STOPS)))
def test_a_chunk_stops_where_the_official_loop_does(number: int, large: Loaded) -> None:
    threshold, after, cap = variants.STOPS[number]
    frames = large.frames
    silent = VoicePrompt("none", np.zeros((0, large.config.lm.width), np.float32))
    stream = frames.begin(0, request(silent, eos_threshold=threshold, frames_after_eos=after - 1, least_frames=6),
                          CancelFlag())
    stream.most_frames = cap
    while not stream.ended:
        frames.step([stream])
    assert stream.made == large.figures["counts"][number]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return Loaded("large", "numpy", tmp_path_factory.mktemp("large"))


def test_the_stops_are_of_every_kind(large: Loaded) -> None:
    assert len(set(large.figures["counts"].tolist())) >= 5
