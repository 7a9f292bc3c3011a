"""Instruments for word times that know nothing of the model: a forced aligner, and the energy of the samples."""

from __future__ import annotations

import re

import numpy as np

STEP_S = 0.005
SILENCE_DB = -35.0
QUIET_STEPS = 12


def aligned_starts(samples: np.ndarray, sample_rate: int, words: list[str]) -> list[float] | None:
    """The start of every word by PocketSphinx, in seconds; None where it does not know or find them all.

    Its boundaries lie about 25 ms before the energy onset (measured at utterance starts and after pauses): its frames
    are 25 ms windows, and a boundary is the start of the first one that hears the word.
    """
    import soxr
    from pocketsphinx import Decoder

    at_16k = soxr.resample(samples, sample_rate, 16_000)
    decoder = Decoder(samprate=16_000, loglevel="FATAL", bestpath=False)
    decoder.set_align_text(" ".join(re.sub(r"[^a-z']", "", w.lower()) for w in words))
    decoder.start_utt()
    decoder.process_raw((np.clip(at_16k, -1, 1) * 32767).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    starts = [s.start_frame / 100 for s in decoder.seg() if not s.word.startswith(("<", "["))]
    return starts if len(starts) == len(words) else None


def energy_onsets(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Where sound that lasts 15 ms begins after 60 ms without such sound, in seconds."""
    before = np.zeros(QUIET_STEPS, bool)  # before the samples: silence
    loud = np.concatenate([before, loud_steps(samples, sample_rate), before])
    lasting = loud[:-2] & loud[1:-1] & loud[2:]
    found = [k for k in range(QUIET_STEPS, len(lasting)) if lasting[k] and not lasting[k - QUIET_STEPS : k].any()]
    return (np.array(found) - QUIET_STEPS) * STEP_S


def energy_end(samples: np.ndarray, sample_rate: int) -> float:
    """Where the last sound ends, in seconds."""
    return float(np.flatnonzero(loud_steps(samples, sample_rate))[-1] + 1) * STEP_S


def loud_steps(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    step = round(sample_rate * STEP_S)
    count = len(samples) // step
    energy = np.square(samples[: count * step].reshape(count, step)).mean(1)
    loud: np.ndarray = energy > energy.max() * 10 ** (SILENCE_DB / 10)
    return loud
