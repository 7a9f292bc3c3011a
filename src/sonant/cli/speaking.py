"""The options that the commands which speak have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_SPEAKING = (
    "voice", "speed", "seed", "language", "markup", "text_format", "lexicon", "paragraph_pause_s", "heading_pause_s",
    "first_piece", "temperature", "guidance",
)  # fmt: skip


def _formats(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from sonant.audio.formats import FORMATS

    return [name for name in FORMATS if name.startswith(begun)]


def _encodings(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from sonant.audio.formats import FORMATS

    return sorted({e for kind in FORMATS.values() for e in kind.encodings if e.startswith(begun)})


def speaking_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the voice, and how the text is read and spoken; `take_speaking` takes them out again."""
    for option in reversed(
        [
            click.option("--voice", help="A voice or a blend: af_heart, or af_heart:0.7,am_michael:0.3."),
            click.option("--speed", type=float, default=1.0, show_default=True, help="0.25 to 4; 2 is twice as fast."),
            click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same audio."),
            click.option("--language", help="BCP-47; by default the voice's own."),
            click.option("--markup", default="auto", show_default=True, help="Tags as [pause 1s]: auto, strict, off."),
            click.option("--text-format", default="plain", show_default=True, help="plain or markdown."),
            click.option("--lexicon", type=click.Path(path_type=Path), help="Your own words: a TSV or PLS file."),
            click.option("--paragraph-pause", "paragraph_pause_s", type=float, default=0.3, help="In seconds."),
            click.option("--heading-pause", "heading_pause_s", type=float, default=0.5, help="In seconds."),
            click.option("--first-piece", default="full", show_default=True, help="full, or short to start sooner."),
            click.option("--word-times", default="native", show_default=True,
                         help="native, or align: Kokoro's speech laid over the sound."),
            click.option("--temperature", type=float, help="Of models that sample; by default the model's own."),
            click.option("--guidance", type=float, help="Of models that can: how far from speech without a voice."),
        ]
    ):
        command = option(command)
    return command


def take_speaking(given: dict[str, Any]) -> dict[str, Any]:
    """Taken from a command's arguments: what `speaking_options` added, by the names that `speak` has for it."""
    return {**{name: given.pop(name) for name in _SPEAKING}, "words": given.pop("word_times")}


def form_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --format, --encoding and --rate."""
    for option in reversed(
        [
            click.option(
                "--format", shell_complete=_formats, help="wav, pcm, flac, ogg, opus or mp3; else the suffix."
            ),
            click.option("--encoding", shell_complete=_encodings, help="int16, int24, float32, mulaw or alaw."),
            click.option("--rate", type=int, help="Sample rate in Hz; by default the model's."),
        ]
    ):
        command = option(command)
    return command
