"""A short first piece: where it ends, and that nothing but the cut changes."""

from __future__ import annotations

import pytest

from sonant.text import english, foreign
from sonant.text.reading import Reading

LONG = "The old lighthouse keeper had lived on the island for more than forty years"


def cut(text: str, **options: str) -> list[str]:
    return [text[p.start : p.end] for p in english.iter_pieces(text, first_piece="short", reading=Reading(**options))]


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("Hello there.", "This is a second sentence. And a third."),
        ("When the storm finally came,", "the boat that had been tied to the pier broke loose and drifted away."),
        (LONG, "and he knew every rock of it."),
        ("Nobody in the village remembered the woman", "who had planted the enormous tree in front of the church."),
        ("We spent $5,000,000,", "half of everything, on a boat that sank within a year."),
        ("We took the boat —", "a very old one with two masts and a leaking hull — to the other shore."),
    ],
)
def test_the_first_piece_ends_at_a_good_place(first: str, rest: str) -> None:
    assert cut(f"{first} {rest}") == [first, rest]


@pytest.mark.parametrize(
    "text",
    [
        "He said, go away from here right now and never come back to this old house of mine.",  # two words before
        "The great and famous old lighthouse of the northern coast of Scotland stood here, too.",  # one behind
        "The box of which nobody knew who had brought it to the house of the mayor stood there.",  # held on to
        "The butter and jam sandwiches of the children in the red brick school vanished.",  # a noun follows
        "It was late, and it rained.",  # short as it is
    ],
)
def test_where_no_place_is_good_the_sentence_stays_whole(text: str) -> None:
    assert cut(text) == [text]


def test_only_the_first_piece_is_short() -> None:
    sentence = f"{LONG}, and all alone."
    assert cut(" ".join([sentence] * 3)) == [f"{LONG},", f"and all alone. {sentence} {sentence}"]


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}, and nobody came. *** Then, one day, a ship … 😀 with [pause 1s] red sails came in! Who was it?",
        f"[pause 2s] {LONG}; [rate 1.2]it was fine.[/rate]\n\nA second paragraph.",
        "😀 *** \n\n" + LONG + ": yes, that is so.",
        "",
        "[pause 1s]",
    ],
)
@pytest.mark.parametrize("markup", ["auto", "off"])
def test_words_sounds_and_pauses_are_those_of_full(text: str, markup: str) -> None:
    reading = Reading(markup=markup)
    full, short = ([*english.iter_pieces(text, reading=reading, first_piece=first)] for first in ("full", "short"))
    words = [[(w.text, w.start, w.end, p.phonemes[w.phoneme_start : w.phoneme_end]) for p in pieces for w in p.words]
             for pieces in (full, short)]
    assert words[0] == words[1]
    assert " ".join(p.phonemes for p in short).split() == " ".join(p.phonemes for p in full).split()
    pauses = [[(p.pause_before_s, p.pause_after_s, p.speed) for p in pieces if p.pause_before_s or p.pause_after_s]
              for pieces in (full, short)]
    assert pauses[0] == pauses[1]


def test_headings_of_markdown_keep_their_pause() -> None:
    reading = Reading(text_format="markdown")
    pieces = list(english.iter_pieces(f"# {LONG}, and all alone\n\nThe text.", reading=reading, first_piece="short"))
    assert [p.pause_before_s for p in pieces] == [0.0, 0.0, 0.5]


def test_other_languages_are_cut_at_marks() -> None:
    pytest.importorskip("espeakng_loader")
    text = "Cuando llegó por fin la tormenta, el pequeño barco que estaba atado al muelle se soltó y se fue."
    pieces = [text[p.start : p.end] for p in foreign.iter_pieces(text, language="es", first_piece="short")]
    assert pieces[0] == "Cuando llegó por fin la tormenta,"
