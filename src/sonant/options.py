"""Option values: frozen, keyword-only, checked once, here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sonant.errors import InputError, UnknownName

PRECISIONS = ("f32", "f16", "bf16")
DEVICES = ("cpu", "numpy")
SPEED_RANGE = (0.25, 4.0)
SEED_RANGE = (0, 2**32 - 1)


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a model is brought up.

    device: cpu (compiled kernels) or numpy (the slow reference). threads: how many compute, None for one per core.
    precision: f32, or f16 / bf16 weights for the parts that do not decide lengths. isa: force an instruction set.
    """

    device: str = "cpu"
    threads: int | None = None
    precision: str = "f32"
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
    """

    voice: str | None = None
    speed: float = 1.0
    seed: int = 0
    language: str | None = None

    def __post_init__(self) -> None:
        low, high = SPEED_RANGE
        if not (isinstance(self.speed, (int, float)) and math.isfinite(self.speed) and low <= self.speed <= high):
            raise InputError(f"speed is {self.speed!r}; wanted a number from {low} to {high}")
        first, last = SEED_RANGE
        if type(self.seed) is not int or not first <= self.seed <= last:
            raise InputError(f"seed is {self.seed!r}; wanted a whole number from {first} to {last}")
