"""A test signal with a mark at its end, and readers that sonant's writers have no part in."""

from __future__ import annotations

import io

import numpy as np

RATE = 24_000
SAMPLES = 3 * RATE + 123


def speechlike() -> np.ndarray:
    """f32 [SAMPLES]: swelling tones from 50 ms on, and a loud one in the last 100 ms, where a cut would show."""
    t = np.arange(SAMPLES) / RATE
    x = 0.3 * np.sin(2 * np.pi * 440 * t) * np.sin(2 * np.pi * 1.5 * t) ** 2
    x[: RATE // 20] = 0
    x[-RATE // 10 :] = 0.5 * np.sin(2 * np.pi * 880 * t[-RATE // 10 :])
    return x.astype(np.float32)


def last_sound_s(samples: np.ndarray, sample_rate: int) -> float:
    return float(np.flatnonzero(np.abs(samples) > 0.1)[-1]) / sample_rate


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """By libsndfile, stretch by stretch, since a stream's length is unknown."""
    import soundfile

    with soundfile.SoundFile(io.BytesIO(data)) as file:
        parts = []
        while len(part := file.read(10_000, dtype="float32")):
            parts.append(part)
        return np.concatenate([*parts, np.zeros(0, np.float32)]), file.samplerate


class Pipe(io.RawIOBase):
    """Takes bytes and cannot seek."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.data += bytes(data)  # type: ignore[call-overload]
        return len(bytes(data))  # type: ignore[call-overload]
