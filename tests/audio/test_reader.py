"""Recordings come back as they were written, whatever WAV they are in."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from sonant.audio.g711 import alaw, from_alaw, from_mulaw, mulaw
from sonant.audio.reader import read_audio
from sonant.audio.wav import WAV_ENCODINGS, wav_bytes, wav_header, write_wav
from sonant.errors import InputError, MissingExtra

TONE = (0.5 * np.sin(np.arange(2400) / 20)).astype(np.float32)


def pcm(path: Path, integers: np.ndarray, bits: int, channels: int = 1, rate: int = 24_000) -> Path:
    """By the standard library."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(bits // 8)
        file.setframerate(rate)
        raw = integers.astype("<i4").view(np.uint8).reshape(-1, 4)[:, : bits // 8]
        file.writeframes(raw.tobytes())
    return path


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_integer_pcm_of_every_width(tmp_path: Path, bits: int) -> None:
    full = 2.0 ** (bits - 1)
    integers = np.rint(TONE.astype(np.float64) * (full - 1)) + (128 if bits == 8 else 0)
    found = read_audio(pcm(tmp_path / "a.wav", integers.astype(np.int64), bits))
    assert found.sample_rate == 24_000
    np.testing.assert_allclose(found.samples, TONE, atol=1.1 / full + 1e-7)


def test_channels_are_mixed(tmp_path: Path) -> None:
    stereo = np.stack([np.full(100, 8000), np.full(100, -4000)], axis=1)
    found = read_audio(pcm(tmp_path / "a.wav", stereo.reshape(-1), 16, channels=2, rate=44_100))
    assert found.sample_rate == 44_100
    np.testing.assert_allclose(found.samples, np.full(100, 2000 / 32768), atol=1e-6)


@pytest.mark.parametrize("encoding", WAV_ENCODINGS)
def test_what_sonant_writes_it_reads(tmp_path: Path, encoding: str) -> None:
    found = read_audio(write_wav(tmp_path / "a.wav", TONE, 8000, encoding=encoding))
    assert found.samples.dtype == np.float32
    coarse = {"int16": 1e-4, "float32": 0.0, "mulaw": 0.02, "alaw": 0.02}[encoding]  # G.711 has 8 bits a sample
    np.testing.assert_allclose(found.samples, TONE, atol=coarse)


def test_telephone_codes_and_back() -> None:
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(alaw(from_alaw(codes)), codes)
    both_zeros = codes[codes != 0x7F]  # minus zero is written as zero
    np.testing.assert_array_equal(mulaw(from_mulaw(both_zeros)), both_zeros)


def test_a_stream_of_unknown_length_and_further_chunks(tmp_path: Path) -> None:
    streamed = tmp_path / "a.wav"
    streamed.write_bytes(wav_header(16_000, "float32", None) + TONE.tobytes())
    np.testing.assert_array_equal(read_audio(streamed).samples, TONE)
    whole = wav_bytes(TONE, 16_000, encoding="float32")
    noted = tmp_path / "b.wav"
    noted.write_bytes(whole[:12] + struct.pack("<4sI", b"LIST", 5) + b"hello\0" + whole[12:])
    np.testing.assert_array_equal(read_audio(noted).samples, TONE)


def test_the_extensible_header(tmp_path: Path) -> None:
    layout = struct.pack("<HHIIHH", 0xFFFE, 1, 16_000, 64_000, 4, 32) + struct.pack("<HHI", 22, 32, 4)
    layout += struct.pack("<H", 3) + bytes.fromhex("000000001000800000aa00389b71")
    body = b"WAVE" + struct.pack("<4sI", b"fmt ", len(layout)) + layout
    body += struct.pack("<4sI", b"data", 4 * len(TONE)) + TONE.tobytes()
    path = tmp_path / "a.wav"
    path.write_bytes(struct.pack("<4sI", b"RIFF", len(body)) + body)
    np.testing.assert_array_equal(read_audio(path).samples, TONE)


def test_other_formats_need_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.flac"
    path.write_bytes(b"fLaC")
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(MissingExtra, match=r"reading .*a\.flac, which is not a WAV file.*sonant\[audio\]"):
        read_audio(path)


def test_other_formats_with_the_extra(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "a.flac", np.stack([TONE, TONE], axis=1), 22_050, subtype="PCM_24")
    found = read_audio(tmp_path / "a.flac")
    assert found.sample_rate == 22_050
    np.testing.assert_allclose(found.samples, TONE, atol=1e-6)
    (tmp_path / "b.flac").write_bytes(b"fLaC but not really")
    with pytest.raises(InputError, match=r"b\.flac is not audio that can be read"):
        read_audio(tmp_path / "b.flac")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (wav_bytes(TONE, 24_000)[:30], "without a format and samples"),
        (b"RIFF\0\0\0\0WAVE", "without a format and samples"),
        (
            wav_bytes(TONE, 24_000)[:20] + b"\x55\0" + wav_bytes(TONE, 24_000)[22:],
            "a WAV file of format 85 with 16 bits",
        ),
        (wav_bytes(TONE, 24_000)[:22] + b"\0\0" + wav_bytes(TONE, 24_000)[24:], "of no channels"),
        (wav_bytes(TONE, 24_000)[:24] + b"\1\0\0\0" + wav_bytes(TONE, 24_000)[28:], "a sample rate of 1 Hz"),
        (wav_bytes(np.array([np.nan], np.float32), 24_000, encoding="float32"), "no finite numbers"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_audio(tmp_path / "a.wav")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.wav: No such file"):
        read_audio(tmp_path / "none.wav")
