"""The generated C++ header is that of today's opset."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "generate_opset.py"


def test_the_opset_header_is_up_to_date() -> None:
    status = subprocess.run([sys.executable, TOOL, "--check"], check=False).returncode
    assert status == 0, "run python tools/generate_opset.py and build again"


def test_the_module_is_built_from_the_opset() -> None:
    import pytest

    native = pytest.importorskip("sonant._native", reason="run `make native`")
    from sonant.program import opset

    assert native.opset_version() == opset.VERSION
