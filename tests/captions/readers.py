"""Strict little readers of the caption formats, written from their descriptions, and speeches to caption."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from sonant.types import Speech, WordTiming

RATE = 1000


@dataclass
class Read:
    start_s: float
    end_s: float
    text: str


def seconds(clock: str) -> float:
    hours, minutes, rest = clock.replace(",", ".").split(":")
    assert int(minutes) < 60
    assert float(rest) < 60
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def read_srt(text: str) -> list[Read]:
    cues = []
    for n, block in enumerate(filter(None, re.split(r"\n\n", text.rstrip("\n"))), 1):
        number, times, *lines = block.split("\n")
        assert number == str(n)
        assert lines
        found = re.fullmatch(r"(\d\d+:\d\d:\d\d,\d{3}) --> (\d\d+:\d\d:\d\d,\d{3})", times)
        assert found
        cues.append(Read(seconds(found[1]), seconds(found[2]), "\n".join(lines)))
    return cues


def read_vtt(text: str) -> list[Read]:
    head, *blocks = re.split(r"\n\n", text.rstrip("\n"))
    assert head == "WEBVTT"
    cues = []
    for block in blocks:
        times, *lines = block.split("\n")
        found = re.fullmatch(r"(\d\d+:\d\d:\d\d\.\d{3}) --> (\d\d+:\d\d:\d\d\.\d{3})", times)
        assert found
        assert lines
        assert not any("-->" in line for line in lines)
        cues.append(Read(seconds(found[1]), seconds(found[2]), "\n".join(lines)))
    return cues


def vtt_plain(text: str) -> str:
    assert re.sub(r"&(amp|lt|gt);|[^&<>]|<\d\d+:\d\d:\d\d\.\d{3}>", "", text, flags=re.DOTALL) == ""
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def vtt_stamps(text: str) -> list[float]:
    return [seconds(stamp) for stamp in re.findall(r"<([^>]*)>", text)]


def read_lrc(text: str) -> list[tuple[float, list[tuple[float, str]]]]:
    """Start of each line, and (time, word) of the enhanced form; the last word of a line is ""."""
    lines = []
    for line in text.splitlines():
        start = re.match(r"\[(\d\d+):(\d\d\.\d\d)\]", line)
        assert start
        rest = line[start.end() :]
        words = [
            (int(m[1]) * 60 + float(m[2]), m[3].strip())
            for m in re.finditer(r"<(\d\d+):(\d\d\.\d\d)>(.*?)(?=<\d\d+:\d\d\.\d\d>|$)", rest)
        ]
        lines.append((int(start[1]) * 60 + float(start[2]), words))
    return lines


def read_textgrid(text: str) -> tuple[float, dict[str, list[Read]]]:
    lines = iter(text.split("\n"))

    def field(name: str) -> str:
        line = next(lines).strip()
        assert line.startswith(name), (line, name)
        return line[len(name) :].strip(" =:")

    assert [next(lines) for _ in range(3)] == ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    assert float(field("xmin")) == 0
    end_s = float(field("xmax"))
    assert next(lines) == "tiers? <exists>"
    count = int(field("size"))
    assert next(lines) == "item []:"
    tiers = {}
    for n in range(1, count + 1):
        field(f"item [{n}]")
        assert field("class") == '"IntervalTier"'
        name = field("name").strip('"')
        assert (float(field("xmin")), float(field("xmax"))) == (0, end_s)
        intervals = []
        for k in range(1, int(field("intervals: size")) + 1):
            field(f"intervals [{k}]")
            start, end, quoted = float(field("xmin")), float(field("xmax")), field("text")
            assert quoted[0] == quoted[-1] == '"'
            assert '"' not in quoted[1:-1].replace('""', "")
            intervals.append(Read(start, end, quoted[1:-1].replace('""', '"')))
        tiers[name] = intervals
    assert list(lines) == [""]
    return end_s, tiers


_LETTERS = st.sampled_from(list("abcXYZ019.,!?;:—'\"&<>[]-|éß語。…"))
_WORD = st.text(_LETTERS, min_size=1, max_size=60) | st.sampled_from(["Dr.", "end.", "and", "—", "-->", "<b>", "&amp;"])
_SPACE = st.sampled_from([" ", " ", " ", "", "\n", "\n\n", "  "])
_LENGTH = st.just(0.0) | st.floats(0, 3, width=32)


@st.composite
def speeches(draw: st.DrawFn) -> Speech:
    """Any words and spaces, any times that a Speech may have, silent words and long pauses included."""
    now, text, words = draw(_LENGTH), "", []
    for word in draw(st.lists(_WORD, max_size=30)):
        length = draw(_LENGTH)
        words.append(WordTiming(word, now, now + length, len(text), len(text) + len(word)))
        text += word + draw(_SPACE)
        now += length + draw(_LENGTH)
    samples = np.zeros(int(np.ceil(now * RATE)), np.float32)
    return Speech(samples, RATE, tuple(words), "duration", text if draw(st.booleans()) else "")


def squeezed(text: str) -> str:
    """What is left of a text when only its letters count."""
    return "".join(text.split())
