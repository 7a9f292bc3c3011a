"""English tokens of one sentence → phonemes in Kokoro's alphabet, right to left, because "the" waits for what follows.

Which part of speech, which group of letters, which half of a compound is stressed: here. How one word sounds:
words_en.py. What to do with unknown words: oov_en.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sonant.text.normalize.characters import fold
from sonant.text.phonemize.homographs_en import settle
from sonant.text.phonemize.lexicon import Lexicon
from sonant.text.phonemize.oov_en import Guesser
from sonant.text.phonemize.stress import CONSONANTS, PRIMARY, VOWELS, restress, weight
from sonant.text.phonemize.tagger_en import Tagger, known_tag
from sonant.text.phonemize.words_en import Ahead, Words
from sonant.text.spans import GIVEN, MARK, SAID, SPELLED, Token

DATA = Path(__file__).resolve().parents[1] / "data"
_PAUSES = frozenset(";:,.!?—…")
_JOINTS = frozenset("-'")
# No entry of the lexicon has more parts, and a group longer than any compound (a-a-a-a…) is said part by part.
_LONGEST_COMPOUND, _LONGEST_GROUP = 12, 40
# The voices were trained on these letters for the tap and the glottal stop.
_FINAL = str.maketrans({"ɾ": "T", "ʔ": "t"})
# Unknown short parts of an address are read as letters: gsa.gov.
ADDRESS, _SPELLED_ADDRESS = "ADD", 4
_SMALL = {"to": "TO", "the": "DT", "a": "DT"}
_CONTRACTION = re.compile(r"(.+?)(n't|'s|'re|'ve|'ll|'d|'m|')$", re.IGNORECASE)


class Phonemizer:
    """English of one accent, "en-US" or "en-GB". Opening it maps files; the guesser loads when a word is unknown."""

    def __init__(self, language: str) -> None:
        british = language == "en-GB"
        self.words = Words(Lexicon(DATA / f"{language.lower()}.lex"), british=british)
        self._tagger = Tagger(DATA / "en.tagger")
        self._guesser = Guesser(DATA / "en.oov.npz", DATA / "en.names.lex", british=british)

    def phonemize(self, tokens: Sequence[Token]) -> list[str]:
        """Phonemes for every token, in order. A glued token may be empty: its sound is in the one before it."""
        tags = self._tags(tokens)
        for i, spelling in settle([token.text for token in tokens], tags).items():
            tokens = [*tokens[:i], replace(tokens[i], text=spelling), *tokens[i + 1 :]]
        sounds = [""] * len(tokens)
        ahead = Ahead()
        end = len(tokens)
        while end > 0:
            start = end - 1
            while tokens[start].glued and GIVEN not in (tokens[start].kind, tokens[start - 1].kind):
                start -= 1
            self._group(tokens[start:end], tags[start:end], sounds, start, ahead)
            said = "".join(sounds[start:end])
            ahead = _look_back(said, tokens[start].text if end == start + 1 else "", ahead)
            end = start
        return [
            sound if token.kind == GIVEN else sound.translate(_FINAL)
            for sound, token in zip(sounds, tokens, strict=True)
        ]

    def _tags(self, tokens: Sequence[Token]) -> list[str]:
        """A tag per token; contractions are tagged in two pieces, as the tagger learned them, and take the longer's."""
        pieces: list[str] = []
        known: list[str | None] = []
        owner: list[tuple[int, int]] = []
        for token in tokens:
            first = len(pieces)
            if token.kind in (SAID, SPELLED) or token.tag:
                pieces.append(token.text)
                known.append(token.tag or ("NNP" if token.kind == SPELLED else "CD"))
            else:
                parts = _CONTRACTION.match(token.text)
                for piece in parts.groups() if parts else (token.text,):
                    pieces.append(piece)
                    known.append(known_tag(piece))
            owner.append((first, len(pieces)))
        if _is_shouted(pieces):
            pieces = [piece.lower() for piece in pieces]
        tags = self._tagger.tag(pieces, known)
        return [tags[max(range(first, last), key=lambda k: _size(pieces[k]))] for first, last in owner]

    def _group(self, group: Sequence[Token], tags: Sequence[str], sounds: list[str], start: int, ahead: Ahead) -> None:
        """Fill in the sounds of one spoken word: the whole if it is known, else its longest known endings."""
        if len(group) == 1:
            sounds[start] = self._single(group[0], tags[0], ahead)
            return
        right = len(group)
        widest = _LONGEST_COMPOUND if right <= _LONGEST_GROUP else 1
        while right > 0:
            for left in range(max(0, right - widest), right):
                text = "".join(token.text for token in group[left:right])
                last = left + 1 == right
                if last and text in _JOINTS:
                    said: str | None = ""
                else:
                    heaviest = max(range(left, right), key=lambda k: _size(group[k].text))
                    said = self.words.say(fold(text), tags[heaviest], ahead)
                    if said is None and last:
                        said = self._guess(text)
                if said is not None:
                    sounds[start + left] = said
                    ahead = _look_back(said, text, ahead)
                    right = left
                    break
        _balance(group, sounds, start)

    def _single(self, token: Token, tag: str, ahead: Ahead) -> str:
        if token.kind == MARK:
            return token.text
        if token.kind == GIVEN:
            return token.phonemes
        if token.kind == SPELLED:
            return self.words.spell(token.text) or ""
        if token.kind == SAID:
            return self._said(token.text.replace("-", " ").split(), ahead)
        said = self.words.say(fold(token.text), tag, ahead)
        if said is None and tag == ADDRESS and len(token.text) <= _SPELLED_ADDRESS:
            said = self.words.spell(token.text)
        return self._guess(token.text) if said is None else said

    def _said(self, words: Sequence[str], ahead: Ahead) -> str:
        """The words that a number or a symbol became; small words among them bend to what follows."""
        sounds: list[str] = []
        for word in reversed(words):
            tag = _SMALL.get(word)
            said = self.words.say(word, tag, ahead) if tag else self.words.plain(word)
            sounds.append(said or self._guess(word))
            ahead = _look_back(sounds[-1], word, ahead)
        return " ".join(reversed(sounds))

    def _guess(self, word: str) -> str:
        """An unknown word: without its endings if that helps the guesser, "" if it has no Latin letter."""
        return self._guesser.guess(fold(word))


