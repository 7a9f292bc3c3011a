"""SubRip (.srt) and WebVTT (.vtt)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sonant.captions.cues import Cue, Timed


def srt(cues: Iterable[Cue]) -> str:
    """Numbered cues, times as 00:00:01,500, a blank line between; "" for none."""
    return "\n".join(
        f"{n}\n{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}\n{cue.text}\n" for n, cue in enumerate(cues, 1)
    )


def vtt(cues: Iterable[Cue], *, karaoke: bool = False) -> str:
    """karaoke: the time of every word is in the cue, as `<00:00:01.500>`, for players that colour what was said.

    The first word of a cue begins with it, and a word that begins no later than the one before has no time of its own:
    WebVTT wants them growing, inside the cue.
    """
    parts = ["WEBVTT\n"]
    for cue in cues:
        text = _karaoke(cue) if karaoke else _escaped(cue.text)
        parts.append(f"{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}\n{text}\n")
    return "\n".join(parts)


def _karaoke(cue: Cue) -> str:
    now = cue.start_ms
    lines = []
    for line in cue.lines:
        lines.append("")
        for i, word in enumerate(line):
            if now < word.start_ms < cue.end_ms:
                lines[-1] += f"<{_clock(word.start_ms, '.')}>"
                now = word.start_ms
            lines[-1] += _word(line, i)
    return "\n".join(lines)


def _word(line: Sequence[Timed], i: int) -> str:
    return " " * (line[i].spaced and i > 0) + _escaped(line[i].text)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(ms: int, point: str) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"
