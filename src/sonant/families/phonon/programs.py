"""Phonon's Programs without any weights: for inspection and recording.

data/phonon-31m.json has the sizes of the 31M release, which its parameter counts and file sizes leave no choice about;
its own config.json is read when it is loaded.
"""

from __future__ import annotations

from pathlib import Path

from sonant.families.latent.fields import Fields
from sonant.families.latent.stated import Stated
from sonant.families.phonon import model
from sonant.families.phonon.config import PhononConfig, parse
from sonant.program.program import Program

SIZES = Path(__file__).parent / "data" / "phonon-31m.json"


def official_config() -> PhononConfig:
    return parse(Stated(Fields.of_json(SIZES).values), str(SIZES))


def official_programs() -> list[Program]:
    config = official_config()
    return [model.prefill_program(config), model.step_program(config, heads=((3, 0),)), model.codec_program(config)]
