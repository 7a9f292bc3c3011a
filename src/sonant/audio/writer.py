"""From samples to a file, a pipe or bytes: rate, loudness and peaks, then the encoder of the format."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

import numpy as np

from sonant.audio.formats import AudioSpec, audio_spec
from sonant.audio.stages import Leveller, Limiter, Resampler, Stage
from sonant.audio.wav import PcmSink, WavSink
from sonant.errors import InputError

LOUDNESS_RANGE_LUFS = (-50.0, -5.0)
PEAK_RANGE_DBFS = (-60.0, 0.0)
DEFAULT_PEAK_DBFS = -1.0
"""The limit when a loudness is asked for: raising it must not clip."""


class Sink(Protocol):
    def write(self, samples: np.ndarray) -> None: ...

    def close(self) -> None: ...


class AudioWriter:
    """Made by `open_audio`. Whenever it is closed, what was written until then is a valid file.

    As a context it is closed also when the block fails: the file then holds what was made.
    """

    def __init__(self, spec: AudioSpec, sink: Sink, stages: list[Stage], file: BinaryIO | None) -> None:
        self.spec, self._sink, self._stages = spec, sink, stages
        self._file = file  # ours to close
        self._closed = False

    def write(self, samples: np.ndarray) -> None:
        """Mono float32 samples [S] at the source's rate. Raises InputError (no space left), BrokenPipeError."""
        with _write_errors():
            self._flow(samples, self._stages)

    def close(self) -> None:
        """Write what the stages still hold, and end the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with _write_errors():
            try:
                for i, stage in enumerate(self._stages):
                    self._flow(stage.finish(), self._stages[i + 1 :])
                self._sink.close()
            finally:
                if self._file is not None:
                    self._file.close()

    def _flow(self, samples: np.ndarray, stages: list[Stage]) -> None:
        for stage in stages:
            samples = stage.push(samples)
        if len(samples):
            self._sink.write(samples)

    def __enter__(self) -> AudioWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


@contextmanager
def _write_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader went away: no error of ours, and the command's exit code says so
    except OSError as e:
        raise InputError(f"cannot write the audio: {e.strerror or e}") from e


def open_audio(
    target: str | os.PathLike[str] | BinaryIO,
    spec: AudioSpec,
    *,
    source_rate: int,
    loudness_lufs: float | None = None,
    peak_dbfs: float | None = None,
    seekable: bool = False,
) -> AudioWriter:
    """A writer of mono samples at `source_rate` into a path, or into an open binary file that stays open.

    A file by path gets true sizes; an open file is taken for a pipe (one header, unknown sizes, no seeking) unless
    `seekable`. loudness_lufs: integrated loudness of the whole, so nothing is written before `close`. peak_dbfs: no
    sample beyond it; with a loudness −1 by default. Raises InputError (range, cannot write).
    """
    stages = _stages(spec, source_rate, loudness_lufs, peak_dbfs)
    if not isinstance(target, (str, os.PathLike)):
        return AudioWriter(spec, _sink(target, spec, seekable), stages, None)
    try:
        file = open(target, "wb")  # noqa: SIM115 - the writer closes it
    except OSError as e:
        raise InputError(f"cannot write {os.fspath(target)}: {e.strerror or e}") from e
    return AudioWriter(spec, _sink(file, spec, True), stages, file)


def save_audio(
    path: str | os.PathLike[str],
    samples: np.ndarray,
    source_rate: int,
    *,
    format: str | None = None,
    encoding: str | None = None,
    sample_rate: int | None = None,
    loudness_lufs: float | None = None,
    peak_dbfs: float | None = None,
) -> Path:
    """A whole file; arguments as `audio_spec` and `open_audio` have them."""
    spec = audio_spec(path, source_rate=source_rate, format=format, encoding=encoding, sample_rate=sample_rate)
    with open_audio(path, spec, source_rate=source_rate, loudness_lufs=loudness_lufs, peak_dbfs=peak_dbfs) as writer:
        writer.write(samples)
    return Path(path)


def encode_audio(
    samples: np.ndarray,
    source_rate: int,
    spec: AudioSpec,
    *,
    loudness_lufs: float | None = None,
    peak_dbfs: float | None = None,
) -> bytes:
    """A whole file in memory, true sizes included."""
    memory = io.BytesIO()
    with open_audio(
        memory, spec, source_rate=source_rate, loudness_lufs=loudness_lufs, peak_dbfs=peak_dbfs, seekable=True
    ) as writer:
        writer.write(samples)
    return memory.getvalue()


def check_levels(loudness_lufs: float | None, peak_dbfs: float | None) -> None:
    """Raises InputError for a loudness or a peak out of range."""
    for name, value, (low, high), unit in (
        ("loudness", loudness_lufs, LOUDNESS_RANGE_LUFS, "LUFS"),
        ("peak", peak_dbfs, PEAK_RANGE_DBFS, "dBFS"),
    ):
        if value is not None and not (isinstance(value, (int, float)) and low <= value <= high):
            raise InputError(f"{name} is {value!r}; wanted {unit} from {low:g} to {high:g}")


def _stages(spec: AudioSpec, source_rate: int, loudness_lufs: float | None, peak_dbfs: float | None) -> list[Stage]:
    check_levels(loudness_lufs, peak_dbfs)
    stages: list[Stage] = []
    if spec.sample_rate != source_rate:
        stages.append(Resampler(source_rate, spec.sample_rate))
    if loudness_lufs is not None:
        stages.append(Leveller(spec.sample_rate, loudness_lufs))
        peak_dbfs = DEFAULT_PEAK_DBFS if peak_dbfs is None else peak_dbfs
    if peak_dbfs is not None:
        stages.append(Limiter(spec.sample_rate, peak_dbfs))
    return stages


def _sink(file: BinaryIO, spec: AudioSpec, seekable: bool) -> Sink:
    if spec.format.name == "wav":
        return WavSink(file, spec.sample_rate, spec.encoding, seekable=seekable)
    if spec.format.name == "pcm":
        return PcmSink(file, spec.encoding)
    from sonant.audio.codecs import CodecSink

    return CodecSink(file, spec, seekable=seekable)


def iter_encoded(chunks: Iterator[np.ndarray], source_rate: int, spec: AudioSpec) -> Iterator[bytes]:
    """Chunks of samples → what a pipe would get of them, chunk by chunk: for a server's response body."""
    pipe = _Collector()
    writer = open_audio(pipe, spec, source_rate=source_rate)
    for samples in chunks:
        writer.write(samples)
        if data := pipe.take():
            yield data
    writer.close()
    if data := pipe.take():
        yield data


class _Collector(io.BytesIO):
    """Keeps what is written until it is taken."""

    def take(self) -> bytes:
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data
