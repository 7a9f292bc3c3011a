"""`sonant say`: a text into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sonant.cli.loading import load_model, model_options
from sonant.cli.reading import check_writable, read_stdin


@click.command()
@click.argument("text")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="WAV file to write.")
@click.option("--words", "words_file", type=click.Path(path_type=Path), help="JSON file for the word times.")
@click.option("--voice", help="A voice or a blend: af_heart, or af_heart:0.7,am_michael:0.3.")
@click.option("--speed", type=float, default=1.0, show_default=True, help="0.25 to 4; 2 is twice as fast.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same audio.")
@click.option("--language", help="BCP-47; by default the voice's own.")
@model_options
def say(
    text: str,
    output: Path,
    words_file: Path | None,
    voice: str | None,
    speed: float,
    seed: int,
    language: str | None,
    **model: Any,
) -> None:
    """Speak TEXT (or standard input, with -) into a WAV file."""
    spoken = read_stdin() if text == "-" else text
    check_writable(output, *([words_file] if words_file else []))
    speech = load_model(**model).speak(spoken, voice=voice, speed=speed, seed=seed, language=language)
    speech.save(output)
    if words_file:
        words_file.write_text(speech.to_json() + "\n", encoding="utf-8")
    click.echo(f"{output}: {speech.duration_s:.2f} s, {len(speech.words)} words", err=True)
