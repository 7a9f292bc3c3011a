"""How much worse a listener's model finds lowered precisions of sonant: paired DNSMOS of the same clips and noise.

    PYTHONPATH=src python benchmarks/dnsmos.py FOLDER f32 bf16 int8 [--clips 72] [--voices af_heart am_michael …]

Needs `speechmos` (with librosa and onnxruntime; its models come with it) beside sonant. FOLDER holds Kokoro's weights.
The first precision is the one that the others are compared with. Clips are the passages of prose.jsonl with their
phonemes, the voices taking turns, all precisions with the same seed. Prints, for the overall, signal and background
score, the mean difference with its 95 % confidence interval, and the worst clips. Bar: overall ≥ -0.05.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rounds
from scipy.signal import resample_poly
from speechmos import dnsmos

from sonant import load

PROSE = Path(__file__).with_name("prose.jsonl")
SAMPLE_RATE, HEARD_RATE = 24_000, 16_000
SCORES = {"overall": "ovrl_mos", "signal": "sig_mos", "background": "bak_mos"}
NORMAL_95 = 1.96
WORST = 5
VOICES = ("af_heart", "am_michael", "bf_emma", "bm_george", "af_bella", "am_fenrir")

Opinion = dict[str, float]
"""score → 1 to 5"""


def opinions(given: argparse.Namespace, precision: str, phonemes: Sequence[str]) -> list[Opinion]:
    """One for each clip."""
    driver = load("kokoro-82m", weights=given.folder, precision=precision, isa=given.isa)._driver
    packs = [driver._catalog.get(name) for name in given.voices]
    found, turn = [], rounds.Turn(given.lock, shared=True)
    for i, sounds in enumerate(phonemes):
        with turn:
            samples, _ = driver.speak_phonemes(sounds, packs[i % len(packs)], 1.0, np.array([[0, i]], np.int32))
            found.append(heard(samples))
    return found


def heard(samples: np.ndarray) -> Opinion:
    """samples [S] at 24 kHz; DNSMOS hears 16 kHz and refuses what goes beyond ±1, as resampling may by a little."""
    audio = resample_poly(samples, HEARD_RATE, SAMPLE_RATE).clip(-1, 1)
    scores = dnsmos.run(audio, HEARD_RATE)
    return {name: float(scores[key]) for name, key in SCORES.items()}


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % confidence interval (normal: there are dozens of clips)."""
    spread = statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.fmean(differences), NORMAL_95 * spread


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("precisions", nargs="+", help="the first is what the others are compared with")
    arguments.add_argument("--clips", type=int, default=72)
    arguments.add_argument("--voices", nargs="+", default=VOICES)
    arguments.add_argument("--isa")
    arguments.add_argument("--lock", type=Path, help="a file that others on this machine lock while they compute")
    arguments.add_argument("--out", type=Path, help="the scores of every clip, as JSON")
    given = arguments.parse_args()
    lines = [json.loads(line) for line in PROSE.read_text(encoding="utf-8").splitlines()][: given.clips]
    if len(given.precisions) < 2 or len(lines) < 2:
        arguments.error("a comparison wants two precisions and two clips at least")
    phonemes = [line["phonemes"] for line in lines]
    scored = {p: opinions(given, p, phonemes) for p in given.precisions}
    for precision, found in scored.items():
        means = (f"{name} {statistics.fmean(o[name] for o in found):.3f}" for name in SCORES)
        sys.stdout.write(f"{precision}: {', '.join(means)} (mean of {len(found)} clips)\n")
    base = given.precisions[0]
    for precision in given.precisions[1:]:
        sys.stdout.write("\n".join(compared(scored[precision], scored[base], f"{precision} - {base}", lines)) + "\n")
    if given.out:
        given.out.write_text(json.dumps(scored, indent=1) + "\n", encoding="utf-8")


def compared(lowered: list[Opinion], base: list[Opinion], title: str, lines: list[dict[str, Any]]) -> list[str]:
    out = [f"\n{title}"]
    for name in SCORES:
        mean, half = interval([a[name] - b[name] for a, b in zip(lowered, base, strict=True)])
        out.append(f"  {name:<10} {mean:+.4f} ± {half:.4f}")
    overall = [a["overall"] - b["overall"] for a, b in zip(lowered, base, strict=True)]
    for i in sorted(range(len(overall)), key=overall.__getitem__)[:WORST]:
        out.append(f"  worst: clip {i:2d} {overall[i]:+.3f}  {lines[i]['text'][:60]}")
    return out


if __name__ == "__main__":
    main()
