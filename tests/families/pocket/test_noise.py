"""The noise of the step Program: Philox numbers, clamped as a truncated normal."""

from __future__ import annotations

import latent_golden as golden
import numpy as np
import pytest

from sonant.backends.numpy import NumpyBackend
from sonant.families.pocket.model import B, _noise
from sonant.program import ops
from sonant.program.program import Program

ROWS, CHANNELS, TEMPERATURE = 400, 32, 0.3


def noise(clamp: float | None) -> np.ndarray:
    """[ROWS, CHANNELS] of as many frames of one seed."""
    p = Program("noise")
    seed, frame = p.input("seed", (B, 2), "i32"), p.input("frame", (B,), "i32")
    std = ops.reshape(ops.sqrt(p.input("temperature", (B,))), (B, 1, 1))
    p.outputs = [_noise(seed, frame, std, CHANNELS, clamp)]
    given = {"seed": np.tile(np.array([[5, 1]], np.int32), (ROWS, 1)), "frame": np.arange(ROWS, dtype=np.int32),
             "temperature": np.full(ROWS, TEMPERATURE, np.float32)}
    return NumpyBackend().load(p, {}).run(given)[0][:, 0]


def test_it_is_philox_times_the_root_of_the_temperature() -> None:
    wanted = golden.noise((5, 1), ROWS, CHANNELS) * np.sqrt(TEMPERATURE)
    np.testing.assert_allclose(noise(None), wanted, rtol=1e-6)  # one rounding of the root


@pytest.mark.parametrize("clamp", [0.5, 1.0])
def test_clamped_it_is_a_truncated_normal(clamp: float) -> None:
    """Numbers inside stay; the others are drawn anew, so none piles up at the clamp but after four draws outside."""
    plain, clamped = noise(None), noise(clamp)
    inside = np.abs(plain) <= clamp
    np.testing.assert_array_equal(clamped[inside], plain[inside])
    assert np.abs(clamped).max() <= clamp
    outside = np.mean(~inside)
    assert np.mean(np.abs(clamped) == np.float32(clamp)) <= 2 * outside**4 + 1e-3
    edge = np.mean(np.abs(clamped) > 0.9 * clamp)
    assert edge == pytest.approx(np.mean(np.abs(plain[inside]) > 0.9 * clamp), abs=0.02)  # 12,800 numbers
