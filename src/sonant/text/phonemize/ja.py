"""Sounds of Japanese from misaki's Cutlet (fugashi with UniDic), in Kokoro's alphabet.

Needs the extra `ja`. Sounds depend on the clause, so a clause (up to a mark) is one source word here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sonant.errors import MissingExtra
from sonant.text.spans import SourceWord

_CLAUSE = re.compile(r"[^、。，．！？!?…]+[、。，．！？!?…」』）”)]*|[、。，．！？!?…]+")
_HIDDEN = str.maketrans("«»", "()")


class JapaneseSpeaker:
    """Opening it loads the dictionary."""

    def __init__(self) -> None:
        try:
            from misaki.cutlet import Cutlet
        except ImportError as error:
            raise MissingExtra("reading ja", "ja") from error
        self._cutlet: Any = Cutlet()

    def split(self, word: SourceWord) -> Sequence[SourceWord]:
        return [
            SourceWord(match[0], word.start + match.start(), word.start + match.end())
            for match in _CLAUSE.finditer(word.text)
        ]

    def say(self, words: Sequence[str]) -> Sequence[str]:
        return [self._cutlet(word)[0].translate(_HIDDEN) if word else "" for word in words]
