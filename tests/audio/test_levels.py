"""Loudness against the standard's own figures; peaks; the companding laws against libsndfile."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from signals import RATE, speechlike

from sonant.audio import g711
from sonant.audio.formats import audio_spec
from sonant.audio.loudness import integrated_loudness
from sonant.audio.stages import Leveller, Limiter
from sonant.audio.writer import encode_audio


def sine(dbfs: float, seconds: float, rate: int = 48_000, hz: float = 997.0) -> np.ndarray:
    amplitude = 10 ** (dbfs / 20)
    wave: np.ndarray = amplitude * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)
    return wave


@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_full_scale_sine_is_minus_3_01(rate: int) -> None:
    """BS.1770: 997 Hz at 0 dBFS in one channel reads −3.01; away from 48 kHz the bilinear filters differ a little."""
    assert integrated_loudness(sine(0, 5, rate), rate) == pytest.approx(-3.01, abs=0.005 if rate == 48_000 else 0.05)


def test_gates_of_tech_3341() -> None:
    """EBU Tech 3341 cases 1 to 4, for one channel: 3.01 LU below the stereo figures."""
    for parts in (
        [(-23, 20)],
        [(-36, 10), (-23, 60), (-36, 10)],
        [(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)],
    ):
        signal = np.concatenate([sine(db, s) for db, s in parts])
        assert integrated_loudness(signal, 48_000) == pytest.approx(-26.01, abs=0.1)


def test_filters_match_a_plain_recursion() -> None:
    """The FFT filter against the difference equations with the standard's own 48 kHz coefficients."""
    sections = [
        ([1.53512485958697, -2.69169618940638, 1.19839281085285], [-1.69065929318241, 0.73248077421585]),
        ([1.0, -2.0, 1.0], [-1.99004745483398, 0.99007225036621]),
    ]
    x = np.random.default_rng(0).standard_normal(48_000 // 3)  # under 400 ms: one block, no gate
    y = x
    for b, a in sections:
        out = np.zeros_like(y)
        for i in range(len(y)):
            out[i] = sum(b[k] * y[i - k] for k in range(3) if i >= k)
            out[i] -= sum(a[k - 1] * out[i - k] for k in (1, 2) if i >= k)
        y = out
    wanted = -0.691 + 10 * np.log10(np.mean(y**2))
    assert integrated_loudness(x, 48_000) == pytest.approx(wanted, abs=1e-4)


def test_silence_and_nothing() -> None:
    assert integrated_loudness(np.zeros(0), RATE) == integrated_loudness(np.zeros(RATE), RATE) == -np.inf
    level = Leveller(RATE, -16)
    level.push(np.zeros(RATE, np.float32))
    assert not level.finish().any()


@pytest.mark.parametrize("target", [-30.0, -16.0])
def test_a_file_has_the_loudness_asked_for(target: float) -> None:
    spec = audio_spec("a.wav", source_rate=RATE, encoding="float32")
    data = encode_audio(speechlike(), RATE, spec, loudness_lufs=target)
    y = np.frombuffer(data[58:], "<f4")
    assert integrated_loudness(y, RATE) == pytest.approx(target, abs=0.1)
    assert np.abs(y).max() <= 10 ** (-1 / 20)


@given(
    peaks=st.lists(st.tuples(st.integers(0, 2999), st.floats(-4, 4, width=32)), max_size=8),
    cuts=st.lists(st.integers(0, 3000), max_size=5),
    peak=st.floats(-40, 0),
)
def test_no_sample_goes_beyond_the_peak(peaks: list[tuple[int, float]], cuts: list[int], peak: float) -> None:
    x = 0.005 * np.sin(np.arange(3000) / 9).astype(np.float32)
    for at, value in peaks:
        x[at] = value
    limiter = Limiter(RATE, peak)
    y = np.concatenate([*(limiter.push(part) for part in np.split(x, sorted(cuts))), limiter.finish()])
    whole = Limiter(RATE, peak)
    np.testing.assert_array_equal(y, np.concatenate([whole.push(x), whole.finish()]))
    limit = np.float32(10 ** (peak / 20))
    assert len(y) == len(x)
    assert np.abs(y).max() <= limit
    far = np.ones(3000, bool)
    for at in np.flatnonzero(np.abs(x) > limit):
        far[max(0, at - 240) : at + 241] = False
    np.testing.assert_array_equal(y[far], x[far])


@pytest.mark.parametrize(("law", "subtype"), [(g711.mulaw, "ULAW"), (g711.alaw, "ALAW")])
def test_companding_matches_libsndfile(law: object, subtype: str) -> None:
    soundfile = pytest.importorskip("soundfile")
    every = np.arange(-32768, 32768).astype(np.int16)
    codes = law(every)  # type: ignore[operator]
    found, _ = soundfile.read(
        io.BytesIO(codes.tobytes()), dtype="int16", format="RAW", subtype=subtype, samplerate=8000, channels=1
    )
    # Half of the widest step of each segment; µ-law clips its last 132 values.
    error = np.abs(found.astype(int) - every)
    step = np.maximum(np.abs(every.astype(int)) / 16, 16)
    assert (error <= step).all()
    assert len(set(codes.tolist())) == 256
    memory = io.BytesIO()
    soundfile.write(memory, every, 8000, format="RAW", subtype=subtype)
    theirs = np.frombuffer(memory.getvalue(), np.uint8)
    decoded, _ = soundfile.read(
        io.BytesIO(theirs.tobytes()), dtype="int16", format="RAW", subtype=subtype, samplerate=8000, channels=1
    )
    assert error.mean() <= np.abs(decoded.astype(int) - every).mean() + 1e-9
