"""Phonon against Gradium's ptts 0.4.2 (whole waveforms at temperature 0, where utterances stop) and against the
transformers port, stage by stage with injected noise, on tiny random models.

Tolerance 1e-5 of the largest magnitude: f32 sums in another order; measured 3e-7 to 5e-6.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np
import phonon_models as models
import pytest

from sonant.backends.backend import CancelFlag
from sonant.backends.numpy import NumpyBackend
from sonant.families.latent.frames import LatentFrames, LatentStream, VoicePrompt
from sonant.families.phonon.frames import (
    GuidedFrames,
    PhononFrames,
    PhononRequest,
    condition,
    load_networks,
    null_prompt,
)

TOLERANCE = 1e-5


def native() -> Any:
    from sonant.backends.native import NativeBackend

    return NativeBackend(threads=2)


BACKENDS: dict[str, Any] = {"numpy": NumpyBackend, "native": native}


class Loaded:
    """A variant on a backend."""

    def __init__(self, name: str, backend: str, folder: Path, rows: int = 2) -> None:
        self.name = name
        self.config, self.weights = models.read(name, folder)
        self.guidance = models.GUIDANCE.get(name)
        heads = models.HEADS if name == "port" else ()
        networks = load_networks(self.config, self.weights, BACKENDS[backend](), heads=heads,
                                 guided=self.guidance is not None)
        self.frames: LatentFrames = PhononFrames(networks, rows)
        if self.guidance is not None:
            self.frames = GuidedFrames(networks, rows, null_prompt(self.config, self.weights))

    def begin(self, ids: Any, row: int = 1, voice: np.ndarray | None = None, **changes: Any) -> LatentStream:
        prompt = VoicePrompt("v", models.voice() if voice is None else voice)
        delta = models.DELTA if self.name == "port" else models.DELTAS.get(self.name, 0.0)
        given = {"voice": prompt, "ids": np.array(ids), "seed": models.SEED, "temperature": 0.0, "eos_threshold": 1e9,
                 "frames_after_eos": 1, "condition": condition(self.config, self.weights, delta),
                 "guidance": self.guidance or 1.0}
        return self.frames.begin(row, PhononRequest(**{**given, **changes}), CancelFlag())

    def speak(self, stream: LatentStream, frames: int, sizes: tuple[int, ...] = (1, 1, 2, 4, 8)) -> np.ndarray:
        """The first frames of a stream, decoded in chunks of these sizes, the last again and again."""
        out, sizes_left = [], list(sizes)
        for _ in range(frames):
            self.frames.step([stream])
        while stream.pending:
            size = sizes_left.pop(0) if len(sizes_left) > 1 else sizes_left[0]
            out.append(self.frames.decode([stream], min(size, stream.pending))[0])
        return np.concatenate(out)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", models.VARIANTS)
def test_waveforms_are_those_of_ptts(name: str, backend: str, tmp_path: Path) -> None:
    """LSD of one step and of four, both norms, guidance with either null branch, another duration."""
    figures = models.recorded("ptts")
    loaded = Loaded(name, backend, tmp_path)
    samples = loaded.speak(loaded.begin(figures["ids.1"]), models.LENGTHS.get(name, models.SHORT))
    assert golden.error(f"samples.{name}", samples, figures) <= TOLERANCE


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return Loaded("plain", "numpy", tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("threshold", range(len(models.THRESHOLDS)))
@pytest.mark.parametrize("sentence", range(len(models.SENTENCES)))
def test_utterances_stop_where_ptts_stops(sentence: int, threshold: int, plain: Loaded) -> None:
    figures, short = models.recorded("ptts"), len(models.SENTENCES[sentence].split()) <= 4
    stream = plain.begin(figures[f"ids.{sentence}"], eos_threshold=models.THRESHOLDS[threshold],
                         frames_after_eos=3 if short else 1)
    while not stream.ended:
        plain.frames.step([stream])
    assert stream.made == figures["counts"][sentence, threshold]
    assert stream.spoken == (stream.made < stream.most_frames)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_port_gives_the_same_frames(backend: str, tmp_path: Path) -> None:
    figures, loaded = models.recorded("port"), Loaded("port", backend, tmp_path)
    stream = begin_port(loaded)
    for _ in range(models.FRAMES):
        loaded.frames.step([stream])
    networks = loaded.frames.networks
    latents = np.stack(stream.latents) * networks.latent_std + networks.latent_mean
    assert golden.error("latents", latents, figures) <= TOLERANCE
    assert golden.error("heard", np.stack(stream.heard), figures) <= TOLERANCE
    given = golden.random_array("codec latents", (1, models.CODEC_FRAMES, 8))
    stream.latents = list((given[0] - networks.latent_mean) / networks.latent_std)
    stream.decoded = 0
    samples = np.concatenate([loaded.frames.decode([stream], n)[0] for n in (1, 3, 8, 8)])
    assert golden.error("samples", samples, figures) <= TOLERANCE


def begin_port(loaded: Loaded) -> LatentStream:
    clip = golden.random_array("clip", (1, models.VOICE, models.PORT["audio_prompt_dim"]))[0]
    voice = clip @ loaded.weights["flow_lm.speaker_proj_weight"].T
    return loaded.begin(models.TEXT, voice=voice, temperature=models.TEMPERATURE)


def test_hidden_states_and_end_logits_are_those_of_the_port(tmp_path: Path) -> None:
    """On the numpy backend alone, which shows the results inside a Program."""
    figures, loaded = models.recorded("port"), Loaded("port", "numpy", tmp_path)
    frames, stream, logits = loaded.frames, begin_port(loaded), []
    program = frames.networks.step.program
    for number in range(models.FRAMES):
        trace: dict[str, np.ndarray] = {}
        latent, eos, _ = frames.networks.step.run(
            frames._inputs([stream]), states=frames._states, trace=trace)  # type: ignore[call-arg]
        if number == 1:
            sums = [trace[n.outputs[0].name] for n in program.nodes
                    if n.op == "add" and n.outputs[0].shape[-1] == 64][2::2]  # the first adds the condition
            normed = next(n for n in program.nodes
                          if n.op == "layer_norm" and n.inputs[1] is program.weights["flow_lm.out_norm.weight"])
            sums[1] = trace[normed.outputs[0].name]  # the port shows its last layer after the norm
            for i, hidden in enumerate(sums[:2]):
                assert golden.error(f"hidden.{i}", hidden[0], figures) <= TOLERANCE, i
        stream.take(latent[0, 0], 0.0, None)
        logits.append(eos[0])
    assert golden.error("eos", np.array(logits), figures) <= TOLERANCE


@pytest.mark.parametrize("backend", BACKENDS)
def test_guidance_of_one_changes_nothing_and_streams_stay_apart(backend: str, tmp_path: Path) -> None:
    """null + 1 * (conditioned - null) is the conditioned state but for a rounding; a second stream changes no bit."""
    plain, guided = (Loaded(name, backend, tmp_path / name) for name in ("plain", "guided"))
    wanted, found = plain.begin(models.TEXT), guided.begin(models.TEXT, guidance=1.0)
    alone, other = guided.begin(models.TEXT[:3], row=0, guidance=3.0), plain.begin(models.TEXT[:3], row=0)
    for _ in range(2):
        plain.frames.step([wanted])
        guided.frames.step([found])
        guided.frames.step([alone])
    np.testing.assert_allclose(np.stack(found.latents), np.stack(wanted.latents), atol=TOLERANCE)
    plain.frames.step([other])
    assert np.abs(alone.latents[0] - other.latents[0]).max() > 1e-3, "a guidance of 3 does change something"
    first, second = guided.begin(models.TEXT, row=1), guided.begin(models.TEXT[:3], row=0, guidance=3.0)
    for _ in range(2):
        guided.frames.step([first, second])
    if backend == "native":
        np.testing.assert_array_equal(np.stack(second.latents), np.stack(alone.latents))
