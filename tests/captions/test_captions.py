"""Every format, read back: valid, times growing, every word once and in order."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import (
    Read,
    read_lrc,
    read_srt,
    read_textgrid,
    read_vtt,
    speeches,
    squeezed,
    vtt_plain,
    vtt_stamps,
)

from sonant.captions.cues import CueOptions, sentence_cues
from sonant.captions.render import render
from sonant.errors import InputError
from sonant.types import PhonemeTiming, Speech, WordTiming

MS = 0.001


def speech(*words: tuple[str, float, float], text: str | None = None, duration_s: float | None = None) -> Speech:
    timings, at = [], 0
    source = text or " ".join(w[0] for w in words)
    for word, start, end in words:
        at = source.index(word, at)
        timings.append(WordTiming(word, start, end, at, at + len(word)))
        at += len(word)
    length = round(1000 * (duration_s or (words[-1][2] if words else 0)))
    return Speech(np.zeros(length, np.float32), 1000, tuple(timings), "duration", source)


TWO = speech(
    ("It", 0.1, 0.3), ("cost", 0.3, 0.8), ("$5.", 0.8, 1.5), ('"Why?"', 2.0, 2.5), ("R&D", 3.0, 3.3), duration_s=4.0
)


def all_words(s: Speech) -> str:
    return squeezed("".join(w.text for w in s.words))


def check_order(cues: list[Read], s: Speech) -> None:
    for cue in cues:
        assert cue.end_s - cue.start_s >= MS / 2
    for a, b in pairwise(cues):
        assert a.end_s <= b.start_s + 1e-9
    if cues and any(w.end_s - w.start_s > 2 * MS for w in s.words):
        assert cues[-1].end_s <= s.duration_s + MS


@given(s=speeches(), words=st.booleans(), max_chars=st.integers(1, 50), max_lines=st.integers(1, 3))
def test_srt_is_valid_and_has_every_word_once(s: Speech, words: bool, max_chars: int, max_lines: int) -> None:
    cues = read_srt(s.to_srt(words=words, max_chars=max_chars, max_lines=max_lines))
    check_order(cues, s)
    assert squeezed("".join(c.text for c in cues)) == all_words(s)


@given(s=speeches(), karaoke=st.booleans())
def test_vtt_is_valid_and_has_every_word_once(s: Speech, karaoke: bool) -> None:
    cues = read_vtt(s.to_vtt(karaoke=karaoke))
    check_order(cues, s)
    assert squeezed("".join(vtt_plain(c.text) for c in cues)) == all_words(s)
    for cue in cues:
        stamps = vtt_stamps(cue.text)
        assert karaoke or not stamps
        assert all(a < b for a, b in pairwise([cue.start_s, *stamps, cue.end_s]))


@given(s=speeches())
def test_lrc_times_grow(s: Speech) -> None:
    lines = read_lrc(s.to_lrc())
    times = [t for start, words in lines for t in (start, *(time for time, _ in words))]
    assert times == sorted(times)
    if "<" not in s.text + all_words(s):
        assert squeezed("".join(w for _, words in lines for _, w in words)) == all_words(s)
    assert len(read_lrc(s.to_lrc(words=False))) == len(lines)


@given(s=speeches())
def test_textgrid_tiers_cover_the_whole_without_gaps(s: Speech) -> None:
    end_s, tiers = read_textgrid(s.to_textgrid())
    assert end_s == pytest.approx(max(s.duration_s, 0.001), abs=0.0011)
    assert list(tiers) == ["sentences", "words"]
    for intervals in tiers.values():
        assert intervals[0].start_s == 0
        assert intervals[-1].end_s == end_s
        assert all(a.end_s == b.start_s for a, b in pairwise(intervals))
        assert all(i.end_s > i.start_s for i in intervals)
        assert squeezed("".join(i.text for i in intervals)) == all_words(s)


@given(s=speeches(), max_chars=st.integers(5, 60), max_lines=st.integers(1, 3), max_duration_s=st.floats(0.1, 9))
def test_cues_keep_to_their_size(s: Speech, max_chars: int, max_lines: int, max_duration_s: float) -> None:
    audible = [w for w in s.words if w.end_s - w.start_s > 2 * MS]
    options = CueOptions(max_chars=max_chars, max_lines=max_lines, max_duration_s=max_duration_s, min_duration_s=0.1)
    for cue in sentence_cues(audible, s.duration_s, options, s.text or None):
        if len(cue.words) == 1:
            continue
        assert len(cue.lines) <= max_lines
        assert cue.words[-1].end_ms - cue.start_ms <= max_duration_s * 1000
        for line in cue.text.split("\n"):
            assert len(line) <= max_chars or " " not in line


def test_srt_of_two_sentences() -> None:
    assert TWO.to_srt() == (
        "1\n00:00:00,100 --> 00:00:01,500\nIt cost $5.\n\n"
        '2\n00:00:02,000 --> 00:00:03,000\n"Why?"\n\n'
        "3\n00:00:03,000 --> 00:00:04,000\nR&D\n"
    )


def test_srt_word_cues() -> None:
    cues = read_srt(TWO.to_srt(words=True))
    assert [(c.start_s, c.end_s, c.text) for c in cues][:2] == [(0.1, 0.3, "It"), (0.3, 0.8, "cost")]
    assert len(cues) == 5


def test_vtt_karaoke() -> None:
    assert TWO.to_vtt(karaoke=True).split("\n\n")[1] == (
        "00:00:00.100 --> 00:00:01.500\nIt<00:00:00.300> cost<00:00:00.800> $5."
    )
    assert "R&amp;D" in TWO.to_vtt()


def test_lrc() -> None:
    assert TWO.to_lrc().splitlines()[0] == "[00:00.10]<00:00.10>It <00:00.30>cost <00:00.80>$5. <00:01.50>"
    assert TWO.to_lrc(words=False).splitlines()[1] == '[00:02.00]"Why?"'
    long = speech(("a", 6000.5, 6001.0))
    assert long.to_lrc() == "[100:00.50]<100:00.50>a <100:01.00>\n"
    assert long.to_srt().split("\n")[1] == "01:40:00,500 --> 01:40:01,000"


def test_textgrid() -> None:
    end_s, tiers = read_textgrid(TWO.to_textgrid())
    assert end_s == 4.0
    assert [i.text for i in tiers["words"]] == ["", "It", "cost", "$5.", "", '"Why?"', "", "R&D", ""]
    assert [i.text for i in tiers["sentences"]] == ["", "It cost $5.", "", '"Why?"', "", "R&D", ""]


def test_sentences_are_those_of_the_text() -> None:
    """Abbreviations do not end one, a new paragraph does, whatever its marks."""
    s = speech(
        *((w, i, i + 0.9) for i, w in enumerate(["Dr.", "Smith", "came.", "A", "heading", "and", "more"])),
        text="Dr. Smith came.\n\nA heading\n\nand more",
    )
    assert [c.text for c in read_srt(s.to_srt())] == ["Dr. Smith came.", "A heading", "and more"]


def test_long_sentences_are_cut_at_commas_first() -> None:
    text = "when the very long first half of it is done, the second half that goes on and on for a while is next."
    s = speech(*((w, i / 4, i / 4 + 0.25) for i, w in enumerate(text.split())))
    cues = read_srt(s.to_srt(max_chars=38))
    assert [c.text.replace("\n", " ")[-5:] for c in cues] == ["done,", "next."]
    assert all(len(line) <= 38 for c in cues for line in c.text.split("\n"))


def test_words_that_touch_in_the_text_touch_in_captions() -> None:
    s = speech(("今日", 0, 0.5), ("は", 0.5, 0.7), ("晴れ。", 0.7, 1.2), text="今日は晴れ。")
    assert [c.text for c in read_srt(s.to_srt())] == ["今日は晴れ。"]
    assert s.to_lrc().startswith("[00:00.00]<00:00.00>今日<00:00.50>は<")


def test_markup_between_words_is_not_a_space() -> None:
    s = speech(("Un", 0, 0.5), ("real.", 0.5, 0.7), ("Yes", 1, 1.2), text="Un**real.** [pause 300ms] Yes")
    assert [c.text for c in read_srt(s.to_srt())] == ["Unreal.", "Yes"]


def test_a_silent_word_shares_the_cue_of_its_neighbour() -> None:
    s = speech(("—", 0, 0), ("Hi", 0, 0.5), ("—", 0.5, 0.5), ("you", 0.5, 1.0))
    assert [c.text for c in read_srt(s.to_srt(words=True))] == ["— Hi —", "you"]
    assert [i.text for i in read_textgrid(s.to_textgrid())[1]["words"]] == ["— Hi —", "you"]


def test_nothing_said_is_a_valid_empty_file() -> None:
    empty = Speech(np.zeros(0, np.float32), 1000, (), "duration")
    assert empty.to_srt() == empty.to_lrc() == ""
    assert empty.to_vtt() == "WEBVTT\n"
    assert [i.text for i in read_textgrid(empty.to_textgrid())[1]["words"]] == [""]


def test_json_matches_its_schema() -> None:
    found = json.loads(TWO.to_json())
    assert list(found) == ["sample_rate", "duration_s", "word_source", "words"]
    word = {"text": "$5.", "start_s": 0.8, "end_s": 1.5, "char_start": 8, "char_end": 11, "phonemes": []}
    assert found["words"][2] == word


def test_textgrid_has_a_tier_of_phonemes_where_they_are_known() -> None:
    sounds = (PhonemeTiming("h", 0.1, 0.2), PhonemeTiming("ˈI", 0.2, 0.5))
    speech = Speech(np.zeros(600, np.float32), 1000, (WordTiming("Hi.", 0.1, 0.5, 0, 3, sounds),), "duration", "Hi.")
    grid = speech.to_textgrid()
    assert 'name = "phonemes"' in grid
    assert 'text = "ˈI"' in grid
    assert 'name = "phonemes"' not in TWO.to_textgrid()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_chars": 0}, "max_chars is 0; wanted a whole number, 1 or more"),
        ({"max_lines": 1.5}, r"max_lines is 1\.5"),
        ({"max_duration_s": float("nan")}, "max_duration_s is nan; wanted seconds, 0 or more"),
        ({"max_duration_s": -1}, "max_duration_s is -1"),
    ],
)
def test_wrong_options_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TWO.to_srt(**options)  # type: ignore[arg-type]


def test_unknown_caption_format() -> None:
    with pytest.raises(InputError, match="unknown caption format 'srtt'; did you mean 'srt'"):
        render("srtt", TWO.words, 4.0)
