"""Made-up speech with known word times, and made-up attention that follows it; no model is needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RATE, FRAME = 8000, 640
FRAME_S = FRAME / RATE


@dataclass(frozen=True)
class Word:
    text: str
    start: int
    end: int
    token_start: int
    token_end: int


@dataclass(frozen=True)
class Utterance:
    """`edges_s[n]` is where token n begins, the last one the end of the samples. starts_s, ends_s: of every word."""

    words: tuple[Word, ...]
    starts_s: np.ndarray
    ends_s: np.ndarray
    edges_s: np.ndarray
    samples: np.ndarray
    sample_rate: int = RATE

    @property
    def n_tokens(self) -> int:
        return len(self.edges_s) - 1

    @property
    def n_frames(self) -> int:
        return -(-len(self.samples) * RATE // (FRAME * self.sample_rate))


def utterance(rng: np.random.Generator, n_words: int = 12, *, silent_words: float = 0.1) -> Utterance:
    """Bursts of noise with soft edges and, in some, the closure of a stop. A word has a token about every 0.2 s, one
    more for its punctuation, whose time is the pause behind it. Some words have no sound and no tokens."""
    now = rng.uniform(0.08, 0.3)
    words, starts, ends, edges, parts, at = [], [], [], [], [], 0
    for i in range(n_words):
        if rng.random() < silent_words:
            words.append(Word("—", at, at + 1, len(edges), len(edges)))
            starts.append(ends[-1] if ends else 0.0)
            ends.append(starts[-1])
            at += 2
            continue
        length = rng.uniform(0.1, 0.6)
        pause = rng.uniform(0.15, 0.5) if rng.random() < 0.25 or i == n_words - 1 else 0.0
        n_tokens = max(1, round(length / rng.uniform(0.15, 0.3)))
        first = len(edges)
        edges += list(now + length * np.arange(n_tokens) / n_tokens)
        edges += [now + length] if pause else []
        text = "w" * n_tokens + ("," if pause else "")
        words.append(Word(text, at, at + len(text), first, len(edges)))
        starts.append(now)
        ends.append(now + length)
        parts.append((now, length))
        now += length + pause
        at += len(text) + 1
    samples = _sound(rng, parts, now + rng.uniform(0.1, 0.3))
    edges.append(len(samples) / RATE)
    return Utterance(tuple(words), np.array(starts), np.array(ends), np.array(edges), samples)


def _sound(rng: np.random.Generator, parts: list[tuple[float, float]], end_s: float) -> np.ndarray:
    samples = 1e-5 * rng.standard_normal(round(end_s * RATE))
    for start_s, length_s in parts:
        n = round(length_s * RATE)
        level = np.minimum(1, np.minimum(np.arange(n) / (0.005 * RATE), np.arange(n)[::-1] / (0.02 * RATE)))
        if length_s > 0.3 and rng.random() < 0.3:
            closure = rng.uniform(0.4, 0.6) * length_s + np.array([0, 0.05])
            level[round(closure[0] * RATE) : round(closure[1] * RATE)] = 0
        first = round(start_s * RATE)
        samples[first : first + n] += 0.1 * level * rng.standard_normal(n)
    return samples.astype(np.float32)


def attention(
    said: Utterance,
    rng: np.random.Generator,
    *,
    blur: float = 0.6,
    wander: float = 0.1,
    noise: float = 0.1,
    spikes: float = 0.0,
    spike_frames: int = 1,
    lead: float = 0.0,
    heads: int = 1,
) -> np.ndarray:
    """f32 [frames, heads, tokens], rows of sum 1.

    blur: width of the bump over the tokens, wander: how far, in tokens, its middle strays, from frame to frame alike.
    noise: share of the weight that is anywhere. spikes: share of the frames in which one other token has most of it,
    for up to `spike_frames` in a row. lead: by how many frames the sound comes after the attention.
    """
    n_tokens, n_frames = said.n_tokens, said.n_frames
    times_s = (np.arange(n_frames) + 0.5 + lead) * FRAME_S
    places = np.interp(times_s, said.edges_s, np.arange(n_tokens + 1), right=n_tokens - 0.01)
    stray = np.zeros((n_frames, 1))
    for f in range(1, n_frames):
        stray[f] = 0.7 * stray[f - 1] + wander * rng.standard_normal()
    distances = np.arange(n_tokens) + 0.5 - (places[:, None, None] + stray[:, :, None])
    logits = -np.square(distances) / (2 * blur**2) + 2 * wander * rng.standard_normal((n_frames, heads, n_tokens))
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    weights = (1 - noise) * weights + noise * rng.dirichlet(np.full(n_tokens, 0.3), (n_frames, heads))
    for head in range(heads):
        f = 0
        while f < n_frames:
            if rng.random() < spikes / spike_frames:
                length = int(rng.integers(1, spike_frames + 1))
                weights[f : f + length, head] *= 0.25
                weights[f : f + length, head, rng.integers(n_tokens)] += 0.75
                f += length
            f += 1
    return weights.astype(np.float32)
