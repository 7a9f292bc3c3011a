"""Tags, given phonemes, Markdown, and the user's lexicon: what is spoken, where it stands, what pauses."""

from __future__ import annotations

import contextlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.errors import InputError, TextError, UnknownName
from sonant.text import english
from sonant.text.english import Reading
from sonant.text.lexicon_file import UserLexicon, read_pls, read_tsv
from sonant.text.markup import read_markup
from sonant.text.script import ALPHABET

MARKDOWN = Reading(text_format="markdown")
STRICT = Reading(markup="strict")


def spoken(text: str, **reading: object) -> list[tuple[str, float, float]]:
    """(phonemes, pause before, pause after) of every piece."""
    found = english.pieces(text, reading=Reading(**reading))
    return [(p.phonemes, p.pause_before_s, p.pause_after_s) for p in found]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello. [pause 1s] Bye.", [("həlˈO.", 0, 0), ("bˈI.", 1, 0)]),
        ("[pause 1s]Hello.", [("həlˈO.", 1, 0)]),
        ("Hello.[pause 250ms]", [("həlˈO.", 0, 0.25)]),
        ("Hello [PAUSE: 1.5 s][break]bye", [("həlˈO", 0, 0), ("bˈI", 2, 0)]),
        ("a\n\n\nb", [("ɐ", 0, 0), ("bˈi", 0.3, 0)]),
        ("a\nb", [("ɐ", 0, 0), ("bˈi", 0, 0)]),
        ("a\n\n***\n\nb\n\n***", [("ɐ", 0, 0), ("bˈi", 0.6, 0)]),
        ("a\n\n[pause 1s]\n\nb", [("ɐ", 0, 0), ("bˈi", 1, 0)]),
        ("a\n\n[pause 0s]b", [("ɐ", 0, 0), ("bˈi", 0, 0)]),
        ("[pause 1s] 🎉 [pause 1s]", [("", 2, 0)]),
        ("[pause 2s]", [("", 2, 0)]),
        ("Hello [pause 1s], you", [("həlˈO", 0, 0), ("ju", 1, 0)]),
        (r"\[pause 1s] a", [("(pˈɔz wˈʌn sˈɛkənd) ɐ", 0, 0)]),
    ],
)
def test_pauses(text, pieces):
    assert spoken(text) == pieces


def test_pauses_of_paragraphs_are_the_callers_choice():
    assert spoken("a\n\nb", paragraph_pause_s=1)[1][1] == 1
    assert spoken("a\n\nb", paragraph_pause_s=0)[1][1] == 0
    assert spoken("# a\n\nb\n\nc", text_format="markdown", heading_pause_s=2)[1][1] == 2
    with pytest.raises(InputError, match="from 0 to 60"):
        Reading(paragraph_pause_s=-1)


def test_speed_changes_from_one_place_to_the_next():
    text = "One [speed 1.5] two. Three [speed 1] four."
    assert [(p.phonemes, p.speed) for p in english.pieces(text)] == [("wˈʌn", 1), ("tˈu. θɹˈi", 1.5), ("fˈɔɹ.", 1)]
    assert [p.speed for p in english.pieces("[speed 2]a")] == [2]


def test_unknown_tags(caplog):
    text = "He said [citation needed] twice[1]."
    assert english.normalize(text) == "He said (citation needed) twice(one)."
    assert english.normalize(text, reading=STRICT) == "He said twice."
    assert caplog.records[0].getMessage() == "unknown tag [citation needed] left out"
    assert read_markup(text, "strict").notes == ("unknown tag [citation needed] left out", "unknown tag [1] left out")
    assert english.normalize("a [pause 1s] b", reading=Reading(markup="off")) == "a (pause one second) b"


@pytest.mark.parametrize("text", ["[pause 61s]", "[pause 999999999s]", "[speed 9]", "[speed 0]"])
@pytest.mark.parametrize("text_format", ["plain", "markdown"])
def test_impossible_tags_are_refused(text, text_format):
    with pytest.raises(TextError, match=r"\[(pause|speed)"):
        english.pieces(f"a {text} b", reading=Reading(text_format=text_format))


def test_given_phonemes_are_exact_and_one_word():
    text = "a ([New  York](/nu jɔɹk/), [tomato](/təmˈɑːtoʊ/)!) [GIF](/ʤˈɪf/)s"
    (piece,) = english.pieces(text)
    words = {text[w.start : w.end]: piece.phonemes[w.phoneme_start : w.phoneme_end] for w in piece.words}
    assert words["New  York"] == "nu jɔɹk"
    assert words["tomato"] == "təmˈɑːtoʊ"
    assert piece.phonemes == "ɐ (nu jɔɹk, təmˈɑːtoʊ!) ʤˈɪfs"
    assert english.phonemize("[a](/ɾʔ/) [b](//)") == "ɾʔ"


@pytest.mark.parametrize("reading", [Reading(), MARKDOWN])
def test_phonemes_outside_the_alphabet_are_named(reading):
    with pytest.raises(TextError, match=r"'tomato'.*'ŧ' \(U\+0167\)"):
        english.pieces("[tomato](/ŧəm/)", reading=reading)


