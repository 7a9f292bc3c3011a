from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest

from sonant.audio.wav import UNKNOWN_SIZE, to_int16, wav_bytes, wav_header, write_wav
from sonant.errors import InputError


def test_int16_file_is_read_back_by_the_standard_library() -> None:
    samples = np.sin(np.arange(1000) / 20).astype(np.float32)
    with wave.open(io.BytesIO(wav_bytes(samples, 24_000))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes()) == (
            24_000,
            1,
            2,
            1000,
        )
        found = np.frombuffer(file.readframes(1000), "<i2")
    np.testing.assert_allclose(found / 32767, samples, atol=0.5 / 32767 + 1e-7)


def test_float_file_has_true_sizes_and_exact_samples() -> None:
    samples = np.array([0.0, 0.25, -1.5, 2.0], np.float32)
    data = wav_bytes(samples, 16_000, encoding="float32")
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    assert data[:4] == b"RIFF"
    assert struct.unpack("<H", data[20:22])[0] == 3
    assert data.endswith(samples.tobytes())


def test_int16_rounds_and_clips() -> None:
    assert to_int16(np.array([1.0, 1.2, -1.0, -7.0, 0.50001 / 32767], np.float32)).tolist() == [
        32767,
        32767,
        -32767,
        -32768,
        1,
    ]


def test_no_samples_make_a_valid_file() -> None:
    with wave.open(io.BytesIO(wav_bytes(np.zeros(0, np.float32), 24_000))) as file:
        assert file.getnframes() == 0


def test_wrong_subtype_and_place_are_named(tmp_path: object) -> None:
    with pytest.raises(InputError, match=r"int24.*int16, float32"):
        wav_bytes(np.zeros(1, np.float32), 24_000, encoding="int24")
    with pytest.raises(InputError, match=r"cannot write .*nowhere"):
        write_wav(f"{tmp_path}/nowhere/a.wav", np.zeros(1, np.float32), 24_000)


def test_more_than_a_wav_can_count_has_unknown_sizes() -> None:
    for data_bytes in (UNKNOWN_SIZE, UNKNOWN_SIZE - 36, None):
        header = wav_header(24_000, "int16", data_bytes)
        assert struct.unpack("<I", header[4:8])[0] == struct.unpack("<I", header[40:44])[0] == UNKNOWN_SIZE
    largest = UNKNOWN_SIZE - 36 - 3
    assert struct.unpack("<I", wav_header(24_000, "int16", largest)[40:44])[0] == largest
