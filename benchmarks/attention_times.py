"""Word times from attention against known ones, for our way and the two published ones.

    python benchmarks/attention_times.py [--made-up N]

The speech is Kokoro's, whose word times are known from its durations and its sound; the attention is made up to follow
it, with the faults of real heads (tests/families/latent/spoken.py). --made-up: N utterances of made-up speech instead,
which needs no weights. All three ways share the last stage, which looks at the sound.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from sonant.families.latent.attention_path import TokenPath
from sonant.families.latent.timing import AttentionTimes

HERE = Path(__file__).parent
spoken = SimpleNamespace(**runpy.run_path(str(HERE.parent / "tests" / "families" / "latent" / "spoken.py")))
N_TEXTS = 24
CASES: dict[str, dict[str, Any]] = {
    "clear": {"blur": 0.5, "wander": 0.05, "noise": 0.05},
    "blurred": {"blur": 1.0, "wander": 0.15},
    "noisy": {"noise": 0.35, "wander": 0.3, "spikes": 0.05},
    "spikes of up to 3 frames": {"wander": 0.15, "spikes": 0.15, "spike_frames": 3},
    "two heads": {"wander": 0.2, "noise": 0.2, "spikes": 0.15, "spike_frames": 2, "heads": 2},
    "behind by 3 frames": {"wander": 0.15, "lead": -3.0},
}


def kokoro_speech() -> list[Any]:
    """Benchmark prose with a token for about every four letters of a word, its time shared evenly, and one for its
    punctuation, whose time is the pause behind the word."""
    import sonant

    synth, said = sonant.load("kokoro-82m"), []
    lines = (HERE / "prose.jsonl").read_text("utf-8").splitlines()[:N_TEXTS]
    for text in (json.loads(line)["text"] for line in lines):
        speech, words, edges = synth.speak(text), [], []
        for w in speech.words:
            first, n_tokens = len(edges), max(1, round(sum(map(str.isalpha, w.text)) / 4))
            edges += [w.start_s + (w.end_s - w.start_s) * i / n_tokens for i in range(n_tokens)]
            edges += [w.end_s] if not w.text[-1].isalnum() else []
            words.append(spoken.Word(w.text, w.char_start, w.char_end, first, len(edges)))
        times = (np.array([w.start_s for w in speech.words]), np.array([w.end_s for w in speech.words]))
        edges.append(speech.duration_s)
        said.append(spoken.Utterance(tuple(words), *times, np.array(edges), speech.samples, speech.sample_rate))
    return said


def made_up_speech(n: int) -> list[Any]:
    return [spoken.utterance(np.random.default_rng(seed), 15, silent_words=0) for seed in range(n)]


def our_positions(said: Any, attention: np.ndarray) -> list[float]:
    path = TokenPath(said.n_tokens)
    path.add(attention)
    path.finish()
    return path.positions


def centroid_positions(said: Any, attention: np.ndarray) -> list[float]:
    """As blixt/phonon publishes it: the centroid of the tokens within two of the largest weight, never going back."""
    found = []
    for weights in attention.mean(axis=1):
        near = slice(max(0, int(weights.argmax()) - 2), int(weights.argmax()) + 3)
        found.append(float((weights[near] * (np.arange(said.n_tokens)[near] + 0.5)).sum() / weights[near].sum()))
    return np.maximum.accumulate(found).tolist()


def state_positions(said: Any, attention: np.ndarray) -> list[float]:
    """As pocket_tts_timestamped publishes it: the first frame with sound begins the first word; the next word begins
    when its weight exceeds the word's, or when the word has almost none and any later one has more; silence ends a word
    if a later one has more."""
    weights = attention.mean(axis=1)
    words = np.stack([weights[:, w.token_start : w.token_end].sum(axis=1) for w in said.words], 1)
    size = round(spoken.FRAME_S * said.sample_rate)
    now, following, found = None, 0, []
    for f, of_words in enumerate(words):
        samples = said.samples[f * size : (f + 1) * size]
        if np.sqrt(np.mean(np.square(samples))) <= 1e-3:
            if now is not None and of_words[now + 1 :].max(initial=0) > of_words[now]:
                now = None
        elif now is None:
            now, following = min(following, len(of_words) - 1), following + 1
        elif following < len(of_words):
            weak = of_words[now] < 1e-3 and of_words[following + 1 :].max(initial=0) > of_words[now]
            if of_words[following] > of_words[now] or weak:
                now, following = following, following + 1
        found.append(float(said.words[max(0, min(following, len(of_words)) - 1)].token_start))
    return found


# What each way gives as the start of a word: the middle between two frames, or (-0.5) the start of a frame.
WAYS = {"ours": (our_positions, 0.0), "centroid": (centroid_positions, 0.0), "states": (state_positions, -0.5)}


def errors_s(said: Any, attention: np.ndarray, way: str, lead: float) -> np.ndarray:
    """[2, words]: how late the starts and the ends are."""
    positions, shift = WAYS[way]
    timing = AttentionTimes(
        said.words,
        said.n_tokens,
        sample_rate=said.sample_rate,
        frame_samples=round(spoken.FRAME_S * said.sample_rate),
        lead_frames=lead + shift,
    )
    timing._path.positions = positions(said, attention)
    words = timing.add(attention[:0], said.samples) + timing.finish()
    return np.array([[w.start_s for w in words] - said.starts_s, [w.end_s for w in words] - said.ends_s])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--made-up", type=int, metavar="N")
    given = arguments.parse_args()
    speech = made_up_speech(given.made_up) if given.made_up else kokoro_speech()
    for case, way_of in CASES.items():
        attentions = [spoken.attention(s, np.random.default_rng(n), **way_of) for n, s in enumerate(speech)]
        for way in WAYS:
            found = [errors_s(s, a, way, way_of.get("lead", 0.0)) for s, a in zip(speech, attentions, strict=True)]
            starts, ends = 1000 * np.concatenate(found, axis=1)
            sys.stdout.write(f"{case:<26}{way:<10}starts {summary(starts)}   ends {summary(ends)}\n")


def summary(late_ms: np.ndarray) -> str:
    off = np.abs(late_ms)
    return (
        f"median {np.median(off):4.0f} ms, 95 % {np.percentile(off, 95):5.0f}, within 100 ms {np.mean(off <= 100):4.0%}"
    )


if __name__ == "__main__":
    main()