def test_the_alphabet_is_kokoros(kokoro_vocab):
    assert set(kokoro_vocab) == ALPHABET


def test_options_are_checked():
    with pytest.raises(UnknownName, match="strict"):
        Reading(markup="stric")
    with pytest.raises(UnknownName, match="markdown"):
        Reading(text_format="md")


MARKDOWN_CASES = {
    "### Example Heading\nHere is a paragraph.": "Example Heading.\nHere is a paragraph.",
    "Title\n=====\nText": "Title.\nText",
    "# Is it? #\ntext": "Is it?\ntext",
    "* item one\n* item two": "item one\nitem two",
    "- [x] done\n- [ ] open\n  + deeper": "done\nopen\ndeeper",
    "1. first\n2) second": "one. first\ntwo) second",
    "Read [the docs](https://example.com/x).": "Read the docs.",
    "[a [b] c](x 'title') ![A cat](cat.png)": "a (b) c A cat",
    "See [here][1] and [it][] and [it].\n\n[1]: http://x.y\n[it]: http://z": "See here and it and it.",
    "**Bold**, *it*, __b__, _i_, ***both***, ~~gone~~ un**believ**able": "Bold, it, b, i, both, gone unbelievable",
    "snake_case stays, 2*3 and * alone": "snake case stays, two times three and alone",
    "Use `x*y*z` and ``a`b``.": "Use x y z and a'b.",
    "A [link](/docs/) and [tomato](/təmˈɑːtoʊ/).": "A link and tomato.",
    "one\ntwo  \nthree\\\nfour": "one two\nthree\nfour",
    "> quoted *text*\n> goes on": "quoted text goes on",
    "a\n\n---\n\nb\n***\nc": "a\nb\nc",
    "| a | b |\n|---|:-:|\n| 1 | **2** |\n\nend": "a, b.\none, two.\nend",
    "```py\nprint(x)\n```\nend": "print(x)\nend",
    "<b>Bold</b> <!-- no --> AT&amp;T &lt;4<br>x": "Bold A T and T less than four x",
    "<https://example.com> and <me@x.org>": "example dot com and me at x dot org",
    "Note[^1].\n\n[^1]: It is so.": "Note.\nIt is so.",
    "---\ntitle: x\n---\nText": "Text",
    r"\*not emphasis\* and 1\. no list": "not emphasis and one. no list",
    "a [pause 1s] b [odd] c": "a b (odd) c",
}


@pytest.mark.parametrize(("text", "said"), MARKDOWN_CASES.items())
def test_markdown(text, said):
    assert english.normalize(text, reading=MARKDOWN) == said
    check(text, MARKDOWN)


def test_line_ends_of_windows():
    text = "# One\r\n\r\n```\r\nx\r\n```\r\n---\r\n* two\r\n"
    assert english.normalize(text, reading=MARKDOWN) == "One.\nx\ntwo"
    assert spoken("a\r\n\r\nb")[1][1] == 0.3
    check(text, MARKDOWN)


def test_markdown_pauses():
    assert spoken("# One\n\nTwo.\n\n- three\n- four", text_format="markdown") == [
        ("wˈʌn.", 0, 0),
        ("tˈu.", 0.5, 0),
        ("θɹˈi", 0.3, 0),
        ("fˈɔɹ", 0, 0),
    ]


def check(text: str, reading: Reading, limit: int = 510) -> None:
    """The promises of any reading: spans are exact, in order, apart; every visible word is listed once."""
    pieces = english.pieces(text, reading=reading, limit=limit)
    last = 0
    for piece in pieces:
        assert len(piece.phonemes) <= limit
        assert piece.phonemes or piece.pause_before_s
        for word in piece.words:
            assert text[word.start : word.end] == word.text
            assert last <= word.start < word.end
            last = word.end
    if pieces and (pieces[0].phonemes or pieces[0].words):
        visible = reading.script(text).visible
        assert len([w for p in pieces for w in p.words]) == len(visible.split())


FRAGMENTS = [
    "[pause 1s]", "[pause 20ms]", "[break]", "[speed 2]", "[speed 1]", "\\[", "\\]", "[x]", "[tomato](/təmˈA/)",
    "[a b](/ɐ bˈi/)", "[", "]", "(/", "/)", "# ", "\n", "\n\n", "* ", "- ", "1. ", "**", "_", "`", "\\`", "``", "```\n",
    "~~", "> ", "---\n", "***\n", "word", "Hello.", "$5.30", "3 km", "don't", "🎉", "“yes”", "<b>", "&amp;", "<!--",
    "-->", "| a | b |\n|---|", "[t](http://x.y)", "[^1]", "[r]: http://z\n", "![i](p)", "é", "\u200b", "\ufeff", "St.",
    "II", "\ue000",
]  # fmt: skip
PARTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=20)
READINGS = [Reading(), STRICT, MARKDOWN, Reading(text_format="markdown", markup="strict"), Reading(markup="off")]


