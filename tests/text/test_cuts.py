"""Cuts of a text that is still being written: where they fall, how early, and that nothing which follows moves them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.text.cuts import LONG_CHARS, CutRules, first_cut

PLAIN = CutRules()
MARKDOWN = CutRules(text_format="markdown")


def stretches(text: str, rules: CutRules = PLAIN) -> list[str]:
    """The stretches of a text that comes sign by sign and then ends."""
    found, start = [], 0
    for end in range(len(text) + 1):
        while (cut := first_cut(text, start, end, rules)) is not None:
            found.append(text[start:cut])
            start = cut
    while (cut := first_cut(text, start, len(text), rules, complete=True)) is not None:
        found.append(text[start:cut])
        start = cut
    return [*found, text[start:]]


@pytest.mark.parametrize(
    "expected",
    [
        ["Hello there.", " How are you?", " Fine"],
        ["Dr. Smith paid 3.14 dollars.", " See www.example.com.", " Then go."],
        ["In D.C.", " He left.", " J.R.R. Tolkien wrote, e.g. The Hobbit."],
        ['He said, "Stop. Now."', " Then left."],
        ["It is so (see below. It is).", " Yes."],
        ['A 5" pipe.', " A 6“ one."],
        ["1. Buy milk.", " 2. Go on"],
        ["Great! 🎉", " Let's go. 🎉🎉"],
        ["Hello", "\nWorld"],
        ["This line was wrapped by an editor because it was\nlong, but it goes on here.", "\n\nNew"],
        ["Hi. [pause 1s]", " Say [to. Mate](/təˈ/) now.", " Bye [speed 2] x."],
        ["你好。", "今天很好！", "“走。吧。”", "我说。"],
        ["नमस्ते।", " आप कैसे हैं"],
        ["Wait... what?", " Well…", " Yes."],
    ],
)
def test_sentences_are_cut(expected: list[str]) -> None:
    assert stretches("".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["# 1. One. Two", "\n\nText **here.", " More** of it.", "\n\nEnd"],
        ["- item one.", "\n- item two", "\n\nAfter"],
        ["Look:", "\n\n| a | b. C |\n|---|---|\n| c. D | d |", "\n\nAfter."],
        ["Run `x. Y` now.", " [See. This](http://x.y) End."],
        ["Code:", "\n\n```py\nA. B\n\nC. D\n```", "\nDone."],
        ["A <!-- no. No --> word.", " Next"],
        ["---\ntitle: A. B\n---\nText.", " More"],
        ["One line\nand its rest.", " Two"],
    ],
)
def test_blocks_of_markdown_stay_whole(expected: list[str]) -> None:
    assert stretches("".join(expected), MARKDOWN) == expected


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Hello.", None),  # "Hello.com"
        ("Hello. ", None),
        ('Hello. "', None),  # "Hello." he said
        ("Hello. W", 6),
        ("In D.C. H", None),  # it ends before "He", not before "Hats"
        ("In D.C. He ", 7),
        ("Hello\n", 5),
        ("A line that is as long as one that an editor wraps\n", None),
        ("A line that is as long as one that an editor wraps.\n", 51),
        ("A line that is as long as one that an editor wraps\n\n", 50),
        ("So. [pau", None),
        ("So. [pause 1s] T", 14),
        ("你好。", None),
        ("你好。今", 3),
    ],
)
def test_a_cut_is_made_as_soon_as_it_is_certain(text: str, cut: int | None) -> None:
    assert first_cut(text, 0, len(text), PLAIN) == cut


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Hello there.", 12),
        ("Hello there. ", 13),
        ("Hello there", None),
        ("It is 3.", None),
        ("It is 3. ", 9),
        ("I met Dr.", None),
        ("See example.com.", None),
        ("1.", None),
        ("A line that is as long as one that an editor wraps\n", 51),
        ("Since it had become rather late in the day, we w", 43),
        ("How are you today, my friend", 18),
        ("Well, we w", None),
        ('"Stop. Now', 6),
        ("Hello [pau", None),
        ("你好。", 3),
    ],
)
def test_waiting_takes_what_seems_finished(text: str, cut: int | None) -> None:
    assert first_cut(text, 0, len(text), PLAIN, idle=True) == cut


def test_long_sentences_are_cut_behind_clauses_when_asked() -> None:
    clause = "a clause of some forty signs, and no more, "
    text = clause * 10
    rules = CutRules(clauses=True)
    assert first_cut(text, 0, len(text), PLAIN) is None
    cut = first_cut(text, 0, len(text), rules)
    assert cut is not None
    assert abs(cut - LONG_CHARS) < len(clause)
    assert text[cut - 1] == ","
    endless = "word " * 200
    assert first_cut(endless, 0, len(endless), rules) == 2 * LONG_CHARS + 4
    assert first_cut("word " * 500, 0, 2500, PLAIN) == 5 * 400 - 1


def test_a_long_text_is_not_read_again_and_again() -> None:
    text = "One sentence of the long text. " * 20_000
    start = 0
    for _ in range(200):
        cut = first_cut(text, start, len(text), PLAIN)
        assert cut == start + (30 if start == 0 else 31)
        start = cut


def test_the_line_before_the_stretch_counts() -> None:
    wrapped = "The first sentence of the line ends here. The second\nis wrapped."
    text = wrapped + " X"
    assert first_cut(text, 41, len(text), PLAIN) == len(wrapped)


PARTS = [
    *(
        "Hello",
        "there",
        "Dr.",
        "Smith",
        "3.",
        "14",
        "1.",
        "a.",
        "U.S.",
        "He",
        "the",
        "no.",
        "world.",
        "What?",
        "wait...",
    ),
    *("…", "—", "-", "(see", "it)", "(", '"', '"Stop.', 'Now."', "“Oh.", "No.”", "🎉", "[pause 1s]", "[", "[a", "b]"),
    *(
        "[word](/tu/)",
        "](",
        "\\",
        "www.a.com.",
        "you,",
        "but;",
        "你好。",
        "今天，",
        "「走。」",
        "\n",
        "\n\n",
        " ",
        "J.",
    ),
    *("'em.", "word " * 30, "।"),
]
BLOCKS = [
    *("# ", "## T\n", "- ", "* x\n", "1. ", "| a | b |\n", "|---|---|\n", "```\n", "```", "`", "`x. Y`", " ** ", "_"),
    *(" **B. C** ", "<!--", "-->", "---\n", "---", "===\n", "> ", "[t. U](http://x.y)", "![i](u)", "&amp;", "~~~\n"),
    "[1]: http://a\n",
]


def written(parts: list[str]) -> st.SearchStrategy[str]:
    part = st.tuples(st.sampled_from(parts), st.sampled_from(["", " "])).map("".join)
    return st.lists(part, min_size=1, max_size=16).map("".join)


@settings(max_examples=150)
@given(
    st.one_of(
        st.tuples(st.just("plain"), written(PARTS)),
        st.tuples(st.just("markdown"), written(PARTS + BLOCKS)),
    ),
    st.booleans(),
)
def test_nothing_that_follows_moves_a_cut(case: tuple[str, str], clauses: bool) -> None:
    text_format, text = case
    rules = CutRules(text_format=text_format, clauses=clauses)
    found: int | None = None
    for end in range(len(text) + 1):
        cut = first_cut(text, 0, end, rules)
        assert found is None or cut == found, text[:end]
        if cut is not None:
            assert 0 < cut <= end
            assert first_cut(text, 0, end, rules, complete=True) == cut
        found = cut
