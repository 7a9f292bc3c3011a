"""CMUdict's ARPAbet → the phoneme letters of misaki and Kokoro, American."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_SOUNDS = {
    "AA": "ɑ", "AE": "æ", "AH": "ʌ", "AO": "ɔ", "AW": "W", "AY": "I", "B": "b", "CH": "ʧ", "D": "d", "DH": "ð",
    "EH": "ɛ", "ER": "ɜɹ", "EY": "A", "F": "f", "G": "ɡ", "HH": "h", "IH": "ɪ", "IY": "i", "JH": "ʤ", "K": "k",
    "L": "l", "M": "m", "N": "n", "NG": "ŋ", "OW": "O", "OY": "Y", "P": "p", "R": "ɹ", "S": "s", "SH": "ʃ", "T": "t",
    "TH": "θ", "UH": "ʊ", "UW": "u", "V": "v", "W": "w", "Y": "j", "Z": "z", "ZH": "ʒ",
}  # fmt: skip
_UNSTRESSED = {"AH": "ə", "ER": "əɹ"}
_MARKS = {"0": "", "1": "ˈ", "2": "ˌ"}
_VOWEL = "AIOWYæɑəɛɪɔʊʌiu"
# An American t between a vowel and an unstressed vowel is a tap; before a syllabic n it is a glottal stop.
_TAP = re.compile(rf"(?<=[{_VOWEL}ɹ])t(?=[{_VOWEL}])")
_GLOTTAL = re.compile(rf"(?<=[{_VOWEL}ɹ])tən")
_SYLLABIC_L = re.compile(r"(?<=[bdfkmnpstvzɡʃʒʤʧθɾ])əl(?![AIOWYæɑəɛɪɔʊʌiuˈˌ])")


def convert(arpabet: str) -> str:
    """HH EH1 R IH0 S → hˈɛɹɪs."""
    said = ""
    for sound in arpabet.split():
        if sound[-1].isdigit():
            base, level = sound[:-1], sound[-1]
            said += _MARKS[level] + (_UNSTRESSED.get(base, _SOUNDS[base]) if level == "0" else _SOUNDS[base])
        else:
            said += _SOUNDS[sound]
    said = _GLOTTAL.sub("ʔn", said)
    said = _TAP.sub("ɾ", said)
    return _SYLLABIC_L.sub("ᵊl", said)


def read(path: Path) -> Iterator[tuple[str, str]]:
    """(word, phonemes) of every first pronunciation of a word of letters; possessives follow from their stems."""
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, sounds = line.partition("#")[0].strip().partition(" ")
        if word.isascii() and word.replace("'", "").isalpha() and not word.endswith("'s") and len(word) > 1:
            yield word, convert(sounds)