@settings(max_examples=1500)
@given(PARTS, st.sampled_from([" ", ""]), st.sampled_from(READINGS), st.sampled_from([16, 510]))
def test_any_marked_text_keeps_every_word_and_its_span(parts, joint, reading, limit):
    text = joint.join(parts)
    with contextlib.suppress(TextError):  # of a tag that chance has made impossible
        reading.script(text)
        check(text, reading, limit)
        english.normalize(text, reading=reading)


UNITS = [
    "[", "]", "](", "[a](/", "\\[", "[pause 1s]", "*", "* ", "**a", "_a", "`", "`a", "``` \n", "![", "<a ", "<!--",
    "&amp;", "|", "| a |\n|-|\n", "# a\n", "> ", "- a\n", "[a]: b\n", "a\n\n", "~~", "[^", "[speed 2]a ", "[[", "(",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("text_format", ["plain", "markdown"])
def test_markup_takes_time_in_proportion(unit, text_format):
    """Lines of Python executed, of a text twice as long."""
    reading = Reading(text_format=text_format)

    def lines_run(text: str) -> int:
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += 1
            return trace

        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            reading.script(text)
        finally:
            sys.settrace(previous)
        return count

    size = 2000 // len(unit)
    assert lines_run(unit * size * 2) < 2.3 * lines_run(unit * size) + 500


@pytest.mark.parametrize("unit", UNITS)
def test_long_markup_is_read_in_a_moment(unit):
    """What regular expressions do is not counted in lines: 200 kB in a second or so, where squares take minutes."""
    for text_format in ("plain", "markdown"):
        Reading(text_format=text_format).script(unit * (200_000 // len(unit)))


def test_lexicon_from_a_mapping():
    lexicon = UserLexicon.load({"sonant": "sˈOnənt", "US": "ˈʌs", "C++": "sˈi plˈʌs", "10k": "tˈɛn kˈA"})
    reading = Reading(lexicon=lexicon)
    text = "Sonant, SONANT's “sonant” in the US for us: C++, 10k sonant-like."
    assert english.phonemize(text, reading=reading) == (
        "sˈOnənt, sˈOnənts “sˈOnənt” ɪn ði ˈʌs fɔɹ ˌʌs: sˈi plˈʌs, tˈɛn kˈA sˈOnəntlˈIk."
    )
    check(text, reading)


def test_lexicon_from_tsv(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_bytes("\ufeff# mine\r\nKokoro\tkˈOkəɹO\r\n\r\nnginx\tˈɛnʤən ˈɛks\n".encode())
    reading = Reading(lexicon=UserLexicon.load(path))
    assert english.phonemize("nginx, Kokoro!", reading=reading) == "ˈɛnʤən ˈɛks, kˈOkəɹO!"
    assert UserLexicon.load(path) is reading.lexicon
    path.write_text("nginx\tˈɛn", encoding="utf-8")
    assert len(UserLexicon.load(path)) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a\tɐ\nb\tŧ\n", r"w\.tsv, line 2.*'ŧ'"),
        ("a ɐ", r"line 1: no tab"),
        ("a\t", "line 1: no phonemes"),
        ("a b\tɐ", "not one word"),
        ("\ta", "not one word"),
    ],
)
def test_a_bad_line_is_named(data, message):
    with pytest.raises(TextError, match=message):
        read_tsv(data.encode(), "w.tsv")


PLS = """<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa" xml:lang="en-US">
  <lexeme><grapheme>tomayto</grapheme><grapheme>tomeito</grapheme><phoneme>təˈmeɪɾoʊ</phoneme></lexeme>
  <lexeme><grapheme>judge</grapheme><phoneme>d͡ʒʌdʒ</phoneme><phoneme>x</phoneme></lexeme>
  <lexeme><grapheme>strain</grapheme><phoneme>ˈstreɪn</phoneme></lexeme>
  <lexeme><grapheme>W3C</grapheme><alias>World Wide Web Consortium</alias></lexeme>
</lexicon>"""


def test_lexicon_from_pls():
    reading = Reading(lexicon=read_pls(PLS.encode()))
    text = "Tomayto tomeito judge strain."
    assert english.phonemize(text, reading=reading) == "təmˈATO təmˈATO ʤʌʤ stɹˈAn."
    assert english.normalize("The W3C.", reading=reading) == "The World Wide Web Consortium."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (PLS.replace("ʌdʒ", "ŧ"), r"p\.pls, line 4.*'ŧ'"),
        (PLS.replace("</lexicon>", ""), "not well-formed"),
        (PLS.replace("<lexicon", '<!DOCTYPE x [<!ENTITY a "b">]><lexicon'), "document type is refused"),
        (PLS.replace('"ipa"', '"x-sampa"'), "x-sampa"),
        ("", "not well-formed"),
    ],
)
def test_bad_pls_is_refused(data, message):
    with pytest.raises(TextError, match=message):
        read_pls(data.encode(), "p.pls")


def test_missing_lexicon(tmp_path):
    with pytest.raises(TextError, match=r"none\.tsv cannot be read"):
        UserLexicon.load(tmp_path / "none.tsv")
