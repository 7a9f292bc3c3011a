"""English number words."""

from __future__ import annotations

import pytest

from sonant.text.normalize import numbers_en as numbers


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("0", "zero"),
        ("13", "thirteen"),
        ("40", "forty"),
        ("101", "one hundred one"),
        ("1000", "one thousand"),
        ("1042", "one thousand forty-two"),
        ("1000001", "one million one"),
        ("999999", "nine hundred ninety-nine thousand nine hundred ninety-nine"),
        ("1" + "0" * 18, "one quintillion"),
        ("7" * 22, " ".join(["seven"] * 22)),
    ],
)
def test_cardinal(digits, words):
    assert numbers.cardinal(digits) == words


@pytest.mark.parametrize(
    ("digits", "words"),
    [("1", "first"), ("12", "twelfth"), ("20", "twentieth"), ("23", "twenty-third"), ("100", "one hundredth")],
)
def test_ordinal(digits, words):
    assert numbers.ordinal(digits) == words


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("1900", "nineteen hundred"),
        ("1908", "nineteen oh eight"),
        ("1984", "nineteen eighty-four"),
        ("2000", "two thousand"),
        ("2009", "two thousand nine"),
        ("2024", "twenty twenty-four"),
        ("1066", "ten sixty-six"),
        ("0042", "forty-two"),
    ],
)
def test_year(digits, words):
    assert numbers.year(digits) == words


def test_fraction_decimal_plural_and_codes():
    assert numbers.fraction("1", "2") == "one half"
    assert numbers.fraction("3", "2") == "three halves"
    assert numbers.fraction("2", "3") == "two thirds"
    assert numbers.decimal("3", "14") == "three point one four"
    assert numbers.decimal("", "5") == "point five"
    assert numbers.plural("nineteen ninety") == "nineteen nineties"
    assert numbers.plural("six") == "sixes"
    assert numbers.grouped("747") == "seven forty-seven"
    assert numbers.grouped("101") == "one oh one"
    assert numbers.grouped("2119") == "two one one nine"
