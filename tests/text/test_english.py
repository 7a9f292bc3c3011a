"""The English front end against recorded official phonemes, the case list, and its own promises about spans."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.errors import InputError, UnknownName
from sonant.text import english
from sonant.text.segment import source_words

GOLDEN = Path(__file__).parent / "golden"
MARKS = ';:,.!?—…“”()[]" '


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", rows("benchmark_en_us.jsonl"), ids=lambda row: row["text"][:20])
def test_benchmark_texts_have_the_official_phonemes(row):
    assert english.phonemize(row["text"]) == row["phonemes"]


def test_prose_has_the_official_phonemes():
    """4,391 words of novels and plain prose, recorded from misaki 0.9.4 by tools/compare_misaki.py: 97 % must agree.

    What differs is nearly always a name that no lexicon has: misaki asks espeak there, sonant its own model.
    """
    same = total = 0
    for row in rows("prose_en_us.jsonl"):
        pieces = english.pieces(row["text"], limit=100_000)
        ours = [piece.phonemes[word.phoneme_start : word.phoneme_end] for piece in pieces for word in piece.words]
        assert len(ours) == len(row["phonemes"])
        for own, theirs in zip(ours, row["phonemes"], strict=True):
            total += 1
            same += own.strip(MARKS) == theirs.strip(MARKS)
    assert total > 4000
    assert same / total >= 0.985, f"{same} of {total} words agree"


SPOKEN = {
    "I’m sure it’s true; they’re late and you’ve waited.": "I'm sure it's true; they're late and you've waited.",
    "I’ll be there, here’s why.": "I'll be there, here's why.",
    "Mr. and Mrs. Smith met Dr. Jones Jr.": "mister and missus Smith met doctor Jones junior.",
    "World War II ended in 1945.": "World War Two ended in nineteen forty-five.",
    "It cost $500.": "It cost five hundred dollars.",
    "The price is $50.30.": "The price is fifty dollars and thirty cents.",
    "They raised $5.3 billion.": "They raised five point three billion dollars.",
    "It lost -$6.9 million.": "It lost minus six point nine million dollars.",
    "That is €30.20.": "That is thirty euros and twenty cents.",
    "In 1920 and 1908 it rained.": "In nineteen twenty and nineteen oh eight it rained.",
    "In the 1770s, the 1900s and the 2000s.": (
        "In the seventeen seventies, the nineteen hundreds and the two thousands."
    ),
    "It was 2001, then 2005.": "It was two thousand one, then two thousand five.",
    "In 1705 he wrote it.": "In seventeen oh five he wrote it.",
    "Beverly Hills, CA 90210": "Beverly Hills, CA nine oh two one oh",
    "I have 10 apples and 82 pears.": "I have ten apples and eighty-two pears.",
    "The 1st, 2nd, 3rd, 11th, 21st and 22nd.": ("The first, second, third, eleventh, twenty-first and twenty-second."),
    "1. The project is 90% complete.": "one. The project is ninety percent complete.",
    "Meet me at 5:03 am, 3:00 or 13:42.": "Meet me at five oh three a m, three o'clock or thirteen forty-two.",
    "Come at 5 p.m. or at 9:30PM.": "Come at five p m or at nine thirty p m.",
    "1.6k of the 10k": "one point six thousand of the ten thousand",
    "Write to user@example.com.": "Write to user at example dot com.",
    "See www.test.org/docs": "See w w w dot test dot org slash docs",
    "Version 2.0.1 is out.": "Version two point zero point one is out.",
    "Pages 5-10 and $10–20.": "Pages five to ten and ten to twenty dollars.",
    "Bake at 40–60°C.": "Bake at forty to sixty degrees Celsius.",
    "On August 15, 1947 it began.": "On August fifteenth, nineteen forty-seven it began.",
    "On 2024-05-03.": "On May third, twenty twenty-four.",
    "This is great—really useful.": "This is great—really useful.",
    "Add ½ cup and 3/4 teaspoon.": "Add one half cup and three quarters teaspoon.",
    "It is 5 km, 70 kg and 3 ft 2 in.": "It is five kilometers, seventy kilograms and three feet two inches.",
    "At YC event last week Brian Chesky gave a talk.": "At YC event last week Brian Chesky gave a talk.",
    "Great job 🎉🎉": "Great job",
    "The ﬁrst ﬂight": "The first flight",
    "soft\u00adhyphen, no\u00a0break, zero\u200bwidth, \ufeffbom": "softhyphen, no break, zerowidth, bom",
    "a\n\n\nb": "a\nb",
    "Henry VIII, Chapter V and I.": "Henry the eighth, Chapter Five and I.",
    "St. Paul lives on Main St. in town, No. 5.": "saint Paul lives on Main street in town, number five.",
    "The U.S. team, e.g. J. Smith.": "The U S team, e g J Smith.",
    "A 20-year-old paid $20,000-a-year or $100/month.": (
        "A twenty year old paid twenty thousand dollars a year or one hundred dollars per month."
    ),
    "COVID-19, B2B, MP3, 18F and 24/7": "COVID nineteen, B to B, M P three, eighteen F and twenty-four seven",
    "He said 'hello' to the dogs' owner.": "He said “hello” to the dogs' owner.",
    "The end.Next one": "The end. Next one",
    "Henry the VIII of World War I": "Henry the eighth of World War One",
    "Open 9am-5pm or 10:30-11:45.": "Open nine a m to five p m or ten thirty to eleven forty-five.",
    "Call (555) 123-4567.": "Call (five five five) one two three, four five six seven.",
    "See fig. 3 and p. 5; in Jan. it fits.": "See figure three and page five; in January it fits.",
    "The mid-1990s F-16s won 2:1, 50-50.": "The mid nineteen nineties F sixteens won two to one, fifty fifty.",
    "x² + α = 5 m²": "x squared plus alpha equals five square meters",
    "AT&T and R&D": "A T and T and R and D",
}


@pytest.mark.parametrize(("text", "spoken"), SPOKEN.items())
def test_normalize(text, spoken):
    assert english.normalize(text) == spoken


PHONEMES = {
    "I read books every day. Yesterday I read one.": "ˌI ɹˈid bˈʊks ˈɛvəɹi dˈA. jˈɛstəɹdˌA ˌI ɹˈɛd wˈʌn.",
    "A great year to live. The website went live.": "ɐ ɡɹˈAt jˈɪɹ tə lˈɪv. ðə wˈɛbsˌIt wˈɛnt lˈIv.",
    "NASA and the FBI use an API.": "nˈæsə ænd ði ˌɛfbˌiˈI jˈuz ɐn ˌApˌiˈI.",
    "Pan Am Constellation": "pˈæn æm kˌɑnstəlˈAʃən",
    "A lead pipe and a bass guitar.": "ɐ lˈɛd pˈIp ænd ɐ bˈAs ɡətˈɑɹ.",
    "We used to use the old one. I used it.": "wˌi jˈust tə jˈuz ði ˈOld wˈʌn. ˌI jˈuzd ɪt.",
    "This is great—really.": "ðˌɪs ɪz ɡɹˈAt—ɹˈiᵊli.",
    "Any help ?": "ˈɛni hˈɛlp?",
    "rock 'n' roll, 'tis": "ɹˈɑk ən ɹˈOl, tˈɪz",
    "well-known": "wˌɛlnˈOn",
    "Henry VIII, Louis XIV, 5-8, 1½": "hˈɛnɹi ði ˈAθ, lˈui ðə fˌɔɹtˈinθ, fˈIv tʊ ˈAt, wˈʌn ænd ɐ hˈæf",
    "The students’ rooms": "ðə stˈudᵊnts ɹˈumz",
    "I recently read a book.": "ˌI ɹˈisᵊntli ɹˈɛd ɐ bˈʊk.",
    "I didn't read it.": "ˌI dˈɪdᵊnt ɹˈid ɪt.",
    "gsa.gov": "ʤˌiˌɛsˈA dˈɑt ɡˈʌv",
    "https": "ˈAʧtˈitˈipˈiˈɛs",
}


@pytest.mark.parametrize(("text", "phonemes"), PHONEMES.items())
def test_phonemize(text, phonemes):
    assert english.phonemize(text) == phonemes


def test_curly_and_straight_apostrophes_sound_alike():
    curly = "I’m sure it’s true; they’re late and you’ve waited."
    assert english.phonemize(curly) == english.phonemize(curly.replace("’", "'"))


def test_money_is_one_source_word_spoken_as_three():
    text = "It cost $100 then"
    word = english.pieces(text)[0].words[2]
    assert (word.text, word.normalized) == ("$100", "one hundred dollars")
    assert text[word.start : word.end] == "$100"
    assert english.pieces(text)[0].phonemes[word.phoneme_start : word.phoneme_end] == "wˈʌn hˈʌndɹəd dˈɑləɹz"


def test_attached_marks_are_outside_the_range_of_a_word():
    (piece,) = english.pieces("(“Stop!”)")
    (word,) = piece.words
    assert piece.phonemes == "(“stˈɑp!”)"
    assert piece.phonemes[word.phoneme_start : word.phoneme_end] == "stˈɑp"


@pytest.mark.parametrize("text", ["", "   ", "... !!! ???", "”", "🎉", "\u200b", "* * *", "---\n***", "\n\n"])
def test_nothing_to_say_gives_no_piece(text):
    assert english.pieces(text) == []
    assert english.phonemize(text) == ""


def test_silent_words_stay_in_place():
    text = "One 🎉 two\n\n***\n\nthree ***"
    words = [word for piece in english.pieces(text) for word in piece.words]
    assert [word.text for word in words] == text.split()
    assert [word.text for word in words if word.phoneme_start == word.phoneme_end] == ["🎉", "***", "***"]


def test_paragraphs_end_pieces():
    assert [(piece.phonemes, piece.paragraph_end) for piece in english.pieces("One.\nTwo. Three.")] == [
        ("wˈʌn.", True),
        ("tˈu. θɹˈi.", True),
    ]


def test_british_english():
    assert english.phonemize("The car was near the water.", "en-GB") == "ðə kˈɑː wɒz nˌɪə ðə wˈɔːtə."


def test_unknown_language_and_small_limit_are_refused():
    with pytest.raises(UnknownName, match="en-US"):
        english.pieces("a", language="en-AU")
    with pytest.raises(InputError, match="at least 16"):
        english.pieces("a", limit=3)


def check(text: str, language: str, limit: int) -> None:
    """Every promise about pieces."""
    pieces = english.pieces(text, language=language, limit=limit)
    words = [word for piece in pieces for word in piece.words]
    if pieces:
        assert [(w.text, w.start, w.end) for w in words] == [(w.text, w.start, w.end) for w in source_words(text)]
    for piece in pieces:
        assert 0 < len(piece.phonemes) <= limit
        assert piece.phonemes == " ".join(piece.phonemes.split())
        last = 0
        for word in piece.words:
            assert text[word.start : word.end] == word.text
            assert last <= word.phoneme_start <= word.phoneme_end <= len(piece.phonemes)
            last = word.phoneme_end


FRAGMENTS = (
    "$5.3 billion World War II 3:00 p.m. Mr. St. e.g. 5 km in ft No. 1990s 2-4 well-known user@example.com don't 'tis "
    '#tag @me C# a.pdf /usr/x ./y 5\'11" 15" x^2 <3 > < * / = - 1e-3 +44 020 7946 0958 EUR 50 USD 10%-20% Mon-Fri Jan '
    "1 w/o xii XXI century 31.12.2021 4K 300 K Dr. Elm 123 Main St J.R.R. P.O. :-) ∞ √2 9.30 am.–5 "
    "-- … ... 1,234.5 3/4 ½ -$6 II. #1 US$5 10k COVID-19 Henry VIII August 15, CA 90210 v1.2.3 2024-01-02 the a to 🎉 "
    "“yes!” 'no' (so) — ² café привет x/y A&B iPhone ]( 5'6\" I. \ufeff \u00ad-"
)
PARTS = st.lists(st.sampled_from(FRAGMENTS.split(" ")), max_size=25)
TEXTS = st.one_of(st.text(max_size=60), PARTS.map(" ".join), PARTS.map("\n".join))


@settings(max_examples=1500)
@given(TEXTS, st.sampled_from(english.LANGUAGES), st.sampled_from([16, 40, 510]))
def test_any_text_keeps_every_word_and_its_span(text, language, limit):
    check(text, language, limit)
    english.normalize(text, language)


VECTOR_WORDS = sorted(
    {
        word
        for line in (Path(__file__).parent / "vectors" / "english.jsonl").read_text(encoding="utf-8").splitlines()
        for word in json.loads(line)["text"].split()
        if not set(word) & set("[]\\") and "<3" not in word
    }
)
JUNK = st.text("abcXYZ0123459.,:;-/'%$€£#@&+*=()_^~½²°\"x", min_size=1, max_size=8)


@settings(max_examples=1500)
@given(st.lists(st.one_of(st.sampled_from(VECTOR_WORDS), JUNK), min_size=1, max_size=6))
def test_no_letter_and_no_digit_is_passed_over(words):
    """Whatever has a letter or a digit makes a sound, in any company."""
    for piece in english.pieces(" ".join(words)):
        for word in piece.words:
            if any(letter.isascii() and letter.isalnum() for letter in word.text):
                assert word.phoneme_end > word.phoneme_start, word.text


@pytest.mark.parametrize(
    "unit",
    [
        "x",
        "1.",
        "/a",
        "1'",
        "a.b-",
        "x^",
        "1_",
        "mg/",
        "1",
        "a-",
        "é",
        "!",
        "$",
        "a.b.",
        "x@",
        "9,",
        "'",
        "(",
        "Ab",
        "1/2",
        "½",
        "i'",
        "I.",
        "—",
    ],
)
def test_long_tokens_are_split_and_not_dropped(unit):
    text = unit * 2000
    check(text, "en-US", 510)
    check(f"So {text} it is.", "en-US", 64)


def test_long_sentence_is_cut_at_its_marks():
    text = ", ".join(["alpha bravo charlie delta echo foxtrot"] * 30) + "."
    pieces = english.pieces(text)
    assert len(pieces) > 2
    assert all(piece.phonemes[-1] in ",." for piece in pieces)
    check(text, "en-US", 510)


def test_whole_sentences_are_packed_together():
    pieces = english.pieces("This is a short sentence. " * 60)
    assert all(piece.phonemes.endswith(".") and len(piece.phonemes) > 450 for piece in pieces[:-1])


def test_pieces_come_one_by_one():
    """The first piece needs only the text up to the sentence that no longer fits: a reader may be much longer."""
    text = "This is a short sentence. " * 20_000
    first = next(english.iter_pieces(text))
    assert first.start == 0
    assert first.end < 1000


GROWING = [
    "1",
    "a ",
    "a. ",
    "word ",
    "$1 ",
    "it's ",
    "-",
    "'",
    "(",
    "a\n",
    "1-",
    "II ",
    "1.",
    "/a",
    "#a",
    "1'",
    "+1 2",
    "5 - ",
]
GROWING += ["1_", "mg/", "=", "EUR 5 ", "a@", "a.b-", "½", "x^", "020 ", "5 sq ", "St. ", "U.S.-", ">=", "e9"]


@pytest.mark.parametrize("unit", GROWING)
def test_work_grows_in_proportion_to_the_text(unit):
    """Counted, not timed: lines executed for a text twice as long are about twice as many."""

    def lines_run(text: str) -> int:
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += 1
            return trace

        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            english.pieces(text)
        finally:
            sys.settrace(previous)
        return count

    size = 600 // len(unit)
    english.pieces(unit * size * 2)  # caches are warm for both
    assert lines_run(unit * size * 2) < 2.3 * lines_run(unit * size) + 500


def test_import_is_light():
    """Not even numpy before the first text."""
    code = "import sys, sonant.text.english; print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
