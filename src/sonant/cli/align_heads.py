"""`sonant align-heads`: which attention heads of a checkpoint tell where its words are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sonant.cli.loading import load_model
from sonant.cli.progress import Progress
from sonant.cli.reading import check_writable, read_text

if TYPE_CHECKING:
    from sonant.engine.align_heads import Found

SHOWN = 10


@click.command("align-heads")
@click.argument("model")
@click.option("--weights", type=click.Path(path_type=Path), help="Checkpoint file or folder.")
@click.option("--voice", help="By default the model's own.")
@click.option("--texts", type=click.Path(path_type=Path), help="A text a line, UTF-8; by default a few of our own.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write, instead of beside the checkpoint."
)
@click.option("--aligner", is_flag=True, help="Measure the lead on every word, against Kokoro's; it must be here.")
@click.option("--threads", type=int, help="Threads that compute; one per core by default.")
@click.option("--dry-run", is_flag=True, help="Measure and print only.")
def align_heads(
    model: str,
    weights: Path | None,
    voice: str | None,
    texts: Path | None,
    output: Path | None,
    aligner: bool,
    threads: int | None,
    dry_run: bool,
) -> None:
    """Find the attention heads of MODEL that follow its text, and keep them beside the checkpoint.

    From then on its word times come from these heads.
    """
    from sonant.engine import align_heads as engine
    from sonant.errors import InputError
    from sonant.hub.store import cache_root

    place = engine.place_of(model, weights, cache_root(os.environ))
    if texts is not None:
        lines = [line for line in read_text(texts).splitlines() if line.strip()]
    elif place.language in engine.TEXTS:
        lines = list(engine.TEXTS[place.language])
    else:
        raise InputError(f"no texts of our own in {place.language!r}: give --texts FILE, a text a line")
    if output is not None:
        check_writable(output)
    options: dict[str, Any] = {
        "voices_dir": None, "device": "cpu", "threads": threads, "precision": "auto", "isa": None,
    }  # fmt: skip
    synth = load_model(model=model, weights=weights, **options)
    reference = engine.aligner(load_model(model=engine.ALIGNER, weights=None, **options)) if aligner else None
    progress = Progress()
    records = engine.record(synth, lines, voice=voice, done=progress.show)
    progress.clear()
    found = engine.find_heads(engine.recorder_of(synth), records, reference=reference)
    click.echo(_table(found))
    if not dry_run:
        click.echo(engine.keep(found, output or place.folder, model=model, voice=voice, texts=lines))


def _table(found: Found) -> str:
    lines = ["layer  head  correlation  monotone   peak  score"]
    for one in found.scores[:SHOWN]:
        layer, head = one.head
        lines.append(
            f"{layer:>5}  {head:>4}  {one.correlation:>11.3f}  {one.monotone_share:>8.3f}  {one.mean_peak:>5.3f}  "
            f"{one.score:>5.3f}"
        )
    heads, quality = found.heads, found.heads.quality
    named = " + ".join(f"layer {layer} head {head}" for layer, head in heads.heads)
    score = f", score {quality.score:.3f}" if quality else ""
    source = {
        "energy": f"by {found.n_lead_words} words after pauses",
        "aligner": f"by {found.n_lead_words} words of the aligner",
        "assumed": f"assumed: only {found.n_lead_words} words after pauses were found; give texts with more commas",
    }[heads.lead_source]
    return "\n".join([*lines, f"chosen: {named}{score}", f"lead: {heads.lead_frames:+.2f} frames ({source})"])
