"""Text → chunks as the engine asks for them: markup, pauses, Markdown, the user's words, silent words."""

import logging
import re

import pytest
from golden_text import tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.errors import InputError, TextError, UnknownName
from sonant.families.latent.front import FrontEnd, reading_of
from sonant.families.latent.prepare import PhononRules, PocketRules
from sonant.families.latent.respellings import Respellings
from sonant.options import SpeakOptions
from sonant.text.reading import Reading

PHONON = FrontEnd(tokenizer=tokenizer(), rules=PhononRules(), language="en")
POCKET = FrontEnd(tokenizer=tokenizer("identity.model"), rules=PocketRules())
MARKED = st.lists(
    st.sampled_from(
        ["Hello there.", "$5.50", "1,234", "[pause 1s]", "[speed 1.2]", "\n\n", "\n", "***", "—", "😀", "❤", "co-op",
         "gooood", "Mr. X", "$2 million", "01 23 45", "ending in -12", "a@b.com",
         "“Hi”", "[tomato](/təmˈɑːtoʊ/)", "word " * 30, "x" * 90, "( )", "40 000"]
    ),
    max_size=14,
)  # fmt: skip


def chunks(text, front=PHONON, respellings=None, **reading):
    return list(front.chunks(text, Reading(**reading), respellings))


@pytest.mark.parametrize("front", [PHONON, POCKET])
@settings(max_examples=60)
@given(MARKED)
def test_every_word_once_in_order_at_its_place(front, parts):
    text = " ".join(parts)
    found = chunks(text, front)
    words = [word for chunk in found for word in chunk.words]
    assert all(text[word.start : word.end] == word.text for word in words)
    assert [word.start for word in words] == sorted({word.start for word in words})
    visible = re.sub(r"\[(pause|speed) \S+\]", " ", text).replace("[tomato](/təmˈɑːtoʊ/)", "tomato")
    if any(chunk.ids for chunk in found):
        assert [word.text for word in words] == visible.split()
    for chunk in found:
        assert len(chunk.ids) <= front.max_tokens
        assert front.tokenizer.encode(chunk.text).ids == chunk.ids
        assert all(0 <= word.token_start <= word.token_end <= len(chunk.ids) for word in chunk.words)
        assert chunk.start <= chunk.end <= len(text)


def test_a_number_is_one_word_of_the_source():
    (chunk,) = chunks("It cost $5.50 today.")
    assert chunk.text == "It cost 5 dollars and 50 cents today."
    assert [(word.text, word.normalized) for word in chunk.words] == [
        ("It", "It"), ("cost", "cost"), ("$5.50", "5 dollars and 50 cents"), ("today.", "today."),
    ]  # fmt: skip
    assert [word.token_end for word in chunk.words[:-1]] == [word.token_start for word in chunk.words[1:]]


def test_pauses_and_speeds():
    first, second, third = chunks("One. [pause 500ms] Two, [speed 1.5] three. [pause 1s]")
    assert (first.text, first.pause_before_s, first.speed) == ("One.", 0.0, 1.0)
    assert (second.text, second.pause_before_s, second.speed) == ("Two,", 0.5, 1.0)
    assert (third.text, third.speed, third.pause_after_s) == ("Three.", 1.5, 1.0)
    assert (third.start, third.end) == (36, 42)


def test_a_blank_line_is_a_pause_and_ends_a_chunk():
    first, second = chunks("One\ntwo\n\nthree.")
    assert (first.text, first.paragraph_end, second.text, second.pause_before_s) == ("One two.", True, "Three.", 0.3)
    _, second = chunks("One.\n\nTwo.", paragraph_pause_s=0.0)
    assert second.pause_before_s == 0.0


def test_markdown():
    found = chunks("# Title\n\nSome *text* and `code`.", text_format="markdown")
    assert [chunk.text for chunk in found] == ["Title.", "Some text and code."]
    assert found[1].pause_before_s == 0.5
    assert [word.text for word in found[1].words] == ["Some", "text", "and", "code"]


def test_words_without_sound_go_with_a_chunk():
    (chunk,) = chunks("*** Hello — there. 😀")
    assert [word.text for word in chunk.words] == ["***", "Hello", "—", "there.", "😀"]
    assert [word.token_start < word.token_end for word in chunk.words] == [False, True, False, True, False]


@pytest.mark.parametrize("text", ["", " \n ", "...", "— ! 😀", "( )"])
def test_nothing_to_say(text):
    assert chunks(text) == []


def test_signs_with_a_name_are_heard():
    (chunk,) = chunks("❤")
    assert chunk.text == "Love."


def test_a_pause_alone():
    (chunk,) = chunks("[pause 2s]")
    assert (chunk.ids, chunk.pause_before_s, chunk.words) == ((), 2.0, ())


def test_phonemes_are_left_out_with_a_note(caplog):
    with caplog.at_level(logging.WARNING, "sonant.text"):
        (chunk,) = chunks("Say [New York](/nˈuː jˈɔːɹk/) now.")
    assert chunk.text == "Say New York now."
    assert [word.text for word in chunk.words] == ["Say", "New York", "now."]
    assert "phonemes of 'New York' left out" in caplog.text


def test_unknown_language_is_an_error_at_once():
    with pytest.raises(UnknownName, match="'klingon'"):
        FrontEnd(tokenizer=tokenizer(), rules=PhononRules(), language="klingon")


def test_bad_markup_is_an_error_at_once():
    with pytest.raises(TextError, match="at most 60 s"):
        PHONON.chunks("[pause 100s]")


def test_respellings():
    own = Respellings.load({"nginx": "engine ex", "Nguyen": "Win"})
    (chunk,) = chunks("Mr. Nguyen (nginx), NGINX!", respellings=own)
    assert chunk.text == "Mr. Win, engine ex, engine ex!"
    assert chunk.words[2].text == "(nginx),"


@pytest.mark.parametrize("said", ["təmˈɑːtoʊ", "", None, "dˈɑləɹz"])
def test_phonemes_in_a_lexicon_are_refused(said):
    with pytest.raises(InputError, match=r"takes no phonemes\. Give another spelling"):
        Respellings.load({"tomato": said})


def test_respellings_from_files(tmp_path):
    table = tmp_path / "words.tsv"
    table.write_text("# mine\nnginx\tengine ex\n", encoding="utf-8")
    (chunk,) = chunks("nginx", respellings=Respellings.load(table))
    assert chunk.text == "Engine ex."
    table.write_text("nginx engine\n", encoding="utf-8")
    with pytest.raises(TextError, match="line 1"):
        Respellings.load(table)
    with pytest.raises(TextError, match="cannot be read"):
        Respellings.load(tmp_path / "none.tsv")
    document = tmp_path / "words.pls"
    start = '<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa">'
    entry = "<lexeme><grapheme>W3C</grapheme><{0}>{1}</{0}></lexeme></lexicon>"
    document.write_text(start + entry.format("alias", "World Wide Web Consortium"), encoding="utf-8")
    (chunk,) = chunks("The W3C.", respellings=Respellings.load(document))
    assert chunk.text == "The World Wide Web Consortium."
    document.write_text(start + entry.format("phoneme", "dʌbljuː"), encoding="utf-8")
    with pytest.raises(InputError, match="takes no phonemes"):
        Respellings.load(document)


def test_reading_of_options():
    options = SpeakOptions(markup="strict", text_format="markdown", paragraph_pause_s=0.1, lexicon={"a": "b"})
    reading = reading_of(options)
    assert (reading.markup, reading.text_format, reading.paragraph_pause_s) == ("strict", "markdown", 0.1)
    assert reading.lexicon is None
