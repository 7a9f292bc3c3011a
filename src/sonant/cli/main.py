"""The `sonant` command: its verbs, and how errors become exit codes.

0 done · 1 something failed · 2 what was asked for is wrong · 3 weights are missing or damaged · 130 interrupted
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from sonant.cli.models import models
from sonant.errors import CheckpointError, InputError, SonantError

EXIT_FAILED, EXIT_INPUT, EXIT_CHECKPOINT, EXIT_INTERRUPTED = 1, 2, 3, 130


def _exits(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of sonant as one line on stderr and an exit code; a bug keeps its traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            click.echo("sonant: interrupted", err=True)
            sys.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output went away; nothing is left to tell it. The flush at exit must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(EXIT_FAILED)
        except SonantError as e:
            click.echo(f"sonant: {e}", err=True)
            sys.exit(
                EXIT_INPUT
                if isinstance(e, InputError)
                else EXIT_CHECKPOINT
                if isinstance(e, CheckpointError)
                else EXIT_FAILED
            )

    return run


def _model_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        [
            click.option(
                "--model", default="kokoro-82m", show_default=True, help="Model by name; see `sonant models`."
            ),
            click.option("--weights", type=click.Path(path_type=Path), help="Checkpoint file or folder."),
            click.option("--voices", "voices_dir", type=click.Path(path_type=Path), help="Folder of further voices."),
            click.option("--device", default="cpu", show_default=True, help="cpu, or numpy for the slow reference."),
            click.option("--threads", type=int, help="Threads that compute; one per core by default."),
            click.option("--precision", default="f32", show_default=True, help="f32, f16 or bf16."),
            click.option("--isa", help="Force an instruction set; see `sonant doctor`."),
        ]
    ):
        command = option(command)
    return command


def _load(model: str, weights: Path | None, voices_dir: Path | None, **options: Any) -> Any:
    from sonant.engine.load import load

    cache = os.environ.get("SONANT_CACHE")
    return load(model, weights=weights, voices=voices_dir, cache=cache, **options)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sonant")
def main() -> None:
    """Text to speech on your own machine, with the time of every word."""


@main.command()
@click.argument("text")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="WAV file to write.")
@click.option("--words", "words_file", type=click.Path(path_type=Path), help="JSON file for the word times.")
@click.option("--voice", help="A voice or a blend: af_heart, or af_heart:0.7,am_michael:0.3.")
@click.option("--speed", type=float, default=1.0, show_default=True, help="0.25 to 4; 2 is twice as fast.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same audio.")
@click.option("--language", help="BCP-47; by default the voice's own.")
@_model_options
@_exits
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
    spoken = _read_stdin() if text == "-" else text
    _check_writable(output, *([words_file] if words_file else []))
    speech = _load(**model).speak(spoken, voice=voice, speed=speed, seed=seed, language=language)
    speech.save(output)
    if words_file:
        words_file.write_text(speech.to_json() + "\n", encoding="utf-8")
    click.echo(f"{output}: {speech.duration_s:.2f} s, {len(speech.words)} words", err=True)


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"standard input is not UTF-8 (byte {e.start}); convert it first") from e


def _check_writable(*paths: Path) -> None:
    """Say so before the work, not after it."""
    for path in paths:
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(
                f"cannot write {path}: {'it is' if path.is_dir() else 'there is no'} folder"
                + ("" if path.is_dir() else f" {path.parent}")
            )


@main.command()
@_model_options
@_exits
def voices(**model: Any) -> None:
    """List the voices that a model has."""
    for v in _load(**model).voices():
        click.echo(f"{v.name:<20}{v.language or '-':<8}{v.gender or '-'}")


for _command in (models, *models.commands.values()):
    _command.callback = _exits(cast("Callable[..., None]", _command.callback))
main.add_command(models)


@main.command()
@click.argument("text")
@click.option("--language", default="en-US", show_default=True)
@click.option("--normalized", is_flag=True, help="Show the words as they will be spoken instead.")
@_exits
def phonemize(text: str, language: str, normalized: bool) -> None:
    """Show how TEXT (or standard input, with -) is read, in phonemes."""
    from sonant.text import english

    spoken = _read_stdin() if text == "-" else text
    click.echo(english.normalize(spoken, language) if normalized else english.phonemize(spoken, language))


@main.command()
@click.argument("what")
@click.option("--program", help="Print one of the model's Programs in text form.")
@click.option("--fused", is_flag=True, help="After fusion, as backends run it.")
@_exits
def inspect(what: str, program: str | None, fused: bool) -> None:
    """Show what is in a checkpoint or voice file, or the Programs of a model by name."""
    from sonant.cli.inspection import describe_file, describe_model

    click.echo(describe_file(Path(what)) if Path(what).exists() else describe_model(what, program, fused=fused))


@main.command()
@_exits
def doctor() -> None:
    """Check this machine: instruction sets, weights, cache, and a kernel against its reference."""
    from sonant.cli.doctor import report

    lines, healthy = report(os.environ.get("SONANT_CACHE"))
    click.echo("\n".join(lines))
    sys.exit(0 if healthy else EXIT_FAILED)
