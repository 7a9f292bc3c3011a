"""Every character of a changed text leads back to where it came from."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.families.latent.traced import Traced


def sources(traced, original):
    """The characters with what they came from."""
    return [(c, original[s:e]) for c, s, e in zip(traced.text, traced.starts, traced.ends, strict=True)]


def test_a_text_is_its_own_original():
    assert sources(Traced.of("ab"), "ab") == [("a", "a"), ("b", "b")]
    moved = Traced.of("ab", 5)
    assert (moved.start, moved.end) == (5, 7)


def test_sub_leads_back_to_the_match():
    changed = Traced.of("a--b").sub(re.compile("-+"), "—")
    assert sources(changed, "a--b") == [("a", "a"), ("—", "--"), ("b", "b")]


def test_an_empty_match_puts_text_in():
    changed = Traced.of("ab").sub(re.compile("(?=b)"), "+")
    assert changed.text == "a+b"
    assert (changed.starts[1], changed.ends[1]) == (1, 1)


def test_translate_and_split():
    assert Traced.of("a’s").translate({"’": "", "s": "ss"}).text == "ass"
    assert [(w.text, w.start) for w in Traced.of(" a  bc ").split()] == [("a", 1), ("bc", 4)]
    assert Traced.join(Traced.of("a  b").split(), " ").text == "a b"


@pytest.mark.parametrize(
    ("old", "new", "word", "source"),
    [
        ("$2 million", "2 million dollars", "million", "million"),
        ("$2 million", "2 million dollars", "2", "2"),
        ("3.14", "3 point 14", "point", "."),
        ("3.14", "3 point 14", "14", "14"),
        ("$5", "5 dollars", "dollars", "5"),
        ("Dr.", "Doctor", "Doctor", "Dr."),
    ],
)
def test_a_respelled_word_keeps_what_is_in_both(old, new, word, source):
    changed = Traced.of(old).respelled(new)
    assert changed.text == new
    at = new.index(word)
    assert old[changed[at : at + len(word)].start : changed[at : at + len(word)].end] == source


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_respelled_is_the_new_text_in_order(old, new):
    changed = Traced.of(old).respelled(new)
    assert changed.text == new
    assert list(changed.starts) == sorted(changed.starts)
    assert all(0 <= start <= end <= len(old) for start, end in zip(changed.starts, changed.ends, strict=True))
