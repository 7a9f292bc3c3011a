"""The two companding laws of telephony (ITU-T G.711): 16-bit samples as one byte each."""

from __future__ import annotations

import numpy as np

_MULAW_BIAS, _MULAW_CLIP = 132, 32635


def mulaw(samples: np.ndarray) -> np.ndarray:
    """uint8 µ-law codes for int16 samples."""
    wide = samples.astype(np.int32)
    magnitude = np.minimum(np.abs(wide), _MULAW_CLIP) + _MULAW_BIAS
    exponent = _bit_length(magnitude) - 8
    code = np.where(wide < 0, 0x80, 0) | (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0F)
    codes: np.ndarray = (~code & 0xFF).astype(np.uint8)
    return codes


def alaw(samples: np.ndarray) -> np.ndarray:
    """uint8 A-law codes for int16 samples."""
    wide = samples.astype(np.int32) >> 3  # 13 bits, as the standard counts them
    magnitude = np.where(wide < 0, -wide - 1, wide)
    exponent = np.maximum(_bit_length(magnitude) - 5, 0)
    code = (exponent << 4) | ((magnitude >> np.maximum(exponent, 1)) & 0x0F)
    codes: np.ndarray = (code ^ np.where(wide < 0, 0x55, 0xD5)).astype(np.uint8)
    return codes


def from_mulaw(codes: np.ndarray) -> np.ndarray:
    """int16 samples of uint8 µ-law codes."""
    bits = ~codes.astype(np.int32) & 0xFF
    magnitude = ((((bits & 0x0F) << 3) + _MULAW_BIAS) << ((bits >> 4) & 7)) - _MULAW_BIAS
    samples: np.ndarray = np.where(bits & 0x80, -magnitude, magnitude).astype(np.int16)
    return samples


def from_alaw(codes: np.ndarray) -> np.ndarray:
    """int16 samples of uint8 A-law codes."""
    bits = codes.astype(np.int32) ^ 0x55
    exponent, mantissa = (bits >> 4) & 7, bits & 0x0F
    magnitude = ((mantissa << 4) + np.where(exponent > 0, 0x108, 8)) << np.maximum(exponent - 1, 0)
    samples: np.ndarray = np.where(bits & 0x80, magnitude, -magnitude).astype(np.int16)
    return samples


def _bit_length(values: np.ndarray) -> np.ndarray:
    return np.frexp(values.astype(np.float64))[1].astype(np.int32)
