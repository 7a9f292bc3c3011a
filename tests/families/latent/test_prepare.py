"""Preparation by both families' rules: what comes out, and where it came from. Chunks are compared in test_chunks."""

import pytest
from golden_text import recorded
from hypothesis import given
from hypothesis import strategies as st

from sonant.families.latent.prepare import PhononRules, PocketRules, frames_after_eos
from sonant.families.latent.traced import Traced

FRENCH = PocketRules(**recorded("chunks")["options"]["french"])


@pytest.mark.parametrize(
    ("rules", "text", "wanted"),
    [
        (PhononRules(), "  hello\n\tthere ", "Hello there."),
        (PhononRules(), "wait;", "Wait;"),
        (PhononRules(), "it is 5", "It is 5."),
        (PhononRules(), "(in brackets)", "(in brackets)"),
        (PhononRules(), "ßa", "SSa."),
        (PhononRules(), "   ", ""),
        (PocketRules(), "hello there", "Hello there."),
        (PocketRules(), 'he said "go"', 'He said "go".'),
        (PocketRules(), 'he said "go!"', 'He said "go!"'),
        (PocketRules(), "the end - almost —", "The end - almost."),
        (PocketRules(), "(well,)", "(well.)"),
        (PocketRules(), "wait…", "Wait…"),
        (PocketRules(), "a\nb  c", "A b c."),
        (PocketRules(), " ", ""),
        (PocketRules(append_terminal_punctuation=False, capitalize_first_letter=False), "sal", "sal"),
        (PocketRules(pad_with_spaces_for_short_inputs=True), "hi you", "        Hi you."),
        (PocketRules(pad_with_spaces_for_short_inputs=True), "one two three four five", "One two three four five."),
        (FRENCH, "« Bien ? », dit-il : oui ; non", "Bien ? dit-il , oui , non."),
    ],
)
def test_prepared_text(rules, text, wanted):
    assert rules.prepare(Traced.of(text)).text == wanted


def test_a_capital_and_a_stop_know_their_place():
    text = "the end -"
    done = PocketRules().prepare(Traced.of(text))
    assert done.text == "The end."
    assert (done.starts[0], done.ends[0]) == (0, 1)
    assert text[done.starts[-1] : done.ends[-1]] in (" ", "-")
    added = PhononRules().prepare(Traced.of("a"))
    assert (added.starts[-1], added.ends[-1]) == (1, 1)


@pytest.mark.parametrize("rules", [PhononRules(), PocketRules(), FRENCH])
@given(st.text(max_size=30))
def test_places_stay_in_order_and_letters_stay(rules, text):
    done = rules.prepare(Traced.of(text))
    assert list(done.starts) == sorted(done.starts)
    assert [c for c in done.text.upper() if c.isalnum()] == [c for c in text.upper() if c.isalnum()]


def test_short_texts_get_more_frames():
    assert frames_after_eos("One two three four.") == 3
    assert frames_after_eos("One two three four five.") == 1
