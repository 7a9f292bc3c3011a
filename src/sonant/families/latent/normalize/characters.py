"""The first pass, sign by sign: quotes made plain, signs with a name spelled out, pictures and brackets taken away.

A comma or full stop swallows the white space and most marks before it, so that nothing piles up.
"""

from __future__ import annotations

import re
import string
import unicodedata

from sonant.families.latent.normalize.languages import Language
from sonant.families.latent.traced import Traced

_DOUBLE_QUOTES = "»«‹›“”„‟″‶⹂❝❞❠〝〞〟＂"
_SINGLE_QUOTES = "‘’‚‛′‵❛❜❟＇ʼʻʹ´`"
_HYPHENS = "‐‑‒―"
_SPACED = "–*—[]{}•‣◦·→←↑↓➡➜"
_COMMAS = ";:()"
_PLAIN = {
    **dict.fromkeys(_DOUBLE_QUOTES, '"'), **dict.fromkeys(_SINGLE_QUOTES, "'"), **dict.fromkeys(_HYPHENS, "-"),
    "…": ".",
}  # fmt: skip
_LOW = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₒₓₕₖₗₘₙₚₛₜᵢⱼ", "0123456789+-aeoxhklmnpstij", strict=True))
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "sigma", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
)  # fmt: skip
_MONEY = "$€£¥¢"
_DIGITS = frozenset(string.digits)
_MARKS = frozenset(string.punctuation)
# What a comma or full stop leaves in place: quotes, and signs that are read aloud.
_KEPT = frozenset("\"'@+%#&")
# Letters that the tokenizers have although they could be taken apart.
_OWN_LETTERS = frozenset("ÀÁÂÃÄÅÇÈÉÊËÍÎÏÑÓÔÕÖÙÚÛÜàáâãäåçèéêëíîïñóôõöùúûü")
_FOLDED = (0xC0, 0x1EFA)
_PICTURES = ((0x1F000, 0x1FAFF), (0x2600, 0x27BF), (0x2B00, 0x2BFF), (0xFE0F, 0xFE0F), (0x200D, 0x200D))
_LOOK_AHEAD = 64
# What no rule changes, and words parted by one space.
_ORDINARY = re.compile("[A-Za-z0-9]+(?: [A-Za-z]+)*")


def read_signs(text: Traced, language: Language) -> Traced:
    """The text with plain signs and single spaces, and the names of signs in the words of `language`."""
    return _Signs(text, language).read()


def without_closing_quote(text: Traced) -> Traced:
    """A quote at the very end would be read as more text; so would ' behind a mark, but not in boys'."""
    bare = text.rstrip('"')
    return bare[:-1] if bare.text.endswith("'") and bare.text[-2:-1] in frozenset(".!?,;") else bare


def folded(letter: str) -> str | None:
    """The letter without its marks, if the tokenizers of these models lack it."""
    if not _FOLDED[0] <= ord(letter) < _FOLDED[1] or letter in _OWN_LETTERS:
        return None
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base != letter and base.isascii() and base.isalpha() else None


