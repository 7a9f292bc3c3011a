"""WAV: 16-bit and float PCM, µ-law and A-law, mono; a header with true sizes, or with unknown ones for a pipe."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sonant.audio import g711
from sonant.errors import InputError

# Format codes of the fmt chunk, and bytes per sample.
_CODES = {"int16": (1, 2), "float32": (3, 4), "alaw": (6, 1), "mulaw": (7, 1)}
WAV_ENCODINGS = ("int16", "float32", "mulaw", "alaw")
UNKNOWN_SIZE = 0xFFFFFFFF
"""In both size fields: read until the stream ends."""


def encode_pcm(samples: np.ndarray, encoding: str) -> bytes:
    """Mono float32 `samples` [S] as the bytes of a WAV encoding; values beyond −1…1 are clipped, except in float32."""
    if encoding == "float32":
        return np.asarray(samples, "<f4").tobytes()
    whole = to_int16(samples)
    return {"int16": whole, "mulaw": g711.mulaw(whole), "alaw": g711.alaw(whole)}[_known(encoding)].tobytes()


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Little-endian 16-bit integers, rounded and clipped."""
    scaled = np.rint(np.asarray(samples, np.float32) * 32767.0)
    clipped: np.ndarray = np.clip(scaled, -32768, 32767).astype("<i2")
    return clipped


def wav_header(sample_rate: int, encoding: str, data_bytes: int | None) -> bytes:
    """Everything before the samples. `data_bytes` None, or too large for a WAV's 32 bits, gives unknown sizes."""
    code, width = _CODES[_known(encoding)]
    layout = struct.pack("<HHIIHH", code, 1, sample_rate, sample_rate * width, width, 8 * width)
    # Anything but integer PCM has a size of extensions (none) and a count of samples.
    if code != 1:
        layout += struct.pack("<H", 0)
    fmt = struct.pack("<4sI", b"fmt ", len(layout)) + layout
    ahead = 4 + len(fmt) + (12 if code != 1 else 0) + 8
    known = data_bytes is not None and ahead + data_bytes + data_bytes % 2 < UNKNOWN_SIZE
    size = data_bytes if known and data_bytes is not None else UNKNOWN_SIZE
    riff = ahead + size + size % 2 if known else UNKNOWN_SIZE
    fact = struct.pack("<4sII", b"fact", 4, size // width if known else UNKNOWN_SIZE) if code != 1 else b""
    return struct.pack("<4sI", b"RIFF", riff) + b"WAVE" + fmt + fact + struct.pack("<4sI", b"data", size)


def wav_bytes(samples: np.ndarray, sample_rate: int, *, encoding: str = "int16") -> bytes:
    """A whole WAV file for mono float32 `samples` [S] in −1…1. Raises InputError for an unknown encoding."""
    data = encode_pcm(samples, encoding)
    return wav_header(sample_rate, encoding, len(data)) + data + b"\0" * (len(data) % 2)


def write_wav(path: str | os.PathLike[str], samples: np.ndarray, sample_rate: int, *, encoding: str = "int16") -> Path:
    """Write the file in one go; its folder must exist. Raises InputError (unknown encoding, cannot write)."""
    target = Path(path)
    content = wav_bytes(samples, sample_rate, encoding=encoding)
    try:
        target.write_bytes(content)
    except OSError as e:
        raise InputError(f"cannot write {target}: {e.strerror or e}") from e
    return target


class WavSink:
    """Samples into `file` as they come.

    seekable: the header is brought up to date after every stretch, so that the file is valid whenever the writing
    ends; otherwise one header with unknown sizes goes out and is never touched again.
    """

    def __init__(self, file: BinaryIO, sample_rate: int, encoding: str, *, seekable: bool) -> None:
        self._file, self._rate, self._encoding, self._seekable = file, sample_rate, encoding, seekable
        self._start = file.tell() if seekable else 0
        self._data_bytes = 0
        file.write(wav_header(sample_rate, encoding, 0 if seekable else None))
        file.flush()

    def write(self, samples: np.ndarray) -> None:
        data = encode_pcm(samples, self._encoding)
        self._file.write(data)
        self._data_bytes += len(data)
        if self._seekable:
            self._patch()
        self._file.flush()

    def close(self) -> None:
        if self._seekable and self._data_bytes % 2:
            self._file.write(b"\0")
            self._patch()
        self._file.flush()

    def _patch(self) -> None:
        self._file.seek(self._start)
        self._file.write(wav_header(self._rate, self._encoding, self._data_bytes))
        self._file.seek(0, os.SEEK_END)


class PcmSink:
    """Bare samples without a header."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file, self._encoding = file, _known(encoding)

    def write(self, samples: np.ndarray) -> None:
        self._file.write(encode_pcm(samples, self._encoding))
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


def _known(encoding: str) -> str:
    if encoding not in _CODES:
        raise InputError(f"encoding is {encoding!r}; wanted one of {', '.join(WAV_ENCODINGS)}")
    return encoding
