"""One engine, one process: speaks the benchmark texts from given phonemes and prints its figures as one JSON line.

Called by kokoro_peers.py with the interpreter that has the engine installed; imports nothing but that engine, so that
start-up and memory are the engine's own.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import process

STARTED = float(os.environ.get("BENCH_STARTED", time.time()))
ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "families" / "kokoro" / "data"
SAMPLE_RATE = 24_000

Speak = Callable[[str, str], int]
"""(text, phonemes) → number of samples"""


def sonant(weights: Path, threads: int, precision: str, isa: str | None) -> Speak:
    import numpy as np

    from sonant.engine.load import load

    driver = load(
        "kokoro-82m",
        threads=threads,
        precision=precision,
        isa=isa,
        cache=weights / "sonant-cache",
        weights=weights / "kokoro-v1_0.pth",
    )._driver
    voice, seed = driver._catalog.get("af_heart"), np.zeros((1, 2), np.int32)
    return lambda text, phonemes: len(driver.speak_phonemes(phonemes, voice, 1.0, seed)[0])


def onnxruntime(weights: Path, threads: int, file: str) -> Speak:
    import numpy as np
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(str(weights / file), options, providers=["CPUExecutionProvider"])
    names, vocab, voice = [i.name for i in session.get_inputs()], _vocab(weights), _voice(weights)

    def speak(text: str, phonemes: str) -> int:
        ids = [0, *(vocab[c] for c in phonemes), 0]
        given = (np.array([ids], np.int64), voice[len(phonemes) - 1][None], np.ones(1, np.float32))
        return session.run(None, dict(zip(names, given, strict=True)))[0].size

    return speak


def torch(weights: Path, threads: int) -> Speak:
    import warnings

    warnings.filterwarnings("ignore")
    import torch as t
    from kokoro.model import KModel

    t.set_num_threads(threads)
    model = KModel(
        repo_id="hexgrad/Kokoro-82M", config=str(weights / "config.json"), model=str(weights / "kokoro-v1_0.pth")
    ).eval()
    voice = t.from_numpy(_voice(weights))
    return lambda text, phonemes: model(phonemes, voice[len(phonemes) - 1][None], 1.0).numel()


def vox(weights: Path, threads: int, dtype: str) -> Speak:
    import vox

    engine = vox.Engine(str(weights / f"kokoro.{dtype}.tmod"), device="cpu", threads=threads)
    voice = engine.speaker_voice("af_heart")
    return lambda text, phonemes: len(engine.synthesize(phonemes, voice, phonemes=True))


def _vocab(weights: Path) -> dict[str, int]:
    return json.loads((weights / "config.json").read_text(encoding="utf-8"))["vocab"]


def _voice(weights: Path) -> Any:
    import numpy as np

    return np.fromfile(weights / "af_heart.bin", "<f4").reshape(510, 256)


ENGINES: dict[str, Callable[[Path, int], Speak]] = {
    "sonant-f32": lambda w, t: sonant(w, t, "f32", None),
    "sonant-bf16": lambda w, t: sonant(w, t, "bf16", None),
    "sonant-f16": lambda w, t: sonant(w, t, "f16", None),
    "sonant-avx2": lambda w, t: sonant(w, t, "f32", "avx2"),
    "onnxruntime-int8": lambda w, t: onnxruntime(w, t, "kokoro-v1.0.int8.onnx"),
    "onnxruntime-f32": lambda w, t: onnxruntime(w, t, "kokoro-v1.0.f32-export.onnx"),
    "torch": torch,
    "vox-f32": lambda w, t: vox(w, t, "f32"),
    "vox-bf16": lambda w, t: vox(w, t, "bf16"),
}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("engine", choices=ENGINES)
    arguments.add_argument("--weights", type=Path, required=True)
    arguments.add_argument("--threads", type=int, required=True)
    given = arguments.parse_args()
    texts, phonemes = (
        json.loads((DATA / f"benchmark_{kind}.json").read_text(encoding="utf-8")) for kind in ("texts", "phonemes")
    )
    speak = ENGINES[given.engine](given.weights, given.threads)
    speak(texts[0], phonemes[0])
    cold_s = time.time() - STARTED
    seconds, audio = [], []
    for text, sounds in zip(texts, phonemes, strict=True):
        began = time.perf_counter()
        samples = speak(text, sounds)
        seconds.append(time.perf_counter() - began)
        audio.append(samples / SAMPLE_RATE)
    process.report(
        {
            "rtf": sum(seconds) / sum(audio),
            "rtf_short": sum(seconds[:-1]) / sum(audio[:-1]),
            "rtf_long": seconds[-1] / audio[-1],
            "sentence_ms": seconds[0] * 1e3,
            "cold_s": cold_s,
            "rss_mib": process.peak_rss_mib(),
            "audio_s": sum(audio),
        }
    )


if __name__ == "__main__":
    main()
