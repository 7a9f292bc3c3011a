"""Characters → the plain ones the later steps know. One word at a time, so offsets stay those of its source word."""

from __future__ import annotations

import re
import unicodedata

FRACTIONS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
FRACTION_SIGNS = "".join(FRACTIONS)
_PLAIN = {
    "‘": "'", "’": "'", "ʼ": "'", "‛": "'", "`": "'", "´": "'", "′": "'", "＇": "'",
    "„": "“", "‟": "“", "«": "“", "»": "”", "″": '"', "＂": '"',
    "‐": "-", "‑": "-", "‒": "–", "―": "—", "−": "-", "﹣": "-", "⁃": "-",
    "℃": "°C", "№": "No.", "‚": "'", "℉": "°F", "⁄": "/", "µ": "μ",
    "。": ".", "、": ",", "，": ",", "！": "!", "？": "?", "：": ":", "；": ";",
}  # fmt: skip
_RAISED = re.compile("[⁰¹²³⁴-⁹⁻]+")
# Compatibility forms that must not be unfolded: they have a meaning of their own here.
_KEPT = frozenset("…°ºª²³“”–—©") | frozenset(FRACTIONS)
# Formatting marks, private use, unassigned, pictures: nothing to say.
_SILENT = frozenset(("Cf", "Cc", "Cn", "Co", "Cs", "Me", "So", "Sk"))


def plain(word: str) -> str:
    """`word` with plain quotes, dashes and letters, without invisible characters, emoji and other pictures."""
    if word.isascii():
        return word.replace("`", "'") if "`" in word else word
    out = []
    if "⁻" in word or any("⁰" <= letter <= "⁹" for letter in word):
        word = _RAISED.sub(lambda match: "^" + unicodedata.normalize("NFKC", match[0]).replace("−", "-"), word)
    for letter in word:
        letter = _PLAIN.get(letter, letter)
        if letter.isascii() or letter in _KEPT or len(letter) > 1:
            out.append(letter)
            continue
        if "\u2160" <= letter <= "\u2188":  # Ⅳ
            out.append(str(int(unicodedata.numeric(letter, 0))))
            continue
        if unicodedata.category(letter) in _SILENT or "\ufe00" <= letter <= "\ufe0f":
            continue
        out.append(unicodedata.normalize("NFKC", letter))
    return unicodedata.normalize("NFC", "".join(out)).strip()


def fold(word: str) -> str:
    """`word` with the accents of Latin letters removed: café → cafe. Other scripts stay as they are."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word.translate(_LATIN))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


_LATIN = str.maketrans({"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ß": "ss", "ð": "d", "Ð": "D",
                        "þ": "th", "Þ": "Th", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i"})  # fmt: skip
