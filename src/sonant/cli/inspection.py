"""What `sonant inspect` prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sonant.errors import InputError, UnknownName
from sonant.hub.catalog import CATALOG, CatalogEntry, find
from sonant.program.program import Program

TYPICAL_SIZES = {"P": 102, "T": 240, "B": 1, "F": 8, "N": 50}
"""Kokoro: a piece of 100 phonemes, 6 s. Phonon and Pocket TTS: one stream, a voice and a text of 240 positions, 50 of
them of the text, 8 frames at once."""


def describe_file(path: Path) -> str:
    """The tensors of a file, one per line: name, type, shape."""
    rows = [f"{name:<72}{dtype:<6}{list(shape)}" for name, dtype, shape in _tensors(path)]
    return "\n".join([f"{path}: {len(rows)} tensors", *rows])


def _tensors(path: Path) -> Iterable[tuple[str, str, tuple[int, ...]]]:
    if path.suffix == ".safetensors":
        from sonant.checkpoint.safetensors import open_safetensors

        checkpoint = open_safetensors(path)
        return [(name, checkpoint.dtype(name), checkpoint.shape(name)) for name in checkpoint]
    if path.suffix in (".pt", ".pth"):
        from sonant.checkpoint.tensor import Tensor
        from sonant.checkpoint.torch_zip import flat_tensors, open_torch

        tree = open_torch(path)
        flat = {"(the tensor)": tree} if isinstance(tree, Tensor) else dict(flat_tensors(tree))
        return [(name, t.dtype, t.shape) for name, t in flat.items()]
    if path.suffix == ".onnx":
        from sonant.checkpoint.onnx import open_onnx

        return [(name, t.dtype, t.shape) for name, t in open_onnx(path).initializers.items()]
    raise InputError(f"{path}: wanted a .safetensors, .pth, .pt or .onnx file")


def describe_model(name: str, program: str | None, *, fused: bool) -> str:
    """A line per Program of the model, or the text form of one of them."""
    from sonant.program.passes import fuse
    from sonant.program.serialize import to_text

    if name not in CATALOG:
        raise InputError(
            f"no file {name!r}, and no model of that name; files: .safetensors .pth .pt .onnx, models: "
            f"{', '.join(CATALOG)}"
        )
    entry = find(name)
    programs = {p.name.split(".")[-1]: p for p in _programs(entry)}
    if program is not None:
        if program not in programs:
            raise UnknownName("program", program, programs)
        return to_text(fuse(programs[program]) if fused else programs[program])
    sizes = ", ".join(f"{k}={v}" for k, v in TYPICAL_SIZES.items())
    lines = [
        f"{entry.name}: {entry.parameters:,} parameters, {entry.licence}, {entry.source}",
        f"workspace at {sizes}:",
    ]
    return "\n".join([*lines, *(_program_line(p, fuse(p)) for p in programs.values())])


def _programs(entry: CatalogEntry) -> list[Program]:
    """Raises InputError for a model whose sizes only its own configuration says."""
    if entry.family == "kokoro":
        from sonant.families.kokoro.programs import official_programs

        return official_programs()
    if entry.family == "pocket" and entry.recipe is not None:
        from sonant.families.pocket.programs import official_programs as of_pocket

        return of_pocket(entry.recipe)
    if entry.name == "phonon-31m-en":
        from sonant.families.phonon.programs import official_programs as of_phonon

        return of_phonon()
    raise InputError(f"the sizes of {entry.name} are in its own config.json, which is not part of sonant")


def _program_line(plain: Program, fused: Program) -> str:
    from sonant.program.layout import assign

    buffers = assign(fused, TYPICAL_SIZES).buffers
    peak = sum(4 * max(size.evaluate(TYPICAL_SIZES) for size in tenants) for tenants in buffers)
    return (
        f"  {plain.name:<18}{len(plain.nodes):>5} nodes, {len(fused.nodes)} fused, {len(plain.weights)} weights, "
        f"{len(buffers)} buffers, peak {peak / 2**20:.1f} MiB"
    )
