"""`sonant align`: the times of the words of a text in a recording of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sonant.cli.loading import load_model, model_options
from sonant.cli.reading import check_writable, given_text
from sonant.errors import InputError, UnknownName

FORMATS = {".json": "json", ".srt": "srt", ".vtt": "vtt", ".lrc": "lrc", ".textgrid": "textgrid"}
STDOUT = "-"
DOUBTFUL_MATCH = 0.2
"""Hardly any other text was seen to reach it (docs/align.md)."""


@click.command()
@click.argument("audio", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@click.option("-f", "--file", "file", type=click.Path(path_type=Path), help="Text file, UTF-8.")
@click.option("-o", "--output", default=STDOUT, help="times.json, .srt, .vtt, .lrc or .TextGrid; - is standard output.")
@click.option("--format", help="json, srt, vtt, lrc or textgrid; else the suffix, json on standard output.")
@click.option("--language", help="BCP-47, of the text; by default the voice's own.")
@click.option("--voice", help="The voice that is laid over the recording; one near to the speaker's helps a little.")
@click.option("--markup", default="off", show_default=True, help="Tags as [pause 1s] in the text: auto, strict, off.")
@click.option("--text-format", default="plain", show_default=True, help="plain or markdown.")
@click.option("--lexicon", type=click.Path(path_type=Path), help="Your own words: a TSV or PLS file.")
@model_options
def align(audio: Path, text: str | None, file: Path | None, output: str, format: str | None, **given: Any) -> None:
    """When each word of TEXT, a --file, or standard input (with -) is said in the recording AUDIO.

    WAV needs nothing further, other formats sonant[audio]. The text must be what is said, all of it and nothing else.
    """
    kind = _format(output, format)
    if output != STDOUT:
        check_writable(Path(output))
    said = given_text(text, file)
    from sonant.audio.reader import read_audio

    recording = read_audio(audio)
    reading = {name: given.pop(name) for name in ("language", "voice", "markup", "text_format", "lexicon")}
    speech = load_model(**given).align(recording.samples, recording.sample_rate, said, **reading)
    if speech.word_match is not None and speech.word_match < DOUBTFUL_MATCH:
        click.echo(f"sonant: is this what is said? The match is {speech.word_match:.2f}, see docs/align.md", err=True)
    content = speech.to_json() if kind == "json" else getattr(speech, f"to_{kind}")()
    if output == STDOUT:
        click.echo(content, nl=not content.endswith("\n"))
        return
    try:
        Path(output).write_text(content, encoding="utf-8", newline="\n")
    except OSError as e:
        raise InputError(f"cannot write {output}: {e.strerror or e}") from e


def _format(output: str, format: str | None) -> str:
    known = sorted(FORMATS.values())
    if format is not None:
        if format not in known:
            raise UnknownName("format", format, known)
        return format
    suffix = ".json" if output == STDOUT else Path(output).suffix
    if suffix.lower() not in FORMATS:
        raise UnknownName("format", suffix.removeprefix("."), known)
    return FORMATS[suffix.lower()]
