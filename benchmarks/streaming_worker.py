"""One engine, one process: speaks a fixed number of frames as a stream and prints its figures as one JSON line.

    python benchmarks/streaming_worker.py sonant-q8 --threads 2 --weights FOLDER --model phonon --frames 100 --streams 8

Called by streaming_peers.py with the interpreter that has the engine installed; imports nothing but that engine and
numpy, above which memory is counted. FOLDER is what streaming_checkpoints.py wrote. Temperature 0 everywhere, so that
every engine says the same. `--pin` keeps the process on as many cores as it has threads: ptts and pocket_tts run
language model and codec on two threads whatever they are told.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import process

SAMPLE_RATE = 24_000
FRAME = 1920
VOICE = "bench"
Speak = Callable[[], Iterable[Any]]
"""Speaks the text in the cached voice: chunks of samples [S] as they come."""


@dataclass(frozen=True)
class Given:
    folder: Path
    model: str
    threads: int
    frames: int
    text: str


SONANT_MODELS = {
    "phonon": "phonon-31m-en",
    "pocket-100m": "pocket-tts-en",
    "pocket-2m": "pocket-tts-2m-en",
    "pocket-24l": "pocket-tts-24l-en",
}
POCKET_CONFIGS = {
    "pocket-100m": "english_2026-10",
    "pocket-2m": "english_2m_2026-10",
    "pocket-24l": "english_2026-09_24l",
}


def sonant(given: Given, precision: str) -> Speak:
    import sonant as engine

    synth = engine.load(
        SONANT_MODELS[given.model],
        weights=given.folder,
        voices=given.folder / "voices",
        precision=precision,
        threads=given.threads,
        cache=given.folder / "sonant-cache",
    )
    return lambda: (chunk.samples for chunk in synth.stream(given.text, voice=VOICE, temperature=0.0))


def ptts(given: Given, quant: str) -> Speak:
    import ptts as engine

    engine.set_num_threads(given.threads)
    tts = engine.TTS(str(given.folder), device="cpu", lang="none", quant=quant)
    tts.add_voice(VOICE, str(given.folder / "voices" / f"{VOICE}.safetensors"))
    return lambda: tts.stream(given.text, voice=VOICE, temperature=0.0)


def transformers(given: Given) -> Speak:
    """Has no stream: the whole clip is its first chunk."""
    from streaming_transformers import builder

    speak = builder(given.folder, given.threads, given.text, given.frames)
    return lambda: [speak().numpy()]


def pocket_tts(given: Given) -> Speak:
    import logging
    import tempfile

    import pocket_tts as engine
    import torch
    import yaml
    from pocket_tts.modules.stateful_module import init_states
    from pocket_tts.utils.config import CONFIGS_DIR

    logging.disable()
    config = yaml.safe_load((CONFIGS_DIR / f"{POCKET_CONFIGS[given.model]}.yaml").read_text(encoding="utf-8"))
    config |= {"weights_path": str(given.folder / "model.safetensors"), "weights_path_without_voice_cloning": None}
    table = config["flow_lm"]["lookup_table"]
    table["tokenizer_path"] = str(next(given.folder.glob("tokenizer.*")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        tts = engine.TTSModel.load_model(config=path, temp=0.0)
    torch.set_num_threads(given.threads)  # the package sets 1 when it is imported
    torch.set_grad_enabled(False)
    prompt = torch.cat([tts.flow_lm.bos_before_voice, _projected(tts, given)], dim=1)
    state = init_states(tts.flow_lm, batch_size=1, sequence_length=prompt.shape[1])
    tts._run_flow_lm_and_increment_step(model_state=state, audio_conditioning=prompt)
    return lambda: (chunk.numpy() for chunk in tts.generate_audio_stream(state, given.text))


def _projected(tts: Any, given: Given) -> Any:
    import numpy as np
    import torch

    latents = torch.from_numpy(np.load(given.folder / "voice_latents.npy"))
    return (latents @ tts.flow_lm.speaker_proj_weight.T)[None]


ENGINES: dict[str, Callable[[Given], Speak]] = {
    "sonant-f32": lambda g: sonant(g, "f32"),
    "sonant-bf16": lambda g: sonant(g, "bf16"),
    "sonant-q8": lambda g: sonant(g, "q8"),
    "ptts-f32": lambda g: ptts(g, "f32"),
    "ptts-q8": lambda g: ptts(g, "q8_0"),
    "transformers": transformers,
    "pocket_tts": pocket_tts,
}


@dataclass(frozen=True)
class Call:
    seconds: float
    first_s: float
    cpu_s: float
    chunks: list[Any]


def called(speak: Speak) -> Call:
    cpu, began = time.process_time(), time.perf_counter()
    chunks, first_s = [], 0.0
    for chunk in speak():
        if not chunks:
            first_s = time.perf_counter() - began
        chunks.append(chunk)
    return Call(time.perf_counter() - began, first_s, time.process_time() - cpu, chunks)


def together_s(speak: Speak, streams: int) -> float:
    """Seconds until the last of the streams, begun at once in a thread each, has ended."""
    gate, failed = threading.Barrier(streams + 1), []

    def one() -> None:
        gate.wait()
        try:
            for _ in speak():
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


def measure(build: Callable[[Given], Speak], given: Given, calls: int, streams: int) -> Iterator[tuple[str, Any]]:
    """The figures, and `samples` of the last call."""
    import numpy as np

    bare_mib, began = process.resident_mib(), time.perf_counter()
    speak = build(given)
    yield "load_s", time.perf_counter() - began
    yield "cold_ttfa_ms", called(speak).first_s * 1e3
    yield "loaded_mib", process.resident_mib() - bare_mib
    measured = [called(speak) for _ in range(calls)]
    samples = np.concatenate(measured[-1].chunks)
    if samples.size != given.frames * FRAME:
        raise SystemExit(f"{samples.size / FRAME:g} frames of {FRAME} samples came; wanted {given.frames}")
    seconds, first_s, cpu_s = (
        statistics.median(getattr(c, f) for c in measured) for f in ("seconds", "first_s", "cpu_s")
    )
    yield "rtf", seconds / (given.frames * FRAME / SAMPLE_RATE)
    yield "frame_ms", seconds / given.frames * 1e3
    yield "cpu_frame_ms", cpu_s / given.frames * 1e3
    yield "ttfa_ms", first_s * 1e3
    yield "rss_mib", process.peak_rss_mib()
    if streams > 1:
        together_s(speak, streams)
        yield "streams_gain", streams * seconds / statistics.median(together_s(speak, streams) for _ in range(calls))
        yield "streams_rss_mib", process.peak_rss_mib()
    yield "samples", samples


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--model", choices=SONANT_MODELS, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--frames", type=int, default=200, help="50 to 225 in steps of 25")
    parser.add_argument("--calls", type=int, default=3, help="measured calls, after one that is not")
    parser.add_argument("--streams", type=int, default=1, help="at once in threads of one process; sonant only")
    parser.add_argument("--pin", action="store_true", help="on as many cores as threads")
    parser.add_argument("--audio", type=Path, help="write the samples here (f32)")
    given = parser.parse_args()
    if given.streams > 1 and not given.engine.startswith("sonant"):
        parser.error(f"{given.engine} speaks one stream at a time")
    return given


def main() -> None:
    given = arguments()
    if given.pin:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    folder = given.weights / given.model
    texts = json.loads((folder / "bench.json").read_text(encoding="utf-8"))["texts"]
    utterance = Given(folder, given.model, given.threads, given.frames, texts[str(given.frames)])
    figures = dict(measure(ENGINES[given.engine], utterance, given.calls, given.streams))
    samples = figures.pop("samples")
    if given.audio:
        samples.astype("<f4").tofile(given.audio)
    process.report({**figures, "model": given.model, "frames": given.frames, "streams": given.streams})


if __name__ == "__main__":
    main()
