"""Finding heads that follow the text: planted ones, among decoys, in made-up attention."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sonant.engine import align_heads as engine
from sonant.engine.head_lead import Followed, measure_lead
from sonant.errors import CheckpointError, InputError, UnknownName
from sonant.families.latent.heads import parse_heads
from sonant.families.latent.recording import AttentionRecord
from sonant.hub.catalog import CATALOG
from sonant.types import Speech, WordTiming

spoken = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "families" / "latent" / "spoken.py")))
LAYERS, HEADS = 6, 8
Attention = Callable[[Any, np.random.Generator], np.ndarray]


def follower(**way: Any) -> Attention:
    """[frames, tokens] of a head that follows the text."""
    return lambda said, rng: spoken.attention(said, rng, **way)[:, 0]


def anywhere(said: Any, rng: np.random.Generator) -> np.ndarray:
    return rng.dirichlet(np.full(said.n_tokens, 0.3), said.n_frames).astype(np.float32)


def fixed(said: Any, rng: np.random.Generator) -> np.ndarray:
    """Always the last token, for sure."""
    return np.eye(said.n_tokens, dtype=np.float32)[[-1] * said.n_frames]


def backward(said: Any, rng: np.random.Generator) -> np.ndarray:
    return np.ascontiguousarray(spoken.attention(said, rng)[::-1, 0])


def spread(said: Any, rng: np.random.Generator) -> np.ndarray:
    """Follows, but hardly prefers a token."""
    return spoken.attention(said, rng, blur=6.0)[:, 0]


def to_and_fro(said: Any, rng: np.random.Generator) -> np.ndarray:
    """Follows, and looks at the first token in every other frame."""
    weights = spoken.attention(said, rng)[:, 0]
    weights[::2] = np.eye(said.n_tokens)[0]
    return weights


DECOYS = (anywhere, fixed, backward, spread, to_and_fro)


class Recorder:
    """A driver that says made-up words; `plan` has a rule for some heads, the others attend to anything."""

    sample_rate, frame_samples, n_layers, n_heads = spoken.RATE, spoken.FRAME, LAYERS, HEADS

    def __init__(self, plan: dict[tuple[int, int], Attention], seed: int = 0) -> None:
        self.plan, self.rng, self.starts_s = plan, np.random.default_rng(seed), {}

    def record_attention(self, text: str, options: Any, cancel: Any) -> Iterable[AttentionRecord]:
        said = spoken.utterance(self.rng, len(text.split()))
        rows = [self.plan.get(divmod(row, HEADS), anywhere)(said, self.rng) for row in range(LAYERS * HEADS)]
        self.starts_s[said.samples.tobytes()] = said.starts_s, said.words
        written = "".join(w.text + " " for w in said.words)
        yield AttentionRecord(written, said.words, np.stack(rows), said.samples)

    def reference(self, samples: np.ndarray, sample_rate: int, text: str) -> list[WordTiming]:
        """An aligner that knows, 10 ms late; it leaves the first word out."""
        starts_s, words = self.starts_s[samples.tobytes()]
        return [
            WordTiming(w.text, s + 0.01, s + 0.02, w.start, w.end) for w, s in zip(words[1:], starts_s[1:], strict=True)
        ]


TEXTS = ["one two three four five six seven eight nine ten eleven twelve"] * 4


def records(recorder: Recorder, texts: list[str] = TEXTS) -> list[AttentionRecord]:
    synth = SimpleNamespace(_driver=recorder)
    return engine.record(synth, texts)


def found(recorder: Recorder, **given: Any) -> engine.Found:
    return engine.find_heads(recorder, records(recorder), **given)


@pytest.mark.parametrize("seed", range(25))
def test_a_planted_head_is_found_among_decoys(seed: int) -> None:
    """Planted with blur, noise, spikes and a lead of its own; up to 20 decoys of every kind elsewhere."""
    rng = np.random.default_rng(seed)
    places = [divmod(int(row), HEADS) for row in rng.permutation(LAYERS * HEADS)[:21]]
    plan = {place: DECOYS[int(rng.integers(len(DECOYS)))] for place in places}
    way = {"blur": rng.uniform(0.4, 1.0), "noise": rng.uniform(0.05, 0.3), "spikes": rng.uniform(0, 0.1)}
    lead = float(rng.integers(-3, 4))
    plan[places[0]] = follower(**way, lead=lead)
    result = found(Recorder(plan, seed))
    assert result.scores[0].head == places[0]
    assert result.scores[0].score > 1.3 * result.scores[1].score
    assert result.heads.heads == (places[0],)
    assert result.heads.lead_frames == pytest.approx(lead, abs=0.6)
    assert result.heads.lead_source == "energy"


def test_heads_of_random_attention_are_refused() -> None:
    for seed in range(3):
        recorder = Recorder({}, seed)
        with pytest.raises(InputError, match=r"no head of this model follows the text: the best, layer \d head \d"):
            found(recorder)
        attentions = [r.attention for r in records(recorder)]
        assert engine.score_heads(attentions, HEADS)[0].score < engine.LEAST_SCORE / 3


def test_a_head_that_is_half_noise_is_not_refused() -> None:
    assert found(Recorder({(2, 3): follower(noise=0.5)})).heads.heads[0] == (2, 3)


def test_heads_that_follow_better_together_are_taken_together() -> None:
    """Each is often elsewhere, but not at once."""
    often = follower(blur=0.4, noise=0.02, spikes=0.3)
    three = {(1, 2), (1, 5), (4, 0)}
    result = found(Recorder(dict.fromkeys(three, often)))
    assert set(result.heads.heads) == three
    alone, together = result.scores[0], result.heads.quality
    assert together.score > 1.1 * alone.score
    assert result.heads.heads[0] == alone.head


def test_a_head_that_adds_nothing_is_not_taken() -> None:
    same = {}

    def copy(said: Any, rng: np.random.Generator) -> np.ndarray:
        key = said.samples.tobytes()
        return same.setdefault(key, spoken.attention(said, rng)[:, 0])

    assert found(Recorder({(0, 0): copy, (3, 3): copy})).heads.heads == ((0, 0),)


def test_no_more_heads_than_the_most() -> None:
    often = follower(blur=0.4, noise=0.02, spikes=0.6)
    plan = {(layer, 1): often for layer in range(LAYERS)}
    assert len(found(Recorder(plan)).heads.heads) == engine.MAX_HEADS


class TestLead:
    @pytest.mark.parametrize("lead", [-3.0, -1.4, 0.0, 0.5, 2.0, 5.0])
    def test_by_the_sound(self, lead: float) -> None:
        result = found(Recorder({(3, 0): follower(lead=lead)}))
        assert result.heads.lead_frames == pytest.approx(lead, abs=0.3)
        assert (result.heads.lead_source, result.heads.quality.start_error_s) == ("energy", None)
        assert result.n_lead_words >= 5

    @pytest.mark.parametrize("lead", [-3.0, -1.4, 0.0, 0.5, 2.0, 5.0])
    def test_by_an_aligner(self, lead: float) -> None:
        recorder = Recorder({(3, 0): follower(lead=lead)})
        result = found(recorder, reference=recorder.reference)
        assert result.heads.lead_frames == pytest.approx(lead + 0.01 / spoken.FRAME_S, abs=0.2)
        assert result.heads.lead_source == "aligner"
        assert result.heads.quality.start_error_s < 0.03
        assert result.n_lead_words > 30

    def test_by_our_aligner(self) -> None:
        """A speaker that happens to say the same: every word is where the speaker says it is."""
        said = spoken.utterance(np.random.default_rng(2), 12, silent_words=0)
        words = tuple(
            WordTiming(w.text, float(s), float(e), w.start, w.end)
            for w, s, e in zip(said.words, said.starts_s, said.ends_s, strict=True)
        )
        text = " ".join(w.text for w in words)
        speaker = SimpleNamespace(speak=lambda text, markup: Speech(said.samples, spoken.RATE, words, "known", text))
        attention = spoken.attention(said, np.random.default_rng(0), lead=1.5).transpose(1, 0, 2)
        followed = Followed(AttentionRecord(text, said.words, attention, said.samples), [0], spoken.RATE, spoken.FRAME)
        lead = measure_lead([followed], engine.aligner(speaker))
        assert lead.source == "aligner"
        assert lead.frames == pytest.approx(1.5, abs=0.3)

    def test_without_pauses_it_is_assumed(self) -> None:
        said = spoken.utterance(np.random.default_rng(0), 6, silent_words=0)
        words = [spoken.Word("w", w.start, w.end, w.token_start, w.token_end) for w in said.words]
        attention = spoken.attention(said, np.random.default_rng(0), lead=2.0)[:, :1].transpose(1, 0, 2)
        followed = Followed(AttentionRecord("", words, attention, said.samples), [0], spoken.RATE, spoken.FRAME)
        lead = measure_lead([followed], None)
        assert (lead.frames, lead.source, lead.n_words) == (0.0, "assumed", 0)
        unknowing = measure_lead([followed], lambda samples, sample_rate, text: [])
        assert (unknowing.frames, unknowing.source) == (0.0, "assumed")

    def test_what_an_aligner_is_given(self) -> None:
        """The stretch of text that the piece says; its words come back by their place in it."""
        said = spoken.utterance(np.random.default_rng(1), 5, silent_words=0)
        words = [spoken.Word(w.text, w.start + 7, w.end + 7, w.token_start, w.token_end) for w in said.words]
        text = "Before " + "".join(w.text + " " for w in words) + "behind"
        attention = spoken.attention(said, np.random.default_rng(0)).transpose(1, 0, 2)
        followed = Followed(AttentionRecord(text, words, attention, said.samples), [0], spoken.RATE, spoken.FRAME)
        given: list[str] = []

        def reference(samples: np.ndarray, sample_rate: int, of: str) -> list[WordTiming]:
            given.append(of)
            return [WordTiming(w.text, s, s, w.start, w.end) for w, s in zip(said.words, said.starts_s, strict=True)]

        assert measure_lead([followed], reference).frames == pytest.approx(0.0, abs=0.3)
        assert given == [text[7 : words[-1].end]]


class TestTexts:
    def test_of_which_nothing_is_said(self) -> None:
        recorder = Recorder({})
        for texts in ([], ["word"]):
            with pytest.raises(InputError, match="nothing was spoken"):
                engine.find_heads(recorder, records(recorder, texts))

    def test_progress(self) -> None:
        told: list[tuple[float, float]] = []
        engine.record(SimpleNamespace(_driver=Recorder({})), TEXTS[:2], done=lambda *now: told.append(now))
        assert [share for share, _ in told] == [0.5, 1.0]
        assert 0 < told[0][1] < told[1][1]

    def test_our_own_have_pauses(self) -> None:
        spoken = {language.partition("-")[0] for entry in CATALOG.values() if entry.family in engine.FAMILIES
                  for language in entry.languages[:1]}
        assert spoken <= set(engine.TEXTS)
        assert all(sum(text.count(",") for text in texts) >= 10 for texts in engine.TEXTS.values())


def test_kept_and_read_again(tmp_path: Path) -> None:
    result = found(Recorder({(3, 0): follower()}))
    path = engine.keep(result, tmp_path, model="tiny", voice=None, texts=TEXTS)
    assert parse_heads(path.read_text(), "") == result.heads


class TestPlace:
    def test_of_a_model(self, tmp_path: Path) -> None:
        assert engine.place_of("phonon-31m-en", tmp_path, tmp_path).folder == tmp_path
        assert engine.place_of("phonon-31m-en", tmp_path / "model.safetensors", tmp_path).language == "en"

    def test_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="kokoro-82m is of the family kokoro"):
            engine.place_of("kokoro-82m", tmp_path, tmp_path)
        with pytest.raises(UnknownName):
            engine.place_of("phonon", tmp_path, tmp_path)
        with pytest.raises(CheckpointError, match="sonant models pull phonon-31m-en"):
            engine.place_of("phonon-31m-en", None, tmp_path)
