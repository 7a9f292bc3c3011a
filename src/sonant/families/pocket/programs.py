"""The Programs of a release of Pocket TTS without any weights: for inspection and recording."""

from __future__ import annotations

from sonant.families.latent.driver import listened
from sonant.families.pocket import model
from sonant.families.pocket.config import parse, released
from sonant.families.pocket.heads import PUBLISHED
from sonant.program.program import Program


def official_programs(recipe: str) -> list[Program]:
    """recipe: its name in pocket_tts."""
    config = parse(released(recipe), recipe)
    return [
        model.prefill_program(config),
        model.step_program(config, heads=listened(PUBLISHED.get(recipe))),
        model.codec_program(config),
        model.encoder_program(config),
    ]
