"""Precisions of Kokoro: those that it was measured in, and no other."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize(
    ("fast", "wanted"),
    [(("int8", "int8_row", "bf16"), "int8"), (("bf16", "int8_row"), "bf16"), (("int8",), "f32"), ((), "f32")],
    ids=str,
)
def test_by_itself_it_takes_what_is_fast_here(fast: tuple[str, ...], wanted: str) -> None:
    backend = NumpyBackend()
    backend.fast = fast
    assert automatic(backend) == wanted


@pytest.mark.skipif(not Path("/proc/cpuinfo").is_file(), reason="this system does not say what its processor can do")
@pytest.mark.parametrize("isa", NativeBackend.isas())
def test_the_native_backend_knows_its_processor(isa: str) -> None:
    flags = Path("/proc/cpuinfo").read_text().split()
    dots = {"avx2": "avx_vnni", "neon": "asimddp", "generic": "none"}.get(isa, "avx512_vnni")
    fast = NativeBackend(threads=1, isa=isa).fast
    assert ("int8_row" in fast) == ("int8" in fast) == (dots in flags)
    assert ("bf16" in fast) == (isa in ("avx512bf16", "amx"))
    assert isa != "amx" or fast[0] == "bf16"


def test_the_reference_backend_is_exact() -> None:
    assert automatic(NumpyBackend()) == "f32"


@pytest.mark.parametrize(("asked", "found"), [("auto", "int8"), ("exact", "f32"), ("bf16", "bf16"), ("f32", "f32")])
def test_precisions_by_name(asked: str, found: str) -> None:
    assert named_precision(asked, "int8") == found
