"""Stretches of one text that are read one after another: what one leaves to the next, its speed and the silence due."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sonant.options import SpeakOptions
from sonant.text.markdown import read_markdown
from sonant.text.markup import read_markup
from sonant.text.script import Script

_SOUNDING = re.compile(r"\w")


@dataclass(frozen=True)
class Stretch:
    """A stretch as a front end is to read it: a place in `text` and `shift` are a place in the whole.

    pause_s: silence before it. notes: what is left out of it, in words.
    """

    text: str
    shift: int
    pause_s: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Left:
    """What the stretches up to `end` leave. word_end: of their last word in the whole text, None when there is none.

    paused: a pause has been asked for behind that word. heading: it ends a heading.
    """

    end: int = 0
    word_end: int | None = None
    speed: float = 1.0
    paused: bool = False
    heading: bool = False


class Seams:
    """Goes along the stretches of a text. One that begins before the end of the last replaces what followed there."""

    def __init__(self, options: SpeakOptions) -> None:
        self._options = options
        self._left = [_Left()]

    def stretch(self, text: str, start: int, end: int) -> Stretch:
        """text[start:end]: a [speed …] before it is still in force, a blank line or a heading before it is a pause.

        Raises TextError for a tag that cannot be read.
        """
        while len(self._left) > 1 and self._left[-1].end > start:
            self._left.pop()
        before = self._left[-1]
        read = read_markdown if self._options.text_format == "markdown" else read_markup
        script = read(text[start:end], self._options.markup)
        pause_s = self._pause_s(before, script, text, start)
        self._left.append(_after(before, script, start, end))
        tag = "" if before.speed == 1.0 else f"[speed {_decimal(before.speed)}]\n"
        return Stretch(tag + text[start:end], start - len(tag), pause_s, script.notes)

    def _pause_s(self, before: _Left, script: Script, text: str, start: int) -> float:
        first = _SOUNDING.search(script.visible)
        if first is None or before.word_end is None or before.paused:
            return 0.0
        if any(cue.pause_s is not None and cue.at <= first.start() for cue in script.cues):
            return 0.0
        if before.heading:
            return self._options.heading_pause_s
        breaks = text.count("\n", before.word_end, start + script.span(*first.span())[0])
        return self._options.paragraph_pause_s if breaks > 1 else 0.0


def _after(before: _Left, script: Script, start: int, end: int) -> _Left:
    speed = next((cue.speed for cue in reversed(script.cues) if cue.speed is not None), before.speed)
    pauses = [cue.at for cue in script.cues if cue.pause_s is not None]
    last = max((match.end() for match in _SOUNDING.finditer(script.visible)), default=None)
    if last is None:
        return replace(before, end=end, speed=speed, paused=before.paused or bool(pauses))
    return _Left(
        end=end,
        word_end=start + script.span(last - 1, last)[1],
        speed=speed,
        paused=any(at >= last for at in pauses),
        heading=any(at >= last for at in script.heading_ends),
    )


def _decimal(speed: float) -> str:
    """As a tag writes it, without an exponent."""
    return f"{speed:.9f}".rstrip("0").rstrip(".")
