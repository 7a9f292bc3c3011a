"""Lets the tests of this folder import `counting`, `babbling` and the babble of the aligner's tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "align"))
from counting import CountingDriver


@pytest.fixture
def driver() -> CountingDriver:
    return CountingDriver()
