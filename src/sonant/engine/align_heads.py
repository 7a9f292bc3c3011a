"""Which attention heads of a model follow its text, found by letting it speak; behind `sonant align-heads`.

A head that follows the text has its largest weight on a token that moves on with the frames, never goes back, and is
certain: the product of these three is its score. The best head is taken, and others as long as their mean follows
better. By how many frames they are ahead of the sound, head_lead.py measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.engine.alignment import align_recording
from sonant.engine.head_lead import Followed, Reference, heard, measure_lead
from sonant.engine.load import find_weights
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import CheckpointError, InputError
from sonant.families.latent.heads import AlignmentHeads, Head, HeadQuality, write_heads
from sonant.families.latent.recording import AttentionRecord, AttentionRecorder
from sonant.hub.catalog import find
from sonant.options import SpeakOptions
from sonant.types import WordTiming

MAX_HEADS = 4
CANDIDATES = 24
"""How many of the best heads may join the best one."""
GAIN = 1.02
"""A further head must better the score by so much: one more to record at every step."""
LEAST_TOKENS = 4
"""In fewer, any head goes on by chance."""
LEAST_SCORE = 0.1
"""The best of 48 heads that attend to anything scores 0.03; one that spreads half of its weight anywhere, 0.2."""
ALIGNER = "kokoro-82m"
"""The model that speaks for the aligner."""
FAMILIES = ("phonon", "pocket")
"""Those whose drivers are AttentionRecorders."""
# Many pauses, for the lead; words of one and of many tokens.
TEXTS = {
    "en": (
        "When the kettle whistled, she poured the tea, opened the letter, and began to read.",
        "No, I have never been there, but my sister, who travels a lot, told me about it.",
        "First we walked along the river, then we climbed the hill, and finally, after an hour, we saw the castle.",
        "Understanding photography takes patience, good light, and, above all, extraordinary curiosity.",
        "It was late, the streets were empty, and a light rain fell on the roofs of the old town.",
        "If you are ready, raise your hand; if you are not, wait until the others have finished.",
    ),
    "fr": (
        "Non, je n'y suis jamais allé, mais ma sœur, qui voyage beaucoup, m'en a parlé.",
        "Quand la pluie a cessé, les enfants sont sortis, ont traversé le pré, et ont construit un barrage.",
        "La photographie demande de la patience, une bonne lumière, et, surtout, une curiosité extraordinaire.",
        "Il était tard, les rues étaient vides, et une pluie fine tombait sur les toits.",
    ),
    "de": (
        "Nein, ich war noch nie dort, aber meine Schwester, die viel reist, hat mir davon erzählt.",
        "Als der Regen aufhörte, liefen die Kinder hinaus, über die Wiese, und bauten einen kleinen Damm.",
        "Wer fotografiert, braucht Geduld, gutes Licht, und, vor allem, außergewöhnliche Neugier.",
        "Es war spät, die Straßen waren leer, und ein feiner Regen fiel auf die Dächer.",
    ),
    "es": (
        "No, nunca he estado allí, pero mi hermana, que viaja mucho, me lo ha contado.",
        "Cuando dejó de llover, los niños salieron, cruzaron el prado, y construyeron una presa.",
        "La fotografía exige paciencia, buena luz, y, sobre todo, una curiosidad extraordinaria.",
        "Era tarde, las calles estaban vacías, y una lluvia fina caía sobre los tejados.",
    ),
    "it": (
        "No, non ci sono mai stato, ma mia sorella, che viaggia molto, me ne ha parlato.",
        "Quando smise di piovere, i bambini uscirono, attraversarono il prato, e costruirono una diga.",
        "La fotografia richiede pazienza, buona luce, e, soprattutto, una curiosità straordinaria.",
        "Era tardi, le strade erano vuote, e una pioggia sottile cadeva sui tetti.",
    ),
    "pt": (
        "Não, nunca estive lá, mas a minha irmã, que viaja muito, contou-me tudo.",
        "Quando a chuva parou, as crianças saíram, atravessaram o prado, e construíram uma barragem.",
        "A fotografia exige paciência, boa luz, e, acima de tudo, uma curiosidade extraordinária.",
        "Era tarde, as ruas estavam vazias, e uma chuva fina caía sobre os telhados.",
    ),
    "nl": (
        "Nee, ik ben er nooit geweest, maar mijn zus, die veel reist, heeft erover verteld.",
        "Toen de regen ophield, liepen de kinderen naar buiten, over het gras, en bouwden een kleine dam.",
        "Fotograferen vraagt geduld, goed licht, en, vooral, buitengewone nieuwsgierigheid.",
        "Het was laat, de straten waren leeg, en een fijne regen viel op de daken.",
    ),
}


@dataclass(frozen=True, slots=True)
class HeadScore:
    """How one head of a model follows the text."""

    head: Head
    correlation: float
    monotone_share: float
    mean_peak: float

    @property
    def score(self) -> float:
        return self.correlation * self.monotone_share * self.mean_peak


@dataclass(frozen=True)
class Found:
    """heads: those to record, with lead and quality. scores: of every head, the best first. n_lead_words: how many
    words the lead was measured on."""

    heads: AlignmentHeads
    scores: tuple[HeadScore, ...]
    n_lead_words: int


@dataclass(frozen=True)
class Place:
    """Where a checkpoint lies, and the language of its texts."""

    folder: Path
    language: str


def place_of(model: str, weights: Path | None, cache: Path) -> Place:
    """Raises InputError for a model whose family attends to no text, UnknownName, CheckpointError (not here)."""
    entry = find(model)
    if entry.family not in FAMILIES:
        raise InputError(
            f"{model} is of the family {entry.family}; alignment heads are looked for in {' and '.join(FAMILIES)} only"
        )
    found = weights or find_weights(entry, cache)
    if not isinstance(found, Path):
        raise CheckpointError(f"{model}: lies in several files; give one folder as weights")
    return Place(found if found.is_dir() else found.parent, entry.languages[0].partition("-")[0])


def record(
    synth: Synthesizer,
    texts: Sequence[str],
    *,
    voice: str | None = None,
    done: Callable[[float, float], None] = lambda fraction, audio_s: None,
) -> list[AttentionRecord]:
    """Speak the texts with the attention of all heads. done: called after every text with the share of all that is
    spoken, and the seconds of speech so far."""
    recorder = recorder_of(synth)
    records: list[AttentionRecord] = []
    for n, text in enumerate(texts, 1):
        records += recorder.record_attention(text, SpeakOptions(voice=voice), CancelFlag())
        done(n / len(texts), sum(len(r.samples) for r in records) / recorder.sample_rate)
    return records


def recorder_of(synth: Synthesizer) -> AttentionRecorder:
    """The driver of a model of FAMILIES."""
    return cast(AttentionRecorder, synth._driver)


def aligner(speaker: Synthesizer) -> Reference:
    """Word times by laying what `speaker`, whose word times are its own, says over the recording."""

    def words(samples: np.ndarray, sample_rate: int, text: str) -> Sequence[WordTiming]:
        return align_recording(samples, sample_rate, speaker.speak(text, markup="off")).words

    return words


def find_heads(
    recorder: AttentionRecorder, records: Sequence[AttentionRecord], *, reference: Reference | None = None
) -> Found:
    """The heads that follow the text best, their lead and their quality.

    reference: an aligner that tells where words start; without one the lead is measured on the onsets of sound after
    pauses. Raises InputError where no head follows the text, or nothing was spoken.
    """
    attentions = [
        a for a in (_while_sounding(r, recorder.sample_rate, recorder.frame_samples) for r in records) if a.size
    ]
    if not attentions:
        raise InputError("nothing was spoken of these texts; wanted sentences of several words")
    scores = score_heads(attentions, recorder.n_heads)
    if scores[0].score < LEAST_SCORE:
        raise InputError(
            f"no head of this model follows the text: the best, layer {scores[0].head[0]} head {scores[0].head[1]}, "
            f"scores {scores[0].score:.3f}, wanted {LEAST_SCORE} at least; are these trained weights?"
        )
    heads = best_set(attentions, scores, recorder.n_heads)
    rows = _rows(heads, recorder.n_heads)
    correlation, monotone_share, mean_peak = _measures([a[rows].mean(axis=0, keepdims=True) for a in attentions])[:, 0]
    followed = [Followed(r, rows, recorder.sample_rate, recorder.frame_samples) for r in records if r.attention.size]
    lead = measure_lead(followed, reference)
    quality = HeadQuality(
        correlation=float(correlation),
        monotone_share=float(monotone_share),
        mean_peak=float(mean_peak),
        n_texts=len(records),
        start_error_s=lead.start_error_s,
    )
    return Found(AlignmentHeads(heads, lead.frames, lead.source, quality), scores, lead.n_words)


def keep(found: Found, where: Path, *, model: str, voice: str | None, texts: Sequence[str]) -> Path:
    """Write the heads into a file, or beside the checkpoint where `where` is its folder. Returns the file."""
    about = {"model": model, "voice": voice, "texts": list(texts), "n_lead_words": found.n_lead_words}
    return write_heads(where, found.heads, about)


def score_heads(attentions: Sequence[np.ndarray], n_heads: int) -> tuple[HeadScore, ...]:
    """Every head, the best first. attentions: f32 [layers * heads, frames, tokens] of each text, while it sounds."""
    measured = _measures(attentions)
    heads = [HeadScore(divmod(row, n_heads), *(float(x) for x in measured[:, row])) for row in range(measured.shape[1])]
    return tuple(sorted(heads, key=lambda h: -h.score))


def best_set(attentions: Sequence[np.ndarray], scores: Sequence[HeadScore], n_heads: int) -> tuple[Head, ...]:
    """The best head, and one by one those with which the mean follows the text better by GAIN."""
    heads = [scores[0].head]
    best = scores[0].score
    while len(heads) < MAX_HEADS:
        free = [s.head for s in scores[:CANDIDATES] if s.head not in heads]
        if not free:
            break
        chosen, others = _rows(heads, n_heads), _rows(free, n_heads)
        means = [(a[chosen].sum(axis=0) + a[others]) / (len(heads) + 1) for a in attentions]
        gained = _measures(means).prod(axis=0)
        if gained.max() < GAIN * best:
            break
        heads.append(free[int(gained.argmax())])
        best = float(gained.max())
    return tuple(heads)


def _rows(heads: Sequence[Head], n_heads: int) -> list[int]:
    return [layer * n_heads + head for layer, head in heads]


def _while_sounding(record: AttentionRecord, sample_rate: int, frame_samples: int) -> np.ndarray:
    """The attention [rows, frames, tokens] from the first sound to the last; no frames where there is little of it."""
    sound = heard(record.samples, sample_rate)
    steps = np.flatnonzero(sound.loud)
    if len(steps) == 0 or record.attention.shape[2] < LEAST_TOKENS:
        return record.attention[:, :0]
    frames = (steps[[0, -1]] * sound.step_s * sample_rate / frame_samples).astype(int)
    return record.attention[:, frames[0] : frames[1] + 1]


def _measures(attentions: Sequence[np.ndarray]) -> np.ndarray:
    """f64 [3, rows]: correlation (0 where it is negative), monotone share and mean peak, means over all frames."""
    total, n_frames = np.zeros((3, len(attentions[0]))), 0
    for attention in attentions:
        frames = attention.shape[1]
        tops = attention.argmax(axis=2)
        time = np.arange(frames) - (frames - 1) / 2
        place = tops - tops.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.square(place).sum(axis=1) * np.square(time).sum())
        correlation = np.maximum(place @ time, 0) / np.where(spread > 0, spread, 1.0)
        onward = (np.diff(tops, axis=1) >= 0).mean(axis=1) if frames > 1 else np.zeros(len(tops))
        total += frames * np.stack([correlation, onward, attention.max(axis=2).mean(axis=1)])
        n_frames += frames
    return np.minimum(total / n_frames, 1.0)  # f32 weights may sum to a little more
