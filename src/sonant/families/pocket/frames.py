"""Pocket TTS on a backend: its Programs loaded for the frame model, and its voice encoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sonant.backends.backend import Backend, CancelFlag, Executable
from sonant.families.latent.frames import Networks, load_tables
from sonant.families.latent.weights import WithDerived, time_vectors
from sonant.families.pocket import model
from sonant.families.pocket.config import PocketConfig
from sonant.layers.mimi import MOST_FRAMES
from sonant.program.recipe import Recipe

Weights = Mapping[str, np.ndarray]
TIME_NORM = "variance"


def load_networks(
    config: PocketConfig,
    weights: Weights,
    backend: Backend,
    *,
    precision: str = "f32",
    heads: tuple[tuple[int, int], ...] = (),
    noise_clamp: float | None = None,
    cache: Path | None = None,
) -> Networks:
    """The language model and the codec, ready to run. heads: those that are listened to."""
    programs = [
        Recipe(model.prefill_program, config, precision=precision),
        Recipe(model.step_program, config, precision=precision, heads=heads, noise_clamp=noise_clamp),
        Recipe(model.codec_program, config, precision=precision),
    ]
    whole = WithDerived(weights, time_vectors(weights, config.flow, TIME_NORM))
    prefill, step, codec = backend.load_all(programs, whole, cache=cache)
    return Networks(prefill, step, codec, **load_tables(weights), frame_rate_hz=config.frame_rate_hz,
                    capacity=model.CAPACITY)


def encode_voice(encoder: Executable, samples: np.ndarray, config: PocketConfig,
                 cancel: CancelFlag | None = None) -> np.ndarray:
    """Latents [F, V] of samples [S] at the model's rate; zeros are added up to a whole frame."""
    frame = config.encoder.frame_samples
    padded = np.pad(samples.astype(np.float32), (0, -len(samples) % frame))
    states, rows, out = encoder.create_states(1), np.zeros(1, np.int32), []
    for at in range(0, len(padded) // frame, MOST_FRAMES):
        given = {"samples": padded[None, at * frame : (at + MOST_FRAMES) * frame], "rows": rows,
                 "frame": np.array([at], np.int32)}
        out.append(encoder.run(given, states=states, cancel=cancel)[0][0])
    return np.concatenate(out)
