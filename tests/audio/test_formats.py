from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from sonant.audio.formats import FORMATS, audio_spec, find_format
from sonant.audio.writer import check_levels
from sonant.errors import InputError, MissingExtra, UnknownName


@pytest.mark.parametrize(
    ("path", "name"),
    [("a.wav", "wav"), ("b/c.d.FLAC", "flac"), ("x.oga", "ogg"), ("x.opus", "opus"), ("x.mp3", "mp3"), (None, "pcm")],
)
def test_the_suffix_names_the_format(path: str | None, name: str) -> None:
    assert find_format(path, None).name == name


def test_a_named_format_wins() -> None:
    assert find_format("a.wav", "flac").name == "flac"
    assert find_format("out", "wav").name == "wav"


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("a.mp4", {}, r"unknown audio format 'mp4'; did you mean 'mp3'\?"),
        ("a.wav", {"format": "opsu"}, r"unknown audio format 'opsu'; did you mean 'opus'\?"),
        ("out", {}, r"cannot tell the audio format of 'out'; give it a suffix such as \.wav"),
        ("a.wav", {"encoding": "int15"}, r"unknown encoding of wav 'int15'; did you mean 'int16'\?"),
        ("a.wav", {"sample_rate": 100}, "sample rate is 100; wanted whole hertz from 4000 to 192000"),
        ("a.wav", {"sample_rate": 24000.0}, r"sample rate is 24000\.0"),
        ("a.mp3", {"sample_rate": 96_000}, "sample rate is 96000, which mp3 does not have; wanted one of 8000"),
    ],
)
def test_what_is_wrong_is_said(path: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        audio_spec(path, source_rate=24_000, **options)


def test_a_codec_that_lacks_the_rate_takes_the_next_one() -> None:
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    assert audio_spec("a.opus", source_rate=22_050).sample_rate == 24_000
    assert audio_spec("a.mp3", source_rate=96_000).sample_rate == 48_000


@pytest.mark.parametrize(("loudness", "peak"), [(0, None), (float("nan"), None), (None, 1), ("loud", None)])
def test_levels_have_ranges(loudness: Any, peak: Any) -> None:
    with pytest.raises(InputError, match=r"wanted (LUFS|dBFS) from"):
        check_levels(loudness, peak)


@pytest.mark.parametrize(
    ("path", "rate", "message"),
    [("a.flac", None, "writing flac needs"), ("a.wav", 8000, "changing 24000 Hz into 8000 Hz needs")],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, path: str, rate: int | None, message: str) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name in ("soundfile", "soxr"):
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=rf"{message} an optional package: pip install 'sonant\[audio\]'"):
        audio_spec(path, source_rate=24_000, sample_rate=rate)


def test_a_plain_wav_imports_no_codec() -> None:
    code = (
        "import sys; from sonant.audio.writer import encode_audio; from sonant.audio.formats import audio_spec;"
        "import numpy as np; encode_audio(np.zeros(9), 24000, audio_spec('a.wav', source_rate=24000));"
        "print([m for m in ('soundfile', 'soxr', 'sounddevice', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_suffixes_and_defaults_are_sound() -> None:
    suffixes = [s for f in FORMATS.values() for s in f.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(name == f.name for name, f in FORMATS.items())
    with pytest.raises(UnknownName):
        find_format("a.txt", None)
