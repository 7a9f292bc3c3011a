"""Paragraphs, sentences and source words."""

from __future__ import annotations

import pytest

from sonant.text.normalize.tables_en import NOT_SENTENCE_END
from sonant.text.segment import paragraphs, sentences, source_words


def cut(text: str) -> list[str]:
    return [" ".join(word.text for word in sentence.words) for sentence in sentences(text, NOT_SENTENCE_END)]


def test_source_words_have_exact_spans():
    text = "  One,\ttwo\u00a0three\n"
    assert [text[word.start : word.end] for word in source_words(text)] == ["One,", "two", "three"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Smith met J. R. Jones. He left.", ["Mr. Smith met J. R. Jones.", "He left."]),
        ("“Really?” he said. “Yes.” She left.", ["“Really?” he said.", "“Yes.”", "She left."]),
        ("It cost 3.5 dollars. OK.", ["It cost 3.5 dollars.", "OK."]),
        ("Wait... what? Well… Yes.", ["Wait... what?", "Well…", "Yes."]),
        ("Bring pens, etc. Then go.", ["Bring pens, etc.", "Then go."]),
    ],
)
def test_sentences(text, expected):
    assert cut(text) == expected


def test_wrapped_lines_are_one_paragraph():
    wrapped = "This line was wrapped by an editor because it was\nlong, but it goes on here.\n\nNew paragraph."
    assert [len(words) for words in paragraphs(wrapped)] == [16, 2]
    assert len(paragraphs("Roses are red\nviolets are blue")) == 2


def test_endless_sentence_is_cut():
    assert max(len(sentence.words) for sentence in sentences("word " * 1000)) == 400
