"""Chunks against pocket_tts and ptts; and what neither of them keeps: no chunk too long, no word lost or twice."""

import re

import pytest
from golden_text import recorded, tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.errors import TextError
from sonant.families.latent.chunks import MAX_TOKENS, WordFinder, cut, frame_cap, stretches
from sonant.families.latent.normalize import normalize
from sonant.families.latent.prepare import PhononRules, PocketRules, frames_after_eos
from sonant.families.latent.traced import Traced

GOLDEN = recorded("chunks")
GROUPED = re.compile(r"(?<=\d)[,:](?=\d)")
"""pocket_tts cuts long sentences within 1,000 and 10:30 and reads "1, 000"; sonant does not."""
WORDS = st.lists(
    st.one_of(
        st.sampled_from(["a", "and", "house.", "well,", "no!", "“Yes.”", "1,000", "3.14", "U.S.A.", "—", "..."]),
        st.text(alphabet="abcdefg", min_size=1, max_size=12),
        st.text(alphabet="abcdé日.,-", min_size=40, max_size=120),
    ),
    max_size=60,
)


def rows(text, own, rules):
    return [[c.text.text, list(c.encoding.ids)] for c in cut([Traced.of(text)], own, rules)]


def fits(wanted):
    return all(len(row[1]) <= MAX_TOKENS for row in wanted)


@pytest.mark.parametrize("option", GOLDEN["options"])
@pytest.mark.parametrize("file", GOLDEN["pocket"])
def test_pocket_chunks_are_those_of_pocket_tts(file, option):
    rules = PocketRules(**GOLDEN["options"][option])
    compared = 0
    for text, wanted in zip(GOLDEN["texts"], GOLDEN["pocket"][file][option], strict=True):
        said = " ".join(row[0] for row in wanted)
        if not fits(wanted) or len(GROUPED.findall(said)) < len(GROUPED.findall(text)):
            continue
        compared += 1
        assert rows(text, tokenizer(file), rules) == [row[:2] for row in wanted]
        assert [frames_after_eos(row[0]) for row in wanted] == [row[2] for row in wanted]
    assert compared >= 0.85 * len(GOLDEN["texts"])


def test_phonon_chunks_are_those_of_ptts():
    """Rows are missing where ptts lets a chunk grow over the limit."""
    compared = [(text, wanted) for text, wanted in zip(GOLDEN["texts"], GOLDEN["phonon"], strict=True) if wanted]
    assert len(compared) >= 0.8 * len(GOLDEN["texts"])
    for text, wanted in compared:
        assert rows(text, tokenizer(), PhononRules()) == wanted


@pytest.mark.parametrize("rules", [PhononRules(), PocketRules()])
@settings(max_examples=40)
@given(WORDS)
def test_every_character_once_and_in_order(rules, words):
    """Cutting within a word may leave out nothing; capitals and stops are put in, white space is free."""
    text = " ".join(words)
    chunks = list(cut([Traced.of(text)], tokenizer(), rules))
    assert all(0 < len(chunk.encoding.ids) <= MAX_TOKENS for chunk in chunks)
    said = "".join(chunk.text.text for chunk in chunks)
    assert [c for c in said.lower() if c.isalnum()] == [c for c in text.lower() if c.isalnum()]
    for chunk in chunks:
        assert tokenizer().encode(chunk.text.text).ids == chunk.encoding.ids


@given(WORDS)
def test_every_word_once_with_its_tokens(words):
    text = " ".join(words)
    places = [match.span() for match in re.finditer(r"\S+", text)]
    finder = WordFinder(places)
    found = []
    for chunk in cut([Traced.of(text)], tokenizer(), PhononRules()):
        own = finder.find(chunk)
        assert all(0 <= word.start <= word.end <= len(chunk.encoding.ids) for word in own)
        assert [word.end for word in own] == sorted(word.end for word in own)
        for word in own:
            spans = chunk.encoding.spans[word.start : word.end]
            start, end = places[word.word]
            assert all(s == e or (s < end and e > start) for s, e in spans)
            assert word.start < word.end
        found += [word.word for word in own]
    assert found + list(finder.rest()) == list(range(len(places)))


