"""A recording → the clip that a voice is encoded from, and its limits."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from sonant.audio.reader import Recording
from sonant.audio.stages import Resampler
from sonant.checkpoint.safetensors import write_safetensors
from sonant.errors import InputError, MissingExtra

_LOG = logging.getLogger("sonant.pocket")

SHORTEST_S, LONGEST_S = 1.0, 30.0
"""Of the speech in a recording, pauses at its end not counted. What is longer is cut off."""
SILENT_PEAK = 1e-3
CLIPPED_AT, CLIPPED_SHARE = 0.999, 0.01

PAUSE_FRAME_S, FLOOR_DB, FADE_S, PAUSE_S = 0.02, 35.0, 0.02, 0.08
"""A voice ends in a pause, or the model goes on with its last word: frames so far below the loudest are cut off its
end, the rest is faded out, silence is appended. As in pocket_tts 4.0.1."""


def clip_of(recording: Recording, sample_rate: int) -> np.ndarray:
    """The samples [S] to encode. Raises InputError for a recording that is silent, clipped or too short, MissingExtra
    where it has another rate and nothing is installed that changes it."""
    samples = _resampled(recording, sample_rate)
    peak = float(np.abs(samples).max(initial=0.0))
    if peak < SILENT_PEAK:
        raise InputError(f"the recording is silent (its loudest sample is {peak:.2g} of full scale); give one with "
                         "speech")
    clipped = float(np.mean(np.abs(samples) >= CLIPPED_AT))
    if clipped > CLIPPED_SHARE:
        raise InputError(f"{clipped:.1%} of the recording is clipped (at full scale); record it again, less loud")
    if len(samples) > LONGEST_S * sample_rate:
        _LOG.warning("of a recording of %.1f s the first %g s are used", len(samples) / sample_rate, LONGEST_S)
        samples = samples[: int(LONGEST_S * sample_rate)]
    spoken_s = sound_end(samples, sample_rate) / sample_rate
    if spoken_s < SHORTEST_S:
        raise InputError(f"the recording has {spoken_s:.2f} s of sound; wanted at least {SHORTEST_S:g} s, best 5 to "
                         f"{LONGEST_S:g} s of one person speaking")
    return end_on_pause(samples, sample_rate)


def _resampled(recording: Recording, sample_rate: int) -> np.ndarray:
    if recording.sample_rate == sample_rate:
        return recording.samples
    try:
        resampler = Resampler(recording.sample_rate, sample_rate)
    except ImportError as error:
        raise MissingExtra(f"a recording at {recording.sample_rate} Hz, not {sample_rate} Hz,", "audio") from error
    return np.concatenate([resampler.push(recording.samples), resampler.finish()])


def end_on_pause(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """The samples up to their last sound, faded out, and a pause."""
    end = sound_end(samples, sample_rate)
    kept = samples[:end].astype(np.float32)
    fade = min(int(FADE_S * sample_rate), end)
    kept[end - fade :] *= np.linspace(1, 0, fade, dtype=np.float32)
    return np.concatenate([kept, np.zeros(int(PAUSE_S * sample_rate), np.float32)])


def sound_end(samples: np.ndarray, sample_rate: int) -> int:
    """Where the last frame ends that is less than FLOOR_DB below the loudest."""
    frame = max(1, int(PAUSE_FRAME_S * sample_rate))
    count = len(samples) // frame
    if not count:
        return len(samples)
    power = np.mean(samples[: count * frame].reshape(count, frame).astype(np.float64) ** 2, axis=1)
    loud = np.flatnonzero(10 * np.log10(power + 1e-24) > 10 * np.log10(power.max() + 1e-24) - FLOOR_DB)
    return (int(loud[-1]) + 1) * frame


def save_voice(path: Path, rows: np.ndarray) -> None:
    """Keep the rows [P, D] of a voice in a file that a folder of voices may hold."""
    write_safetensors(path, {"audio_prompt": rows[None].astype(np.float32)}, {"sonant": "a voice of Pocket TTS"})
