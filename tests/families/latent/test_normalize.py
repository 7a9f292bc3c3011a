"""The normalizer against `ptts.normalize`: every kind of text by hand in five languages, and rows of them at random.

The places where sonant does something else are DELIBERATE; a difference that none of them explains fails.
"""

import re
import time

import pytest
from golden_text import recorded
from hypothesis import given
from hypothesis import strategies as st

from sonant.errors import UnknownName
from sonant.families.latent.normalize import LANGUAGES, REWRITES, normalize
from sonant.families.latent.traced import Traced

ROWS = [
    (language, text, {"none": none, "default": none if default is None else default})
    for language, text, none, default, _ in recorded("normalize")
]
for (_, _, wanted), (*_, every) in zip(ROWS, recorded("normalize"), strict=True):
    wanted["all"] = wanted["default"] if every is None else every

DELIBERATE = {
    # gooood → god, sooon → son, tooo → to: another word. Two vowels stay where that is the word.
    "held vowel": ("en", re.compile(r"([aeiou])\1{2,}", re.IGNORECASE)),
    # 1,2,3 → 123 and 5,50 € → 550 euros: other numbers. Groups have three digits; else it is read as written, and an
    # amount with two digits behind the comma as a decimal.
    "comma that groups nothing": ("en", re.compile(r"\d,(?!\d{3}(?!\d))\d|,,\d")),
    # 2.10? → 210?, since the mark is counted as the third digit.
    "mark taken for a digit": ("de es pt", re.compile(r"\d\.\d\d[!?.,:;…]|\d\.\d[!?.,:;…]{2}|\d\.[!?.,:;…]{3}")),
}


def said(text, language, rewrites="default"):
    return normalize(Traced.of(text), language, rewrites).text


@pytest.mark.parametrize("language", ["en", "fr", "de", "es", "pt"])
@pytest.mark.parametrize("rewrites", REWRITES)
def test_as_ptts_reads_it(language, rewrites):
    own = [(text, wanted[rewrites]) for code, text, wanted in ROWS if code == language]
    patterns = [pattern for codes, pattern in DELIBERATE.values() if language in codes.split()]
    different = [text for text, wanted in own if said(text, language, rewrites) != wanted]
    unexplained = [text for text in different if not any(pattern.search(text) for pattern in patterns)]
    assert len(own) > 600
    assert unexplained == []
    assert len(different) <= 0.02 * len(own), "as many differences as that need a look"


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("soooo gooood!!!", "en", "so good!!!"),
        ("tooo soooon, loooook", "en", "too soon, look"),
        ("Nooooo heyyyy", "en", "No hey"),
        ("steps 1,2,3", "en", "steps 1,2,3"),
        ("5,50 €", "en", "5 euros and 50 cents"),
        ("$1,234.56", "en", "1 thousand 234 dollars and 56 cents"),
        ("14.00?", "de", "14.00?"),
        ("1.234 Euro", "de-DE", "ein Tausend 234 Euro"),
        ("R$ 250", "pt-BR", "250 reais"),
        ("“Quoted” — 5 @ 3", "none", "“Quoted” — 5 @ 3"),
    ],
)
def test_what_is_said(text, language, wanted):
    assert said(text, language) == wanted


@pytest.mark.parametrize(
    ("text", "word", "source"),
    [
        ("It costs $5.50 now", "dollars", "$5.50"),
        ("We raised $2 million.", "million", "million."),
        ("Il possède 40 000 livres", "mille", "000"),
        ("x² is", "squared", "x²"),
        ("mail a.b@c.fr now", "F-R", "a.b@c.fr"),
        ("20°C is", "Celsius", "20°C"),
        ("and/or", "or", "and/or"),
        ("Call 555-123-4567.", "4 5 6 7", "555-123-4567."),
        ("Lt Col Vann", "Colonel", "Col"),
    ],
)
def test_what_is_said_leads_back_to_its_word(text, word, source):
    language = "fr" if "livres" in text else "en"
    done = normalize(Traced.of(text), language)
    at = done.text.index(word)
    start, end = done[at : at + len(word)].start, done[at : at + len(word)].end
    before = text[:start].rpartition(" ")[2]
    after = text[end:].partition(" ")[0]
    assert before + text[start:end] + after == source


@pytest.mark.parametrize("language", ["en", "fr", "de", "es", "pt"])
@given(st.text(alphabet=st.one_of(st.sampled_from("ab 19,.-/@+$€°*:;()'\"²α★"), st.characters()), max_size=30))
def test_any_text_can_be_read_and_keeps_its_order(language, text):
    done = normalize(Traced.of(text), language, "all")
    assert len(done.starts) == len(done.ends) == len(done.text)
    assert list(done.starts) == sorted(done.starts)
    assert all(0 <= start <= end <= len(text) for start, end in zip(done.starts, done.ends, strict=True))


@pytest.mark.parametrize("unit", ["1 ", "a.", "1-", "★", "((", "a/", "1,000", "1", "-", "a@", "a@b.", "www.", "$1 "])
def test_work_grows_with_the_text(unit):
    """0.2 s here where the time grows with the size; hours where it grows with its square or cube."""
    started = time.perf_counter()
    for language in ("fr", "en"):
        normalize(Traced.of(unit * 5000), language, "all")
    assert time.perf_counter() - started < 20


def test_unknown_names():
    with pytest.raises(UnknownName, match="language of the normalizer 'klingon'"):
        said("a", "klingon")
    with pytest.raises(UnknownName, match="rewrites 'some'"):
        said("a", "en", "some")
    assert set(LANGUAGES) == {"en", "fr", "de", "es", "pt", "none"}
