"""Word times from attention: the contract of the words, on anything; and how far off they are, on made-up speech."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.errors import BackendError, InputError
from sonant.families.latent.attention_path import LOOKAHEAD_FRAMES, TokenPath
from sonant.families.latent.timing import AttentionTimes
from sonant.types import WordTiming

spoken = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "spoken.py")))
FRAME, FRAME_S, RATE = spoken.FRAME, spoken.FRAME_S, spoken.RATE


def times(said: Any, *, lead: float = 0.0) -> AttentionTimes:
    return AttentionTimes(said.words, said.n_tokens, sample_rate=RATE, frame_samples=FRAME, lead_frames=lead)


def whole(said: Any, attention: np.ndarray, *, lead: float = 0.0) -> list[WordTiming]:
    timing = times(said, lead=lead)
    return timing.add(attention, said.samples) + timing.finish()


def hold(said: Any, found: list[WordTiming]) -> None:
    """Every word once, in order, never going back, within the samples; those without sound take no time."""
    assert [(w.text, w.char_start, w.char_end) for w in found] == [(w.text, w.start, w.end) for w in said.words]
    assert all(0.0 <= w.start_s <= w.end_s <= len(said.samples) / RATE for w in found)
    assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(found))
    for word, own in zip(found, said.words, strict=True):
        assert word.start_s == word.end_s or own.token_start < own.token_end


ways = st.fixed_dictionaries(
    {
        "blur": st.floats(0.05, 3),
        "wander": st.floats(0, 1),
        "noise": st.floats(0, 1),
        "spikes": st.floats(0, 0.5),
        "spike_frames": st.integers(1, 8),
        "lead": st.floats(-5, 5),
        "heads": st.integers(1, 3),
    }
)


@given(seed=st.integers(0, 10_000), n_words=st.integers(1, 15), way=ways, known_lead=st.floats(-5, 5))
def test_contract_whatever_the_attention(seed: int, n_words: int, way: dict[str, Any], known_lead: float) -> None:
    rng = np.random.default_rng(seed)
    said = spoken.utterance(rng, n_words, silent_words=0.3)
    if said.n_tokens:
        hold(said, whole(said, spoken.attention(said, rng, **way), lead=known_lead))


@given(seed=st.integers(0, 10_000), way=ways, data=st.data())
def test_streamed_is_the_whole(seed: int, way: dict[str, Any], data: st.DataObject) -> None:
    """However frames and samples are cut, and whichever of them comes first."""
    rng = np.random.default_rng(seed)
    said = spoken.utterance(rng, 8)
    attention = spoken.attention(said, rng, **way)
    cuts = st.lists(st.integers(0, 10**6), max_size=12).map(sorted)
    of_frames = [0, *(c * said.n_frames // 10**6 for c in data.draw(cuts)), said.n_frames]
    of_samples = [0, *(c * len(said.samples) // 10**6 for c in data.draw(cuts)), len(said.samples)]
    timing, found = times(said, lead=way["lead"]), []
    for (a, b), (c, d) in itertools.zip_longest(
        itertools.pairwise(of_frames), itertools.pairwise(of_samples), fillvalue=(0, 0)
    ):
        found += timing.add(attention[a:b], said.samples[c:d])
    assert found + timing.finish() == whole(said, attention, lead=way["lead"])


@pytest.mark.parametrize("step", [40, 150, FRAME])
def test_samples_that_come_bit_by_bit_behind_the_attention(step: int) -> None:
    """Every moment at which something could be decided too early is one at which it is tried."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        said = spoken.utterance(rng, 8)
        attention, timing = spoken.attention(said, rng, blur=1.0, spikes=0.1, lead=1.0), times(said)
        found = timing.add(attention, said.samples[:0])
        for first in range(0, len(said.samples), step):
            found += timing.add(attention[:0], said.samples[first : first + step])
        assert found + timing.finish() == whole(said, attention)


