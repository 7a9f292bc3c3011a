"""The International Phonetic Alphabet → the alphabet of the voices (misaki's): diphthongs and affricates are one sign,
and the stress stands before the vowel."""

from __future__ import annotations

import re

_SIGNS = {
    "tʃ": "ʧ", "dʒ": "ʤ", "aɪ": "I", "aʊ": "W", "eɪ": "A", "ɔɪ": "Y", "oʊ": "O", "əʊ": "Q", "aj": "I", "aw": "W",
    "ej": "A", "ɔj": "Y", "ow": "O", "ɚ": "əɹ", "ɝ": "ɜɹ", "r": "ɹ", "g": "ɡ", "ɫ": "l", "ɬ": "l", "ʍ": "w",
    "'": "ˈ", ",": "ˌ", ":": "ː", "ɾ": "T", "ʔ": "t", "n̩": "ᵊn", "l̩": "ᵊl", "m̩": "ᵊm", "ɹ̩": "əɹ", "ɪ̈": "ᵻ", "ɨ": "ᵻ",
    "ɘ": "ə", "ɵ": "ə", "ʉ": "u", "ɐ": "ə", "ɱ": "m", "ɻ": "ɹ", "x": "k", "ɒ": "ɑ", "e": "ɛ", "o": "ɔ",
}  # fmt: skip
# What is shorter or plainer in a British voice's alphabet than in an American one's.
_BRITISH = {"ɒ": "ɒ", "eə": "ɛː", "oʊ": "Q", "əʊ": "Q", "ɪə": "ɪə", "ʊə": "ʊə", "ɨ": "ɪ", "ɾ": "t", "æ": "a"}
_MARKS = str.maketrans("", "", "͜͡‿.͈̬̥̊ʰ̪̺̻̚˞̠̟̞̝̯ʷˠ-")
_VOWELS = "aeiouyæøœɐɑɒɔəɘɛɜɞɤɨɪɯɵʉʊʌʏᵊᵻAIOQWY"
_STRESS = re.compile(f"([ˈˌ])([^{_VOWELS}ˈˌ ]*)(?=[{_VOWELS}])")


def from_ipa(written: str, *, british: bool = False) -> str:
    """Phonemes of a voice for an IPA transcription. Unknown signs stay, for the caller to name."""
    signs = {**_SIGNS, **_BRITISH} if british else _SIGNS
    pattern = re.compile("|".join(sorted(map(re.escape, signs), key=len, reverse=True)))
    # Tied signs first: a tie bar joins what would be two signs.
    said = pattern.sub(lambda match: signs[match[0]], written.strip("/[] ").translate(_MARKS))
    if not british:
        said = said.replace("ɜː", "ɜ" if "ɜːɹ" in said else "ɜɹ").replace("ː", "")
    return _STRESS.sub(r"\2\1", said)
