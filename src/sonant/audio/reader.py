"""Recordings from files: WAV without any package, everything else that libsndfile knows with `sonant[audio]`."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sonant.audio.formats import EXTRA, RATE_RANGE_HZ
from sonant.audio.g711 import from_alaw, from_mulaw
from sonant.errors import InputError, MissingExtra

_PCM, _FLOAT, _ALAW, _MULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE


@dataclass(frozen=True)
class Recording:
    """Mono float32 `samples` [S], of several channels their mean."""

    samples: NDArray[np.float32]
    sample_rate: int


def read_audio(path: str | os.PathLike[str]) -> Recording:
    """A recording of any rate and number of channels: WAV in PCM of 8 to 32 bits, float, µ-law or A-law; with
    `sonant[audio]` also FLAC, Ogg, MP3 and whatever libsndfile reads.

    Raises InputError (cannot be read, damaged, a rate out of range), MissingExtra (another format).
    """
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError as e:
        raise InputError(f"cannot read {source}: {e.strerror or e}") from e
    samples, rate = _wav(data, source) if data[:4] == b"RIFF" and data[8:12] == b"WAVE" else _decoded(source)
    low, high = RATE_RANGE_HZ
    if not low <= rate <= high:
        raise InputError(f"{source} has a sample rate of {rate} Hz; wanted {low} to {high}")
    mono = np.ascontiguousarray(samples.mean(1) if samples.shape[1] > 1 else samples[:, 0], np.float32)
    if not np.isfinite(mono).all():
        raise InputError(f"{source} has samples that are no finite numbers; it is damaged")
    return Recording(mono, rate)


def _wav(data: bytes, source: Path) -> tuple[NDArray[np.float32], int]:
    """Samples [S, channels] and the rate."""
    layout: tuple[int, int, int, int] | None = None
    for name, content in _chunks(data):
        if name == b"fmt " and len(content) >= 16:
            code, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", content)
            if code == _EXTENSIBLE and len(content) >= 26:
                (code,) = struct.unpack_from("<H", content, 24)
            layout = code, channels, rate, bits
        elif name == b"data" and layout is not None:
            code, channels, rate, bits = layout
            if channels < 1:
                raise InputError(f"{source} is a WAV file of no channels; it is damaged")
            flat = _samples(content, code, bits, source)
            return flat[: len(flat) // channels * channels].reshape(-1, channels), rate
    raise InputError(f"{source} is a WAV file without a format and samples; it is cut off or damaged")


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Name and content of every chunk; one that claims to be longer than the file ends with the file (a stream)."""
    view, at = memoryview(data), 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        yield name, view[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def _samples(content: memoryview, code: int, bits: int, source: Path) -> NDArray[np.float32]:
    """Flat, −1…1."""
    whole = content[: len(content) // max(1, bits // 8) * max(1, bits // 8)]
    if (code, bits) == (_PCM, 24):
        three = np.frombuffer(whole, np.uint8).reshape(-1, 3)
        wide = np.zeros((len(three), 4), np.uint8)
        wide[:, 1:] = three
        return np.asarray(wide.view("<i4")[:, 0] / 2**31, np.float32)
    if (code, bits) == (_PCM, 8):
        return np.asarray(np.frombuffer(whole, np.uint8) / 128 - 1, np.float32)
    if code == _PCM and bits in (16, 32):
        return np.asarray(np.frombuffer(whole, f"<i{bits // 8}") / 2 ** (bits - 1), np.float32)
    if code == _FLOAT and bits in (32, 64):
        return np.asarray(np.frombuffer(whole, f"<f{bits // 8}"), np.float32)
    if code in (_ALAW, _MULAW) and bits == 8:
        decode = from_alaw if code == _ALAW else from_mulaw
        return np.asarray(decode(np.frombuffer(whole, np.uint8)) / 32768, np.float32)
    raise InputError(
        f"{source} is a WAV file of format {code} with {bits} bits; wanted PCM of 8, 16, 24 or 32 bits, float of 32 or "
        "64, µ-law or A-law"
    )


def _decoded(source: Path) -> tuple[NDArray[np.float32], int]:
    """Samples [S, channels] and the rate, by libsndfile."""
    try:
        import soundfile
    except (ImportError, OSError) as e:  # OSError: the package is there, its library is not
        raise MissingExtra(f"reading {source}, which is not a WAV file,", EXTRA) from e
    try:
        samples, rate = soundfile.read(source, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as e:
        raise InputError(f"{source} is not audio that can be read: {e}") from e
    return samples, int(rate)
