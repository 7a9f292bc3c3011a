"""The first frame of an MP3 stream: a silent one whose body says how many samples of delay the encoder added.

A file gets LAME's own tag at the end of the writing. A pipe cannot be written to twice, so its first frame gets a tag
that says what is known at the beginning: the delay, and neither length nor padding.
"""

from __future__ import annotations

import struct

ENCODER_DELAY_SAMPLES = 1105 - 529
"""What LAME adds in front; every decoder adds 529 more and knows it."""
_MPEG1_BITS, _MONO = 0b11, 0b11


def tagged_first_frame(frame: bytes) -> bytes:
    """LAME's placeholder (a frame header and zeros, perhaps more frames behind) with an Info tag in it."""
    if len(frame) < 64 or frame[0] != 0xFF or any(frame[4:64]):
        return frame  # not a placeholder: leave it alone
    mpeg1 = (frame[1] >> 3) & 0b11 == _MPEG1_BITS
    mono = frame[3] >> 6 == _MONO
    side_bytes = (17 if mono else 32) if mpeg1 else (9 if mono else 17)
    tag = b"Info" + struct.pack(">I", 0) + b"LAME3.100" + bytes(12) + (ENCODER_DELAY_SAMPLES << 12).to_bytes(3, "big")
    at = 4 + side_bytes
    return frame[:at] + tag + frame[at + len(tag) :]
