"""Precisions of Kokoro: those that it was measured in, and no other."""

from __future__ import annotations

import pytest

from sonant.backends.numpy import NumpyBackend
from sonant.errors import UnknownName
from sonant.families.kokoro.driver import KokoroDriver
from sonant.families.kokoro.programs import official_config
from sonant.families.kokoro.voices import VoiceCatalog


def test_q8_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(UnknownName, match=r"precision of Kokoro 'q8'.*bf16, f16, f32, int8"):
        KokoroDriver(official_config(), {}, NumpyBackend(), voices=VoiceCatalog(), precision="q8", cache=None)
