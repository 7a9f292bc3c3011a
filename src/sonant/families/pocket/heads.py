"""The heads of published Pocket TTS checkpoints that follow the text.

As published with pocket_tts_timestamped 1.4.0, which found them on 1,500 utterances each and counts 38 to 72 ms mean
error of starts and ends against CrisperWhisper. It begins a word with the frame in which the weight of its tokens
exceeds that of the word before, so its lead is 0.
"""

from __future__ import annotations

from sonant.families.latent.heads import AlignmentHeads, Head

_ENGLISH: tuple[Head, ...] = ((3, 8), (2, 0))
_ENGLISH_24L: tuple[Head, ...] = ((14, 10), (17, 11), (15, 4))
_HEADS: dict[str, tuple[Head, ...]] = {
    "dutch": ((4, 5), (3, 9), (3, 14), (2, 0)),
    "dutch_24l": ((17, 13), (17, 11)),
    "english": _ENGLISH,
    "english_18m_2026-10": ((2, 7), (3, 4)),
    "english_18m_refl_2026-10": ((2, 7), (3, 4)),
    "english_2026-01": _ENGLISH,
    "english_2026-04": _ENGLISH,
    "english_2026-04_24l": _ENGLISH_24L,
    "english_2026-09": _ENGLISH,
    "english_2026-09_2": _ENGLISH,
    "english_2026-09_24l": _ENGLISH_24L,
    "english_2m_2026-10": ((5, 2), (2, 2), (2, 0), (3, 0)),
    "english_2m_refl_2026-10": ((5, 2), (2, 2)),
    "english_7m_2026-10": ((2, 7), (2, 5)),
    "english_7m_refl_2026-10": ((2, 7), (2, 5)),
    "english_drifting_26-09": ((2, 15),),
    "french": ((3, 9),),
    "french_24l": ((17, 13), (16, 9), (18, 5), (17, 11)),
    "german": ((3, 14), (3, 9), (3, 10)),
    "german_24l": ((17, 11), (15, 4)),
    "italian": ((3, 9), (4, 5), (3, 10)),
    "italian_24l": ((17, 13), (13, 10), (18, 5), (14, 10)),
    "portuguese": ((3, 9), (4, 2), (4, 5), (3, 14), (3, 4)),
    "portuguese_24l": ((17, 13), (18, 1), (20, 12)),
    "spanish": ((3, 9), (4, 2), (4, 5), (3, 10)),
    "spanish_24l": ((17, 13), (17, 11), (18, 1)),
}

PUBLISHED = {name: AlignmentHeads(heads, lead_frames=0.0, lead_source="published") for name, heads in _HEADS.items()}
"""By the name of the checkpoint in Kyutai's repositories, `languages/<name>`."""
