"""Option values: frozen, keyword-only, checked once, here."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from sonant.errors import InputError, UnknownName

AUTO, EXACT = "auto", "exact"
PRECISIONS = (AUTO, EXACT, "f32", "f16", "bf16", "q8", "int8")
DEVICES = ("cpu", "numpy")
SPEED_RANGE = (0.25, 4.0)
SEED_RANGE = (0, 2**32 - 1)
TEMPERATURE_RANGE = (0.0, 2.0)
GUIDANCE_RANGE = (0.0, 10.0)
MARKUP_MODES = ("auto", "strict", "off")
TEXT_FORMATS = ("plain", "markdown")
ALIGNED = "align"
WORD_TIMES = ("native", ALIGNED)
FIRST_PIECES = ("full", "short")
LONGEST_PAUSE_S = 60.0
COMMITS = ("auto", "sentence", "manual")
ON_CONFLICT = ("keep", "raise", "respeak")
DEFAULT_IDLE_MS = 500.0
SHORTEST_IDLE_MS = 1.0


def named_precision(asked: str, automatic: str) -> str:
    """The precision that `asked`, one of PRECISIONS, stands for; `automatic` is what a family takes by itself."""
    return {AUTO: automatic, EXACT: "f32"}.get(asked, asked)


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a model is brought up.

    device: cpu (compiled kernels) or numpy (the slow reference). threads: how many compute, None for one per core.
    precision: auto (the fastest of those that keep the speech, decided by each family), exact (f32 on any machine), or
    f32, f16, bf16, q8 or int8 for the parts that do not decide lengths. isa: force an instruction set.
    """

    device: str = "cpu"
    threads: int | None = None
    precision: str = AUTO
    isa: str | None = None

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise UnknownName("device", self.device, DEVICES)
        if self.precision not in PRECISIONS:
            raise UnknownName("precision", self.precision, PRECISIONS)
        if self.threads is not None and not (type(self.threads) is int and 1 <= self.threads <= 1024):
            raise InputError(
                f"threads is {self.threads!r}; wanted a whole number from 1 to 1024, or None for one per core"
            )


@dataclass(frozen=True, kw_only=True)
class SpeakOptions:
    """How a text is spoken.

    voice: a name or a blend (`af_heart:0.7,am_michael:0.3`), None for the model's default. speed: 1.0 is the model's
    own pace, 2.0 twice as fast. seed: the same seed gives the same audio. language: BCP-47, None for the voice's own.
    markup: what becomes of tags such as [pause 1s]: auto (unknown ones are read), strict (left out with a note) or off.
    text_format: plain or markdown. lexicon: the user's own words, a TSV or PLS file or {word: phonemes}.
    paragraph_pause_s, heading_pause_s: silence added after a blank line, and after a heading of Markdown.
    words: where their times come from: native (what the family has) or align (Kokoro's speech laid over the sound).
    first_piece: full, or short to hear the start sooner: the first piece ends with the first sentence or, when that is
    long, at a good place in it. A family of streaming_grain frame starts at once either way: both say the same there.
    temperature: how far noise moves the speech, 0 for none, None for the checkpoint's own. guidance: how far the speech
    is pushed away from speech without voice and text, at about twice the work; None for no such push. Both only for
    families whose capabilities say so.
    """

    voice: str | None = None
    speed: float = 1.0
    seed: int = 0
    language: str | None = None
    markup: str = "auto"
    text_format: str = "plain"
    lexicon: str | os.PathLike[str] | Mapping[str, str] | None = None
    paragraph_pause_s: float = 0.3
    heading_pause_s: float = 0.5
    words: str = "native"
    first_piece: str = "full"
    temperature: float | None = None
    guidance: float | None = None

    def __post_init__(self) -> None:
        low, high = SPEED_RANGE
        if not (isinstance(self.speed, (int, float)) and math.isfinite(self.speed) and low <= self.speed <= high):
            raise InputError(f"speed is {self.speed!r}; wanted a number from {low} to {high}")
        first, last = SEED_RANGE
        if type(self.seed) is not int or not first <= self.seed <= last:
            raise InputError(f"seed is {self.seed!r}; wanted a whole number from {first} to {last}")
        if self.words not in WORD_TIMES:
            raise UnknownName("words", str(self.words), WORD_TIMES)
        if self.first_piece not in FIRST_PIECES:
            raise UnknownName("first_piece", str(self.first_piece), FIRST_PIECES)
        _check_range("temperature", self.temperature, TEMPERATURE_RANGE)
        _check_range("guidance", self.guidance, GUIDANCE_RANGE)
        check_reading(self.markup, self.text_format, self.paragraph_pause_s, self.heading_pause_s)


def _check_range(name: str, value: float | None, allowed: tuple[float, float]) -> None:
    low, high = allowed
    if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value) and low <= value <= high):
        raise InputError(f"{name} is {value!r}; wanted a number from {low:g} to {high:g}")


def check_reading(markup: str, text_format: str, *pauses_s: float) -> None:
    """How a text is read. Raises UnknownName (markup, text_format) and InputError (a pause out of range)."""
    if markup not in MARKUP_MODES:
        raise UnknownName("markup", str(markup), MARKUP_MODES)
    if text_format not in TEXT_FORMATS:
        raise UnknownName("text_format", str(text_format), TEXT_FORMATS)
    for value in pauses_s:
        if not (isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value <= LONGEST_PAUSE_S):
            raise InputError(f"a pause of {value!r}; wanted seconds from 0 to {LONGEST_PAUSE_S:g}")


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """How a session takes its text (docs/sessions.md).

    commit: when text goes to the model: auto, sentence or manual. idle_ms: auto only, 500 by default; after so long
    without new text what seems to be finished is spoken, never with math.inf. on_conflict: what becomes of an edit of
    text that has been spoken: keep (left out, with a note), raise (InputError) or respeak. ahead: how many chunks are
    computed before they are taken.
    """

    commit: str = "auto"
    idle_ms: float | None = None
    on_conflict: str = "keep"
    ahead: int = 2

    def __post_init__(self) -> None:
        if self.commit not in COMMITS:
            raise UnknownName("commit", str(self.commit), COMMITS)
        if self.on_conflict not in ON_CONFLICT:
            raise UnknownName("on_conflict", str(self.on_conflict), ON_CONFLICT)
        if type(self.ahead) is not int or not 1 <= self.ahead <= 1000:
            raise InputError(f"ahead is {self.ahead!r}; wanted a whole number of chunks from 1 to 1000")
        if self.idle_ms is None:
            return
        if self.commit != "auto":
            raise InputError(f"idle_ms goes with commit='auto'; with {self.commit!r} waiting speaks nothing")
        if not (isinstance(self.idle_ms, (int, float)) and self.idle_ms >= SHORTEST_IDLE_MS):
            raise InputError(
                f"idle_ms is {self.idle_ms!r}; wanted milliseconds from {SHORTEST_IDLE_MS:g}, or math.inf for never"
            )

    @property
    def idle_s(self) -> float:
        """Seconds, infinite where waiting speaks nothing."""
        if self.commit != "auto":
            return math.inf
        return (DEFAULT_IDLE_MS if self.idle_ms is None else self.idle_ms) / 1000
