"""Sounds of Mandarin: jieba parts the words, misaki's tables turn their pinyin into Kokoro's alphabet.

Needs the extra `zh`. Latin words are read as American English, numbers as Chinese ones.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from sonant.errors import MissingExtra
from sonant.text import english
from sonant.text.normalize.characters import plain
from sonant.text.spans import SourceWord

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+")
_RUNS = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+|[A-Za-z][A-Za-z'-]*|.", re.DOTALL)
_NUMBER = re.compile(r"\d[\d.,]*[年月日号點点%℃]?")
_SIGNS = str.maketrans({
    "、": ",", "，": ",", "。": ".", "．": ".", "！": "!", "：": ":", "；": ";", "？": "?", "《": "“", "》": "”",
    "「": "“", "」": "”", "【": "“", "】": "”", "（": "(", "）": ")", "«": "“", "»": "”",
})  # fmt: skip
_OPENING = "“(《「【（«"
_NOT_SPOKEN = "\u032f"


class ChineseSpeaker:
    """Opening it loads jieba's dictionary."""

    def __init__(self) -> None:
        try:
            import cn2an
            import jieba
            from misaki.zh import ZHG2P
        except ImportError as error:
            raise MissingExtra("reading zh", "zh") from error
        jieba.setLogLevel(logging.ERROR)
        self._cut: Any = jieba.tokenize
        self._number: Any = cn2an.transform
        self._word: Any = ZHG2P.word2ipa

    def split(self, word: SourceWord) -> Sequence[SourceWord]:
        """jieba's words; a mark goes with the word before it, an opening one with the word behind it."""
        starts: list[int] = []
        hangs = False
        for run in re.finditer(f"{_NUMBER.pattern}|[^0-9]+", word.text):
            tokens = [(run[0], 0)] if run[0][0].isdecimal() else [(t, at) for t, at, _ in self._cut(run[0])]
            for token, at in tokens:
                speakable = any(map(str.isalnum, token))
                if (speakable and not hangs) or (token[0] in _OPENING and not hangs) or not starts:
                    starts.append(run.start() + at)
                hangs = (hangs and not speakable) or token[0] in _OPENING
        ends = [*starts[1:], len(word.text)]
        return [
            SourceWord(word.text[first:last], word.start + first, word.start + last)
            for first, last in zip(starts, ends, strict=True)
        ]

    def say(self, words: Sequence[str]) -> Sequence[str]:
        return [self._say(word) for word in words]

    def _say(self, word: str) -> str:
        written = plain(word)
        if any(map(str.isdecimal, written)):
            written = self._number(written, "an2cn")
        sound = ""
        for run in _RUNS.findall(written):
            if _HAN.match(run):
                sound += self._word(run)
            elif run[0].isascii() and run[0].isalpha():
                sound += english.phonemize(run)
            else:
                sound += run.translate(_SIGNS)
        return sound.replace(_NOT_SPOKEN, "")
