"""Lets the proofs import `tiny_autoregressive`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
