"""`sonant clone` over a driver that only takes note: what is read, what is refused, what is written where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import sonant.cli.clone
from sonant.audio.reader import Recording
from sonant.audio.wav import write_wav
from sonant.cli.main import main
from sonant.engine.synthesizer import Synthesizer
from sonant.families.family import refuse_clone

TONE = (np.sin(np.arange(16_000) * 0.1) * 0.5).astype(np.float32)


class Cloner:
    sample_rate = 24_000
    able = True
    taken: tuple[str, Recording] | None = None

    def clone(self, name: str, recording: Recording, *, keep: Path, cancel: Any) -> None:
        if not self.able:
            refuse_clone("This family cannot")
        self.taken = (name, recording)
        keep.write_bytes(b"voice")


@pytest.fixture(autouse=True)
def cloner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cloner:
    driver = Cloner()
    monkeypatch.setattr(sonant.cli.clone, "load_model", lambda **_: Synthesizer("cloner", driver))
    monkeypatch.chdir(tmp_path)
    write_wav("a.wav", TONE, 16_000)
    return driver


def clone(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["clone", *arguments])


def test_a_recording_becomes_a_voice_of_the_file_s_name(cloner: Cloner) -> None:
    result = clone("a.wav", "-o", "ada.safetensors")
    assert (result.exit_code, result.stderr) == (0, "ada.safetensors: the voice ada\n")
    assert Path("ada.safetensors").read_bytes() == b"voice"
    assert cloner.taken is not None
    name, recording = cloner.taken
    assert (name, recording.sample_rate) == ("ada", 16_000)
    np.testing.assert_allclose(recording.samples, TONE, atol=1 / 32_000)


@pytest.mark.parametrize(("arguments", "said"), [
    (("a.wav", "-o", "ada.wav"), "-o ada.safetensors"),
    (("none.wav", "-o", "ada.safetensors"), "none.wav"),
    (("a.wav", "-o", "nowhere/ada.safetensors"), "nowhere"),
])
def test_what_cannot_be_read_or_written_is_said_first(arguments: tuple[str, ...], said: str, cloner: Cloner) -> None:
    result = clone(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert cloner.taken is None


def test_a_family_that_cannot_says_so(cloner: Cloner) -> None:
    cloner.able = False
    result = clone("a.wav", "-o", "ada.safetensors")
    assert result.exit_code == 2
    assert "This family cannot; a model whose capabilities say cloning" in result.stderr
    assert not Path("ada.safetensors").exists()
