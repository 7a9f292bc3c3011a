"""Lets the tests of this folder import `counting`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from counting import CountingDriver


@pytest.fixture
def driver() -> CountingDriver:
    return CountingDriver()
