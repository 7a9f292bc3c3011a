"""The mapped files: what they answer, and what happens when they are damaged."""

from __future__ import annotations

import pytest

from sonant.errors import CheckpointError
from sonant.text.phonemize.en import DATA
from sonant.text.phonemize.lexicon import GOLD, SILVER, Lexicon
from sonant.text.phonemize.oov_en import Guesser, Model, to_british
from sonant.text.phonemize.tagger_en import Tagger


@pytest.fixture(scope="module")
def lexicon():
    return Lexicon(DATA / "en-us.lex")


def test_words_and_variants(lexicon):
    assert len(lexicon) == 179_249
    assert lexicon.get("hello").variants == {"DEFAULT": "həlˈO"}
    entry = lexicon.get("record")
    assert entry.rank == GOLD
    assert entry.say("VBD", "VERB") == "ɹəkˈɔɹd"
    assert entry.say("NN", "NOUN") == "ɹˈɛkəɹd"
    assert lexicon.get("can").say("MD", "MD", at_end=True) == "kˈæn"
    assert lexicon.get("US").say("NNP", "NOUN") is None
    assert lexicon.get("qqqq") is None
    assert lexicon.get("café") is None
    assert lexicon.get("") is None


def test_other_case(lexicon):
    assert lexicon.get("Hello") == lexicon.get("hello")
    assert lexicon.get("etc.").rank == GOLD
    assert lexicon.get("zymurgies") is None or lexicon.get("zymurgies").rank == SILVER


@pytest.mark.parametrize("name", ["en-us.lex", "en-gb.lex", "en.names.lex"])
@pytest.mark.parametrize("cut", [0, 5, 40, 2000, -1])
def test_damaged_lexicon_is_refused(tmp_path, name, cut):
    path = tmp_path / name
    path.write_bytes((DATA / name).read_bytes()[:cut])
    with pytest.raises(CheckpointError, match=name):
        Lexicon(path)


def test_wrong_files_are_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"SONLEX9\n" + bytes(64))
    with pytest.raises(CheckpointError, match="not a sonant lexicon"):
        Lexicon(path)
    with pytest.raises(CheckpointError, match="cannot be mapped"):
        Lexicon(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="not a sonant tagger"):
        Tagger(path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        Model(path)


@pytest.fixture(scope="module")
def guesser():
    return Guesser(DATA / "en.oov.npz", DATA / "en.names.lex", british=False)


def test_guesses_unknown_words(guesser):
    assert guesser.guess("blorptastic") == guesser.guess("blorptastic")
    assert guesser.guess("snorfle").startswith("sn")
    assert guesser.guess("Zorblax's").endswith("z")
    assert guesser.guess("привет") == ""
    assert guesser.guess("x" * 41) == "ˈɛks" * 41


def test_names_come_from_cmudict(guesser):
    assert guesser.guess("Harris") == "hˈɛɹɪs"
    assert guesser.guess("Elizabeth's") == "əlˈɪzəbəθs"


def test_the_model_knows_what_it_was_trained_on(lexicon):
    guess = Model(DATA / "en.oov.npz").decode
    words = ("planet", "window", "elephant", "kitchen", "marble", "thunder", "velvet", "candle", "orchard", "lantern")
    right = sum(guess(word) == lexicon.get(word).variants["DEFAULT"] for word in words)
    assert right >= 8


def test_american_guesses_in_a_british_mouth():
    assert to_british("wˈɔɾəɹ") == "wˈɔːtə"
    assert to_british("kˈɑɹ") == "kˈɑː"
    assert to_british("ɡˈO") == "ɡˈQ"


def test_tagger():
    tagger = Tagger(DATA / "en.tagger")
    assert tagger.tag(["I", "saw", "the", "old", "dog", "."]) == ["PRP", "VBD", "DT", "JJ", "NN", "MARK"]
    assert tagger.tag([]) == []
