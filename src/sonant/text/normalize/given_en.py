"""Words whose sound the text or the user gives: [word](/phonemes/) and the user's lexicon."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonant.text.lexicon_file import UserLexicon
from sonant.text.normalize.written_en import Written, marks
from sonant.text.phonemize.suffixes_en import plural_sound
from sonant.text.script import INNER_SPACE
from sonant.text.spans import GIVEN, WORD, SourceWord, Token

_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_POSSESSIVES = ("'s", "’s", "s")


@dataclass(frozen=True, slots=True)
class Stretch:
    """word.text[start:end] is said as `phonemes`."""

    start: int
    end: int
    phonemes: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about the sounds of a sentence: stretches by the index of their word, and the user's lexicon."""

    stretches: Mapping[int, Sequence[Stretch]] = field(default_factory=dict)
    lexicon: UserLexicon | None = None


NOTHING = Known()


def stretch_tokens(word: SourceWord, index: int, stretches: Sequence[Stretch], *, british: bool) -> list[Token]:
    """The tokens of a word that has given phonemes; letters beside them are said as usual, touching them."""
    tokens: list[Token] = []
    at = 0
    for stretch in stretches:
        tokens += _beside(word.text[at : stretch.start], index, opening=not tokens)
        shown = word.text[stretch.start : stretch.end].replace(INNER_SPACE, " ")
        at, said = stretch.end, stretch.phonemes
        for ending in _POSSESSIVES:
            if said and word.text.startswith(ending, at) and not word.text[at + len(ending) :][:1].isalpha():
                said, shown, at = (
                    plural_sound(said, british=british),
                    shown + ending.replace("’", "'"),
                    at + len(ending),
                )
                break
        tokens.append(Token(shown, index, GIVEN, glued=any(t.kind != "mark" for t in tokens), phonemes=said))
    return tokens + _beside(word.text[at:], index, opening=False)


def _beside(text: str, index: int, *, opening: bool) -> list[Token]:
    letters = _WORDS.findall(text)
    if not letters:
        return marks(text, index, opening=opening)
    first = text.index(letters[0])
    end = text.rindex(letters[-1]) + len(letters[-1])
    words = [Token(part, index, glued=at > 0 or not opening) for at, part in enumerate(letters)]
    return [*marks(text[:first], index, opening=opening), *words, *marks(text[end:], index, opening=False)]


def listed(line: list[Written], i: int, lexicon: UserLexicon, *, british: bool) -> list[Token] | None:
    """A word that the user's lexicon has as it stands, or with 's."""
    core, index = line[i].core, line[i].index
    found = lexicon.get(core)
    if found is None and line[i].tail.startswith(".") and (found := lexicon.get(core + ".")):
        line[i].drop_dot()
    ending = ""
    if found is None and core.endswith(("'s", "s'")):
        ending, found = "'s", lexicon.get(core[:-2] if core.endswith("'s") else core[:-1])
    if found is None:
        return None
    if found.alias:
        words = _WORDS.findall(found.alias)
        return [Token(part + (ending if part is words[-1] else ""), index) for part in words]
    said = plural_sound(found.phonemes, british=british) if ending else found.phonemes
    return [Token(core, index, GIVEN, phonemes=said)]


def with_listed(tokens: list[Token], lexicon: UserLexicon) -> list[Token]:
    """The words among `tokens` that the lexicon has: the halves of joined words, the words of an address."""
    return [
        replace(token, kind=GIVEN, phonemes=found.phonemes)
        if token.kind == WORD and (found := lexicon.get(token.text)) and found.phonemes
        else token
        for token in tokens
    ]
