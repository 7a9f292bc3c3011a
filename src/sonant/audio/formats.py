"""Which audio formats there are, and what a file name, a format, an encoding and a rate amount to. Writes nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath

from sonant.errors import InputError, MissingExtra, UnknownName

TELEPHONE_RATE_HZ = 8000
RATE_RANGE_HZ = (4000, 192_000)
EXTRA = "audio"


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """encodings: the first is the default. rates_hz: the only ones that the codec takes, None for any.

    codec: the names of container and codec in libsndfile, None where sonant writes the format itself.
    """

    name: str
    suffixes: tuple[str, ...]
    media_type: str
    encodings: tuple[str, ...]
    rates_hz: tuple[int, ...] | None = None
    codec: str | None = None


_MP3_RATES_HZ = (8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_OPUS_RATES_HZ = (8000, 12_000, 16_000, 24_000, 48_000)

FORMATS: dict[str, AudioFormat] = {
    f.name: f
    for f in (
        AudioFormat("wav", (".wav", ".wave"), "audio/wav", ("int16", "float32", "mulaw", "alaw")),
        AudioFormat("pcm", (".pcm", ".raw"), "audio/pcm", ("int16", "float32", "mulaw", "alaw")),
        AudioFormat("flac", (".flac",), "audio/flac", ("int16", "int24"), codec="FLAC"),
        AudioFormat("ogg", (".ogg", ".oga"), "audio/ogg", ("vorbis",), codec="OGG"),
        AudioFormat("opus", (".opus",), "audio/ogg; codecs=opus", ("opus",), _OPUS_RATES_HZ, codec="OGG"),
        AudioFormat("mp3", (".mp3",), "audio/mpeg", ("mp3",), _MP3_RATES_HZ, codec="MP3"),
    )
}


@dataclass(frozen=True, slots=True)
class AudioSpec:
    """What is written: a format, one of its encodings, and a rate that it takes."""

    format: AudioFormat
    encoding: str
    sample_rate: int


def audio_spec(
    path: str | os.PathLike[str] | None,
    *,
    source_rate: int,
    format: str | None = None,
    encoding: str | None = None,
    sample_rate: int | None = None,
) -> AudioSpec:
    """The spec for a file called `path` (None for a pipe: pcm unless `format` says else).

    sample_rate: None keeps `source_rate`, or takes the next one that the format knows; µ-law and A-law are 8 kHz.
    Raises UnknownName (format, encoding), InputError (no suffix, impossible rate), MissingExtra (codec, resampler).
    """
    kind = find_format(path, format)
    if encoding is not None and encoding not in kind.encodings:
        raise UnknownName(f"encoding of {kind.name}", encoding, kind.encodings)
    chosen = encoding or kind.encodings[0]
    spec = AudioSpec(kind, chosen, _rate(kind, chosen, sample_rate, source_rate))
    _require_extra(spec, source_rate)
    return spec


def find_format(path: str | os.PathLike[str] | None, format: str | None) -> AudioFormat:
    """By name, else by the suffix of `path`, else pcm for a pipe."""
    if format is not None:
        if format not in FORMATS:
            raise UnknownName("audio format", format, FORMATS)
        return FORMATS[format]
    if path is None:
        return FORMATS["pcm"]
    suffix = PurePath(path).suffix.lower()
    if not suffix:
        raise InputError(
            f"cannot tell the audio format of {os.fspath(path)!r}; give it a suffix such as .wav, or name a format"
        )
    for kind in FORMATS.values():
        if suffix in kind.suffixes:
            return kind
    raise UnknownName("audio format", suffix[1:], FORMATS)


def _rate(kind: AudioFormat, encoding: str, wanted: int | None, source: int) -> int:
    low, high = RATE_RANGE_HZ
    if wanted is None:
        if encoding in ("mulaw", "alaw"):
            return TELEPHONE_RATE_HZ
        if kind.rates_hz is None or source in kind.rates_hz:
            return source
        return min((r for r in kind.rates_hz if r > source), default=kind.rates_hz[-1])
    if type(wanted) is not int or not low <= wanted <= high:
        raise InputError(f"sample rate is {wanted!r}; wanted whole hertz from {low} to {high}")
    if kind.rates_hz is not None and wanted not in kind.rates_hz:
        rates = ", ".join(map(str, kind.rates_hz))
        raise InputError(f"sample rate is {wanted}, which {kind.name} does not have; wanted one of {rates}")
    return wanted


def _require_extra(spec: AudioSpec, source_rate: int) -> None:
    """Say what is missing before the work, not after it. Imports only what the spec needs."""
    if spec.format.codec is not None:
        try:
            import soundfile
        except (ImportError, OSError) as e:  # OSError: the package is there, its library is not
            raise MissingExtra(f"writing {spec.format.name}", EXTRA) from e
        if spec.format.codec not in soundfile.available_formats():
            raise InputError(
                f"the installed libsndfile {soundfile.__libsndfile_version__} cannot write {spec.format.name}; "
                "1.1 or newer is needed: pip install -U soundfile"
            )
    if spec.sample_rate != source_rate:
        try:
            import soxr  # noqa: F401
        except ImportError as e:
            raise MissingExtra(f"changing {source_rate} Hz into {spec.sample_rate} Hz", EXTRA) from e