def test_words_come_with_the_stretch_in_which_their_end_is_settled() -> None:
    """At most the lookahead of the attention, or 0.12 s of reach and 0.16 s of loudness, plus a frame, after the end;
    in a pause too. A word that ends with the last sound comes at the end."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        said = spoken.utterance(rng, 12, silent_words=0)
        attention, timing = spoken.attention(said, rng, blur=0.4, wander=0.02), times(said)
        for f in range(said.n_frames):
            for word in timing.add(attention[f : f + 1], said.samples[f * FRAME : (f + 1) * FRAME]):
                until_next = next((s for s in said.starts_s if s > word.end_s + 0.05), 99) - word.end_s
                assert (f + 1) * FRAME_S - word.end_s < until_next + (LOOKAHEAD_FRAMES + 2) * FRAME_S
        assert len(timing.finish()) <= 3


CASES = {
    # name: (the attention, median and 95 % in ms that starts and ends may be off)
    "clear": ({"blur": 0.4, "wander": 0.02, "noise": 0.02}, 20, 60),
    "blurred": ({"blur": 1.0, "wander": 0.1}, 30, 110),
    "noisy": ({"noise": 0.4, "wander": 0.15}, 30, 110),
    "spikes of one frame": ({"spikes": 0.15}, 30, 110),
    "spikes of up to three": ({"spikes": 0.15, "spike_frames": 3}, 30, 130),
    "three heads, each with spikes": ({"spikes": 0.2, "spike_frames": 4, "heads": 3}, 30, 110),
    "five frames ahead": ({"lead": 5.0}, 30, 110),
    "three frames behind": ({"lead": -3.0}, 30, 110),
}


@pytest.mark.parametrize("name", CASES)
def test_error_on_made_up_speech(name: str) -> None:
    way, median_ms, most_ms = CASES[name]
    errors = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        said = spoken.utterance(rng, 15)
        found = whole(said, spoken.attention(said, rng, **way), lead=way.get("lead", 0.0))
        sounding = [i for i, w in enumerate(said.words) if w.token_end > w.token_start]
        errors += [found[i].start_s - said.starts_s[i] for i in sounding]
        errors += [found[i].end_s - said.ends_s[i] for i in sounding]
    off_ms = 1000 * np.abs(errors)
    print(f"{name}: median {np.median(off_ms):.0f} ms, 95 % {np.percentile(off_ms, 95):.0f} ms")  # noqa: T201
    assert np.median(off_ms) <= median_ms
    assert np.percentile(off_ms, 95) <= most_ms


def one_hot(tokens: list[int], n_tokens: int) -> np.ndarray:
    """f32 [frames, 1, n_tokens]: all attention on one token a frame."""
    return np.eye(n_tokens, dtype=np.float32)[tokens][:, None]


def sound(*stretches: tuple[float, float], end_s: float) -> np.ndarray:
    samples = np.zeros(round(end_s * RATE), np.float32)
    for start_s, stop_s in stretches:
        samples[round(start_s * RATE) : round(stop_s * RATE)] = 0.1
    return samples


def said(*ranges: tuple[int, int], n_tokens: int, samples: np.ndarray) -> SimpleNamespace:
    words = tuple(spoken.Word(f"w{i}", 3 * i, 3 * i + 2, a, b) for i, (a, b) in enumerate(ranges))
    return SimpleNamespace(words=words, n_tokens=n_tokens, samples=samples)


def spans(found: list[WordTiming]) -> list[tuple[float, float]]:
    return [(round(w.start_s, 3), round(w.end_s, 3)) for w in found]


def test_between_two_frames_the_border_lies_where_the_weight_is_halved() -> None:
    text = said((0, 1), (1, 2), n_tokens=2, samples=sound((0, 0.8), end_s=0.8))
    sharp = one_hot([0] * 5 + [1] * 5, 2)
    assert spans(whole(text, sharp))[0] == (0.0, pytest.approx(0.4, abs=0.005))
    sharp[5] = 0.5  # half of that frame is still the first word's
    assert spans(whole(text, sharp))[0] == (0.0, pytest.approx(0.44, abs=0.01))


def test_starts_with_its_sound_and_ends_with_it_before_a_pause() -> None:
    text = said((0, 1), (1, 2), n_tokens=2, samples=sound((0.2, 0.55), (0.95, 1.3), end_s=1.6))
    assert spans(whole(text, one_hot([0] * 11 + [1] * 9, 2))) == [(0.2, 0.55), (0.95, 1.3)]


def test_the_closure_of_a_stop_belongs_to_the_word_before() -> None:
    text = said((0, 1), (1, 2), n_tokens=2, samples=sound((0, 0.4), (0.46, 0.8), end_s=0.8))
    assert spans(whole(text, one_hot([0] * 5 + [1] * 5, 2))) == [(0.0, 0.46), (0.46, 0.8)]


def test_an_onset_begins_one_word_only() -> None:
    text = said((0, 1), (1, 2), n_tokens=2, samples=sound((0.2, 0.8), end_s=0.8))
    first, second = spans(whole(text, one_hot([0] * 3 + [1] * 7, 2)))
    assert (first[0], first[1]) == (0.2, second[0])
    assert second[0] == pytest.approx(0.24, abs=0.005)


def test_an_onset_at_the_end_of_the_reach_is_waited_for() -> None:
    text = said((0, 1), (1, 2), n_tokens=2, samples=sound((0, 0.46), (0.51, 1.0), end_s=1.0))
    attention = one_hot([0] * 5 + [1] * 8, 2)
    assert spans(whole(text, attention))[1] == (0.51, 1.0)
    timing = times(text)
    found = timing.add(attention, text.samples[:0])
    for first in range(0, len(text.samples), 80):
        found += timing.add(attention[:0], text.samples[first : first + 80])
    assert found + timing.finish() == whole(text, attention)


def test_words_that_the_attention_entered_in_a_pause_share_the_sound_behind_it() -> None:
    text = said((0, 1), (1, 2), (2, 3), (3, 4), n_tokens=4, samples=sound((0, 0.4), (1.2, 2.0), end_s=2.0))
    found = spans(whole(text, one_hot([0] * 6 + [1] * 2 + [2] * 12 + [3] * 5, 4)))
    assert found[:2] == [(0.0, 0.4), (1.2, 1.4)]
    assert found[2][0] == 1.4
    assert found[2][1] == found[3][0] == pytest.approx(1.6, abs=0.005)


def test_words_that_the_attention_did_not_reach_share_the_last_sound() -> None:
    text = said((0, 1), (1, 2), (2, 3), n_tokens=3, samples=sound((0, 0.8), end_s=1.2))
    found = whole(text, one_hot([0] * 5, 3))
    assert [w.start_s for w in found] == pytest.approx([0.0, 0.448, 0.624], abs=0.01)
    assert found[2].end_s == pytest.approx(0.8)


def test_words_without_sound_are_where_the_word_before_them_ends() -> None:
    text = said((0, 0), (0, 1), (1, 1), (1, 2), (2, 2), n_tokens=2, samples=sound((0.2, 0.5), (0.8, 1.1), end_s=1.6))
    found = spans(whole(text, one_hot([0] * 9 + [1] * 11, 2)))
    assert found == [(0.0, 0.0), (0.2, 0.5), (0.5, 0.5), (0.8, 1.1), (1.1, 1.1)]


def test_a_text_without_sound_or_frames() -> None:
    silence = said((0, 1), (1, 2), n_tokens=2, samples=np.zeros(RATE, np.float32))
    assert spans(whole(silence, one_hot([0] * 6 + [1] * 6, 2))) == [(0.0, 0.0), (0.0, 0.0)]
    assert spans(times(silence).finish()) == [(0.0, 0.0), (0.0, 0.0)]
    assert times(silence).quality.mean_peak == times(silence).quality.monotone_share == 0.0


def test_louder_is_the_same() -> None:
    rng = np.random.default_rng(3)
    text = spoken.utterance(rng)
    attention = spoken.attention(text, rng)
    louder = SimpleNamespace(words=text.words, n_tokens=text.n_tokens, samples=text.samples * 3)
    assert whole(louder, attention) == whole(text, attention)


def test_finished_once() -> None:
    timing = times(said((0, 1), n_tokens=1, samples=sound(end_s=1)))
    assert len(timing.finish()) == 1
    assert timing.finish() == []
    with pytest.raises(InputError, match="finished"):
        timing.add(one_hot([0], 1), np.zeros(0, np.float32))


class TestPath:
    def path(self, attention: np.ndarray) -> list[float]:
        path = TokenPath(attention.shape[2])
        path.add(attention)
        path.finish()
        return path.positions

    def test_a_spike_of_two_frames_is_not_followed(self) -> None:
        straight = [f // 3 for f in range(60)]
        spiked = one_hot(straight, 20)
        spiked[20:22] = one_hot([18, 18], 20)
        spiked[40:42] = one_hot([0, 0], 20)
        assert np.abs(np.subtract(self.path(spiked), self.path(one_hot(straight, 20)))).max() < 1

    def test_words_left_out_are_left_within_two_frames(self) -> None:
        found = self.path(one_hot([f // 3 for f in range(18)] + [14 + f // 3 for f in range(18)], 20))
        assert found[15] < 7
        assert found[20] > 13

    def test_words_said_twice_are_waited_for(self) -> None:
        tokens = [f // 3 for f in range(30)] + [4 + f // 3 for f in range(36)]
        found = self.path(one_hot(tokens, 20))
        assert found[44] == pytest.approx(9.5, abs=0.6)
        assert found[60] == pytest.approx(14.5, abs=0.6)

    @pytest.mark.parametrize("n_tokens", [1, 2, 3, 5])
    def test_short_texts(self, n_tokens: int) -> None:
        found = self.path(one_hot([f // 4 for f in range(4 * n_tokens)], n_tokens))
        assert found == sorted(found)
        assert 0 < found[0] < 1
        assert n_tokens - 1 < found[-1] < n_tokens

    def test_quality(self) -> None:
        path = TokenPath(4)
        path.add(one_hot([0, 1, 1, 2, 3], 4))
        assert (path.mean_peak, path.monotone_share) == (1.0, 1.0)
        path.add(np.full((3, 2, 4), 0.25, np.float32))  # the largest is the first of them
        assert (path.mean_peak, path.monotone_share) == (5.75 / 8, 6 / 7)


class TestRefused:
    def test_attention_of_another_shape(self) -> None:
        for shape in ((4, 1, 3), (4, 2), (4, 0, 2)):
            with pytest.raises(InputError, match=r"wanted \[frames, heads, 2\]"):
                TokenPath(2).add(np.ones(shape, np.float32))

    def test_attention_that_is_not_finite(self) -> None:
        with pytest.raises(BackendError, match="not finite"):
            TokenPath(2).add(np.full((1, 1, 2), np.nan, np.float32))

    def test_no_tokens(self) -> None:
        with pytest.raises(InputError, match="0 tokens"):
            TokenPath(0)

    @pytest.mark.parametrize("ranges", [[(0, 2), (1, 3)], [(2, 1)], [(0, 4)], [(-1, 1)]])
    def test_ranges_that_overlap_or_leave_the_text(self, ranges: list[tuple[int, int]]) -> None:
        with pytest.raises(InputError, match="wanted a range"):
            times(said(*ranges, n_tokens=3, samples=sound(end_s=1)))
