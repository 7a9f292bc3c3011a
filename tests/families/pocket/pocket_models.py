"""The tiny models of the golden figures: written as checkpoint files and read as a user's would be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np
import pocket_variants as variants

from sonant.checkpoint.safetensors import write_safetensors
from sonant.families.latent.source import folder_of
from sonant.families.latent.stated import Stated
from sonant.families.pocket.config import PocketConfig
from sonant.families.pocket.weights import LAYOUT

Golden = Mapping[str, np.ndarray]


def recorded(name: str) -> Golden:
    return dict(np.load(variants.DATA / f"golden_{name}.npz"))


def text_of(array: np.ndarray) -> Any:
    return json.loads(array.tobytes())


def write(path: Path, shapes: Mapping[str, list[int]]) -> Path:
    """A .safetensors file of these names and shapes, with the random weights of the golden figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {n: golden.random_tensor(n, tuple(s)) for n, s in shapes.items() if not n.endswith("num_updates")}
    write_safetensors(path, tensors)
    return path


def read(name: str, folder: Path) -> tuple[PocketConfig, dict[str, np.ndarray]]:
    """The variant `name`, from files in `folder`."""
    figures = recorded(name)
    weights = write(folder / "model.safetensors", text_of(figures["shapes"]))
    if name != "port":
        return LAYOUT.read(weights, Stated(variants.config(name)))
    (folder / "config.json").write_text(json.dumps(text_of(figures["config"])))
    write(folder / "audio_tokenizer" / "model.safetensors", text_of(figures["codec_shapes"]))
    (folder / "audio_tokenizer" / "config.json").write_text(json.dumps(text_of(figures["codec_config"])))
    return LAYOUT.read(*folder_of(folder))
