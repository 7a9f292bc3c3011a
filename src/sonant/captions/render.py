"""From the words of a speech to a caption file by name."""

from __future__ import annotations

from collections.abc import Sequence

from sonant.captions.cues import WHOLE, CueOptions, phoneme_cues, sentence_cues, word_cues
from sonant.captions.lrc import lrc
from sonant.captions.subtitles import srt, vtt
from sonant.captions.textgrid import textgrid
from sonant.errors import UnknownName
from sonant.types import WordTiming

FORMATS = ("srt", "vtt", "lrc", "textgrid")
MEDIA_TYPES = {
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
    "lrc": "text/plain",
    "textgrid": "text/plain",
}


def render(
    name: str,
    words: Sequence[WordTiming],
    duration_s: float,
    *,
    source: str | None = None,
    options: CueOptions | None = None,
    by_word: bool = False,
    karaoke: bool = False,
) -> str:
    """The caption file `name`: srt, vtt, lrc or textgrid.

    source: the text that the spans of the words point into. by_word: a cue for each word (srt, vtt) or a time for each
    word (lrc). karaoke: vtt with the times of the words inside its cues. Raises UnknownName.
    """
    if name not in FORMATS:
        raise UnknownName("caption format", name, FORMATS)
    if name == "textgrid":
        sentences, phonemes = sentence_cues(words, duration_s, WHOLE, source), phoneme_cues(words, duration_s)
        return textgrid(sentences, word_cues(words, duration_s), duration_s, phonemes)
    if by_word and name != "lrc":
        cues = word_cues(words, duration_s)
    else:
        cues = sentence_cues(words, duration_s, options or CueOptions(), source)
    if name == "lrc":
        return lrc(cues, words=by_word)
    return srt(cues) if name == "srt" else vtt(cues, karaoke=karaoke)
