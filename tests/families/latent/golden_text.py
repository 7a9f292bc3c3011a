"""What the official packages made of texts (tools/record_latent_text_golden.py wrote it), and their tokenizers."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from sonant.families.latent.tokenizer import Tokenizer

DATA = Path(__file__).parent / "data"


@cache
def recorded(name: str) -> Any:
    return json.loads(gzip.decompress((DATA / f"{name}_golden.json.gz").read_bytes()))


@cache
def tokenizer(name: str = "unigram.json") -> Tokenizer:
    return Tokenizer.load(DATA / name)