def _is_shouted(pieces: Sequence[str]) -> bool:
    """A heading in capitals: there, capitals make no names, which would be spelled."""
    words = [piece for piece in pieces if len(piece) > 1 and piece.isalpha()]
    return sum(word.isupper() for word in words) > max(2, len(words) // 2)


def _size(piece: str) -> int:
    return sum(1 if letter == letter.lower() else 2 for letter in piece)


def _look_back(said: str, text: str, ahead: Ahead) -> Ahead:
    """What the word before will see: the first sound of this one, or a pause."""
    vowel = ahead.vowel
    for letter in said:
        if letter in _PAUSES:
            vowel = None
            break
        if letter in VOWELS or letter in CONSONANTS:
            vowel = letter in VOWELS
            break
    return replace(ahead, vowel=vowel, to=text in ("to", "To", "TO"))


def _balance(group: Sequence[Token], sounds: list[str], start: int) -> None:
    """Compounds have one main stress: lower the lighter halves."""
    said = [(i, sounds[start + i]) for i in range(len(group)) if sounds[start + i]]
    if len(said) < 2:
        return
    if len(said) == 2 and len(group[said[0][0]].text) == 1:
        lowered = [said[1][0]]
    else:
        ranked = sorted((PRIMARY in sound, weight(sound), i) for i, sound in said)
        if sum(has for has, _, _ in ranked) <= (len(ranked) + 1) // 2:
            return
        lowered = [i for _, _, i in ranked[: len(ranked) // 2]]
    for i in lowered:
        sounds[start + i] = restress(sounds[start + i], -0.5)
