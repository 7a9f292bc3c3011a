"""A text of minutes, streamed: does its time grow with its length alone, and does memory stay where it is?

    PYTHONPATH=src python benchmarks/long_text.py [--minutes 5] [--precision f32] [--threads 2]

Needs Kokoro's weights. The text is prose.jsonl, from the start again where it ends. Prints, for every minute of sound,
the rtf of that minute and the resident memory at its end, then the whole; and the first chunk's time for the whole text
and for its first passage, which shows what reading ahead costs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from process import peak_rss_mib, resident_mib

from sonant import Synthesizer, load

PROSE = Path(__file__).with_name("prose.jsonl")
WORDS_PER_MINUTE = 170
"""A little less than Kokoro speaks, so that the text does not end too soon."""


def passages(minutes: float) -> list[str]:
    texts = (json.loads(line)["text"] for line in PROSE.read_text(encoding="utf-8").splitlines())
    found: list[str] = []
    words = 0
    for text in cycle(texts):
        if words >= minutes * WORDS_PER_MINUTE * 1.1:
            return found
        found.append(text)
        words += len(text.split())
    raise AssertionError("a cycle does not end")


def minutes_of(synth: Synthesizer, text: str, minutes: int) -> Iterator[tuple[float, float, float]]:
    """(seconds of sound, seconds of work, resident MiB) of each minute, more or less: whole chunks."""
    began, sound_s, done = time.perf_counter(), 0.0, 0
    for chunk in synth.stream(text):
        sound_s += chunk.samples.size / synth.sample_rate
        if sound_s >= 60:
            now = time.perf_counter()
            yield sound_s, now - began, resident_mib()
            began, sound_s, done = now, 0.0, done + 1
            if done == minutes:
                return


def first_chunk_s(synth: Synthesizer, text: str) -> float:
    began = time.perf_counter()
    next(synth.stream(text, first_piece="short"))
    return time.perf_counter() - began


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--minutes", type=int, default=5)
    arguments.add_argument("--precision", default="f32")
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--weights", type=Path)
    given = arguments.parse_args()
    synth = load("kokoro-82m", precision=given.precision, threads=given.threads, weights=given.weights)
    texts = passages(given.minutes)
    whole = " ".join(texts)
    synth.speak(texts[0])
    made = []
    for number, (sound_s, work_s, mib) in enumerate(minutes_of(synth, whole, given.minutes), 1):
        made.append((sound_s, work_s))
        sys.stdout.write(f"minute {number}: {sound_s:5.1f} s, rtf {work_s / sound_s:.4f}, resident {mib:.1f} MiB\n")
        sys.stdout.flush()
    sound_s, work_s = (sum(column) for column in zip(*made, strict=True))
    sys.stdout.write(f"together: {sound_s:.1f} s, rtf {work_s / sound_s:.4f}, peak RSS {peak_rss_mib():.1f} MiB\n")
    for name, text in (("its first passage", texts[0]), (f"all {len(whole.split())} words", whole)):
        sys.stdout.write(f"first chunk of {name}: {1e3 * first_chunk_s(synth, text):.0f} ms\n")


if __name__ == "__main__":
    main()