def test_a_long_sentence_is_cut_at_its_marks_and_evenly():
    clause = "the cat sat on the mat and the dog lay down"
    chunks = rows(f"{clause}, {clause}, {clause}, {clause}.", tokenizer(), PhononRules())
    assert len(chunks) > 1
    assert all(text.endswith((",", ".")) for text, _ in chunks)
    assert all(text[0] == "T" for text, _ in chunks)


def test_without_marks_the_cuts_are_between_words():
    chunks = rows("cat " * 100, tokenizer(), PhononRules())
    assert {word.strip(".").lower() for text, _ in chunks for word in text.split()} == {"cat"}
    assert sum(len(text.split()) for text, _ in chunks) == 100
    sizes = [len(ids) for _, ids in chunks]
    assert max(sizes) - min(sizes) <= 6


def test_numbers_are_not_cut_in_long_sentences():
    text = "they counted 1,000 of them at 10:30 and then " * 6
    said = " ".join(text for text, _ in rows(text, tokenizer(), PocketRules()))
    assert said.count("1,000") == said.count("10:30") == 6


@pytest.mark.parametrize("rules", [PhononRules(), PocketRules()])
def test_a_text_that_is_one_word(rules):
    """In linear time and without deep recursion: 30,000 characters."""
    chunks = rows("abcdefghij" * 3000, tokenizer(), rules)
    said = "".join(text for text, _ in chunks).replace(".", "").lower()
    assert said == "abcdefghij" * 3000
    sizes = [len(ids) for _, ids in chunks]
    assert max(sizes) <= MAX_TOKENS
    assert sum(sizes) / len(sizes) > MAX_TOKENS / 3


def test_one_character_that_does_not_fit():
    with pytest.raises(TextError, match="takes 5 tokens; a chunk has at most 3"):
        list(cut([Traced.of("日")], tokenizer(), PhononRules(), 3))


PROSE = st.lists(
    st.sampled_from(
        ["It was midnight already.", "Nobody listened!", "Why?", "She asked Mrs. Smith about everything.", "Then 3.",
         "No. He left, and so did I.", "The year was 1999. Yes.", "Costs $5. Cheap.", "Lt. Col. Vann spoke.",
         "It is ending", "A very long sentence goes on and on about many things that nobody wants to know altogether. ",
         "In -12 they left.", "The dept. Approx. Sgt. Bilko?"]
    ),
    min_size=8, max_size=40,
)  # fmt: skip


@pytest.mark.parametrize("file", ["unigram.json", "identity.model"])
@pytest.mark.parametrize("rules", [PhononRules(), PocketRules(), PocketRules(remove_semicolons=True)])
@settings(max_examples=30)
@given(PROSE)
def test_a_text_in_stretches_gives_the_same_chunks(file, rules, sentences):
    text = " ".join(sentences)
    whole = cut([normalize(Traced.of(text), "en")], tokenizer(file), rules)
    parts = [Traced.of(text[start:end], start) for start, end in stretches(text)]
    in_parts = cut([normalize(part, "en") for part in parts], tokenizer(file), rules)
    found, wanted = list(in_parts), list(whole)
    assert [chunk.text.text for chunk in found] == [chunk.text.text for chunk in wanted]
    assert [chunk.encoding.ids for chunk in found] == [chunk.encoding.ids for chunk in wanted]


def test_a_long_text_comes_in_stretches():
    text = "The clocks were striking thirteen. " * 100
    assert len(list(stretches(text))) > 8


def test_frame_cap():
    assert frame_cap(0, 12.5) == 25
    assert frame_cap(50, 12.5) == 234
