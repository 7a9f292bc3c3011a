"""LRC, as music players show lyrics: a time for each line, and, in the enhanced form, one for each word."""

from __future__ import annotations

from collections.abc import Iterable

from sonant.captions.cues import Cue, line_text


def lrc(cues: Iterable[Cue], *, words: bool = True) -> str:
    """`[00:01.50]<00:01.50>It <00:01.72>cost <00:02.10>`: the last time of a line is where it ends.

    words: False gives plain lines, for players that do not know the enhanced form. Times are whole hundredths.
    """
    lines = []
    for cue in cues:
        text = line_text(cue.words)
        if words:
            text = _timed(cue)
        elif text.startswith("["):
            text = " " + text  # not another time
        lines.append(f"[{_clock(cue.start_ms)}]{text}\n")
    return "".join(lines)


def _timed(cue: Cue) -> str:
    spaces = [*(" " * w.spaced for w in cue.words[1:]), " "]
    timed = "".join(f"<{_clock(w.start_ms)}>{w.text}{s}" for w, s in zip(cue.words, spaces, strict=True))
    return f"{timed}<{_clock(cue.words[-1].end_ms)}>"


def _clock(ms: int) -> str:
    hundredths = ms // 10
    return f"{hundredths // 6000:02}:{hundredths // 100 % 60:02}.{hundredths % 100:02}"
