"""The `sonant` command: its verbs, and how errors become exit codes.

0 done · 1 something failed · 2 what was asked for is wrong · 3 weights are missing or damaged · 130 interrupted
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from sonant.cli.loading import load_model, model_options
from sonant.cli.reading import read_stdin
from sonant.errors import CheckpointError, InputError, SonantError

EXIT_FAILED, EXIT_INPUT, EXIT_CHECKPOINT, EXIT_INTERRUPTED = 1, 2, 3, 130


VERBS = {
    "align": "align", "align-heads": "align_heads", "calibrate-speed": "calibrate", "clone": "clone", "live": "live",
    "models": "models", "perf": "perf", "quantize": "quantize", "say": "say",
}  # fmt: skip
"""Commands with a module of their own, under sonant.cli, where each is the function of its name."""


class _Group(click.Group):
    """A verb is imported when it is called, or when help lists them all. Errors of sonant, in any command, become one
    line on stderr and an exit code; a bug keeps its traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*VERBS, *super().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"sonant.cli.{VERBS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("sonant: interrupted", err=True)
            sys.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output went away; nothing is left to tell it. The flush at exit must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(EXIT_FAILED)
        except SonantError as e:
            click.echo(f"sonant: {e}", err=True)
            sys.exit(_exit_code(e))


def _exit_code(error: SonantError) -> int:
    if isinstance(error, InputError):
        return EXIT_INPUT
    return EXIT_CHECKPOINT if isinstance(error, CheckpointError) else EXIT_FAILED


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sonant")
def main() -> None:
    """Text to speech on your own machine, with the time of every word."""


@main.command()
@model_options
def voices(**model: Any) -> None:
    """List the voices that a model has."""
    for v in load_model(**model).voices():
        click.echo(f"{v.name:<20}{v.language or '-':<8}{v.gender or '-'}")


@main.command()
@click.argument("text")
@click.option("--language", default="en-US", show_default=True)
@click.option("--normalized", is_flag=True, help="Show the words as they will be spoken instead.")
def phonemize(text: str, language: str, normalized: bool) -> None:
    """Show how TEXT (or standard input, with -) is read, in phonemes."""
    from sonant.text import english, foreign

    spoken = read_stdin() if text == "-" else text
    if language in foreign.LANGUAGES:
        pieces = foreign.iter_pieces(spoken, language=language)
        lines = [" ".join(w.normalized for w in p.words) if normalized else p.phonemes for p in pieces]
        click.echo("\n".join(lines))
    else:
        click.echo(english.normalize(spoken, language) if normalized else english.phonemize(spoken, language))


@main.command()
@click.argument("what")
@click.option("--program", help="Print one of the model's Programs in text form.")
@click.option("--fused", is_flag=True, help="After fusion, as backends run it.")
def inspect(what: str, program: str | None, fused: bool) -> None:
    """Show what is in a checkpoint or voice file, or the Programs of a model by name."""
    from sonant.cli.inspection import describe_file, describe_model

    click.echo(describe_file(Path(what)) if Path(what).exists() else describe_model(what, program, fused=fused))


@main.command()
def doctor() -> None:
    """Check this machine: instruction sets, weights, cache, and a kernel against its reference."""
    from sonant.cli.doctor import report

    lines, healthy = report(os.environ.get("SONANT_CACHE") or None)
    click.echo("\n".join(lines))
    sys.exit(0 if healthy else EXIT_FAILED)
