"""Praat's TextGrid, in its long text form: tiers of sentences, words and phonemes; gaps are empty intervals."""

from __future__ import annotations

from collections.abc import Iterable

from sonant.captions.cues import Cue, line_text


def textgrid(sentences: Iterable[Cue], words: Iterable[Cue], duration_s: float, phonemes: Iterable[Cue] = ()) -> str:
    """Intervals that cover 0 to the duration without gaps or overlaps; a word without sound shares its neighbour's.

    A tier of phonemes is written where there are any.
    """
    tiers = {"sentences": list(sentences), "words": list(words), "phonemes": list(phonemes)}
    if not tiers["phonemes"]:
        del tiers["phonemes"]
    # Praat refuses an empty time range; an empty speech is one millisecond of nothing.
    end_s = max([duration_s, 0.001, *(cues[-1].start_ms / 1000 + 0.001 for cues in tiers.values() if cues)])
    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        f"xmax = {end_s:.6f}",
        "tiers? <exists>",
        f"size = {len(tiers)}",
        "item []:",
    ]
    for n, (name, cues) in enumerate(tiers.items(), 1):
        lines += [f"    item [{n}]:", *("        " + line for line in _tier(name, cues, end_s))]
    return "\n".join(lines) + "\n"


def _tier(name: str, cues: list[Cue], end_s: float) -> list[str]:
    intervals = _intervals(cues, end_s)
    lines = [
        'class = "IntervalTier"',
        f'name = "{name}"',
        "xmin = 0",
        f"xmax = {end_s:.6f}",
        f"intervals: size = {len(intervals)}",
    ]
    for n, (start, end, text) in enumerate(intervals, 1):
        lines += [
            f"intervals [{n}]:",
            f"    xmin = {start:.6f}",
            f"    xmax = {end:.6f}",
            '    text = "{}"'.format(text.replace('"', '""')),
        ]
    return lines


def _intervals(cues: list[Cue], end_s: float) -> list[tuple[float, float, str]]:
    result = []
    now = 0.0
    for cue in cues:
        start, end = cue.start_ms / 1000, min(cue.end_ms / 1000, end_s)
        if start > now:
            result.append((now, start, ""))
        result.append((start, end, line_text(cue.words)))
        now = end
    if now < end_s:
        result.append((now, end_s, ""))
    return result
