"""Languages of the optional packages: recorded sounds where the package is here, and what is said where it is not.

Recorded with espeak-ng 1.52 (espeakng-loader 0.2.4), jieba 0.42.1, fugashi 1.5.2 with unidic-lite; equal to misaki
0.9.4 but for spaces before marks and beside numbers, and symbols that Kokoro does not have.
"""

from __future__ import annotations

import importlib.util
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.errors import MissingExtra, UnknownName
from sonant.text import foreign
from sonant.text.lexicon_file import UserLexicon
from sonant.text.phonemize.espeak import _shares
from sonant.text.reading import Reading
from sonant.text.spans import SourceWord

PACKAGES = {
    **dict.fromkeys(foreign.ESPEAK, ("phonemizer", "espeakng_loader")),
    "ja": ("misaki", "fugashi", "jaconv", "mojimoji"),
    "zh": ("misaki", "jieba", "pypinyin", "cn2an"),
}
EXTRAS = {**dict.fromkeys(foreign.ESPEAK, "espeak"), "ja": "ja", "zh": "zh"}


def need(language: str) -> None:
    missing = [name for name in PACKAGES[language] if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{language} is not tested: {', '.join(missing)} missing; pip install '.[{EXTRAS[language]}]'")


SAID = [
    ("es", "Hola, ¿cómo estás? El niño come pan (y agua).", "ˈola, kˈomo estˈas? el nˈiɲo kˈome pˈan (i ˈaɣwa)."),
    ("fr-FR", "Bonjour, comment ça va ? Très bien.", "bɔ̃ʒˈuʁ, kɔmˌɑ̃ sa vˈa? tʁɛ bjˈɛ̃."),
    ("it", "Ciao, come stai? Ho 12 gatti.", "ʧˈao, kˌome stˈaj? o dˈodiʧɪ ɡˈatːɪ."),
    ("pt-BR", "Olá, tudo bem? Não sei.", "olˈa, tˈudʊ bˈAŋ? nˌɐ̃ʊ̃ sˈA."),
    ("hi", "नमस्ते, आप कैसे हैं? मैं ठीक हूँ।", "nəmˈʌsteː, ˌaːp kˈɛːseː hɛ̃? mɛ̃ ʈʰˈiːk hũ."),
    ("zh", "你好，世界！今天是2024年5月3日。", "ni↓xau↓, ʂɨ↘ʨje↘! ʨi→ntʰjɛ→n ʂɨ↘ ɚ↘li↗ŋɚ↘sɨ↘njɛ↗n u↓ɥe↘ sa→nɻɨ↘."),
    ("ja", "こんにちは、世界！今日はいい天気ですね。", "koɲɲiʨiβa, sekai! kʲoː βa iː teŋkʲi desɨ ne."),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("language", "text", "phonemes"), SAID, ids=[row[0] for row in SAID])
def test_sounds_and_spans(language, text, phonemes):
    need(language)
    pieces = list(foreign.iter_pieces(text, language=language))
    words = [word for piece in pieces for word in piece.words]
    said = " ".join(piece.phonemes for piece in pieces)
    assert unicodedata.normalize("NFC", said) == unicodedata.normalize("NFC", phonemes)
    assert all(text[word.start : word.end] == word.text for word in words)
    assert "".join(word.text for word in words) == "".join(text.split())


def test_several_sounds_of_one_word_stay_with_it():
    need("fr-FR")
    (piece,) = foreign.iter_pieces("il y a 365 jours dans l'année", language="fr-FR")
    said = {word.text: piece.phonemes[word.phoneme_start : word.phoneme_end] for word in piece.words}
    assert (said["365"], said["jours"], said["l'année"]) == ("tʁwasɑ̃ swasɑ̃tsˈɛ̃k", "ʒˈuʁ", "lanˈe")


@pytest.mark.parametrize("language", foreign.LANGUAGES)
def test_a_missing_package_names_its_extra(language, monkeypatch):
    for name in PACKAGES[language]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("phonemizer.backend", "misaki.zh", "misaki.cutlet"):
        monkeypatch.setitem(sys.modules, name, None)
    foreign._speaker.cache_clear()
    with pytest.raises(MissingExtra, match=rf"sonant\[{EXTRAS[language]}\]"):
        list(foreign.iter_pieces("a", language=language))
    foreign._speaker.cache_clear()


def test_unknown_language():
    with pytest.raises(UnknownName, match="pt-BR"):
        list(foreign.iter_pieces("a", language="pt"))


class Letters:
    """Every word sounds as its letters from a to z."""

    def split(self, word: SourceWord) -> list[SourceWord]:
        return [word]

    def say(self, words: list[str]) -> list[str]:
        return ["".join(c for c in word if c in "abcdefgh.,!?“”()") for word in words]


@pytest.fixture
def letters(monkeypatch):
    monkeypatch.setattr(foreign, "_speaker", lambda language: Letters())


def test_markup_and_lexicon_work_in_any_language(letters):
    text = "abba [pause 1s] ([cd](/tʃ/)!) «Bach» c.\n\nd"
    reading = Reading(lexicon=UserLexicon.load({"bach": "bˈax"}))
    found = [(p.phonemes, p.pause_before_s) for p in foreign.iter_pieces(text, language="es", reading=reading)]
    assert found == [("abba", 0), ("(tʃ!) bˈax c.", 1), ("d", 0.3)]


PARTS = ["abba", "..", "...", "🎉", "c.", "«dd»", "[x](/ab/)", "[pause 1s]", "zzz", "”", "(a\n\n", "b"]


@given(st.lists(st.sampled_from(PARTS), max_size=15))
def test_every_word_once_in_order(parts):
    text = " ".join(parts)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(foreign, "_speaker", lambda language: Letters())
    try:
        pieces = list(foreign.iter_pieces(text, language="es", limit=16))
    finally:
        monkeypatch.undo()
    words = [word for piece in pieces for word in piece.words]
    assert all(text[word.start : word.end] == word.text for word in words)
    if any(piece.phonemes for piece in pieces):
        assert len(words) == len(Reading().script(text).visible.split())


@given(st.lists(st.text("abc", max_size=4), min_size=1, max_size=30), st.lists(st.text("abc", min_size=1), max_size=40))
def test_all_chunks_are_dealt(alone, chunks):
    shares = _shares(alone, chunks)
    assert len(shares) == len(alone)
    assert sum(shares) == len(chunks)
    assert min(shares) >= 0
