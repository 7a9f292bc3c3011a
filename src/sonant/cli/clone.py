"""`sonant clone`: a voice from a recording, as a file that can be spoken with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sonant.cli.loading import load_model, model_options
from sonant.cli.reading import check_writable
from sonant.errors import InputError

SUFFIX = ".safetensors"


@click.command()
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The voice: NAME.safetensors.")
@model_options
def clone(recording: Path, output: Path, **given: Any) -> None:
    """Make a voice of RECORDING: 1 to 30 s of one speaker who agreed to it, without noise and music.

    Speak with it: sonant say TEXT --model MODEL --voices FOLDER --voice NAME, FOLDER and NAME being those of the file.
    """
    if output.suffix != SUFFIX:
        raise InputError(f"a voice is written as {SUFFIX}, not as {output.name!r}; -o {output.stem}{SUFFIX}")
    check_writable(output)
    voice = load_model(**given).clone(output.stem, recording, keep=output)
    click.echo(f"{output}: the voice {voice.name}", err=True)
