"""Every format decodes to the length that was written, from a file and from a pipe, whatever the rate."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from signals import RATE, SAMPLES, Pipe, decode, last_sound_s, speechlike

from sonant.audio.codecs import CodecSink
from sonant.audio.formats import FORMATS, audio_spec
from sonant.audio.wav import UNKNOWN_SIZE
from sonant.audio.writer import encode_audio, iter_encoded, open_audio, save_audio
from sonant.errors import InputError

TOLERANCE_S = 0.05
MP3_PIPE_TOLERANCE_S = 0.15
"""A pipe's first MP3 frame cannot tell the length, so decoders keep the codec's delay and padding."""


def piped(samples: np.ndarray, cut: int = 5000, **wanted: object) -> tuple[bytes, int]:
    spec = audio_spec(None, source_rate=RATE, **wanted)  # type: ignore[arg-type]
    pipe = Pipe()
    with open_audio(pipe, spec, source_rate=RATE) as writer:
        for start in range(0, len(samples), cut):
            writer.write(samples[start : start + cut])
    return pipe.data, spec.sample_rate


@pytest.mark.parametrize("rate", [None, 8000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("name", ["wav", "flac", "ogg", "opus", "mp3"])
def test_files_decode_to_what_was_written(name: str, rate: int | None, tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    if name == "opus" and rate in (22_050, 44_100):
        with pytest.raises(InputError, match=r"22050|44100.*which opus does not have; wanted one of 8000"):
            audio_spec("a.opus", source_rate=RATE, sample_rate=rate)
        return
    x = speechlike()
    path = save_audio(tmp_path / f"a.{name}", x, RATE, sample_rate=rate)
    y, found_rate = decode(path.read_bytes())
    assert found_rate == (rate or RATE)
    assert len(y) / found_rate == pytest.approx(SAMPLES / RATE, abs=0.001)
    assert last_sound_s(y, found_rate) == pytest.approx(last_sound_s(x, RATE), abs=0.005)
    assert encode_audio(x, RATE, audio_spec(path, source_rate=RATE, sample_rate=rate))[:4] == path.read_bytes()[:4]


@pytest.mark.parametrize("rate", [None, 16_000, 22_050, 48_000])
@pytest.mark.parametrize("name", ["wav", "ogg", "opus", "mp3"])
def test_pipes_decode_to_what_was_written(name: str, rate: int | None) -> None:
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    if name == "opus" and rate == 22_050:
        rate = None
    data, spec_rate = piped(speechlike(), format=name, sample_rate=rate)
    y, found_rate = decode(data)
    assert found_rate == spec_rate
    tolerance = MP3_PIPE_TOLERANCE_S if name == "mp3" else TOLERANCE_S
    assert -0.001 <= len(y) / found_rate - SAMPLES / RATE <= tolerance
    assert last_sound_s(y, found_rate) == pytest.approx(last_sound_s(speechlike(), RATE), abs=tolerance)


def test_a_piped_flac_differs_from_a_file_in_its_length_and_checksum_only() -> None:
    """libsndfile writes FLAC of unknown length, but does not read it; other readers do (see the next test)."""
    pytest.importorskip("soundfile")
    file = encode_audio(speechlike(), RATE, audio_spec("a.flac", source_rate=RATE))
    data, _ = piped(speechlike(), format="flac", cut=SAMPLES)
    header = 4 + 4 + 34
    assert data[header:] == file[header:]
    assert int.from_bytes(data[21:26], "big") & (2**36 - 1) == 0
    assert int.from_bytes(file[21:26], "big") & (2**36 - 1) == SAMPLES


@pytest.mark.parametrize("name", ["wav", "flac", "ogg", "opus", "mp3"])
def test_ffmpeg_reads_the_same_length(name: str) -> None:
    pytest.importorskip("soundfile")
    av = pytest.importorskip("av")  # FFmpeg's libraries; not in the extra `test`
    x = speechlike()
    for data in (encode_audio(x, RATE, audio_spec(f"a.{name}", source_rate=RATE)), piped(x, format=name)[0]):
        with av.open(io.BytesIO(data)) as container:
            frames = list(container.decode(audio=0))
        found_s = sum(f.samples for f in frames) / frames[0].sample_rate
        assert abs(found_s - SAMPLES / RATE) <= (MP3_PIPE_TOLERANCE_S if name == "mp3" else TOLERANCE_S)


def test_lossless_formats_hold_the_same_samples() -> None:
    pytest.importorskip("soundfile")
    x = speechlike()
    whole, _ = decode(encode_audio(x, RATE, audio_spec("a.wav", source_rate=RATE)))
    flac, _ = decode(encode_audio(x, RATE, audio_spec("a.flac", source_rate=RATE)))
    np.testing.assert_allclose(whole, x, atol=1 / 32767)
    np.testing.assert_allclose(flac, whole, atol=1.01 / 32768)
    fine, _ = decode(encode_audio(x, RATE, audio_spec("a.flac", source_rate=RATE, encoding="int24")))
    np.testing.assert_allclose(fine, x, atol=1e-6)
    floats, _ = decode(encode_audio(x, RATE, audio_spec("a.wav", source_rate=RATE, encoding="float32")))
    np.testing.assert_array_equal(floats, x)


def test_nothing_to_write_is_a_valid_file_in_every_format() -> None:
    pytest.importorskip("soundfile")
    for name in FORMATS:
        spec = audio_spec(None, source_rate=RATE, format=name)
        data = encode_audio(np.zeros(0, np.float32), RATE, spec)
        if name == "pcm":
            assert data == b""
        else:  # a codec's file needs a frame: one silent sample
            assert len(decode(data)[0]) == (0 if name == "wav" else 1)


def test_a_pipe_gets_one_header_with_unknown_sizes() -> None:
    data, _ = piped(speechlike()[:10_000], format="wav")
    assert data.count(b"RIFF") == data.count(b"WAVEfmt ") == 1
    assert struct.unpack("<I", data[4:8])[0] == struct.unpack("<I", data[40:44])[0] == UNKNOWN_SIZE
    assert len(data) == 44 + 20_000
    assert piped(speechlike()[:10_000])[0] == data[44:]  # pcm


def test_a_file_is_valid_after_every_stretch(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    writer = open_audio(path, audio_spec(path, source_rate=RATE), source_rate=RATE)
    for n in range(4):
        with wave.open(str(path)) as file:
            assert file.getnframes() == n * 1000
        writer.write(np.zeros(1000, np.float32))
    writer.close()
    writer.close()
    assert struct.unpack("<I", path.read_bytes()[4:8])[0] == path.stat().st_size - 8


def test_a_killed_writer_leaves_a_valid_wav(tmp_path: Path) -> None:
    code = (
        "import numpy as np, os, sys; from sonant.audio.formats import audio_spec;"
        "from sonant.audio.writer import open_audio;"
        "w = open_audio(sys.argv[1], audio_spec('a.wav', source_rate=24000), source_rate=24000);"
        "w.write(np.zeros(777, np.float32)); os._exit(9)"
    )
    path = tmp_path / "a.wav"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    with wave.open(str(path)) as file:
        assert file.getnframes() == 777


def test_odd_data_is_padded_and_the_sizes_are_true(tmp_path: Path) -> None:
    pytest.importorskip("soxr")
    path = save_audio(tmp_path / "a.wav", np.zeros(777, np.float32), 8000, encoding="mulaw")
    data = path.read_bytes()
    assert len(data) % 2 == 0
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    assert struct.unpack("<I", data[54:58])[0] == 777


def test_telephony_is_8_khz_unless_told() -> None:
    pytest.importorskip("soxr")
    spec = audio_spec(None, source_rate=RATE, encoding="alaw")
    assert (spec.format.name, spec.sample_rate) == ("pcm", 8000)
    assert len(encode_audio(speechlike(), RATE, spec)) == SAMPLES // 3
    assert audio_spec(None, source_rate=RATE, encoding="mulaw", sample_rate=16_000).sample_rate == 16_000


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, SAMPLES), max_size=6), rate=st.sampled_from([8000, 22_050, 48_000]))
def test_where_a_stream_is_cut_changes_nothing(cuts: list[int], rate: int) -> None:
    pytest.importorskip("soxr")
    spec = audio_spec(None, source_rate=RATE, sample_rate=rate, encoding="float32")
    parts = []
    for pieces in ([speechlike()], np.split(speechlike(), sorted(cuts))):
        pipe = Pipe()
        with open_audio(pipe, spec, source_rate=RATE, peak_dbfs=-12) as writer:
            for piece in pieces:
                writer.write(piece)
        parts.append(np.frombuffer(pipe.data, "<f4"))
    assert len(parts[0]) == len(parts[1])
    np.testing.assert_allclose(parts[1], parts[0], atol=1e-6)


def test_iter_encoded_is_the_pipe_chunk_by_chunk() -> None:
    spec = audio_spec(None, source_rate=RATE, format="wav")
    chunks = list(iter_encoded(iter(np.split(speechlike(), [1000, 5000])), RATE, spec))
    assert len(chunks) == 3
    assert b"".join(chunks) == piped(speechlike(), format="wav")[0]


def test_a_reader_that_goes_away_is_a_broken_pipe() -> None:
    pytest.importorskip("soundfile")
    for name in ("wav", "ogg"):
        end, start = os.pipe()
        os.close(end)
        spec = audio_spec(None, source_rate=RATE, format=name)
        with os.fdopen(start, "wb", buffering=0) as file, pytest.raises(BrokenPipeError):
            open_audio(file, spec, source_rate=RATE).write(np.tile(speechlike(), 3))


def test_no_space_is_said() -> None:
    class Full(io.RawIOBase):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    spec = audio_spec(None, source_rate=RATE)
    with pytest.raises(InputError, match="cannot write the audio: No space left on device"):
        open_audio(Full(), spec, source_rate=RATE).write(np.zeros(9, np.float32))
    with pytest.raises(InputError, match=r"cannot write nowhere/a\.pcm"):
        open_audio("nowhere/a.pcm", spec, source_rate=RATE)


def test_a_piped_mp3_of_a_low_rate_is_refused() -> None:
    pytest.importorskip("soundfile")
    spec = audio_spec(None, source_rate=8000, format="mp3", sample_rate=8000)
    with pytest.raises(InputError, match="sample rate is 8000; MP3 to a pipe wanted 16000 or more"):
        CodecSink(io.BytesIO(), spec, seekable=False)
