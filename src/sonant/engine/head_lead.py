"""By how many frames the attention of some heads is ahead of the sound, measured on what a model said.

Against an aligner, which tells where every word starts; or against the sound alone: words after punctuation mostly
begin where sound sets in after a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sonant.families.latent.attention_path import TokenPath, crossing_frame
from sonant.families.latent.loudness import Loudness
from sonant.families.latent.recording import AttentionRecord
from sonant.families.latent.timing import PAUSE_S, AttentionTimes
from sonant.types import WordTiming

LEADS = np.arange(-8.0, 8.01, 0.25)
FAR_FRAMES = 3.0
"""An onset further from a word does not tell where the word begins."""
LEAST_WORDS = 3
"""With fewer to measure on, a lead of 0 is assumed."""
PUNCTUATION = tuple(",.;:!?…—。，、！？；：")
CLOSERS = "\"'”’»)]"

Reference = Callable[[np.ndarray, int, str], Sequence[WordTiming]]
"""An aligner: word times of samples [S] at a sample rate that say a text."""


@dataclass(frozen=True, slots=True)
class Lead:
    """source: aligner, energy or assumed. n_words: how many it was measured on. start_error_s: median distance of the
    starts that come of it from the aligner's, None without one."""

    frames: float
    source: str
    n_words: int
    start_error_s: float | None = None


class Followed:
    """A record, and where the mean of some of its heads enters the words, in frames. rows: of the attention."""

    def __init__(self, record: AttentionRecord, rows: Sequence[int], sample_rate: int, frame_samples: int) -> None:
        self.record, self.sample_rate, self.frame_samples = record, sample_rate, frame_samples
        self.attention = record.attention[rows].transpose(1, 0, 2)
        path = TokenPath(self.attention.shape[2])
        path.add(self.attention)
        path.finish()
        self.spoken = [w for w in record.words if w.token_end > w.token_start]
        self.entries: list[float] = []
        """Of the spoken words from the second on (the first is entered before anything is heard), as far as reached."""
        for word in self.spoken[1:]:
            entry = crossing_frame(path.positions, word.token_start, self.entries[-1] if self.entries else 0.0, 0.0)
            if entry is None:
                break
            self.entries.append(entry)

    @property
    def frame_s(self) -> float:
        return self.frame_samples / self.sample_rate

    def after_punctuation(self) -> list[float]:
        """The entries of the words that follow punctuation."""
        pairs = zip(self.spoken, self.entries, strict=False)
        return [entry for before, entry in pairs if before.text.rstrip(CLOSERS).endswith(PUNCTUATION)]

    def onsets(self) -> np.ndarray:
        """f64: where sound sets in after a pause, in frames."""
        frames: np.ndarray = heard(self.record.samples, self.sample_rate).onsets(PAUSE_S) / self.frame_s
        return frames

    def reference_starts_s(self, reference: Reference) -> dict[int, float]:
        """Where the words start by an aligner, by where they begin in the text."""
        first, last = self.record.words[0].start, self.record.words[-1].end
        words = reference(self.record.samples, self.sample_rate, self.record.text[first:last])
        return {first + word.char_start: word.start_s for word in words}

    def starts_s(self, lead_frames: float) -> dict[int, float]:
        """The same by these heads."""
        timing = AttentionTimes(
            self.record.words,
            self.attention.shape[2],
            sample_rate=self.sample_rate,
            frame_samples=self.frame_samples,
            lead_frames=lead_frames,
        )
        words = timing.add(self.attention, self.record.samples) + timing.finish()
        return {word.char_start: word.start_s for word in words}


def heard(samples: np.ndarray, sample_rate: int) -> Loudness:
    """Where all of `samples` sound."""
    sound = Loudness(sample_rate)
    sound.add(samples)
    sound.finish()
    return sound


def measure_lead(followed: Sequence[Followed], reference: Reference | None) -> Lead:
    """The lead of the heads that were followed; rounded to hundredths of a frame."""
    return _by_sound(followed) if reference is None else _by_reference(followed, reference)


def _by_reference(followed: Sequence[Followed], reference: Reference) -> Lead:
    starts = [one.reference_starts_s(reference) for one in followed]
    later = [
        of_words[word.start] / one.frame_s - entry
        for one, of_words in zip(followed, starts, strict=True)
        for word, entry in zip(one.spoken[1:], one.entries, strict=False)
        if word.start in of_words
    ]
    if len(later) < LEAST_WORDS:
        return Lead(0.0, "assumed", len(later))
    lead = round(float(np.median(later)), 2)
    errors_s = [
        abs(start_s - of_words[at])
        for one, of_words in zip(followed, starts, strict=True)
        for at, start_s in one.starts_s(lead).items()
        if at in of_words
    ]
    return Lead(lead, "aligner", len(later), round(float(np.median(errors_s)), 4))


def _by_sound(followed: Sequence[Followed]) -> Lead:
    """The lead with which the words come nearest to onsets; a word far from all of them counts the same with any."""
    later = [np.subtract.outer(one.onsets(), one.after_punctuation()).T for one in followed]
    later = [row for of_one in later for row in of_one if len(row)]  # per word: how much later each onset is
    if len(later) < LEAST_WORDS:
        return Lead(0.0, "assumed", len(later))
    costs = [sum(min(FAR_FRAMES, float(np.abs(row - lead).min())) for row in later) for lead in LEADS]
    best = min(zip(costs, LEADS.tolist(), strict=True), key=lambda found: (found[0], abs(found[1])))[1]
    nearest = [float(row[np.abs(row - best).argmin()]) for row in later]
    near = [x for x in nearest if abs(x - best) < FAR_FRAMES]
    if len(near) < LEAST_WORDS:
        return Lead(0.0, "assumed", len(near))
    return Lead(round(float(np.median(near)), 2), "energy", len(near))
