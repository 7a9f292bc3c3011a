"""Values that carry text with its place in the original: nothing here knows a language."""

from __future__ import annotations

from dataclasses import dataclass, field

_CLOSING = frozenset(",.;:!?”)")
WORD, SAID, SPELLED, MARK, GIVEN = "word", "said", "spelled", "mark", "given"


@dataclass(frozen=True, slots=True)
class SourceWord:
    """A whitespace-delimited word as written, attached punctuation included: `original[start:end] == text`."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Token:
    """The smallest thing that is spoken, made from one source word.

    kind is how `text` becomes sound: WORD is looked up with its part of speech, SAID is plain spoken words that a
    number or a symbol became, SPELLED is said letter by letter, MARK is punctuation that the model reads, GIVEN comes
    with its phonemes.
    """

    text: str
    word: int  # index of the source word in its sentence
    kind: str = WORD
    glued: bool = False  # one spoken word with the token before it ("well" "-" "known")
    spoken: str = ""  # what `normalize` shows when that is not `text` ("mister" for "Mr.")
    tag: str | None = None  # part of speech when the normaliser knows it
    phonemes: str = ""  # of GIVEN

    @property
    def shown(self) -> str:
        return self.spoken or self.text


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A source word with its sound: what comes before and after it, and the phonemes between."""

    source: SourceWord
    lead: str = ""  # opening marks
    phonemes: str = ""
    tail: str = ""  # closing marks
    normalized: str = ""
    continued: bool = False  # the rest of a word that was too long for one piece

    @property
    def hugs(self) -> bool:
        """A lone closing mark: "help ?" is not two words."""
        return not self.phonemes and self.lead[:1] in _CLOSING and not self.lead.startswith("..") and bool(self.lead)

    @property
    def size(self) -> int:
        return len(self.lead) + len(self.phonemes) + len(self.tail)


@dataclass(slots=True)
class Sentence:
    """Source words up to a sentence end; `paragraph_end` says that a paragraph ends with it."""

    words: list[SourceWord] = field(default_factory=list)
    paragraph_end: bool = False
