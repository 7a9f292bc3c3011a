"""Recordings that a user gives: WAV of every common sample type, and through soundfile what else it reads.

Always mono float32 in −1…1: channels are averaged. Another sample rate needs soxr. Both are in the extra `audio`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sonant.errors import InputError, MissingExtra

LARGEST_FILE_BYTES = 1 << 30
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE


@dataclass(frozen=True, eq=False)
class Recording:
    """samples: mono float32 [S]."""

    samples: np.ndarray
    sample_rate: int

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.sample_rate

    def at(self, sample_rate: int) -> Recording:
        """The same at another rate. MissingExtra without soxr."""
        if sample_rate == self.sample_rate or not len(self.samples):
            return Recording(self.samples, sample_rate)
        try:
            import soxr
        except ImportError as error:
            raise MissingExtra(f"a recording at {self.sample_rate} Hz (wanted {sample_rate} Hz)", "audio") from error
        resampled = soxr.resample(self.samples, self.sample_rate, sample_rate, quality="HQ")
        return Recording(np.ascontiguousarray(resampled, np.float32), sample_rate)


def recording_of(samples: np.ndarray, sample_rate: int) -> Recording:
    """From an array [S] or [S, channels] of floats in −1…1 or of integers of full scale. Raises InputError."""
    array = np.asarray(samples)
    if array.dtype.kind == "i" and array.dtype.itemsize in (1, 2, 4):
        array = array / np.float32(2 ** (8 * array.dtype.itemsize - 1))
    elif array.dtype.kind != "f":
        raise InputError(f"samples are {array.dtype}; wanted floats in −1…1, or int16 or int32 of full scale")
    if array.ndim not in (1, 2) or (array.ndim == 2 and not 1 <= array.shape[1] <= 64):
        raise InputError(f"samples are of shape {list(array.shape)}; wanted [S], or [S, channels]")
    if type(sample_rate) is not int or not 1000 <= sample_rate <= 768_000:
        raise InputError(f"sample_rate is {sample_rate!r}; wanted Hz, a whole number from 1000 to 768000")
    mono = array if array.ndim == 1 else array.mean(axis=1)
    mono = np.ascontiguousarray(mono, np.float32)
    if not np.isfinite(mono).all():
        raise InputError("samples hold NaN or infinity")
    return Recording(mono, sample_rate)


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """A sound file. Raises InputError (cannot be read, no sound file) and MissingExtra (not WAV, without soundfile)."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise InputError(f"{path}: larger than {LARGEST_FILE_BYTES >> 20} MiB; give a short recording")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        decoded = _wav(data, str(path))
        if decoded is not None:
            return decoded
    return _soundfile(path)


def _wav(data: bytes, where: str) -> Recording | None:
    """None for an encoding that is left to soundfile (companded, compressed)."""
    layout, at = None, 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body = data[at + 8 : at + 8 + size]  # a streamed file claims more than there is
        if name == b"fmt ":
            layout = body
        if name == b"data":
            if layout is None or len(layout) < 16:
                raise InputError(f"{where}: its sound comes before what says how it is written; not a WAV file")
            return _pcm(layout, body, where)
        at += 8 + size + size % 2
    raise InputError(f"{where}: a WAV file without sound")


def _pcm(layout: bytes, body: bytes, where: str) -> Recording | None:
    kind, channels, rate, _, align, bits = (int.from_bytes(layout[a:b], "little") for a, b in
                                            ((0, 2), (2, 4), (4, 8), (8, 12), (12, 14), (14, 16)))
    if kind == _EXTENSIBLE and len(layout) >= 26:
        kind = int.from_bytes(layout[24:26], "little")
    decode = _DECODERS.get((kind, bits))
    if decode is None:
        return None
    if not channels or align != channels * bits // 8:
        raise InputError(f"{where}: {channels} channels of {bits} bits in blocks of {align} bytes is not a WAV file")
    usable = len(body) // align * align
    return recording_of(decode(body[:usable]).reshape(-1, channels), rate)


def _int24(body: bytes) -> np.ndarray:
    wide = np.zeros((len(body) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0]


_DECODERS: dict[tuple[int, int], Callable[[bytes], np.ndarray]] = {
    (_PCM, 8): lambda body: (np.frombuffer(body, np.uint8).astype(np.int16) - 128).astype(np.int8),
    (_PCM, 16): lambda body: np.frombuffer(body, "<i2"),
    (_PCM, 24): _int24,
    (_PCM, 32): lambda body: np.frombuffer(body, "<i4"),
    (_FLOAT, 32): lambda body: np.frombuffer(body, "<f4"),
    (_FLOAT, 64): lambda body: np.frombuffer(body, "<f8"),
}


def _soundfile(path: Path) -> Recording:
    try:
        import soundfile
    except ImportError as error:
        raise MissingExtra(f"reading {path.name}, which is not a plain WAV file,", "audio") from error
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise InputError(f"{path}: is no sound file that can be read ({error})") from error
    return recording_of(samples, int(rate))
