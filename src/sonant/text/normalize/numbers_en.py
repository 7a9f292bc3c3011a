"""English words for numbers, as strings of digits: any length, linear time. American style, without "and"."""

from __future__ import annotations

from collections.abc import Callable

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SCALES = ("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_PLURALS = {"six": "sixes"}
# A longer number is a code, not a quantity: its digits are said one by one.
LONGEST_CARDINAL = 3 * len(SCALES)


def _below_thousand(number: int) -> list[str]:
    words = []
    if number >= 100:
        words += [ONES[number // 100], "hundred"]
        number %= 100
    if number >= 20:
        tens = TENS[number // 10]
        words.append(f"{tens}-{ONES[number % 10]}" if number % 10 else tens)
    elif number:
        words.append(ONES[number])
    return words


def cardinal(digits: str) -> str:
    """1042 → one thousand forty-two. More than 21 digits are said one by one."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > LONGEST_CARDINAL:
        return spell_digits(digits)
    if digits == "0":
        return "zero"
    words = []
    for scale in range((len(digits) - 1) // 3, -1, -1):
        end = len(digits) - 3 * scale
        group = int(digits[max(0, end - 3) : end])
        if group:
            words += _below_thousand(group)
            words += [SCALES[scale]] if scale else []
    return " ".join(words)


def decimal(whole: str, fraction: str) -> str:
    """("3", "14") → three point one four. An empty whole part is not said: ".5" is point five."""
    said = [cardinal(whole)] if whole else []
    return " ".join([*said, "point", spell_digits(fraction)])


def spell_digits(digits: str, zero: str = "zero") -> str:
    """90210 → nine zero two one zero, with another word for zero on request."""
    return " ".join(zero if digit == "0" else ONES[int(digit)] for digit in digits)


def ordinal(digits: str) -> str:
    """22 → twenty-second."""
    return _last_word(cardinal(digits), _as_ordinal)


def _as_ordinal(word: str) -> str:
    if word in _ORDINALS:
        return _ORDINALS[word]
    return word[:-1] + "ieth" if word.endswith("y") else word + "th"


def plural(words: str) -> str:
    """nineteen ninety → nineteen nineties."""
    return _last_word(words, _as_plural)


def _as_plural(word: str) -> str:
    if word.endswith("y"):
        return word[:-1] + "ies"
    return _PLURALS.get(word, word + "s")


def _last_word(words: str, change: Callable[[str], str]) -> str:
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    return words[:cut] + change(words[cut:])


def year(digits: str) -> str:
    """Four digits as a year: nineteen oh five, twenty ten, two thousand one, nineteen hundred."""
    high, low = int(digits[:-2]), int(digits[-2:])
    if high == 0 or (high % 10 == 0 and low < 10) or high >= 100:
        return cardinal(digits)
    if low == 0:
        return f"{cardinal(str(high))} hundred"
    return f"{cardinal(str(high))} {'oh ' if low < 10 else ''}{cardinal(str(low))}"


def grouped(digits: str) -> str:
    """A number that is part of a name (747, A380, RFC 2119): pairs and digits instead of a quantity."""
    if digits[0] == "0" or len(digits) > 3:
        return spell_digits(digits)
    if len(digits) < 3 or digits.endswith("00"):
        return cardinal(digits)
    return f"{ONES[int(digits[0])]} {'oh ' + ONES[int(digits[2])] if digits[1] == '0' else cardinal(digits[1:])}"


_DENOMINATORS = {2: "half", 4: "quarter"}


def fraction(top: str, bottom: str) -> str:
    """("3", "4") → three quarters."""
    lower = _DENOMINATORS.get(int(bottom)) or ordinal(bottom)
    if int(top) != 1:
        lower = "halves" if lower == "half" else lower + "s"
    return f"{cardinal(top)} {lower}"
