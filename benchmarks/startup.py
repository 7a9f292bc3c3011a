"""The command from a cold shell to its first sample, and the parts of that time.

    python benchmarks/startup.py [--rounds 9] [--precision f32] [--threads 2] [--first-piece full] [--text TEXT]

Every figure is of fresh processes that run as an installed sonant does, with compiled Python files, after one that
converts and packs the weights. The stages are cumulative: each process does what the one before did, and more. Prints
medians in seconds, and the spread.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from rounds import usual

TEXT = "The birch canoe slid on the smooth planks."
# What the command does before it loads a model, in its order.
NUMPY = "import numpy"
COMMAND = f"import sonant.cli.main, sonant.cli.say, sonant.audio.writer; {NUMPY}"
ENGINE = f"{COMMAND}; import sonant.engine.load, sonant.backends.native, sonant.families.kokoro.driver, " \
         "sonant.families.kokoro.weights"


def finished(command: Sequence[str]) -> float:
    """Seconds until the command has ended."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=usual({}))
    return time.perf_counter() - began


def first_byte(command: Sequence[str]) -> tuple[float, float]:
    """Seconds until the first byte of standard output, and until the end."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, env=usual({})) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        first = time.perf_counter() - began
        while process.stdout.read(1 << 20):
            pass
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return first, time.perf_counter() - began


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--precision", default="f32")
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--first-piece", default="full")
    arguments.add_argument("--text", default=TEXT)
    given = arguments.parse_args()
    options = ["--precision", given.precision, "--threads", str(given.threads)]
    say = [sys.executable, "-m", "sonant.cli", "say", given.text, "-q", "-o", "-", "--first-piece", given.first_piece]
    load = f"{ENGINE}; import sonant; sonant.load('kokoro-82m', precision={given.precision!r}, threads={given.threads})"
    stages = {"python starts": "pass", "numpy": NUMPY, "the command": COMMAND, "the engine": ENGINE,
              "model loaded": load}
    once = finished([*say, *options])
    times: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        for name, code in stages.items():
            done = f"{code}; import os; os.write(1, b'.')"
            times.setdefault(name, []).append(first_byte([sys.executable, "-c", done])[0])
        for name, seconds in zip(("first sample", "command ended"), first_byte([*say, *options]), strict=True):
            times.setdefault(name, []).append(seconds)
    sys.stdout.write(f"{given.precision}, {given.threads} threads; the first run took {once:.2f} s\n")
    before = 0.0
    for name, values in times.items():
        median = statistics.median(values)
        sys.stdout.write(f"{name:<15}{median:7.3f} s  +{median - before:.3f}  ({min(values):.3f}–{max(values):.3f})\n")
        before = median


if __name__ == "__main__":
    main()
