"""How a text is made ready for the model: capital, closing stop, characters that training never saw.

PhononRules are those of Gradium's ptts 0.4.2, PocketRules those of Kyutai's pocket_tts 4.0.1, whose options are in the
config of each checkpoint. Both are applied to the whole text, then once more to each chunk, as the originals do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sonant.families.latent.traced import Traced

SHORT_TEXT_WORDS = 4
_STOPS = ".!?…"
_WEAK_MARKS = ",;:-–—"
_CLOSERS = "\"'”’)]»"
_DOUBLED = re.compile(r"([.!?…])\s*[,;:]")
_LINE_END = re.compile(r"[\n\r]")
_TWO_SPACES = re.compile("  ")


class Rules(Protocol):
    """What differs between the families."""

    @property
    def splits_long_sentences(self) -> bool:
        """The original cuts sentences over the limit behind , ; and :."""
        ...

    @property
    def keeps_decimals(self) -> bool:
        """The original sees no sentence end between "3." and "14"."""
        ...

    def prepare(self, text: Traced) -> Traced:
        """The text as the tokenizer gets it; empty when nothing is left."""


def frames_after_eos(text: str) -> int:
    """How many frames follow the one that ends the speech: short texts need more."""
    return 3 if len(text.split()) <= SHORT_TEXT_WORDS else 1


@dataclass(frozen=True)
class PhononRules:
    """White space made single, a capital in front, a full stop behind a letter or a digit."""

    splits_long_sentences: bool = field(default=False, init=False)
    keeps_decimals: bool = field(default=False, init=False)

    def prepare(self, text: Traced) -> Traced:
        text = Traced.join(text.split(), " ")
        if not text:
            return text
        text = _capitalized(text)
        return text + text.following(".") if text.text[-1].isalnum() else text


@dataclass(frozen=True, kw_only=True)
class PocketRules:
    """The options of a pocket_tts config, with its names and defaults."""

    replace_characters: Mapping[str, str] = field(default_factory=dict)
    remove_semicolons: bool = False
    append_terminal_punctuation: bool = True
    capitalize_first_letter: bool = True
    pad_with_spaces_for_short_inputs: bool = False
    splits_long_sentences: bool = field(default=True, init=False)
    keeps_decimals: bool = field(default=True, init=False)

    def prepare(self, text: Traced) -> Traced:
        text = text.strip()
        if self.replace_characters:
            text = Traced.join(text.translate(dict(self.replace_characters)).split(), " ")
            text = _without_second_marks(text)
        if not text:
            return text
        text = text.sub(_LINE_END, " ").sub(_TWO_SPACES, " ")
        if self.remove_semicolons:
            text = text.translate({";": ","})
        if self.capitalize_first_letter and not text.text[0].isupper():
            text = _capitalized(text)
        if self.append_terminal_punctuation:
            text = _closed(text)
        if self.pad_with_spaces_for_short_inputs and len(text.text.split()) <= SHORT_TEXT_WORDS:
            text = Traced.made(" " * 8, text.start, text.start) + text
        return text


def _capitalized(text: Traced) -> Traced:
    return text[:1].turned(text.text[0].upper()) + text[1:]


def _without_second_marks(text: Traced) -> Traced:
    """Of a sentence mark and a comma behind it, the sentence mark."""
    parts: list[Traced] = []
    at = 0
    for match in _DOUBLED.finditer(text.text):
        parts.append(text[at : match.end(1)])
        at = match.end()
    return Traced.join((*parts, text[at:]))


def _closed(text: Traced) -> Traced:
    """A full stop behind a text without one: in the place of a comma or dash, before its closing quotes."""
    core = text.rstrip(_CLOSERS + " ")
    if not core or core.text[-1] in _STOPS:
        return text
    if core.text[-1] not in _WEAK_MARKS:
        return text + text.following(".")
    kept = core.rstrip(_WEAK_MARKS + " ")
    return kept + core[len(kept) : len(kept) + 1].turned(".") + text[len(core) :].strip()
