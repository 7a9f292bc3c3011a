"""`sonant say`: a text into audio and captions, chunk by chunk as it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sonant.cli.interrupt import Interrupt
from sonant.cli.loading import load_model, model_options
from sonant.cli.outputs import CAPTIONS, Form, Outputs, Places
from sonant.cli.progress import Progress
from sonant.cli.reading import given_text
from sonant.cli.speaking import form_options, speaking_options, take_speaking

if TYPE_CHECKING:
    from sonant.engine.synthesizer import Synthesizer

_CUES = ("max_chars", "max_lines", "max_duration_s")
_FORM = ("format", "encoding", "rate", "loudness", "peak", "karaoke", "word_cues")


def _output_options(command: Callable[..., None]) -> Callable[..., None]:
    file = click.Path(dir_okay=True, allow_dash=True)
    for option in reversed(
        [
            click.option("-o", "--output", type=file, help="Audio file; - is standard output (raw PCM)."),
            click.option("--play", is_flag=True, help="Play it while it is made."),
            click.option("--loudness", type=float, metavar="LUFS", help="Loudness of the whole, such as -16."),
            click.option("--peak", type=float, metavar="DBFS", help="No sample beyond it, such as -1."),
            click.option("--words", type=file, help="JSON file for the word times."),
            click.option("--srt", type=file, help="SubRip captions."),
            click.option("--vtt", type=file, help="WebVTT captions."),
            click.option("--lrc", type=file, help="LRC lyrics, with the time of every word."),
            click.option("--textgrid", type=file, help="Praat TextGrid."),
            click.option("--karaoke", is_flag=True, help="Word times inside the cues of --vtt."),
            click.option("--word-cues", is_flag=True, help="One cue a word in --srt and --vtt."),
            click.option("--max-chars", type=int, default=42, show_default=True, help="Of a caption line."),
            click.option("--max-lines", type=int, default=2, show_default=True, help="Of a caption."),
            click.option("--max-duration", "max_duration_s", type=float, default=7.0, help="Of a caption, in seconds."),
            click.option("--json", "summary", is_flag=True, help="What was made, as JSON on standard output."),
            click.option("-q", "--quiet", is_flag=True, help="No progress, no closing line."),
        ]
    ):
        command = option(command)
    return command


@click.command()
@click.argument("text", required=False)
@click.option("-f", "--file", "file", type=click.Path(path_type=Path), help="Text file to speak, UTF-8.")
@click.option("--lines", is_flag=True, help="Every line into a file of its own: -o out-{:03}.wav.")
@speaking_options
@_output_options
@form_options
@model_options
def say(text: str | None, file: Path | None, lines: bool, output: str | None, **given: Any) -> None:
    """Speak TEXT, a --file, or standard input (with -) into audio and caption files.

    Ctrl-C ends it, and leaves valid files of what was made until then.
    """

    def take(*names: str) -> dict[str, Any]:
        return {name: given.pop(name) for name in names}

    captions = {kind: path for kind, path in take(*CAPTIONS).items() if path is not None}
    quiet = given.pop("quiet")
    places = Places(audio=output, captions=captions, **take("play", "summary"))
    form = Form(**take(*_FORM), cues=take(*_CUES))
    voice = take_speaking(given)
    places.check(many=lines)
    form.check(places)
    spoken = given_text(text, file)
    texts = [line for line in spoken.splitlines() if line.strip()] if lines else [spoken]
    synth = load_model(**given)
    for n, one in enumerate(texts, 1):
        here = places.numbered(n) if lines else places
        progress = Progress(f"{n}/{len(texts)}" if lines else "", enabled=not quiet)
        _speak(synth, one, here, form, voice, progress)


def _speak(
    synth: Synthesizer, text: str, places: Places, form: Form, voice: dict[str, Any], progress: Progress
) -> None:
    """One text, to its end or to Ctrl-C. What was made is kept whatever happens; KeyboardInterrupt tells the caller."""
    outputs = Outputs(places, form, synth, text)
    complete = False
    try:
        with Interrupt() as interrupt, synth.background(text, **voice) as chunks:
            interrupt.calls(chunks.stop, outputs.stop)
            for chunk in chunks:
                outputs.write(chunk)
                progress.show(outputs.fraction, outputs.duration_s)
        complete = not interrupt.came
    finally:
        progress.clear()
        outputs.close(complete=complete, quiet=progress.quiet)
    if not complete:
        raise KeyboardInterrupt
