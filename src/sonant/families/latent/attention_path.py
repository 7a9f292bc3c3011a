"""Where in the text each frame is, followed through the attention that a model pays to its text tokens.

A hidden Markov model over the tokens: in the next frame the speech is at the same token, the next, or a few further;
what a frame's attention gives a token is its likelihood. Each frame is decided LOOKAHEAD_FRAMES later, from what was
seen until then, so a spike elsewhere that does not last changes little and a model that really leaps is followed. The
position is the mean over the tokens (a centroid), held where it would go back. docs/attention_times.md compares this
with the published ways.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from sonant.errors import BackendError, InputError

LOOKAHEAD_FRAMES = 3
FURTHER = np.array([0.6, 0.3, 0.07, 0.03])
"""How likely the speech is so many tokens further in the next frame: a token lasts about 0.2 s, 2.5 frames."""
LEAP = 1e-7
"""And at any other: a model may leave words out, or repeat them."""
FLOOR = 0.02
"""Added to every weight: a frame whose attention is elsewhere is weak evidence, never a proof."""


class TokenPath:
    """`positions[f]` is where in the text the middle of frame f is, 0 to n_tokens: token n lies from n to n + 1.

    Positions never decrease. They are a function of the frames alone, not of how these are cut into calls.
    """

    def __init__(self, n_tokens: int) -> None:
        if n_tokens < 1:
            raise InputError(f"a path through {n_tokens} tokens; wanted at least one")
        self.n_tokens = n_tokens
        self.positions: list[float] = []
        self._centres = np.arange(n_tokens) + 0.5
        self._chances: np.ndarray | None = None  # f64 [n_tokens] of the last frame, from all until then
        self._undecided: deque[tuple[np.ndarray, np.ndarray]] = deque()  # (chances, likelihood) of the last frames
        self._n_frames = self._n_onward = self._top = 0
        self._peaks = 0.0

    def add(self, attention: np.ndarray) -> None:
        """attention f32 [frames, heads, n_tokens]: the softmax weights of the next frames."""
        if attention.ndim != 3 or attention.shape[1] < 1 or attention.shape[2] != self.n_tokens:
            raise InputError(f"attention is {list(attention.shape)}; wanted [frames, heads, {self.n_tokens}]")
        weights = attention.sum(axis=1, dtype=np.float64) / attention.shape[1]
        if not np.isfinite(weights).all():
            raise BackendError("the attention of a frame is not finite; the weights are damaged")
        for of_frame, top in zip(weights, weights.argmax(axis=1).tolist(), strict=True):
            self._peaks += float(of_frame[top])
            self._n_onward += self._n_frames > 0 and top >= self._top
            self._n_frames, self._top = self._n_frames + 1, top
            self._follow(of_frame + FLOOR)

    def finish(self) -> None:
        """No further frame comes: decide the last ones."""
        while self._undecided:
            self._decide()

    @property
    def mean_peak(self) -> float:
        """Mean over the frames of the largest weight: 1 where all attention is on one token."""
        return self._peaks / self._n_frames if self._n_frames else 0.0

    @property
    def monotone_share(self) -> float:
        """Share of the frames whose largest weight is at the token of the frame before, or further on."""
        return self._n_onward / (self._n_frames - 1) if self._n_frames > 1 else 0.0

    def _follow(self, likelihood: np.ndarray) -> None:
        if self._chances is None:
            chances = 0.5 ** (self._centres + 0.5)  # speech begins with the first token, or nearly so
        else:
            chances = np.convolve(self._chances, FURTHER)[: self.n_tokens] + LEAP
        chances *= likelihood
        chances /= chances.sum()
        self._chances = chances
        self._undecided.append((chances, likelihood))
        if len(self._undecided) > LOOKAHEAD_FRAMES:
            self._decide()

    def _decide(self) -> None:
        """The first undecided frame, by all up to it and by those after it."""
        chances, _ = self._undecided.popleft()
        if self._undecided:
            after = np.ones(self.n_tokens)
            for _, likelihood in reversed(self._undecided):
                after *= likelihood
                after = np.convolve(after, FURTHER[::-1])[-self.n_tokens :] + LEAP * after.sum()
            chances = chances * after
        position = float(np.dot(chances, self._centres) / chances.sum())
        self.positions.append(max(position, self.positions[-1] if self.positions else 0.0))


def crossing_frame(positions: list[float], token: int, after: float, lead_frames: float) -> float | None:
    """When the path enters `token`, in frames of the attention, between the middles of two frames by straight line;
    None where it has not yet. after: it was not there before (or a negative number).

    Before the first frame the path is at 0 where the sound begins, `lead_frames` before the attention.
    """
    for frame in range(max(0, int(after)), len(positions)):
        if positions[frame] >= token:
            before_at, before = (frame - 0.5, positions[frame - 1]) if frame else (min(0.0, -lead_frames), 0.0)
            if before >= token:
                return before_at
            return before_at + (frame + 0.5 - before_at) * (token - before) / (positions[frame] - before)
    return None
