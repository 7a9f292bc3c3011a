"""Sessions: the same speech however the text comes, edits, threads, tasks, errors, cancelling, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import math
import re
import threading
import time
import tracemalloc
import weakref
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from counting import CountingDriver
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import ReadingDriver

from sonant.engine.session import Session
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import Cancelled, InputError, TextError, UnknownName
from sonant.types import AudioChunk, WordTiming

SOON_S = 0.5
DOCS = Path(__file__).parents[2] / "docs"
TEXT = (
    "Dr. Smith paid $3.14 for 2 lb. 3 oz. of nuts. “Really? Yes.” [speed 1.5] He left [pause 200ms] at once.\n\n"
    "Then, in D.C. He slept, i.e. he did not wake! 🎉 Well...\nThe end"
)
SENTENCES = [
    "Dr. Smith paid $3.14 for 2 lb. 3 oz. of nuts.",
    " “Really? Yes.” [speed 1.5]",
    " He left [pause 200ms] at once.",
    "\n\nThen, in D.C.",
    " He slept, i.e. he did not wake! 🎉",
    " Well...",
    "\nThe end",
]


@pytest.fixture
def synth(driver: CountingDriver) -> Synthesizer:
    return Synthesizer("counting", driver)


@pytest.fixture
def reader() -> Synthesizer:
    return Synthesizer("reading", ReadingDriver())


def joined(chunks: Iterable[AudioChunk]) -> tuple[np.ndarray, list[WordTiming]]:
    taken = list(chunks)
    at = 0
    for chunk in taken:
        assert chunk.start_s == at / chunk.sample_rate
        at += len(chunk.samples)
    samples = np.concatenate([c.samples for c in taken]) if taken else np.zeros(0, np.float32)
    return samples, [w for c in taken for w in c.words]


def spoken(session: Session, parts: Iterable[str]) -> tuple[np.ndarray, list[WordTiming]]:
    """All speech of a text that comes in parts; `|` is a flush."""
    with session:
        for part in parts:
            session.feed(part) if part != "|" else session.flush()
        session.end()
        return joined(session)


def assert_equal(a: tuple[np.ndarray, list[WordTiming]], b: tuple[np.ndarray, list[WordTiming]]) -> None:
    np.testing.assert_array_equal(a[0], b[0])
    assert a[1] == b[1]


def test_a_text_committed_at_once_is_what_speak_says(reader: Synthesizer) -> None:
    speech = reader.speak(TEXT, seed=3)
    found = spoken(reader.session(commit="manual", seed=3), TEXT)
    assert_equal(found, (speech.samples, list(speech.words)))


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_any_feeding_is_the_same_as_flushing_behind_each_sentence(reader: Synthesizer, size: int) -> None:
    flushed = spoken(reader.session(commit="manual"), [p for s in SENTENCES for p in (s, "|")])
    fed = [TEXT[i : i + size] for i in range(0, len(TEXT), size)]
    assert_equal(spoken(reader.session(commit="sentence"), fed), flushed)
    assert_equal(spoken(reader.session(commit="auto", idle_ms=math.inf), fed), flushed)


def test_every_word_once_with_its_place_and_time(reader: Synthesizer) -> None:
    samples, words = spoken(reader.session(commit="sentence"), TEXT)
    assert [TEXT[w.char_start : w.char_end] for w in words] == [w.text for w in words]
    assert [w.text for w in words] == [w.text for w in reader.speak(TEXT).words]
    times = [t for w in words for t in (w.start_s, w.end_s)]
    assert times == sorted(times)
    assert words[-1].end_s <= len(samples) / reader.sample_rate


def silences(samples: np.ndarray) -> list[int]:
    edges = np.flatnonzero(np.diff(np.concatenate([[1], samples != 0, [1]]).astype(int)))
    return [int(b - a) for a, b in edges.reshape(-1, 2)]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("One.\n\nTwo.\n\n\n[pause 1s] Three. [pause 250ms] Four.", {}),
        ("# One\n\nTwo.\n\n- three\n- four\n\n## Five\nSix.", {"text_format": "markdown"}),
    ],
)
def test_the_pauses_are_those_of_speak(reader: Synthesizer, text: str, options: dict[str, str]) -> None:
    samples, _ = spoken(reader.session(commit="sentence", **options), text)  # type: ignore[arg-type]
    assert silences(samples) == silences(reader.speak(text, **options).samples)  # type: ignore[arg-type]


def test_a_sentence_is_spoken_before_the_text_goes_on(synth: Synthesizer) -> None:
    with synth.session() as session:
        session.feed("One. Tw")
        assert next(session).words[0].text == "One."
        assert (session.spoken_text, session.pending_text, session.text) == ("One.", " Tw", "One. Tw")
        session.feed("o. ")
        session.flush()
        assert next(session).words[0].text == "Two."


def test_waiting_speaks_what_seems_finished(synth: Synthesizer) -> None:
    with synth.session(idle_ms=30) as session:
        began = time.monotonic()
        session.feed("Hello there.")
        assert next(session).words[0].text == "Hello"
        assert time.monotonic() - began >= 0.03
    with synth.session(commit="sentence") as session:
        session.feed("Hello there.")
        time.sleep(0.1)
        assert session.ready() == ()


def test_ready_takes_what_is_there(synth: Synthesizer, driver: CountingDriver) -> None:
    with synth.session(ahead=3) as session:
        session.feed("a b c d. ")
        session.flush()
        found: list[AudioChunk] = []
        until = time.monotonic() + 5
        while len(found) < 4 and time.monotonic() < until:
            found += session.ready()
            time.sleep(0.001)
        assert [c.words[0].text for c in found] == ["a", "b", "c", "d."]


@pytest.mark.parametrize("ahead", [1, 3])
def test_no_more_is_computed_than_asked_for(synth: Synthesizer, driver: CountingDriver, ahead: int) -> None:
    with synth.session(commit="manual", ahead=ahead) as session:
        session.feed("a b c d e f g h")
        session.end()
        for taken in range(8):
            time.sleep(0.02)
            assert len(driver.spoken) == min(taken + ahead, 8)
            next(session)
        assert next(session, None) is None
        assert next(session, None) is None


def test_text_that_waits_for_the_model_can_be_edited(synth: Synthesizer) -> None:
    with synth.session(commit="sentence", ahead=1) as session:
        session.feed("One. Two. Three. F")
        assert next(session).words[0].text == "One."
        while session.spoken_text != "One. Two.":
            time.sleep(0.001)
        session.set_pending(" Drei. Vier")
        session.set_text("One. Two. Drei. Fünf")
        session.end()
        assert [w.text for w in joined_words(session)] == ["Two.", "Drei.", "Fünf"]
        assert session.notes == ()


def joined_words(session: Session) -> list[WordTiming]:
    return [w for c in session for w in c.words]


def test_an_edit_that_comes_too_late(synth: Synthesizer) -> None:
    expected = {"keep": ["One.", "Drei"], "respeak": ["One.", "Eins.", "Drei"]}
    for on_conflict, words in expected.items():
        with synth.session(commit="sentence", on_conflict=on_conflict) as session:
            session.feed("One. T")
            first = next(session)
            session.set_pending("Eins. Drei", at=0)
            session.end()
            assert [first.words[0].text, *(w.text for w in joined_words(session))] == words
            assert len(session.notes) == 1
    with synth.session(commit="sentence", on_conflict="raise") as session:
        session.feed("One. T")
        next(session)
        with pytest.raises(InputError, match="changes text from character 0 on, which has been spoken up to 4"):
            session.set_text("Eins. Drei")
        session.end()
        assert [w.text for w in joined_words(session)] == ["T"]


def test_notes_of_the_text(reader: Synthesizer) -> None:
    session = reader.session(markup="strict")
    spoken(session, "A [b] c.")
    assert session.notes == ("unknown tag [b] left out",)


def test_written_in_one_thread_and_taken_in_another(synth: Synthesizer) -> None:
    words = [f"w{i}{'.' if i % 5 == 4 else ''}" for i in range(50)]
    with synth.session(idle_ms=1) as session:

        def write() -> None:
            for word in words:
                session.feed(word + " ")
                time.sleep(0.0005)
            session.end()

        writer = threading.Thread(target=write)
        writer.start()
        assert [w.text for w in joined_words(session)] == words
        writer.join()


def test_tasks_write_and_take_while_the_loop_goes_on(synth: Synthesizer) -> None:
    async def main() -> list[str]:
        async with synth.session() as session:

            async def write() -> None:
                for i in range(20):
                    session.feed(f"Word{i}. ")
                    await asyncio.sleep(0.001)
                session.end()

            writer = asyncio.create_task(write())
            found = [w.text async for chunk in session for w in chunk.words]
            await writer
            return found

    assert asyncio.run(main()) == [f"Word{i}." for i in range(20)]
    assert not session_threads()


def test_cancelling_a_task_that_waits_leaves_the_session_whole(synth: Synthesizer) -> None:
    async def main() -> str:
        async with synth.session() as session:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(session), 0.02)
            session.feed("Hello. ")
            session.end()
            return (await anext(session)).words[0].text

    assert asyncio.run(main()) == "Hello."


def session_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "sonant-session"]


def test_cancel_stops_within_the_kernel_and_says_so(synth: Synthesizer, driver: CountingDriver) -> None:
    with synth.session(ahead=2) as session:
        session.feed("a slow b")
        session.flush()
        assert driver.is_slow.wait(5)
        began = time.monotonic()
        session.cancel()
        with pytest.raises(Cancelled, match="the session was cancelled"):
            next(session)  # the chunk of "a" is lost
        assert driver.stopped.wait(SOON_S)
        assert time.monotonic() - began < SOON_S
        for call in (session.flush, session.end, session.ready, lambda: session.feed("c")):
            with pytest.raises(Cancelled):
                call()
        session.cancel()
    assert not session_threads()


def test_whoever_waits_is_woken_by_cancel(synth: Synthesizer) -> None:
    session = synth.session()
    session.feed("no end")
    threading.Timer(0.05, session.cancel).start()
    with pytest.raises(Cancelled):
        next(session)

    async def main() -> None:
        async with synth.session() as session:
            asyncio.get_running_loop().call_later(0.02, session.cancel)
            with pytest.raises(Cancelled):
                await anext(session)

    asyncio.run(main())


def test_leaving_the_block_stops_the_work(synth: Synthesizer, driver: CountingDriver) -> None:
    with synth.session() as session:
        session.feed("slow b")
        session.flush()
        assert driver.is_slow.wait(5)
        began = time.monotonic()
    assert time.monotonic() - began < SOON_S
    assert driver.stopped.is_set()
    assert not session_threads()
    with pytest.raises(Cancelled):
        session.feed("c")


def test_closing_after_the_end_leaves_it_ended(synth: Synthesizer) -> None:
    session = synth.session()
    spoken(session, "a")
    assert next(session, None) is None
    assert session.ready() == ()
    session.end()
    with pytest.raises(InputError, match="told that its text has ended"):
        session.feed("b")


@pytest.mark.parametrize(("text", "error"), [("One. bad", RuntimeError), ("One. X [pause 99s] c", TextError)])
def test_a_failure_ends_the_session_as_failed(text: str, error: type[Exception]) -> None:
    driver = CountingDriver()
    session = Synthesizer("counting", driver).session()
    session.feed(text)
    session.flush()
    assert next(session).words[0].text == "One."
    for _ in range(2):
        with pytest.raises(error):
            next(session)
    with pytest.raises(error):
        session.feed("more")
    session.close()
    with pytest.raises(error):
        next(session)
    assert not session_threads()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commit": "sentences"}, "unknown commit 'sentences'; did you mean 'sentence'"),
        ({"on_conflict": "kept"}, "unknown on_conflict 'kept'; did you mean 'keep'"),
        ({"ahead": 0}, "ahead is 0; wanted a whole number of chunks from 1"),
        ({"idle_ms": 0}, "idle_ms is 0; wanted milliseconds from 1, or math.inf"),
        ({"idle_ms": 100, "commit": "manual"}, "idle_ms goes with commit='auto'"),
        ({"speed": 9}, "speed is 9"),
        ({"sped": 1}, "unknown option 'sped'"),
    ],
)
def test_wrong_options_are_named_at_once(synth: Synthesizer, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synth.session(**options)  # type: ignore[arg-type]


def test_what_the_driver_checks_is_checked_at_once(synth: Synthesizer, driver: CountingDriver) -> None:
    def unknown(text: str, options: object) -> list[tuple[str, int]]:
        raise UnknownName("voice", "twoo", ["two"])

    driver.pieces = unknown  # type: ignore[assignment,method-assign]
    with pytest.raises(UnknownName, match="twoo"):
        synth.session(voice="twoo")


def test_text_must_be_text(synth: Synthesizer) -> None:
    with synth.session() as session:
        for call in (session.feed, session.set_pending, session.set_text):
            with pytest.raises(InputError, match="text is a bytes; wanted a str"):
                call(b"a")  # type: ignore[arg-type]
        assert session.text == ""


def test_a_session_without_text_has_no_thread(synth: Synthesizer) -> None:
    with synth.session():
        assert not session_threads()
    assert spoken(synth.session(), " \n ")[1] == []


def test_a_forgotten_session_ends(synth: Synthesizer) -> None:
    session = synth.session()
    session.feed("no end")
    (thread,) = session_threads()
    del session
    thread.join(5)
    assert not thread.is_alive()


def test_a_thousand_sessions_leave_nothing(synth: Synthesizer, driver: CountingDriver) -> None:
    def use(n: int) -> weakref.ref[Session]:
        with synth.session(ahead=1 + n % 3) as session:
            session.feed(f"Number {n}. And ")
            if n % 4:
                session.end()
            if n % 4 < 3:
                next(session)
            return weakref.ref(session)

    for n in range(100):
        use(n)
    driver.spoken.clear()
    driver.closed.clear()
    threads = threading.active_count()
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        alive = [use(n) for n in range(1000)]
        driver.spoken.clear()
        driver.closed.clear()
        assert sum(ref() is not None for ref in alive) <= 1
        del alive
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert threading.active_count() == threads
    assert grown < 50_000


PARTS = st.lists(
    st.tuples(
        st.sampled_from(["feed", "feed", "feed", "flush", "take", "edit"]),
        st.text(alphabet="ab. ,\n", min_size=1, max_size=10),
    ),
    max_size=15,
)


@settings(max_examples=40)
@given(st.sampled_from(["auto", "sentence", "manual"]), PARTS)
def test_every_word_is_spoken_exactly_once(commit: str, parts: list[tuple[str, str]]) -> None:
    synth = Synthesizer("counting", CountingDriver())
    taken: list[AudioChunk] = []
    with synth.session(commit=commit, ahead=2) as session:
        for kind, text in parts:
            if kind == "feed":
                session.feed(text)
            elif kind == "flush":
                session.flush()
            elif kind == "take":
                taken += session.ready()
            else:  # the spoken part may grow meanwhile, so the edit may be a conflict
                session.set_pending(text, at=len(session.spoken_text))
        session.end()
        taken += session
        spans = [(w.char_start, w.char_end) for c in taken for w in c.words]
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        covered = "".join(session.text[a:b] for a, b in spans)
        assert covered == "".join(session.text.split())
        assert [session.text[a:b] for a, b in spans] == [w.text for c in taken for w in c.words]


def test_snippets_of_the_docs_run(synth: Synthesizer) -> None:
    played: list[np.ndarray] = []

    async def write(session: Session) -> None:
        session.feed("One. Two")
        session.end()

    names = {"synth": synth, "tokens": ["One", ". T", "wo"], "play": played.append, "asyncio": asyncio, "write": write}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "sessions.md").read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(block, names)
    asyncio.run(names["talk"]())  # type: ignore[operator]
    assert len(played) == 3 * 2
    assert names["words"] == ["It", "is", "nine.", "The", "train", "leaves", "at", "twelve."]


def test_a_short_first_piece_is_that_of_speak_and_the_first_only(reader: Synthesizer) -> None:
    sentences = ["Nobody in the village remembered the woman who had planted the tree by the church.", " One.", " Two."]
    whole = reader.speak("".join(sentences[:1]), first_piece="short")
    streamed, words = joined(reader.stream(sentences[0], first_piece="short"))
    assert np.array_equal(whole.samples, streamed)
    assert list(whole.words) == words
    assert not np.array_equal(whole.samples, reader.speak(sentences[0]).samples)
    with reader.session(commit="sentence", first_piece="short") as session:
        session.feed("".join(sentences) + " " + sentences[0])
        session.end()
        spoken, _ = joined(session)
    plain = [len(reader.speak(s).samples) for s in (" One.", " Two.")]
    cut, uncut = len(whole.samples), len(reader.speak(sentences[0]).samples)
    assert cut < uncut  # the space between two phonemes is in neither piece
    assert len(spoken) == cut + sum(plain) + uncut


def test_an_unknown_first_piece(reader: Synthesizer) -> None:
    with pytest.raises(UnknownName, match="first_piece"):
        reader.speak("a", first_piece="tiny")
