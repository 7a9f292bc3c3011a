"""The text forms of each family's Programs, recorded and reviewed like code: a change here changes what is computed.

When a change is meant, record them anew and read the difference before you commit it:

    SONANT_RECORD=1 python -m pytest tests/programs && git diff tests/programs

A file holds the Program as its family records it, then as `fuse` leaves it for the backends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from sonant.families.kokoro import model as kokoro
from sonant.families.kokoro.config import KokoroConfig
from sonant.families.phonon import model as phonon
from sonant.families.phonon.programs import official_config as phonon_config
from sonant.families.pocket import model as pocket
from sonant.families.pocket.config import PocketConfig, released
from sonant.families.pocket.config import parse as pocket_configuration
from sonant.program.passes import fuse
from sonant.program.program import Program
from sonant.program.serialize import from_json, to_json, to_text
from sonant.program.verify import verify

HERE = Path(__file__).parent


def _kokoro_config() -> KokoroConfig:
    config = resources.files("sonant.families.kokoro") / "data" / "config.json"
    return KokoroConfig.from_json(json.loads(config.read_text(encoding="utf-8")))


def _pocket_config(name: str) -> PocketConfig:
    return pocket_configuration(released(name), name)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "kokoro_text": lambda: kokoro.text_program(_kokoro_config()),
    "kokoro_prosody": lambda: kokoro.prosody_program(_kokoro_config()),
    "kokoro_source": lambda: kokoro.source_program(_kokoro_config()),
    "kokoro_decoder": lambda: kokoro.decoder_program(_kokoro_config()),
    "kokoro_decoder_int8": lambda: kokoro.decoder_program(_kokoro_config(), "int8"),
    "phonon_prefill": lambda: phonon.prefill_program(phonon_config()),
    "phonon_step": lambda: phonon.step_program(phonon_config(), precision="q8", heads=((3, 0),)),
    "phonon_step_guided": lambda: phonon.step_program(phonon_config(), guided=True),
    "phonon_codec": lambda: phonon.codec_program(phonon_config(), precision="q8"),
    "pocket_prefill": lambda: pocket.prefill_program(_pocket_config("english")),
    "pocket_step": lambda: pocket.step_program(_pocket_config("english"), heads=((2, 0), (3, 8))),
    "pocket_step_7m": lambda: pocket.step_program(_pocket_config("english_7m_2026-10"), noise_clamp=1.0),
    "pocket_codec_2m": lambda: pocket.codec_program(_pocket_config("english_2m_2026-10"), precision="bf16"),
    "pocket_encoder": lambda: pocket.encoder_program(_pocket_config("english")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_the_recorded_one(name: str) -> None:
    program = PROGRAMS[name]()
    fused = fuse(program)
    verify(program)
    verify(fused)
    text = f"# as recorded\n{to_text(program)}\n\n# fused\n{to_text(fused)}\n"
    path = HERE / f"{name}.txt"
    if os.environ.get("SONANT_RECORD"):
        path.write_text(text, encoding="utf-8")
    recorded = path.read_text(encoding="utf-8")
    assert recorded == text, f"{name} is not the recorded Program: see the docstring of {Path(__file__).name}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_survives_its_json(name: str) -> None:
    for program in (PROGRAMS[name](), fuse(PROGRAMS[name]())):
        assert to_text(from_json(to_json(program))) == to_text(program)


def test_every_recorded_file_has_its_program() -> None:
    assert {p.stem for p in HERE.glob("*.txt")} == set(PROGRAMS)
