"""Kokoro's Programs for the official configuration, without any weights: for inspection, recording and export."""

from __future__ import annotations

import json
from pathlib import Path

from sonant.families.kokoro import model
from sonant.families.kokoro.config import KokoroConfig
from sonant.program.program import Program


def official_config() -> KokoroConfig:
    path = Path(__file__).parent / "data" / "config.json"
    return KokoroConfig.from_json(json.loads(path.read_text(encoding="utf-8")))


def official_programs() -> list[Program]:
    config = official_config()
    return [
        model.text_program(config),
        model.prosody_program(config),
        model.source_program(config),
        model.decoder_program(config),
    ]
