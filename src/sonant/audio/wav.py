"""WAV files: 16-bit integer and 32-bit float, mono, with true sizes in the header."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np

from sonant.errors import InputError

_PCM, _FLOAT = 1, 3
SUBTYPES = {"int16": (_PCM, 2), "float32": (_FLOAT, 4)}
_MAX_DATA_BYTES = 2**32 - 1024  # a RIFF size is 32 bits


def wav_bytes(samples: np.ndarray, sample_rate: int, *, subtype: str = "int16") -> bytes:
    """A whole WAV file for mono float32 `samples` [S] in −1…1; values beyond are clipped in int16."""
    if subtype not in SUBTYPES:
        raise InputError(f"WAV subtype is {subtype!r}; wanted one of {', '.join(SUBTYPES)}")
    code, width = SUBTYPES[subtype]
    data = to_int16(samples).tobytes() if subtype == "int16" else np.asarray(samples, "<f4").tobytes()
    if len(data) > _MAX_DATA_BYTES:
        raise InputError(f"{len(data)} bytes of samples do not fit a WAV file; write it in parts or as another format")
    # A float file needs a fact chunk; readers of PCM do not mind its absence.
    fact = struct.pack("<4sII", b"fact", 4, len(samples)) if code == _FLOAT else b""
    layout = struct.pack("<4sIHHIIHH", b"fmt ", 16, code, 1, sample_rate, sample_rate * width, width, 8 * width)
    body = b"WAVE" + layout + fact + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Little-endian 16-bit integers, rounded and clipped."""
    scaled = np.rint(np.asarray(samples, np.float32) * 32767.0)
    clipped: np.ndarray = np.clip(scaled, -32768, 32767).astype("<i2")
    return clipped


def write_wav(path: str | os.PathLike[str], samples: np.ndarray, sample_rate: int, *, subtype: str = "int16") -> Path:
    """Write the file in one go; its folder must exist."""
    target = Path(path)
    content = wav_bytes(samples, sample_rate, subtype=subtype)
    try:
        target.write_bytes(content)
    except OSError as e:
        raise InputError(f"cannot write {target}: {e.strerror or e}") from e
    return target
