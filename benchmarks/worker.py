"""One engine, one process: speaks a model's texts and prints its figures as one JSON line.

    python benchmarks/worker.py kokoro sonant-bf16 --threads 2 --weights FOLDER/kokoro

Called by peers.py with the interpreter that has the engine installed. With --first it speaks one sentence from the bare
text and writes every chunk (f32) to standard output at once: what the parent times is a start from nothing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import process
from engines import SAMPLE_RATE, Given, Say, Speaker, Text, is_sonant
from kokoro_engines import KOKORO
from streaming_engines import STREAMING

MODELS = {"kokoro": KOKORO, **STREAMING}
FRAME = 1920
STARTS = 3
"""How often a first chunk is timed, after once that is not."""


@dataclass(frozen=True)
class Call:
    seconds: float
    first_s: float
    cpu_s: float
    chunks: list[Any]


def called(say: Say, text: Text) -> Call:
    cpu, began = time.process_time(), time.perf_counter()
    chunks, first_s = [], 0.0
    for chunk in say(text):
        if not chunks:
            first_s = time.perf_counter() - began
        chunks.append(chunk)
    return Call(time.perf_counter() - began, first_s, time.process_time() - cpu, chunks)


def first_s(say: Say, text: Text) -> float:
    """Seconds to the first chunk; the rest is not asked for."""
    began = time.perf_counter()
    next(iter(say(text)))
    return time.perf_counter() - began


def measure(speaker: Speaker, texts: list[Text], calls: int) -> Iterator[tuple[str, Any]]:
    """The figures, and `samples` of the last text."""
    import numpy as np

    by_text = [[called(speaker.say, text) for _ in range(calls)] for text in texts]
    for text, made in zip(texts, by_text, strict=True):
        samples = np.concatenate(made[-1].chunks)
        if text.frames is not None and samples.size != text.frames * FRAME:
            raise SystemExit(f"{samples.size / FRAME:g} frames of {FRAME} samples came; wanted {text.frames}")
    seconds = [statistics.median(c.seconds for c in made) for made in by_text]
    audio = [sum(chunk.size for chunk in made[-1].chunks) / SAMPLE_RATE for made in by_text]
    yield "rtf", sum(seconds) / sum(audio)
    yield "rtf_by_text", [s / a for s, a in zip(seconds, audio, strict=True)]
    yield "audio_s", sum(audio)
    yield "cpu_cores", sum(c.cpu_s for made in by_text for c in made) / sum(c.seconds for made in by_text for c in made)
    for name, i in [("ttfa_ms", 0), ("paragraph_ttfa_ms", -1)][: len(texts)]:
        yield name, 1e3 * started_s(speaker, texts[i], by_text[i])
    yield "rss_mib", process.peak_rss_mib()
    yield "samples", samples


def started_s(speaker: Speaker, text: Text, said: list[Call]) -> float:
    if speaker.start is None or speaker.start is speaker.say:
        return statistics.median(c.first_s for c in said)
    return statistics.median([first_s(speaker.start, text) for _ in range(STARTS + 1)][1:])


def together_s(say: Say, text: Text, streams: int) -> float:
    """Seconds until the last of the streams, begun at once in a thread each, has ended."""
    gate, failed = threading.Barrier(streams + 1), []

    def one() -> None:
        gate.wait()
        try:
            for _ in say(text):
                pass
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=one) for _ in range(streams)]
    for t in threads:
        t.start()
    gate.wait()
    began = time.perf_counter()
    for t in threads:
        t.join()
    if failed:
        raise SystemExit(f"{len(failed)} of {streams} streams failed, the first with {failed[0]!r}")
    return time.perf_counter() - began


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("engine")
    parser.add_argument("--weights", type=Path, required=True, help="the folder of this model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--first", action="store_true", help="only one sentence, to standard output")
    parser.add_argument("--streams", type=int, default=1, help="also as many at once in threads of one process")
    parser.add_argument("--pin", action="store_true", help="on as many cores as threads")
    parser.add_argument("--audio", type=Path, help="write the samples of the last text here (f32)")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.pin:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    model = MODELS[given.model]
    engine, texts = model.engine(given.engine), model.texts(given.weights)
    asked = Given(given.weights, given.model, given.threads, texts)
    if given.first:
        out = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what engines print is not sound
        for chunk in engine.build(asked).first(texts[0])(texts[0]):
            os.write(out, chunk.tobytes())
        return
    import numpy  # noqa: F401  (what is resident from here on is the engine's)

    bare_mib, began = process.resident_mib(), time.perf_counter()
    speaker = engine.build(asked)
    figures: dict[str, Any] = {"load_s": time.perf_counter() - began}
    called(speaker.say, texts[0])
    figures["loaded_mib"] = process.resident_mib() - bare_mib
    figures |= measure(speaker, texts, model.calls)
    samples = figures.pop("samples")
    if given.audio:
        samples.astype("<f4").tofile(given.audio)
    if given.streams > 1 and is_sonant(given.engine):
        together_s(speaker.say, texts[-1], given.streams)
        seconds = statistics.median(together_s(speaker.say, texts[-1], given.streams) for _ in range(model.calls))
        figures["streams_gain"] = given.streams * figures["rtf_by_text"][-1] * samples.size / SAMPLE_RATE / seconds
    if not is_sonant(given.engine):
        figures["versions"] = {name: importlib.metadata.version(name) for name in engine.packages}
    process.report(figures)


if __name__ == "__main__":
    main()
