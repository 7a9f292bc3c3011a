"""Make the voice that the package carries: a kokoro-js voice (little-endian f32 [510, 256]) as f16.

    npm pack kokoro-js@1.2.1 && tar xf kokoro-js-1.2.1.tgz
    python tools/ship_voice.py package/voices/af_heart.bin src/sonant/families/kokoro/data

Half precision costs at most 2^-11 relative; the report states what it cost this voice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from sonant.families.kokoro.voices import read_voices


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("voice", type=Path, help="<name>.bin of kokoro-js")
    parser.add_argument("folder", type=Path, help="where <name>.f16.bin goes")
    args = parser.parse_args()
    ((name, pack),) = read_voices(args.voice).items()
    half = pack.astype("<f2")
    if not np.isfinite(half).all():
        parser.error(f"{args.voice}: a value does not fit half precision")
    target = args.folder / f"{name}.f16.bin"
    target.write_bytes(half.tobytes())
    worst = np.abs(half.astype(np.float32) - pack).max()
    sys.stdout.write(
        f"{target}: {target.stat().st_size} bytes, largest error {worst:.2e}, largest value {abs(pack).max():.3f}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
