"""Phonon's pace: its condition `duration_delta` d as a speed, and back.

The model was trained with d, not with a speed: above 0 it speaks slower, below 0 faster. Points (d, speed) are known;
between them the logarithm of the speed is linear in d. `sonant calibrate-speed` measures points of a checkpoint of
one's own and keeps them beside it in speed.json.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sonant.checkpoint.cache import write_atomic
from sonant.errors import CheckpointError, InputError

FILENAME = "speed.json"
FORMAT = "sonant-speed-1"
Point = tuple[float, float]
"""duration_delta, and the speed that it gives: 2.0 is twice as fast."""


@dataclass(frozen=True)
class SpeedMap:
    """At least two points, by rising d and falling speed, one of them (0, 1)."""

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        numbers = [x for point in self.points for x in point]
        rising = all(a[0] < b[0] and a[1] > b[1] > 0 for a, b in itertools.pairwise(self.points))
        if not (len(self.points) >= 2 and all(map(math.isfinite, numbers)) and rising and (0.0, 1.0) in self.points):
            raise InputError(
                f"speed points {list(self.points)}: wanted two or more (duration_delta, speed), the speed falling "
                "as duration_delta rises, and (0, 1) among them"
            )

    @property
    def slowest(self) -> float:
        return self.points[-1][1]

    @property
    def fastest(self) -> float:
        return self.points[0][1]


# As published by blixt/phonon for the 31M model.
BUILT_IN = SpeedMap(((-0.45, 1.3), (0.0, 1.0), (0.6, 0.77)))


def delta_of(speed: float, speed_map: SpeedMap = BUILT_IN) -> float:
    """The duration_delta that gives `speed`. InputError outside the speeds that the map knows."""
    low, high = speed_map.slowest, speed_map.fastest
    if not (math.isfinite(speed) and low <= speed <= high):
        raise InputError(f"speed is {speed!r}; Phonon speaks at {low:.4g} to {high:.4g} times its own pace")
    deltas, speeds = zip(*reversed(speed_map.points), strict=True)
    return float(np.interp(math.log(speed), np.log(speeds), deltas))


def speed_of(delta: float, speed_map: SpeedMap = BUILT_IN) -> float:
    """The speed that a duration_delta gives. InputError outside the map."""
    deltas, speeds = zip(*speed_map.points, strict=True)
    if not (math.isfinite(delta) and deltas[0] <= delta <= deltas[-1]):
        raise InputError(f"duration_delta is {delta!r}; the speeds of {deltas[0]:g} to {deltas[-1]:g} are known")
    speed = math.exp(float(np.interp(delta, deltas, np.log(speeds))))
    return min(max(speed, speed_map.slowest), speed_map.fastest)  # exp(log(x)) may end beside x, out of the range


def fit(measured: Sequence[Point]) -> SpeedMap:
    """A map through measured points, whose speeds are means and may err: where they do not fall, neighbours are
    averaged (in the logarithm, each weighing the same) into one point. A speed at d = 0 counts as the model's own pace.

    InputError where the speeds do not fall as a whole, or where d = 0 was not measured.
    """
    by_delta = dict(sorted(measured))
    if len(by_delta) != len(measured) or 0.0 not in by_delta:
        raise InputError(f"measured at duration_delta {[d for d, _ in measured]}: wanted each once, 0 among them")
    blocks: list[list[tuple[float, float]]] = []  # of (d, log speed); falling means from block to block
    for delta, speed in by_delta.items():
        blocks.append([(delta, math.log(speed / by_delta[0.0]))])
        while len(blocks) > 1 and _mean(blocks[-1])[1] >= _mean(blocks[-2])[1]:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    means = [(0.0, 0.0) if any(d == 0.0 for d, _ in block) else _mean(block) for block in blocks]
    if len(means) < 2 or any(a[1] <= b[1] for a, b in itertools.pairwise(means)):
        raise InputError(
            f"measured speeds {', '.join(f'{s:.3g}' for s in by_delta.values())} at duration_delta "
            f"{', '.join(f'{d:g}' for d in by_delta)}: they do not fall; measure with more texts and seeds"
        )
    return SpeedMap(tuple((delta, math.exp(log)) for delta, log in means))


def _mean(block: Sequence[Point]) -> Point:
    return sum(d for d, _ in block) / len(block), sum(log for _, log in block) / len(block)


def read_map(folder: Path | None) -> SpeedMap:
    """The map measured for the checkpoint in `folder`, where there is one, else the built-in one."""
    path = folder / FILENAME if folder else None
    if path is None or not path.is_file():
        return BUILT_IN
    try:
        known = json.loads(path.read_bytes())
        if known["format"] != FORMAT:
            raise CheckpointError(f"{path}: is of format {known['format']!r}, wanted {FORMAT!r}; measure again")
        return SpeedMap(tuple((float(p["duration_delta"]), float(p["speed"])) for p in known["points"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read as a speed map ({error}); delete it or measure again") from error


def write_map(folder: Path, speed_map: SpeedMap, about: Mapping[str, Any]) -> Path:
    """Keep a map beside a checkpoint. `about`: how it was measured, for whoever reads the file."""
    points = [{"duration_delta": delta, "speed": speed} for delta, speed in speed_map.points]
    path = folder / FILENAME
    write_atomic(path, (json.dumps({"format": FORMAT, "points": points, **about}, indent=1) + "\n").encode())
    return path
