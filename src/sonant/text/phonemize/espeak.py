"""Sounds of Spanish, French, Italian, Portuguese and Hindi from espeak-ng, in the alphabet of Kokoro's voices.

Needs the extra `espeak` (phonemizer-fork and espeakng-loader, both GPL-3, so never part of the base install). A row of
words is said as one, since words change beside others; the words of the answer are then dealt to those of the text.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from sonant.errors import MissingExtra
from sonant.text.normalize.characters import plain
from sonant.text.spans import SourceWord

_VOICES = {"es": "es", "fr-FR": "fr-fr", "it": "it", "pt-BR": "pt-br", "hi": "hi"}
# espeak-ng with ties → misaki's single signs, the same table as misaki's for these languages.
_SIGNS = (
    ("a^ɪ", "I"), ("a^ʊ", "W"), ("d^z", "ʣ"), ("d^ʒ", "ʤ"), ("e^ɪ", "A"), ("o^ʊ", "O"), ("s^s", "S"), ("t^s", "ʦ"),
    ("t^ʃ", "ʧ"), ("ɔ^ɪ", "Y"), ("ə^ʊ", "Q"), ("^", ""), ("-", ""),
)  # fmt: skip
_MOST_CHUNKS, _BAND = 8, 12
_Step = tuple[float, int]
"""The cost up to here, and the chunks that the last word took."""
_MARKS = frozenset(';:,.!?—…"()“”¿¡«»')
_OPENING = frozenset("(“¿¡«")
# espeak reads round brackets as a pause, so they travel as angles.
_HIDDEN = str.maketrans("()«»", "«»“”")
_SHOWN = str.maketrans("«»", "()")


class EspeakSpeaker:
    """One language of espeak-ng. Calls are serialised: the library keeps its state in globals."""

    def __init__(self, language: str) -> None:
        try:
            import espeakng_loader
            from phonemizer.backend import EspeakBackend
            from phonemizer.backend.espeak.wrapper import EspeakWrapper
        except ImportError as error:
            raise MissingExtra(f"reading {language}", "espeak") from error
        EspeakWrapper.set_library(espeakng_loader.get_library_path())
        EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
        logger = logging.getLogger("sonant.espeak")
        logger.setLevel(logging.ERROR)
        self._backend: Any = EspeakBackend(
            _VOICES[language], preserve_punctuation=True, with_stress=True, tie="^", language_switch="remove-flags",
            logger=logger,
        )  # fmt: skip
        self._lock = Lock()
        self._alone = lru_cache(maxsize=10_000)(self._phonemize)

    def split(self, word: SourceWord) -> Sequence[SourceWord]:
        return (word,)

    def say(self, words: Sequence[str]) -> Sequence[str]:
        cleaned = [plain(word).replace("।", ".") for word in words]
        if not any(map(_sounds, cleaned)):
            return cleaned
        return self._deal(cleaned, self._phonemize(" ".join(filter(None, cleaned))).split())

    def _phonemize(self, text: str) -> str:
        with self._lock:
            said = self._backend.phonemize([text.translate(_HIDDEN)])
        sound = said[0].strip() if said else ""
        for old, new in _SIGNS:
            sound = sound.replace(old, new)
        return sound.translate(_SHOWN)

    def _deal(self, words: Sequence[str], chunks: Sequence[str]) -> list[str]:
        """Which chunks of sound belong to which word: one each, else as many as the word has when said alone."""
        speakable = [i for i, word in enumerate(words) if _sounds(word)]
        voiced = [chunk for chunk in chunks if _sounds(chunk)]
        alone = [[c for c in self._alone(words[i]).split() if _sounds(c)] for i in speakable]
        shares = _shares(["".join(own) for own in alone], voiced)
        owners = [i for i, share in zip(speakable, shares, strict=True) for _ in range(share)]
        sounds = [""] * len(words)
        at, waiting = 0, ""
        for chunk in chunks:
            if _sounds(chunk):
                owner = owners[at]
                at += 1
                sounds[owner] += (" " if sounds[owner] else "") + waiting + chunk
                waiting = ""
            elif at and chunk[0] not in _OPENING:
                sounds[owners[at - 1]] += chunk
            else:
                waiting += chunk
        return sounds


def _shares(alone: Sequence[str], chunks: Sequence[str]) -> list[int]:
    """How many chunks each word takes, so that they are most like the word said alone; the order is kept.

    The path through the table of words and chunks stays near its diagonal: time is linear in the words.
    """
    if len(alone) == len(chunks) and all(_unlike(a, c) <= len(a) for a, c in zip(alone, chunks, strict=True)):
        return [1] * len(alone)
    drift = len(chunks) / max(1, len(alone))
    best: dict[int, _Step] = {0: (0.0, 0)}
    rows = [best]
    for i, sound in enumerate(alone):
        reached: dict[int, _Step] = {}
        last = i + 1 == len(alone)
        for at, (cost, _) in best.items():
            for share in range(min(_MOST_CHUNKS, len(chunks) - at) + 1):
                end = at + share
                if not last and abs(end - (i + 1) * drift) > _BAND:
                    continue
                total = cost + _unlike(sound, "".join(chunks[at:end]))
                if end not in reached or total < reached[end][0]:
                    reached[end] = (total, share)
        best = reached or {at: (cost + len(sound), 0) for at, (cost, _) in best.items()}
        rows.append(best)
    return _traced(rows, len(chunks))


def _traced(rows: Sequence[dict[int, _Step]], chunks: int) -> list[int]:
    """The shares along the best path; what it leaves over goes to the last word."""
    at = chunks if chunks in rows[-1] else max(rows[-1])
    shares: list[int] = []
    left = chunks - at
    for row in reversed(rows[1:]):
        share = row[at][1]
        shares.append(share)
        at -= share
    shares.reverse()
    shares[-1] += left
    return shares


def _unlike(one: str, other: str) -> int:
    """Letters of one that the other lacks, both ways."""
    a, b = Counter(one), Counter(other)
    return (a - b).total() + (b - a).total()


def _sounds(text: str) -> bool:
    return any(letter not in _MARKS and not letter.isspace() for letter in text) and any(map(str.isalnum, text))
