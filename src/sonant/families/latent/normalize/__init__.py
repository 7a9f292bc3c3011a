"""Text as it is written → text as Phonon and Pocket were trained to read it: en, fr, de, es, pt.

First the signs (characters.py), then the words (words.py and the rules it names): numbers stay digits under a thousand,
the model reads those. What is said for what is what `ptts.normalize` of ptts 0.4.2 says, measured; the few places
where words would be lost there are listed in tests/families/latent/test_normalize.py.
"""

from __future__ import annotations

from sonant.errors import UnknownName
from sonant.families.latent.normalize.characters import read_signs, without_closing_quote
from sonant.families.latent.normalize.languages import CODES, language_of
from sonant.families.latent.normalize.words import DEFAULT_RULES, RULES, rewrite
from sonant.families.latent.traced import Traced

REWRITES = {"default": DEFAULT_RULES, "all": frozenset(RULES), "none": frozenset[str]()}
"""Which rules for words are applied. Phone numbers, times and dates are in "all" only: 1/2 may be a fraction."""
LANGUAGES = (*CODES, "none")


def normalize(text: Traced, language: str, rewrites: str = "default") -> Traced:
    """The text as it is to be read, its places kept. Raises UnknownName.

    language: BCP-47, of which the first part counts; "none" leaves the text as it is.
    """
    if rewrites not in REWRITES:
        raise UnknownName("rewrites", rewrites, REWRITES)
    code = language.split("-")[0].lower()
    if code not in LANGUAGES:
        raise UnknownName("language of the normalizer", language, LANGUAGES)
    if code == "none":
        return text
    own = language_of(code)
    return without_closing_quote(rewrite(read_signs(text, own), own, REWRITES[rewrites]))
