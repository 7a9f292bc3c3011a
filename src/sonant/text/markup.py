"""Marks of reading in a plain text: [pause 500ms], [break], [speed 1.2], [word](/phonemes/), and \\[ for a bracket.

Modes: auto reads an unknown tag as text, strict leaves it out with a note, off reads everything as text.
docs/markup.md is the page for readers.
"""

from __future__ import annotations

import re

from sonant.errors import TextError
from sonant.options import LONGEST_PAUSE_S, SPEED_RANGE
from sonant.text.script import Script, ScriptWriter

BREAK_S = 0.5
"""[break], and [pause] without a length."""

_MARK = re.compile(r"\\[\[\]\\]|\[(?P<inside>[^\[\]\n]{1,200})\](?:\(/(?P<phonemes>[^/\n]{0,400})/\))?")
_PAUSE = re.compile(r"(?:pause|break)(?:[\s:=]+(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(ms|s))?$", re.IGNORECASE)
_SPEED = re.compile(r"speed[\s:=]+(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})x?$", re.IGNORECASE)


def read_markup(text: str, mode: str = "auto") -> Script:
    """The Script of a plain text. Raises TextError for a pause or a speed out of range and for unknown phonemes."""
    if mode == "off" or "[" not in text:
        return Script(text, text)
    writer = ScriptWriter(text)
    at = 0
    for match in _MARK.finditer(text):
        writer.show(at, match.start())
        at = match.end()
        if match["inside"] is None:
            writer.show(match.start() + 1, at)
        elif match["phonemes"] is not None:
            writer.give(*match.span("inside"), match["phonemes"])
        elif not write_tag(writer, match["inside"]):
            is_link = text.startswith("(", at)
            if mode == "strict" and not is_link:
                drop(writer, match[0], text[at : at + 1])
            else:
                writer.show(match.start(), at)
    writer.show(at, len(text))
    return writer.script()


def write_tag(writer: ScriptWriter, inside: str) -> bool:
    """Write the cue that a tag is; False when it is no tag."""
    inside = inside.strip()
    if match := _PAUSE.match(inside):
        seconds = float(match[1]) * (0.001 if match[2].lower() == "ms" else 1) if match[1] else BREAK_S
        if seconds > LONGEST_PAUSE_S:
            raise TextError(f"[{inside}] is a pause of {seconds:g} s; at most {LONGEST_PAUSE_S:g} s is possible")
        writer.cue(pause_s=seconds)
        return True
    if match := _SPEED.match(inside):
        low, high = SPEED_RANGE
        if not low <= float(match[1]) <= high:
            raise TextError(f"[{inside}] is out of range; a speed is a number from {low:g} to {high:g}")
        writer.cue(speed=float(match[1]))
        return True
    return False


def drop(writer: ScriptWriter, tag: str, following: str) -> None:
    """Leave an unknown tag out, with a note; the words beside it do not grow together."""
    writer.notes.append(f"unknown tag {tag} left out")
    if following.isalnum():
        writer.space()
