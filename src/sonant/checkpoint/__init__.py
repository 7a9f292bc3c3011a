"""Readers of weight files: safetensors, torch archives, ONNX graphs, GGUF; strict name maps; the conversion cache.

Here: bytes on disk → named numpy arrays, every length and offset checked, nothing executed.
Not here: what the names mean (families/<name>/weights.py) and where files come from (hub/).
"""
