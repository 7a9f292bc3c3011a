"""Readers of weight files: safetensors, torch archives, ONNX graphs, GGUF; strict name maps; the conversion cache.

Here: bytes on disk → named numpy arrays, every length and offset checked, nothing executed.
Not here: what the names mean (families/<name>/weights.py) and where files come from (hub/).
"""

from __future__ import annotations

from sonant.checkpoint.safetensors import Checkpoint, SafetensorsWriter, open_safetensors, write_safetensors
from sonant.checkpoint.tensor import Tensor
from sonant.checkpoint.torch_zip import open_torch

__all__ = ["Checkpoint", "SafetensorsWriter", "Tensor", "open_safetensors", "open_torch", "write_safetensors"]
