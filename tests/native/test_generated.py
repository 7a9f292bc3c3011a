"""The generated C++ header is that of today's opset."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sonant import _native as native
from sonant.program import opset

TOOL = Path(__file__).resolve().parents[2] / "tools" / "generate_opset.py"


def test_the_opset_header_is_up_to_date() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TOOL.parents[1] / "src")}
    status = subprocess.run([sys.executable, TOOL, "--check"], check=False, env=environment).returncode
    assert status == 0, "run PYTHONPATH=src python tools/generate_opset.py and build again"


def test_the_module_is_built_from_the_opset() -> None:
    assert native.opset_version() == opset.VERSION
