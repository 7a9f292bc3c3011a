"""What a worker process says of itself. Imports nothing heavy: start-up and memory are to be the engine's own."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path


def resident_mib() -> float:
    """Linux: the second field of statm, in pages; pages of mapped files count."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak_rss_mib() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 2**20 if sys.platform == "darwin" else used / 2**10


def report(figures: Mapping[str, object]) -> None:
    """The line that the parent reads: the last of the output."""
    sys.stdout.write(json.dumps(figures) + "\n")
