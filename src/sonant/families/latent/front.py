"""Text → chunks for Phonon and Pocket TTS: what the engine calls pieces.

reading.py (markup, Markdown) → respellings.py → normalize/ → prepare.py → tokenizer.py → chunks.py, with the place in
the original kept through all of them. A pause, another speed, a heading or a blank line ends a chunk.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sonant.families.latent.chunks import MAX_TOKENS, Prepared, WordFinder, cut, frame_cap, stretches
from sonant.families.latent.normalize import normalize
from sonant.families.latent.prepare import Rules, frames_after_eos
from sonant.families.latent.respellings import Respellings
from sonant.families.latent.tokenizer import Tokenizer
from sonant.families.latent.traced import Traced
from sonant.options import SpeakOptions
from sonant.text.cues import CueReader
from sonant.text.reading import AS_WRITTEN, Reading
from sonant.text.script import INNER_SPACE, Script
from sonant.text.segment import source_words
from sonant.text.spans import SourceWord, SpokenWord

_LOG = logging.getLogger("sonant.text")
_SOUNDS = "+"
"""In the place of phonemes, which these models do not have: this word is heard."""


@dataclass(frozen=True, slots=True)
class ChunkWord:
    """A source word: original[start:end] == text, and the tokens [token_start:token_end) that say it.

    The range is empty for a word that makes no sound. `normalized` is what is read for it.
    """

    text: str
    start: int
    end: int
    token_start: int
    token_end: int
    normalized: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """What the model says in one go: `ids` of `text`, made from original[start:end].

    frames_after_eos: how many frames follow the one at which the model ends. frame_cap: the most frames there may be.
    Exact silence goes before and after, and `speed` multiplies the speaker's. A word that goes on in the next chunk is
    listed in the first only. A text of pauses alone is one chunk without ids.
    """

    text: str
    ids: tuple[int, ...]
    words: tuple[ChunkWord, ...]
    start: int
    end: int
    paragraph_end: bool
    frames_after_eos: int = 0
    frame_cap: int = 0
    pause_before_s: float = 0.0
    pause_after_s: float = 0.0
    speed: float = 1.0


def reading_of(options: SpeakOptions) -> Reading:
    """How the caller wants a text read; the lexicon is not in it (`Respellings.load` reads that)."""
    return Reading(
        markup=options.markup,
        text_format=options.text_format,
        paragraph_pause_s=options.paragraph_pause_s,
        heading_pause_s=options.heading_pause_s,
    )


@dataclass(frozen=True, kw_only=True)
class FrontEnd:
    """The text side of one checkpoint.

    language: of the normalizer (en fr de es pt none), whose rewrites are default, all or none.
    """

    tokenizer: Tokenizer
    rules: Rules
    language: str = "none"
    rewrites: str = "default"
    max_tokens: int = MAX_TOKENS
    frame_rate_hz: float = 12.5

    def __post_init__(self) -> None:
        """Raises UnknownName for a language or rewrites that the normalizer does not have."""
        normalize(Traced.of(""), self.language, self.rewrites)

    def chunks(
        self, text: str, reading: Reading = AS_WRITTEN, respellings: Respellings | None = None
    ) -> Iterator[Chunk]:
        """The chunks of a text in order; nothing to say gives none. Markup is checked at once: TextError.

        Each paragraph is read when it is asked for.
        """
        script = reading.script(text)
        if script.given:
            names = ", ".join(repr(script.visible[g.start : g.end].replace(INNER_SPACE, " ")) for g in script.given[:5])
            _LOG.warning("phonemes of %s left out: this model reads letters", names)
        return _Reader(self, script, reading, respellings or Respellings()).chunks()

    def normalized(self, text: Traced) -> Traced:
        return normalize(text, self.language, self.rewrites)

    def sounds(self, word: str) -> bool:
        """Whether anything is heard of a word: a letter, a digit, or a sign that has a name."""
        return any(map(str.isalnum, word)) or any(map(str.isalnum, self.normalized(Traced.of(word)).text))


class _Reader:
    """Goes through one script. Words without sound go with the chunk before them, or the first one."""

    def __init__(self, front: FrontEnd, script: Script, reading: Reading, respellings: Respellings) -> None:
        self.front, self.script, self.respellings = front, script, respellings
        self.cues = CueReader(script, reading.paragraph_pause_s, reading.heading_pause_s)
        self.ready: Chunk | None = None
        self.silent: tuple[ChunkWord, ...] = ()
        self.pause_s = 0.0

    def chunks(self) -> Iterator[Chunk]:
        for block in self._blocks():
            words = tuple(SpokenWord(word, phonemes=_SOUNDS * self.front.sounds(word.text)) for word in block)
            first = 0
            for part in self.cues.cut(words, paragraph_end=True):
                last = first + len(part.words)
                self.pause_s += part.pause_before_s
                if any(word.phonemes for word in part.words):
                    yield from self._speak(block[first:last], part.paragraph_end, part.speed)
                else:
                    self._add_silent(block[first:last])
                first = last
        self.pause_s += sum(part.pause_before_s for part in self.cues.rest())
        yield from self._last()

    def _blocks(self) -> Iterator[list[SourceWord]]:
        """The visible words up to a blank line or the end of a heading."""
        block: list[SourceWord] = []
        for word in source_words(self.script.visible):
            if block:
                end = block[-1].end
                if end in self.script.heading_ends or self.script.visible.count("\n", end, word.start) > 1:
                    yield block
                    block = []
            block.append(word)
        if block:
            yield block

    def _speak(self, words: Sequence[SourceWord], paragraph_end: bool, speed: float) -> Iterator[Chunk]:
        """The chunks of words that stand together, but for the last, which waits for silent words behind it."""
        start = words[0].start
        visible = self.script.visible[start : words[-1].end].replace(INNER_SPACE, " ")
        parts = (Traced.of(visible[first:last], start + first) for first, last in stretches(visible))
        text = (self.front.normalized(self.respellings.apply(part)) for part in parts)
        finder = WordFinder([(word.start, word.end) for word in words])
        spoken_any = False
        for prepared in cut(text, self.front.tokenizer, self.front.rules, self.front.max_tokens):
            if any(map(str.isalnum, prepared.text.text)):
                if self.ready:
                    yield self.ready
                self.ready = self._chunk(prepared, finder, words, speed)
                self.pause_s, self.silent, spoken_any = 0.0, (), True
        self._add_silent([words[i] for i in finder.rest()])
        if self.ready and spoken_any and paragraph_end:
            self.ready = replace(self.ready, paragraph_end=True)

    def _chunk(self, prepared: Prepared, finder: WordFinder, words: Sequence[SourceWord], speed: float) -> Chunk:
        encoding, ids = prepared.encoding, prepared.encoding.ids
        found = []
        for own in finder.find(prepared):
            said = encoding.text(own.start, own.end).text.strip()
            found.append(self._word(words[own.word], own.start, own.end, said))
        heard = [span for span in encoding.spans if span[0] < span[1]]
        place = SourceWord("", min(s for s, _ in heard), max(e for _, e in heard))
        spoken = self.script.place(place)
        return Chunk(
            prepared.text.text, ids, (*self.silent, *found), spoken.start, spoken.end, False,
            frames_after_eos(prepared.text.text), frame_cap(len(ids), self.front.frame_rate_hz), self.pause_s,
            speed=speed,
        )  # fmt: skip

    def _word(self, word: SourceWord, token_start: int, token_end: int, said: str) -> ChunkWord:
        placed = self.script.place(word)
        return ChunkWord(placed.text, placed.start, placed.end, token_start, token_end, said)

    def _add_silent(self, words: Sequence[SourceWord]) -> None:
        if self.ready:
            at = len(self.ready.ids)
            own = tuple(self._word(word, at, at, "") for word in words)
            end = own[-1].end if own else self.ready.end
            self.ready = replace(self.ready, words=self.ready.words + own, end=end)
        else:
            self.silent += tuple(self._word(word, 0, 0, "") for word in words)

    def _last(self) -> Iterator[Chunk]:
        if self.ready:
            yield replace(self.ready, pause_after_s=self.pause_s)
        elif self.pause_s:
            start, end = (self.silent[0].start, self.silent[-1].end) if self.silent else (0, 0)
            yield Chunk("", (), self.silent, start, end, True, pause_before_s=self.pause_s)