class Appender:
    """Text being written, each character with its place."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def push(self, letter: str, start: int, end: int) -> None:
        if letter in ".,":
            while self.letters and self._is_swallowed():
                self.pop()
        self.letters.append(letter)
        self.starts.append(start)
        self.ends.append(end)

    def _is_swallowed(self) -> bool:
        last = self.letters[-1]
        if last.isspace():
            return True
        if last not in _MARKS or last in _KEPT:
            return False
        return not (last == "$" and len(self.letters) > 1 and self.letters[-2] in _DIGITS)

    def pop(self) -> None:
        del self.letters[-1], self.starts[-1], self.ends[-1]

    def space(self, start: int, end: int) -> None:
        """White space, unless there is some or nothing is written yet."""
        if self.letters and not self.letters[-1].isspace():
            self.push(" ", start, end)

    def trim(self) -> None:
        while self.letters and self.letters[-1].isspace():
            self.pop()

    def write(self, text: str, start: int, end: int) -> None:
        for letter in text:
            self.push(letter, start, end)

    def copy(self, source: Traced, start: int, end: int) -> None:
        """source[start:end], in which there is nothing that swallows."""
        self.letters += source.text[start:end]
        self.starts += source.starts[start:end]
        self.ends += source.ends[start:end]

    def say(self, words: str, start: int, end: int) -> None:
        """Words of their own, with spaces around them."""
        self.space(start, end)
        self.write(words, start, end)
        self.space(start, end)

    def written(self) -> Traced:
        self.trim()
        return Traced("".join(self.letters), tuple(self.starts), tuple(self.ends))


class _Signs:
    """Goes over one text. `at` is the sign being read, `next` the first one that is not read yet."""

    def __init__(self, text: Traced, language: Language) -> None:
        self.source, self.text, self.language = text, text.text, language
        self.out = Appender()
        self.at = self.next = 0
        self.grouped = 0
        """Where the digits of a French number end that were put together, so that a third group joins too."""
        self.names = {**_greek(language), **language.signs, "±": language.plus_or_minus, "=": language.equals}

    def read(self) -> Traced:
        while self.next < len(self.text):
            self.at = self.next
            run = _ORDINARY.match(self.text, self.at)
            if run:
                self.next = run.end()
                self.out.copy(self.source, self.at, self.next)
            else:
                self.next += 1
                self._read(self.text[self.at])
        return self.out.written()

    def _read(self, sign: str) -> None:
        if sign in _PLAIN:
            self._push(_PLAIN[sign])
        elif sign in self.names:
            self._say(self.names[sign])
        elif sign in _READERS and _READERS[sign](self):
            pass
        elif sign in _SPACED:
            self._space()
        elif sign in _COMMAS:
            self.out.trim()
            self._push(",")
            self._space()
        elif sign.isspace() or unicodedata.category(sign) == "Cc" or _is_picture(sign):
            self._white(sign)
        else:
            self._push(_LOW.get(sign) or folded(sign) or sign)

    def _place(self) -> tuple[int, int]:
        """Where the signs being read stand in the original."""
        return self.source.starts[self.at], self.source.ends[self.next - 1]

    def _push(self, letter: str) -> None:
        self.out.push(letter, *self._place())

    def _say(self, words: str) -> None:
        self.out.say(words, *self._place())

    def _space(self) -> None:
        self.out.space(*self._place())

    def _before(self) -> str:
        """The sign before this one in the source."""
        return self.text[self.at - 1] if self.at else ""

    def _ahead(self) -> str:
        return self.text[self.next : self.next + 1]

    def _white(self, sign: str) -> None:
        if sign.isspace() and (self._joins_thousands() or self._joins_reais()):
            return
        self._space()

    def _joins_thousands(self) -> bool:
        """French groups thousands with a space: 40 000 is one number, 123 456 789 a code."""
        if self.language.code != "fr":
            return False
        groups = _thousands(self.text[self.next : self.next + _LOOK_AHEAD])
        lead = self._thousands_lead()
        size = len(self.out.letters)
        if not groups or not (size == self.grouped or (lead and (lead < 3 or groups == 1))):
            return False
        self.grouped = size + 3
        return True

    def _thousands_lead(self) -> int:
        """How many digits a number has that groups of three may follow; 0 when none may."""
        last = "".join(self.out.letters[-8:])
        before = last.rstrip(string.digits)
        count = len(last) - len(before)
        if not 1 <= count <= 3 or last[-count] == "0" or before[-1:].isalnum() or before[-1:] in (",", "."):
            return 0
        return 0 if before.rstrip()[-1:] in _DIGITS else count

    def _joins_reais(self) -> bool:
        """R$ 250, but not R$ 40-60."""
        if self.language.code != "pt" or self.out.letters[-2:] != ["R", "$"] or self._ahead() not in _DIGITS:
            return False
        rest = self.text[self.next :].lstrip(string.digits)
        return not rest.startswith("-")

    def _colon(self) -> bool:
        """10:30 keeps its colon."""
        inside = self._before() and not self._before().isspace() and self._ahead() and not self._ahead().isspace()
        if inside:
            self._push(":")
        return bool(inside)

    def _currency(self) -> bool:
        """The sign behind a number and a space joins it: 250 €. Before a digit it belongs to that."""
        letters = self.out.letters
        if not letters or not letters[-1].isspace() or self._ahead() in _DIGITS:
            return False
        last = next((letter for letter in reversed(letters) if not letter.isspace()), "")
        if last not in _DIGITS:
            return False
        self.out.trim()
        self._push(self.text[self.at])
        return True

    def _degrees(self) -> bool:
        """n° is the number sign, 20 °C a temperature, anything else degrees."""
        if self._number_sign():
            return True
        if self.text[self.at] == "º":
            return False
        self._say(self.language.degree[not self._ends_with_one()])
        scale = {"C": "Celsius", "F": "Fahrenheit"}.get(self._ahead())
        if scale and not self.text[self.next + 1 : self.next + 2].isalnum():
            self.at, self.next = self.next, self.next + 1
            self.out.write(scale, *self._place())
        return True

    def _number_sign(self) -> bool:
        out = self.out
        letters = out.letters[:-1] if out.letters[-1:] == ["."] else out.letters
        if letters[-1:] not in (["n"], ["N"]) or (len(letters) > 1 and letters[-2].isalnum()):
            return False
        if out.letters[-1] == ".":
            out.pop()
        start, is_capital = out.starts[-1], out.letters[-1] == "N"
        out.pop()
        word = self.language.number
        out.say(word[0].upper() + word[1:] if is_capital else word, start, self._place()[1])
        return True

    def _ends_with_one(self) -> bool:
        text = "".join(self.out.letters[-16:]).rstrip()
        return text.endswith("1") and text[-2:-1] not in _DIGITS | {".", ","}

    def _raised(self) -> bool:
        """10⁶ is a power, ¹³C is not."""
        before = self._before()
        number = _RAISED[self.text[self.at]]
        while self._ahead() in _RAISED:
            number += _RAISED[self._ahead()]
            self.next += 1
        if before.isalnum() or before == ")":
            powers = self.language.powers
            self._say((powers.get(number) or powers[""]).format(n=number))
        else:
            self.out.write(number, *self._place())
        return True

    def _stars(self) -> bool:
        """★★★☆☆ is 3 out of 5 stars."""
        self.next -= 1
        counts = {"★": 0, "☆": 0}
        while self._ahead() in counts:
            counts[self._ahead()] += 1
            self.next += 1
        half = self._ahead() == "½"
        self.next += half
        full = f"{counts['★']}{self.language.decimal + '5' if half else ''}"
        own = self.language.stars[counts["☆"] > 0]
        self._say(own.format(n=full, of=counts["★"] + counts["☆"] + half))
        return True

    def _love(self) -> bool:
        self.next += self._ahead() == "\ufe0f"
        self._say(self.language.love)
        return True

    def _tilde(self) -> bool:
        if self._ahead() not in _DIGITS:
            return False
        self._say(self.language.about)
        return True

    def _asterisk(self) -> bool:
        """*67 on a phone; otherwise an asterisk is emphasis."""
        if self._ahead() not in _DIGITS or not (self._before() or " ").isspace():
            return False
        self._say(self.language.star)
        return True


_READERS = {
    **dict.fromkeys(_RAISED, _Signs._raised), **dict.fromkeys(_MONEY, _Signs._currency),
    **dict.fromkeys("★☆", _Signs._stars), **dict.fromkeys("❤♥", _Signs._love), **dict.fromkeys("°º", _Signs._degrees),
    "~": _Signs._tilde, "*": _Signs._asterisk, ":": _Signs._colon,
}  # fmt: skip


def _greek(language: Language) -> dict[str, str]:
    names = tuple(map(str.capitalize, _GREEK)) if language.code == "de" else _GREEK
    small = {chr(ord("α") + i): name for i, name in enumerate(names)}
    return {**{letter.upper(): name for letter, name in small.items() if letter != "ς"}, **small}


def _is_picture(sign: str) -> bool:
    return any(first <= ord(sign) <= last for first, last in _PICTURES)


def _thousands(ahead: str) -> int:
    """How many groups of exactly three digits come, each but the first behind a space."""
    groups = at = 0
    while True:
        size = 0
        while ahead[at + size : at + size + 1] in _DIGITS:
            size += 1
        if size != 3:
            return 0 if size else groups
        groups += 1
        at += 3
        if not ahead[at : at + 1].isspace():
            return groups
        at += 1
