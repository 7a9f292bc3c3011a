"""Lets the tests of the command import the drivers of the engine's tests, and the babble of the aligner's."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "engine"), str(TESTS / "align")]
