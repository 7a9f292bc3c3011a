"""The declared packing steps: from a canonical tensor to the words a WGSL kernel reads; as web/runtime/packing.mjs.

plain: as it is. kcn4: [N, C] or [N, K, C/groups] → [K, C/groups, N padded with zeros to a multiple of 4], so that four
neighbouring outputs are one vec4.
"""

from __future__ import annotations

import numpy as np

from sonant.errors import BackendError


def pack(array: np.ndarray, how: str, dtype: str) -> np.ndarray:
    """The packed float32 words of a float32 canonical tensor whose values are rounded to `dtype` first."""
    values = rounded(array, dtype)
    if how == "plain":
        return np.ascontiguousarray(values)
    if how != "kcn4":
        raise BackendError(f"no packing step {how!r}")
    outputs, channels = values.shape[0], values.shape[-1]
    packed = np.zeros((values.size // (outputs * channels), channels, -(-outputs // 4) * 4), np.float32)
    packed[..., :outputs] = values.reshape(outputs, -1, channels).transpose(1, 2, 0)
    return packed


def packed_elements(shape: tuple[int, ...], how: str) -> int:
    outputs, *rest = shape or (1,)
    return (-(-outputs // 4) * 4 if how == "kcn4" else outputs) * int(np.prod(rest, dtype=np.int64))


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Kept in float32: kernels that read f16 and bf16 words are a later step."""
    if dtype == "f16":
        return array.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    return array.astype(np.float32, copy=False)
