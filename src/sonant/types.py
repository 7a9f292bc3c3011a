"""Values that the public API hands out: speech, chunks, word times, voices."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class PhonemeTiming:
    """One phoneme, a symbol of the model's alphabet with its stress mark before it, and when it sounds, in seconds."""

    symbol: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class WordTiming:
    """One word of the original text and when it sounds.

    `text` is the word as written, `text[char_start:char_end]` of what was spoken from. Times are seconds in the
    delivered samples; a word that makes no sound (an emoji, a lone dash) has start_s == end_s.
    """

    text: str
    start_s: float
    end_s: float
    char_start: int
    char_end: int
    phonemes: tuple[PhonemeTiming, ...] = ()
    """What it sounds as, from its start to its end without gaps; empty where the model does not tell."""

    def shifted(self, by_s: float) -> WordTiming:
        """The same word, `by_s` seconds later."""
        moved = tuple(replace(p, start_s=p.start_s + by_s, end_s=p.end_s + by_s) for p in self.phonemes)
        return replace(self, start_s=self.start_s + by_s, end_s=self.end_s + by_s, phonemes=moved)


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A stretch of a stream: mono float32 `samples`, the words that sound in it (times from the start of the
    stream)."""

    samples: np.ndarray
    sample_rate: int
    start_s: float
    words: tuple[WordTiming, ...]


@dataclass(frozen=True)
class Speech:
    """A whole utterance: mono float32 `samples` [S] in −1…1, and its words in order."""

    samples: np.ndarray = field(repr=False)
    sample_rate: int
    words: tuple[WordTiming, ...]
    word_source: str
    """Where the word times come from: `duration` (the model's own durations), `align` (another voice's, laid over)."""
    text: str = field(default="", repr=False)
    """What was spoken; `text[word.char_start:word.char_end] == word.text`. Captions are cut at its sentences."""

    word_match: float | None = None
    """Of an aligned recording: how well the text fits it, from 0 to 1; docs/align.md says what to expect."""

    @property
    def duration_s(self) -> float:
        """Seconds of its samples."""
        return len(self.samples) / self.sample_rate

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        encoding: str | None = None,
        sample_rate: int | None = None,
        loudness_lufs: float | None = None,
        peak_dbfs: float | None = None,
    ) -> Path:
        """Write an audio file; its suffix, or `format`, says which: wav, pcm, flac, ogg (Vorbis), opus, mp3.

        encoding: for wav and pcm int16 (default), float32, mulaw or alaw; for flac int16 or int24. sample_rate: Hz, by
        default the speech's own (8000 for mulaw and alaw). loudness_lufs: integrated loudness (ITU-R BS.1770).
        peak_dbfs: no sample beyond it. Raises UnknownName (format, encoding), InputError (option out of range, cannot
        write), MissingExtra (every format but wav and pcm, and every other rate, need `sonant[audio]`).
        """
        from sonant.audio.writer import save_audio

        return save_audio(
            path,
            self.samples,
            self.sample_rate,
            format=format,
            encoding=encoding,
            sample_rate=sample_rate,
            loudness_lufs=loudness_lufs,
            peak_dbfs=peak_dbfs,
        )

    def to_bytes(
        self,
        format: str = "wav",
        *,
        encoding: str | None = None,
        sample_rate: int | None = None,
        loudness_lufs: float | None = None,
        peak_dbfs: float | None = None,
    ) -> bytes:
        """The same file in memory; options and errors as for `save`."""
        from sonant.audio.formats import audio_spec
        from sonant.audio.writer import encode_audio

        spec = audio_spec(None, source_rate=self.sample_rate, format=format, encoding=encoding, sample_rate=sample_rate)
        return encode_audio(self.samples, self.sample_rate, spec, loudness_lufs=loudness_lufs, peak_dbfs=peak_dbfs)

    def to_srt(
        self, *, words: bool = False, max_chars: int = 42, max_lines: int = 2, max_duration_s: float = 7.0
    ) -> str:
        """SubRip: cues cut at the ends of sentences, and where they would exceed `max_lines` lines of `max_chars` or
        `max_duration_s`. words: a cue for each word instead. Raises InputError (option out of range)."""
        return self._captions("srt", words, False, max_chars, max_lines, max_duration_s)

    def to_vtt(
        self,
        *,
        karaoke: bool = False,
        words: bool = False,
        max_chars: int = 42,
        max_lines: int = 2,
        max_duration_s: float = 7.0,
    ) -> str:
        """WebVTT: cues as in `to_srt`. karaoke: with the time of every word inside, as `<00:00:01.500>`."""
        return self._captions("vtt", words, karaoke, max_chars, max_lines, max_duration_s)

    def to_lrc(self, *, words: bool = True, max_chars: int = 84, max_duration_s: float = 7.0) -> str:
        """LRC: a line for each cue. words: the enhanced form, with the time of every word."""
        return self._captions("lrc", words, False, max_chars, 1, max_duration_s)

    def to_textgrid(self) -> str:
        """Praat's TextGrid: tiers of sentences, words and, where known, phonemes; gaps are empty intervals."""
        from sonant.captions.render import render

        return render("textgrid", self.words, self.duration_s, source=self.text or None)

    def _captions(
        self, name: str, words: bool, karaoke: bool, max_chars: int, max_lines: int, max_duration_s: float
    ) -> str:
        from sonant.captions.cues import CueOptions
        from sonant.captions.render import render

        options = CueOptions(max_chars=max_chars, max_lines=max_lines, max_duration_s=max_duration_s)
        return render(
            name,
            self.words,
            self.duration_s,
            source=self.text or None,
            options=options,
            by_word=words,
            karaoke=karaoke,
        )

    def to_json(self) -> str:
        """Sample rate, duration and the words, as one JSON object; docs/captions.md has its schema."""
        return words_json(self.words, self.sample_rate, self.duration_s, self.word_source, self.word_match)


def words_json(
    words: Iterable[WordTiming],
    sample_rate: int,
    duration_s: float,
    word_source: str,
    word_match: float | None = None,
) -> str:
    """What `Speech.to_json` gives, for a stream whose samples were not kept."""
    match = {} if word_match is None else {"word_match": round(word_match, 3)}
    return json.dumps(
        {
            "sample_rate": sample_rate,
            "duration_s": round(duration_s, 6),
            "word_source": word_source,
            **match,
            "words": [asdict(w) for w in words],
        },
        ensure_ascii=False,
        indent=1,
    )


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A voice that a model has by name. `language` is BCP-47, `gender` female or male; None where not known."""

    name: str
    language: str | None
    gender: str | None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a family can do, declared by the family."""

    languages: tuple[str, ...]
    named_voices: bool
    voice_blending: bool
    cloning: bool
    speed: bool
    streaming_grain: str
    """The smallest stretch that is emitted at once: `piece` or `frame`."""
    word_source: str
    licence: str
    temperature: bool = False
    """Its noise can be turned up and down."""
    guidance: bool = False
    """It can be pushed away from speech without voice and text."""
