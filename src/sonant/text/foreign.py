"""Languages whose sounds come from optional packages: es fr-FR it pt-BR hi (espeak-ng), ja and zh (misaki's parts).

The same steps as english.py, with the marks, pauses, given phonemes and user words of any text. Nothing is imported
before a text in such a language is read; without the package that is a MissingExtra.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from sonant.errors import UnknownName
from sonant.text.cues import CueReader
from sonant.text.lexicon_file import UserLexicon
from sonant.text.opening import open_short
from sonant.text.pieces import Piece, SpokenSentence, pack
from sonant.text.reading import AS_WRITTEN, Reading
from sonant.text.script import ALPHABET, Given, Script
from sonant.text.segment import sentences
from sonant.text.spans import SourceWord, SpokenWord

ESPEAK = ("es", "fr-FR", "it", "pt-BR", "hi")
LANGUAGES = (*ESPEAK, "ja", "zh")
LIMIT = 510
_MARKS = frozenset(';:,.!?—…"()“” ')
_ENDS = frozenset(".!?")
_LONGEST_SENTENCE = 60


class Speaker(Protocol):
    """What a language brings: its words, if spaces do not part them, and the sounds of a row of words."""

    def split(self, word: SourceWord) -> Sequence[SourceWord]:
        """The words that one stretch without spaces is."""

    def say(self, words: Sequence[str]) -> Sequence[str]:
        """The sound of each word, its marks included; symbols that no voice knows are dropped by the caller."""


def iter_pieces(
    text: str, *, language: str, limit: int = LIMIT, reading: Reading = AS_WRITTEN, first_piece: str = "full"
) -> Iterator[Piece]:
    """The pieces of a text, as english.iter_pieces. Raises UnknownName, MissingExtra, TextError."""
    speaker = _speaker(language)
    script = reading.script(text)
    spoken = _spoken(script, speaker, reading)
    return pack(open_short(spoken) if first_piece == "short" else spoken, limit)


@lru_cache(maxsize=len(LANGUAGES))
def _speaker(language: str) -> Speaker:
    if language in ESPEAK:
        from sonant.text.phonemize.espeak import EspeakSpeaker

        return EspeakSpeaker(language)
    if language == "zh":
        from sonant.text.phonemize.zh import ChineseSpeaker

        return ChineseSpeaker()
    if language == "ja":
        from sonant.text.phonemize.ja import JapaneseSpeaker

        return JapaneseSpeaker()
    raise UnknownName("language", language, LANGUAGES)


def _spoken(script: Script, speaker: Speaker, reading: Reading) -> Iterator[SpokenSentence]:
    cues = CueReader(script, reading.paragraph_pause_s, reading.heading_pause_s)
    given = {index: stretch for stretch in script.given for index in range(stretch.start, stretch.end)}
    for sentence in sentences(script.visible):
        words: list[SourceWord] = []
        for word in sentence.words:
            words += [word] if word.start in given or word.end - 1 in given else speaker.split(word)
        spoken = _say(words, speaker, given, reading.lexicon)
        for part, is_last in _in_sentences(spoken):
            yield from cues.cut(part, paragraph_end=is_last and sentence.paragraph_end)
    yield from cues.rest()


def _say(
    words: Sequence[SourceWord], speaker: Speaker, given: dict[int, Given], lexicon: UserLexicon | None
) -> list[SpokenWord]:
    """Rows of ordinary words are said together; between them stand those whose sound is given."""
    sounds: list[str] = []
    row: list[str] = []
    for word in words:
        own = _own_sound(word, given, lexicon)
        if own is None:
            row.append(word.text)
            continue
        sounds += [*speaker.say(row), own]
        row = []
    sounds += speaker.say(row)
    return [_taken_apart(word, sound) for word, sound in zip(words, sounds, strict=True)]


def _own_sound(word: SourceWord, given: dict[int, Given], lexicon: UserLexicon | None) -> str | None:
    stretch = next((given[at] for at in range(word.start, word.end) if at in given), None)
    if stretch:
        before, after = word.text[: stretch.start - word.start], word.text[stretch.end - word.start :]
        return _only_marks(before) + stretch.phonemes + _only_marks(after)
    if not lexicon:
        return None
    core = word.text.strip("¿¡«»‘’'*_[]" + "".join(_MARKS))
    found = lexicon.get(core) if core else None
    if found is None or not found.phonemes:
        return None
    before, _, after = word.text.partition(core)
    return _only_marks(before) + found.phonemes + _only_marks(after)


def _only_marks(text: str) -> str:
    return "".join(letter for letter in text if letter in _MARKS)


def _taken_apart(word: SourceWord, sound: str) -> SpokenWord:
    """Marks before the first sound lead, marks behind the last one close."""
    sound = " ".join("".join(letter for letter in sound if letter in ALPHABET).split())
    start, end = 0, len(sound)
    while start < end and sound[start] in _MARKS:
        start += 1
    while end > start and sound[end - 1] in _MARKS:
        end -= 1
    lead, body, tail = sound[:start].strip(), sound[start:end], sound[end:].strip()
    return SpokenWord(word, lead.replace(" ", ""), body, tail.replace(" ", ""), word.text)


def _in_sentences(words: list[SpokenWord]) -> Iterator[tuple[tuple[SpokenWord, ...], bool]]:
    """Where no spaces part the words, a paragraph comes as one: cut behind . ! ? and, at the latest, in time."""
    part: list[SpokenWord] = []
    for i, word in enumerate(words):
        part.append(word)
        ended = not _ENDS.isdisjoint(word.tail) or (len(part) >= _LONGEST_SENTENCE and bool(word.tail))
        if i + 1 == len(words) or ended:
            yield tuple(part), i + 1 == len(words)
            part = []
