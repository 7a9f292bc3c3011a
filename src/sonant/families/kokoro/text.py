"""Text for Kokoro: pieces of at most 510 phonemes from the front end of a language, and phonemes → token ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sonant.errors import InputError, TextError
from sonant.options import SpeakOptions
from sonant.text import english, foreign
from sonant.text.english import Piece
from sonant.text.lexicon_file import UserLexicon
from sonant.text.reading import AS_WRITTEN, Reading

LANGUAGES = (*english.LANGUAGES, *foreign.LANGUAGES)
"""English is built in; the others need an extra: espeak (es, fr-FR, it, pt-BR, hi), ja, zh."""
MAX_PHONEMES = 510
"""The position table has 512 rows and both ends take one."""


def pieces(
    text: str, language: str, reading: Reading = AS_WRITTEN, *, first_piece: str = "full"
) -> Iterator[Piece]:
    """The text cut into pieces that the model can speak, in order, every word in exactly one.

    Language and markup are checked at once; each piece is read when it is asked for.
    """
    if language not in LANGUAGES:
        raise InputError(
            f"Kokoro's text front end reads {', '.join(LANGUAGES)}, not {language!r}; pick another voice or "
            "pass language="
        )
    read = foreign.iter_pieces if language in foreign.LANGUAGES else english.iter_pieces
    return read(text, language=language, limit=MAX_PHONEMES, reading=reading, first_piece=first_piece)


def reading_of(options: SpeakOptions) -> Reading:
    """How the caller wants a text read. TextError for a lexicon that cannot be used."""
    return Reading(
        markup=options.markup,
        text_format=options.text_format,
        paragraph_pause_s=options.paragraph_pause_s,
        heading_pause_s=options.heading_pause_s,
        lexicon=None if options.lexicon is None else UserLexicon.load(options.lexicon),
    )


def token_ids(phonemes: str, vocab: Mapping[str, int]) -> np.ndarray:
    """i32 [1, P]: the phonemes with id 0 at both ends. A symbol outside the vocabulary is a TextError."""
    unknown = sorted(set(phonemes) - set(vocab))
    if unknown:
        raise TextError(
            f"Kokoro has no symbol {' '.join(map(repr, unknown))}; its alphabet is {''.join(sorted(vocab))}"
        )
    return np.array([[0, *(vocab[c] for c in phonemes), 0]], np.int32)
