"""`sonant quantize`: a model's matrices in q8, and what that changes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

import click

from sonant.cli.reading import check_writable, read_text
from sonant.errors import InputError
from sonant.options import SpeakOptions


@click.command()
@click.argument("model")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The .safetensors file to write.")
@click.option("--to", "precision", default="q8", show_default=True, help="What to store the matrices in; q8 alone.")
@click.option("--weights", type=click.Path(path_type=Path), help="Checkpoint file or folder, in floats.")
@click.option("--texts", type=click.Path(path_type=Path), help="Measure with these: a text a line, UTF-8.")
@click.option("--voice", help="For --texts; by default the model's own.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --texts.")
@click.option("--threads", type=int, help="For --texts: threads that compute; one per core by default.")
def quantize(
    model: str,
    output: Path,
    precision: str,
    weights: Path | None,
    texts: Path | None,
    voice: str | None,
    seed: int,
    threads: int | None,
) -> None:
    """Store the matrices of MODEL in q8, in a file that --weights takes, and say what is lost.

    Prints the error of every tensor and, with --texts, how far the speech moves: the latents and the length of each
    text. The same goes to a .report.json beside the file.
    """
    from sonant.engine import quantize as engine
    from sonant.hub.catalog import find
    from sonant.hub.store import cache_root

    if precision != "q8":
        raise InputError(f"matrices can be stored in q8, not in {precision!r}")
    if output.suffix != ".safetensors":
        raise InputError(f"{output}: wanted a name that ends in .safetensors")
    beside = output.with_suffix(".report.json")
    check_writable(output, beside)
    lines = [line for line in read_text(texts).splitlines() if line.strip()] if texts else []
    options = SpeakOptions(voice=voice, seed=seed)
    entry, root = find(model), cache_root(os.environ)
    found = engine.plan(entry, weights, root)
    done = engine.store(found, output)
    measured = engine.compare(entry, weights, found, output, lines, options=options, threads=threads, cache=root)
    report = engine.report(model, output, found, done, list(measured))
    beside.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    click.echo("\n".join([*_described(report), str(output), str(beside)]))


def _described(report: dict[str, Any]) -> Iterator[str]:
    tensors, size = report["tensors"], report["bytes"]
    width = max(len(tensor["name"]) for tensor in tensors)
    yield f"{'tensor':<{width}}  {'error':>8}  {'worst block':>11}"
    for tensor in tensors:
        yield f"{tensor['name']:<{width}}  {tensor['rms']:>8.2%}  {tensor['worst_block']:>11.2%}"
    yield f"{len(tensors)} tensors in q8, error {report['rms']:.2%}; {_mb(report['kept_bytes'])} stay as they are"
    yield f"{_mb(size['floats'])} in f32 (the source: {_mb(size['source'])}) become {_mb(size['q8'])}"
    for text in report["texts"]:
        lengths = ", ".join(f"{f32} → {q8}" for f32, q8 in text["frames"])
        db = "" if text["latent_db"] is None else f" ({text['latent_db']:.1f} dB)"
        yield (
            f"{shorten(text['text'], 40, placeholder='…')!r}: latents {text['latent_rms']:.3g} off{db}, "
            f"frames {lengths} ({text['frames_longer']:+d})"
        )


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
