"""`sonant perf`: where the time of a text goes, node by node, as a table, JSON or a picture."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sonant.errors import InputError

if TYPE_CHECKING:
    from sonant.engine.perf import Ceilings, Profile, Row
    from sonant.options import LoadOptions

TEXT = "The old lighthouse keeper had lived on the island for forty years, and he knew every rock of it."
_LAYERS = 20
_BAR, _WIDTH = 22, 1000


@click.command()
@click.argument("model", required=False)
@click.argument("text", default=TEXT)
@click.option("--threads", type=int, help="Threads that compute; one per core by default.")
@click.option("--precision", default="auto", show_default=True, help="As of `sonant say`.")
@click.option("--isa", help="Force an instruction set; see `sonant doctor`.")
@click.option("--weights", type=click.Path(path_type=Path), help="Checkpoint file or folder.")
@click.option("--voices", type=click.Path(path_type=Path), help="Folder of further voices.")
@click.option("--voice", help="By default the model's own.")
@click.option("--json", "as_json", is_flag=True, help="Every node, as JSON.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="An SVG file of the layers.")
@click.option("--ceilings", "only_ceilings", is_flag=True, help="Only what this machine can do at best.")
def perf(model: str | None, text: str, as_json: bool, picture: Path | None, only_ceilings: bool, **given: Any) -> None:
    """Time, arithmetic, traffic and share of the roofline of what MODEL runs to speak TEXT."""
    from sonant.options import LoadOptions

    options = LoadOptions(**{name: given.pop(name) for name in ("threads", "precision", "isa")})
    if picture is not None and picture.suffix != ".svg":
        raise InputError(f"{picture}: a picture is written as .svg")
    if only_ceilings:
        click.echo(_ceilings(options, as_json))
        return
    if model is None:
        raise InputError("perf wants a model, such as kokoro-82m, or --ceilings")
    from sonant.engine.perf import profile

    cache = os.environ.get("SONANT_CACHE")
    found = profile(model, text, options, cache=Path(cache) if cache else None, **given)
    if picture is not None:
        picture.write_text(drawn(found), encoding="utf-8")
    click.echo(json.dumps(found.to_json(), indent=1) if as_json else table(found))


def _ceilings(options: LoadOptions, as_json: bool) -> str:
    from sonant.engine.perf import ceilings_of

    found = ceilings_of(options)
    return json.dumps(asdict(found), indent=1) if as_json else describe(found)


def describe(c: Ceilings) -> str:
    """The ceilings in two lines."""
    rates = ", ".join(f"{kind} {rate / 1e9:.0f}" for kind, rate in c.flops.items())
    read = ", ".join(f"{_size(size)} {rate / 1e9:.0f}" for size, rate in c.read.items())
    return f"{c.isa}, {c.threads} threads: {rates} GFLOP/s\nreading: {read} GB/s"


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >> 20 else f"{count >> 10} KiB"


def table(p: Profile) -> str:
    """By Program and op, then the layers that take longest."""
    ops = p.grouped(lambda row: (row.program, row.op, ""))
    layers = p.grouped(lambda row: (row.program, row.op, row.layer))[:_LAYERS]
    total_s = sum(row.seconds for row in p.rows)
    head = f"{'ms':>9} {'share':>6} {'runs':>6} {'GFLOP':>8} {'MB':>8} {'GFLOP/s':>8} {'GB/s':>6} {'roof':>5}"
    lines = [
        describe(p.ceilings),
        f"{p.audio_s:.2f} s of sound in {p.wall_s:.3f} s (rtf {p.wall_s / max(p.audio_s, 1e-9):.3f}), "
        f"{total_s:.3f} s of it in kernels",
    ]
    for rows in (ops, layers):
        lines += ["", head, *(_line(row, total_s) for row in rows)]
    return "\n".join(lines)


def _line(row: Row, total_s: float) -> str:
    seconds = max(row.seconds, 1e-12)
    return (
        f"{1e3 * row.seconds:9.2f} {100 * row.seconds / max(total_s, 1e-12):5.1f}% {row.runs:6} {row.flop / 1e9:8.2f} "
        f"{row.bytes / 1e6:8.1f} {row.flop / seconds / 1e9:8.1f} {row.bytes / seconds / 1e9:6.1f} "
        f"{100 * row.roofline:4.0f}%  {row.program} {row.op} {row.layer}"
    ).rstrip()


def drawn(p: Profile) -> str:
    """SVG: a bar for each layer, as long as its time, filled as far as the ceilings account for it."""
    rows = p.grouped(lambda row: (row.program, row.op, row.layer))[: 2 * _LAYERS]
    longest_s = max((row.seconds for row in rows), default=1.0)
    bars = []
    for i, row in enumerate(rows):
        y, width = i * _BAR, 0.5 * _WIDTH * row.seconds / longest_s
        label = f"{1e3 * row.seconds:.2f} ms, {100 * row.roofline:.0f} %  {row.program} {row.op} {row.layer}"
        bars += [
            f'<rect x="0" y="{y}" width="{width:.1f}" height="{_BAR - 4}" fill="#c8d6e5"/>',
            f'<rect x="0" y="{y}" width="{width * min(row.roofline, 1):.1f}" height="{_BAR - 4}" fill="#2e6da4"/>',
            f'<text x="{width + 6:.1f}" y="{y + _BAR - 9}">{escape(label)}</text>',
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * _WIDTH}" height="{len(rows) * _BAR}" '
        f'font-family="sans-serif" font-size="12">\n' + "\n".join(bars) + "\n</svg>\n"
    )
