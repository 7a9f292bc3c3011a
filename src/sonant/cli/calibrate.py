"""`sonant calibrate-speed`: how fast a Phonon checkpoint really speaks at each duration_delta."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sonant.cli.loading import load_model
from sonant.cli.progress import Progress
from sonant.cli.reading import read_text


@click.command("calibrate-speed")
@click.argument("model")
@click.option("--weights", type=click.Path(path_type=Path), help="Checkpoint file or folder.")
@click.option("--voice", help="By default the model's own.")
@click.option("--texts", type=click.Path(path_type=Path), help="A text a line, UTF-8; by default a few of our own.")
@click.option("--seeds", type=click.IntRange(1, 100), default=2, show_default=True, help="Takes of each text.")
@click.option("--precision", default="auto", show_default=True, help="What the model is loaded in.")
@click.option("--threads", type=int, help="Threads that compute; one per core by default.")
@click.option("--dry-run", is_flag=True, help="Measure and print only.")
def calibrate_speed(
    model: str,
    weights: Path | None,
    voice: str | None,
    texts: Path | None,
    seeds: int,
    precision: str,
    threads: int | None,
    dry_run: bool,
) -> None:
    """Measure how fast Phonon MODEL speaks at several values of its pace, and keep that beside the checkpoint.

    From then on its --speed is translated by what was measured instead of the built-in points.
    """
    from sonant.engine import calibrate
    from sonant.errors import InputError
    from sonant.hub.store import cache_root

    place = calibrate.place_of(model, weights, cache_root(os.environ))
    if texts is not None:
        lines = [line for line in read_text(texts).splitlines() if line.strip()]
    elif place.language in calibrate.TEXTS:
        lines = list(calibrate.TEXTS[place.language])
    else:
        raise InputError(f"no texts of our own in {place.language!r}: give --texts FILE, a text a line")
    synth = load_model(
        model=model,
        weights=weights,
        voices_dir=None,
        device="cpu",
        threads=threads,
        precision=precision,
        isa=None,
    )
    progress = Progress()
    paces = calibrate.measure(synth, place.speed_map, lines, seeds=seeds, voice=voice, done=progress.show)
    progress.clear()
    click.echo("duration_delta   speed")
    for pace in paces:
        click.echo(f"{pace.duration_delta:>14g}  {pace.speed:>6.3f} ±{100 * pace.error:.1f} %")
    if not dry_run:
        click.echo(calibrate.keep(place, model, paces, n_texts=len(lines), seeds=seeds, voice=voice))

