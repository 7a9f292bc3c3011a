"""The text of a session against a plain model of it: everything is taken once, in order, and never changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.engine.pending import PendingText
from sonant.errors import InputError
from sonant.options import SessionOptions
from sonant.text.cuts import CutRules


def pending(commit: str = "sentence", on_conflict: str = "keep") -> PendingText:
    return PendingText(SessionOptions(commit=commit, on_conflict=on_conflict), CutRules(clauses=commit == "auto"))


def drained(text: PendingText, *, idle: bool = False) -> list[str]:
    found = []
    while (span := text.take(idle=idle)) is not None:
        found.append(text.text[span.start : span.end])
    return found


def test_sentences_one_by_one_and_the_rest_at_the_end() -> None:
    text = pending()
    text.append("One. Two. Thr")
    assert drained(text) == ["One.", " Two."]
    text.append("ee")
    assert drained(text) == []
    text.end()
    assert drained(text) == [" Three"]


def test_manual_waits_for_a_flush_however_late_it_is_looked_at() -> None:
    text = pending("manual")
    text.append("One. Two. ")
    assert drained(text, idle=True) == []
    text.flush()
    text.flush()
    text.append(" Three")
    text.flush()
    text.append(" four ")
    assert drained(text) == ["One. Two.", "  Three"]
    text.end()
    assert drained(text) == [" four"]


def test_a_flush_cuts_where_it_was_called() -> None:
    text = pending()
    text.append("It costs 3. ")
    text.flush()
    text.append("Yes. Well. Now")
    assert drained(text) == ["It costs 3.", " Yes.", " Well."]


def test_space_alone_is_never_spoken() -> None:
    text = pending()
    text.append(" \n ")
    text.flush()
    text.end()
    assert drained(text) == []
    assert text.spoken_end == 0


def test_only_auto_takes_what_seems_finished() -> None:
    for commit, expected in (("auto", ["Hello there."]), ("manual", [])):
        text = pending(commit)
        text.append("Hello there.")
        assert drained(text) == []
        assert drained(text, idle=True) == expected


def edited(on_conflict: str, before: str, after: str) -> tuple[PendingText, list[str]]:
    """Sentences are spoken, then the whole text is edited and ended; what is spoken from then on."""
    text = pending(on_conflict=on_conflict)
    text.append(before)
    drained(text)
    text.replace(0, after)
    text.end()
    return text, drained(text)


@pytest.mark.parametrize("on_conflict", ["keep", "raise", "respeak"])
def test_the_unspoken_tail_can_be_edited(on_conflict: str) -> None:
    text, spoken = edited(on_conflict, "One. Two. Three fo", "One. Two. Drei. Vier")
    assert (text.text, spoken, text.notes) == ("One. Two. Drei. Vier", [" Drei.", " Vier"], [])
    assert edited(on_conflict, "One. Two", "One.")[1] == []


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("One two. Three", "One 2. Three", "One two. Three"),
        ("One two. Three", "One 2. Three four", "One two. Three four"),
        ("One two. Three", "One 2. Four", "One two. Four"),
        ("One two. X", "One too. More X", "One two. More X"),
        ("A b c. D e. X", "A b, b c. D. X y", "A b c. D e. X y"),
        ("One two. X", "X", "One two. X"),
        ("One two. X", "", "One two."),
    ],
)
def test_keep_leaves_out_what_comes_too_late(before: str, after: str, kept: str) -> None:
    text, _ = edited("keep", before, after)
    assert text.text == kept
    assert len(text.notes) == 1
    assert "the spoken part was left as it was" in text.notes[0]


def test_raise_changes_nothing() -> None:
    text = pending(on_conflict="raise")
    text.append("One. Two. Three")
    drained(text)
    with pytest.raises(InputError, match="changes text from character 2 on, which has been spoken up to 9"):
        text.replace(0, "Only. Two. Three")
    with pytest.raises(InputError, match="begins at character 16; the text has 15"):
        text.replace(16, "x")
    text.end()
    assert drained(text) == [" Three"]


@pytest.mark.parametrize(
    ("before", "after", "spoken"),
    [
        ("One. Two. Three. X", "One. Zwei. Three. X", [" Zwei.", " Three.", " X"]),
        ("One. Two. X", "Eins. Two. X", ["Eins.", " Two.", " X"]),
        ("One. Two. X", "One. Tw", [" Tw"]),
        ("One. Two. X", "", []),
    ],
)
def test_respeak_begins_again_with_the_changed_sentence(before: str, after: str, spoken: list[str]) -> None:
    text, found = edited("respeak", before, after)
    assert (found, text.text) == (spoken, after)
    assert "is spoken again" in text.notes[0]


def test_what_was_flushed_and_then_changed_waits_again() -> None:
    text = pending("manual")
    text.append("One two")
    text.flush()
    text.append(" three")
    text.flush()
    text.replace(0, "One two four")
    assert drained(text) == ["One two"]
    text.end()
    assert drained(text) == [" four"]


FRAGMENT = st.text(alphabet="ab A.,!\n", max_size=8)
STEP = st.one_of(
    st.tuples(st.just("feed"), FRAGMENT),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("take"), st.booleans()),
    st.tuples(st.just("tail"), FRAGMENT),
    st.tuples(st.just("edit"), st.tuples(st.integers(0, 40), FRAGMENT)),
)


class Model:
    """What has been said so far, and the check of every step."""

    def __init__(self, commit: str, on_conflict: str) -> None:
        self.text, self.respeaks = pending(commit, on_conflict), on_conflict == "respeak"
        self.said: list[tuple[int, str]] = []  # where it begins, what it is

    @property
    def spoken(self) -> str:
        return "".join(stretch for _, stretch in self.said)

    def feed(self, more: str) -> None:
        before = self.text.text
        self.text.append(more)
        assert self.text.text == before + more

    def flush(self, _: None) -> None:
        self.text.flush()

    def take(self, idle: bool = False) -> None:
        if (span := self.text.take(idle=idle)) is not None:
            assert span.start == len(self.spoken)
            self.said.append((span.start, self.text.text[span.start : span.end]))

    def tail(self, tail: str) -> None:
        self.text.replace(self.text.spoken_end, tail)
        assert self.text.text == self.spoken + tail

    def edit(self, where: tuple[int, str]) -> None:
        start, tail = where
        whole = self.text.text[:start] + tail
        self.text.replace(0, whole)
        if self.respeaks:
            assert self.text.text == whole
            self.said = [s for s in self.said if s[0] < self.text.spoken_end]
        elif whole.startswith(self.spoken):
            assert self.text.text == whole


@settings(max_examples=150)
@given(
    st.sampled_from(["auto", "sentence", "manual"]),
    st.sampled_from(["keep", "respeak"]),
    st.lists(STEP, max_size=20),
)
def test_everything_is_spoken_once_in_order(commit: str, on_conflict: str, steps: list[tuple[str, object]]) -> None:
    model = Model(commit, on_conflict)
    for name, value in steps:
        getattr(model, name)(value)
        assert model.text.text.startswith(model.spoken)
        assert model.text.spoken_end == len(model.spoken)
    model.text.end()
    whole = model.text.text.rstrip()
    for _ in range(len(whole)):
        model.take()
    assert model.spoken == whole


@settings(max_examples=100)
@given(
    st.sampled_from(["auto", "sentence", "manual"]),
    st.lists(st.tuples(FRAGMENT, st.booleans(), st.integers(0, 2)), max_size=20),
)
def test_the_cuts_do_not_depend_on_when_text_came_or_was_taken(commit: str, steps: list[tuple[str, bool, int]]) -> None:
    slow, fast = pending(commit), pending(commit)
    found = []
    for fragment, flush, takes in steps:
        slow.append(fragment)
        fast.append(fragment)
        if flush:
            slow.flush()
            fast.flush()
        found += [span for _ in range(takes) if (span := slow.take()) is not None]
    for text in (slow, fast):
        text.end()
    while (span := slow.take()) is not None:
        found.append(span)
    whole = []
    while (span := fast.take()) is not None:
        whole.append(span)
    assert found == whole
