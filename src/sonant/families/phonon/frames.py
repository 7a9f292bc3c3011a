"""Phonon on a backend: its Programs loaded for the frame model, the condition that frames get, and guidance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sonant.backends.backend import Backend, CancelFlag
from sonant.errors import CheckpointError
from sonant.families.latent.frames import ChunkRequest, LatentFrames, LatentStream, Networks, load_tables
from sonant.families.latent.weights import WithDerived, time_vectors
from sonant.families.phonon import model
from sonant.families.phonon.config import PhononConfig
from sonant.families.phonon.weights import PADDING
from sonant.program.recipe import Recipe

Array = np.ndarray
Weights = Mapping[str, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class PhononRequest(ChunkRequest):
    """condition [D]: added to every frame. guidance: how far from speech without a prompt, in a guided model."""

    condition: Array
    guidance: float = 1.0


def load_networks(
    config: PhononConfig,
    weights: Weights,
    backend: Backend,
    *,
    precision: str = "f32",
    heads: tuple[tuple[int, int], ...] = (),
    guided: bool = False,
    cache: Path | None = None,
) -> Networks:
    """The language model and the codec, ready to run. heads: those that are listened to."""
    programs = [
        Recipe(model.prefill_program, config, precision=precision),
        Recipe(model.step_program, config, precision=precision, heads=heads, guided=guided),
        Recipe(model.codec_program, config, precision=precision),
    ]
    whole = WithDerived(weights, time_vectors(weights, config.flow, config.time_norm))
    prefill, step, codec = backend.load_all(programs, whole, cache=cache)
    return Networks(prefill, step, codec, **load_tables(weights), frame_rate_hz=config.frame_rate_hz,
                    capacity=model.CAPACITY)


def condition(config: PhononConfig, weights: Weights, duration_delta: float) -> Array:
    """[D]: who speaks (one speaker) plus how long it takes, a sinusoid of the delta; what the model has of the two."""
    summed = np.zeros(config.lm.width)
    at = "flow_lm.conditioner"
    if config.speakers is not None:
        speaker = weights[f"{at}.num_speakers.embed.weight"][config.speakers.row]
        summed += weights[f"{at}.num_speakers.output_proj.weight"] @ speaker.astype(np.float64)
    if config.delta is not None:
        half = config.delta.width // 2
        phase = config.delta.scale * duration_delta / config.delta.max_period ** (np.arange(half) / (half - 1))
        summed += weights[f"{at}.duration_delta.output_proj.weight"] @ np.concatenate([np.cos(phase), np.sin(phase)])
    return summed.astype(np.float32)


class PhononFrames(LatentFrames):
    """Streams whose frames get a condition."""

    def _inputs(self, streams: Sequence[LatentStream]) -> dict[str, Array]:
        requests = [_phonon(s) for s in streams]
        return {**super()._inputs(streams), "condition": np.stack([r.condition for r in requests])[:, None]}


class GuidedFrames(PhononFrames):
    """Streams with a second branch that has no prompt, away from which the first is pushed."""

    branches = 2

    def __init__(self, networks: Networks, n_rows: int, null_prompt: Array) -> None:
        """null_prompt [P, D]: what stands before the frames of the second branch."""
        super().__init__(networks, n_rows)
        self.null_prompt = null_prompt

    def begin(self, row: int, request: ChunkRequest, cancel: CancelFlag) -> LatentStream:
        stream = super().begin(row, request, cancel)
        self._prefill(self.null_prompt, row * self.branches + 1, 0, cancel)
        return stream

    def _inputs(self, streams: Sequence[LatentStream]) -> dict[str, Array]:
        given = super()._inputs(streams)
        return {
            **given,
            "rows": np.concatenate([given["rows"], given["rows"] + 1]),
            "guidance": np.array([_phonon(s).guidance for s in streams], np.float32),
        }

    def _positions(self, streams: Sequence[LatentStream]) -> list[int]:
        return [*super()._positions(streams), *[len(self.null_prompt) + s.made for s in streams]]


def can_guide(config: PhononConfig, weights: Weights) -> bool:
    """Is everything there that the second branch begins with?"""
    return config.null_audio_empty and (config.null_text_empty or PADDING in weights)


def null_prompt(config: PhononConfig, weights: Weights) -> Array:
    """What the second branch begins with: nothing, or one padding row. CheckpointError where it would need the silence
    of a speaker encoder, which no release has."""
    if not config.null_audio_empty:
        raise CheckpointError("this checkpoint's guidance needs its speaker encoder, which is not part of it")
    if config.null_text_empty:
        return np.zeros((0, config.lm.width), np.float32)
    if PADDING not in weights:
        raise CheckpointError(f"this checkpoint's guidance needs {PADDING}, which is not part of it")
    row: Array = weights[PADDING][0]
    return row


def _phonon(stream: LatentStream) -> PhononRequest:
    assert isinstance(stream.request, PhononRequest)
    return stream.request
