"""The options that name a model, and bringing it up with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sonant.engine.synthesizer import Synthesizer


def model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --model, --weights, --voices, --device, --threads, --precision and --isa."""
    for option in reversed(
        [
            click.option(
                "--model", default="kokoro-82m", show_default=True, help="Model by name; see `sonant models`."
            ),
            click.option("--weights", type=click.Path(path_type=Path), help="Checkpoint file or folder."),
            click.option("--voices", "voices_dir", type=click.Path(path_type=Path), help="Folder of further voices."),
            click.option("--device", default="cpu", show_default=True, help="cpu, or numpy for the slow reference."),
            click.option("--threads", type=int, help="Threads that compute; one per core by default."),
            click.option(
                "--precision",
                default="auto",
                show_default=True,
                help="auto, exact (f32), f32, f16, bf16, int8 or q8, as the model has.",
            ),
            click.option("--isa", help="Force an instruction set; see `sonant doctor`."),
        ]
    ):
        command = option(command)
    return command


def load_model(model: str, weights: Path | None, voices_dir: Path | None, **options: Any) -> Synthesizer:
    """`sonant.load` with what `model_options` gathered; converted files go to $SONANT_CACHE."""
    from sonant.engine.load import load

    cache = os.environ.get("SONANT_CACHE") or None
    return load(model, weights=weights, voices=voices_dir, cache=cache, **options)
