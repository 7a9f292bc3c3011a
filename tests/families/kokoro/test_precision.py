"""Precisions of Kokoro: those that it was measured in, and no other."""

from __future__ import annotations

import pytest

from sonant.backends.native import NativeBackend
from sonant.backends.numpy import NumpyBackend
from sonant.errors import UnknownName
from sonant.families.kokoro.driver import KokoroDriver, automatic
from sonant.families.kokoro.programs import official_config
from sonant.families.kokoro.voices import VoiceCatalog
from sonant.options import named_precision


def test_q8_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(UnknownName, match=r"precision of Kokoro 'q8'.*bf16, f16, f32, int8"):
        KokoroDriver(official_config(), {}, NumpyBackend(), voices=VoiceCatalog(), precision="q8", cache=None)


@pytest.mark.parametrize("isa", NativeBackend.isas())
def test_by_itself_it_takes_what_is_fast_here(isa: str) -> None:
    backend = NativeBackend(threads=1, isa=isa)
    wanted = "int8" if "int8_row" in backend.fast else "bf16" if "bf16" in backend.fast else "f32"
    assert automatic(backend) == wanted
    assert ("bf16" in backend.fast) == (isa == "avx512bf16")


def test_the_reference_backend_is_exact() -> None:
    assert automatic(NumpyBackend()) == "f32"


@pytest.mark.parametrize(("asked", "found"), [("auto", "int8"), ("exact", "f32"), ("bf16", "bf16"), ("f32", "f32")])
def test_precisions_by_name(asked: str, found: str) -> None:
    assert named_precision(asked, "int8") == found
