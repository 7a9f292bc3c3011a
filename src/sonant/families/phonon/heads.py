"""The heads of published Phonon checkpoints that follow the text."""

from __future__ import annotations

from sonant.families.latent.heads import AlignmentHeads

# As published by blixt/phonon for the 31M model. Its lead belongs to its own way of finding a word's start, a centroid
# over the largest weight ± 2 tokens; sonant align-heads measures the one that belongs to ours.
PUBLISHED = {"phonon-31m-en": AlignmentHeads(((3, 0),), lead_frames=-3.0, lead_source="published")}
"""By the name of the checkpoint. Of the 40M models no heads are published."""
