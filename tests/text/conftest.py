"""What the tests of the text front end share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sonant


@pytest.fixture(scope="session")
def kokoro_vocab() -> dict[str, int]:
    path = Path(sonant.__file__).parent / "families" / "kokoro" / "data" / "config.json"
    return json.loads(path.read_text(encoding="utf-8"))["vocab"]
