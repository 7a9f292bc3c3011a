"""Philox4x32-10 and the draws made from it: the meaning of `randn` and of the draw in `sample`."""

from __future__ import annotations

import numpy as np

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)


def philox(key: np.ndarray, counter: tuple[np.ndarray | np.uint32, ...]) -> list[np.ndarray]:
    """Four uint32 arrays: Philox4x32-10 (Salmon et al. 2011) of key [..., 2] and four broadcast counter words."""
    k0, k1 = np.asarray(key[..., 0], np.uint32), np.asarray(key[..., 1], np.uint32)
    x = [np.asarray(c, np.uint32) for c in np.broadcast_arrays(*counter, k0)[:4]]
    with np.errstate(over="ignore"):
        for _ in range(10):
            p0, p1 = x[0].astype(np.uint64) * _M0, x[2].astype(np.uint64) * _M1
            high0, low0 = (p0 >> np.uint64(32)).astype(np.uint32), (p0 & _LOW).astype(np.uint32)
            high1, low1 = (p1 >> np.uint64(32)).astype(np.uint32), (p1 & _LOW).astype(np.uint32)
            x = [high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0]
            k0, k1 = k0 + _W0, k1 + _W1
    return x


def uniform(bits: np.ndarray) -> np.ndarray:
    """In the open interval (0, 1): the top 24 bits, centred, so that log() is finite and f32 holds it exactly."""
    return ((bits >> np.uint32(8)).astype(np.float64) + 0.5) * 2.0**-24


def normal_pair(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    radius, angle = np.sqrt(-2 * np.log(uniform(a))), 2 * np.pi * uniform(b)
    return radius * np.cos(angle), radius * np.sin(angle)


def randn(seed: np.ndarray, frame: np.ndarray, length: int, channels: int, site: int) -> np.ndarray:
    """[B, length, channels] normal numbers in f64 for seeds i32 [B,2] and first frames i32 [B]."""
    groups = -(-channels // 4)
    key = seed.astype(np.int32).view(np.uint32)[:, None, None, :]
    t = frame.astype(np.int64)[:, None, None] + np.arange(length)[None, :, None]
    group = np.arange(groups, dtype=np.uint32)[None, None, :]
    lanes = philox(key, ((t & 0xFFFFFFFF).astype(np.uint32), np.uint32(site), group, np.uint32(0)))
    normals = np.stack([*normal_pair(lanes[0], lanes[1]), *normal_pair(lanes[2], lanes[3])], axis=-1)
    return normals.reshape(len(seed), length, groups * 4)[:, :, :channels]


def draw(seed: np.ndarray, frame: np.ndarray, site: int) -> np.ndarray:
    """One uniform number per row."""
    key, counter = seed.astype(np.int32).view(np.uint32), frame.astype(np.int32).view(np.uint32)
    return uniform(philox(key, (counter, np.uint32(site), np.uint32(0), np.uint32(0)))[0])
