"""FLAC, Ogg Vorbis, Ogg Opus and MP3, by libsndfile (package soundfile, extra `audio`)."""

from __future__ import annotations

import os
from typing import BinaryIO

import numpy as np

from sonant.audio.formats import AudioSpec
from sonant.audio.mp3 import tagged_first_frame
from sonant.errors import InputError

_SUBTYPES = {"int16": "PCM_16", "int24": "PCM_24", "vorbis": "VORBIS", "opus": "OPUS", "mp3": "MPEG_LAYER_III"}
_STRETCH_SAMPLES = 4096
"""Given to the encoder at once; libsndfile's Vorbis encoder keeps a whole write on its stack."""
_PIPED_MP3_LEVEL = 0.63
"""libsndfile's scale: 64 kbit/s at 24 kHz, 128 at 48 kHz; at a rate much lower a frame has no room for a tag."""

_PIPED_MP3_MIN_HZ = 16_000


class CodecSink:
    """Samples into `file` through an encoder. Not seekable: headers keep the unknown length that they began with."""

    def __init__(self, file: BinaryIO, spec: AudioSpec, *, seekable: bool) -> None:
        import soundfile

        self._empty = True
        mp3 = spec.format.name == "mp3"
        if mp3 and not seekable and spec.sample_rate < _PIPED_MP3_MIN_HZ:
            raise InputError(
                f"sample rate is {spec.sample_rate}; MP3 to a pipe wanted {_PIPED_MP3_MIN_HZ} or more, since below it "
                "the encoder's padding passes 150 ms; write a file, or use wav or opus"
            )
        self._door = _Door(file, seekable=seekable, mp3=mp3)
        self._encoder = soundfile.SoundFile(
            self._door,
            "w",
            samplerate=spec.sample_rate,
            channels=1,
            format=spec.format.codec,
            subtype=_SUBTYPES[spec.encoding],
            # A reader of a stream without a length tag can only tell the length from a constant rate.
            bitrate_mode="CONSTANT" if mp3 and not seekable else None,
            compression_level=_PIPED_MP3_LEVEL if mp3 and not seekable else None,
        )

    def write(self, samples: np.ndarray) -> None:
        self._empty = False
        held = np.clip(samples, -1.0, 1.0)
        for start in range(0, len(held), _STRETCH_SAMPLES):
            self._encoder.write(held[start : start + _STRETCH_SAMPLES])
            self._door.raise_failure()

    def close(self) -> None:
        if self._empty:  # no reader takes a file without a frame, so nothing is one silent sample
            self.write(np.zeros(1, np.float32))
        self._encoder.close()
        self._door.raise_failure()
        self._door.flush()


class _Door:
    """What libsndfile sees of the file.

    It calls from C, where an exception would be lost: failures are kept and raised afterwards. For a pipe it pretends
    to seek; bytes for a place that has already been sent (a header with its final sizes) go nowhere.
    """

    def __init__(self, file: BinaryIO, *, seekable: bool, mp3: bool) -> None:
        self._file, self._seekable, self._mp3 = file, seekable, mp3
        self._start = file.tell() if seekable else 0
        self._at = self._end = 0
        self._failure: OSError | None = None

    def write(self, data: bytes) -> int:
        data = bytes(data)
        if self._failure is None:
            try:
                self._put(data)
            except OSError as e:
                self._failure = e
        self._at += len(data)
        self._end = max(self._end, self._at)
        return len(data)

    def _put(self, data: bytes) -> None:
        if self._seekable:
            self._file.seek(self._start + self._at)
            self._file.write(data)
        elif self._at + len(data) > self._end:
            fresh = data[self._end - self._at :]
            self._file.write(tagged_first_frame(fresh) if self._mp3 and self._end == 0 else fresh)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._end}[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        return b""

    def flush(self) -> None:
        if self._failure is None:
            self._file.flush()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
