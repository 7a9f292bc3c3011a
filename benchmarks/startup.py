"""The command from a cold shell to the written file, and the parts of that time.

    python benchmarks/startup.py [--rounds 7]

Runs `sonant say` in fresh processes after one that converts and packs the weights; prints medians in seconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = "The birch canoe slid on the smooth planks."
STAGES = {
    "python starts": "pass",
    "import sonant": "import sonant",
    "model loaded": "import sonant; sonant.load('kokoro-82m')",
}


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=7)
    rounds = arguments.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "a.wav"
        say = [sys.executable, "-m", "sonant.cli", "say", TEXT, "-o", str(out)]
        first = seconds(say)
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, code in STAGES.items():
                times.setdefault(name, []).append(seconds([sys.executable, "-c", code]))
            times.setdefault("file written", []).append(seconds(say))
    sys.stdout.write(f"first run (or first since the cache was emptied): {first:.2f} s\n")
    for name, values in times.items():
        sys.stdout.write(f"{name:<16}{statistics.median(values):6.3f} s  ({min(values):.3f}–{max(values):.3f})\n")


if __name__ == "__main__":
    main()
