"""Measuring how fast a model speaks at each value of its pace condition; behind `sonant calibrate-speed`."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sonant.engine.load import find_weights
from sonant.engine.synthesizer import Synthesizer
from sonant.errors import CheckpointError, InputError
from sonant.families.phonon.speed import SpeedMap, fit, read_map, speed_of, write_map
from sonant.hub.catalog import find

DELTAS = (-0.45, -0.3, -0.15, 0.0, 0.2, 0.4, 0.6)
# Plain sentences without numbers or names, some short, some long; three a language keep the command within minutes.
TEXTS = {
    "en": (
        "The ferry leaves at noon, so there is plenty of time for a walk along the harbour.",
        "Nobody answered the door.",
        "When the rain stopped, the children ran outside and built a small dam across the stream behind the barn.",
    ),
    "fr": (
        "Le bateau part à midi, nous avons donc le temps de marcher le long du port.",
        "Personne n'a ouvert la porte.",
        "Quand la pluie a cessé, les enfants sont sortis et ont construit un barrage sur le ruisseau.",
    ),
    "de": (
        "Die Fähre legt am Mittag ab, also bleibt noch Zeit für einen Gang am Hafen entlang.",
        "Niemand machte die Tür auf.",
        "Als der Regen aufhörte, liefen die Kinder hinaus und bauten einen kleinen Damm quer durch den Bach.",
    ),
    "es": (
        "El barco sale al mediodía, así que queda tiempo para dar un paseo por el puerto.",
        "Nadie abrió la puerta.",
        "Cuando dejó de llover, los niños salieron y construyeron una pequeña presa en el arroyo.",
    ),
    "pt": (
        "O barco parte ao meio-dia, por isso há tempo para um passeio ao longo do porto.",
        "Ninguém abriu a porta.",
        "Quando a chuva parou, as crianças saíram e construíram uma pequena barragem no ribeiro.",
    ),
}


@dataclass(frozen=True)
class Pace:
    """The mean speed at one duration_delta, over all texts and seeds, and its standard error (a share of it)."""

    duration_delta: float
    speed: float
    error: float


@dataclass(frozen=True)
class Place:
    """Where a Phonon checkpoint lies, and the speed map that is in force for it."""

    folder: Path
    language: str
    speed_map: SpeedMap


def place_of(model: str, weights: Path | None, cache: Path) -> Place:
    """Raises InputError for a model of another family, UnknownName, CheckpointError (not here)."""
    entry = find(model)
    if entry.family != "phonon":
        raise InputError(
            f"{model} is of the family {entry.family}; only Phonon's pace is a learned condition that can be measured"
        )
    found = weights or find_weights(entry, cache)
    if not isinstance(found, Path):
        raise CheckpointError(f"{model}: lies in several files; give one folder as weights")
    folder = found if found.is_dir() else found.parent
    return Place(folder, entry.languages[0].partition("-")[0], read_map(folder))


def measure(
    synth: Synthesizer,
    speed_map: SpeedMap,
    texts: Sequence[str],
    *,
    deltas: Sequence[float] = DELTAS,
    seeds: int = 2,
    voice: str | None = None,
    done: Callable[[float, float], None] = lambda fraction, audio_s: None,
) -> list[Pace]:
    """Speak every text at every d and seed, and compare the lengths with those at d = 0 of the same text and seed.

    speed_map: the map that `synth` translates speeds with. done: called after every utterance with the share of all
    that is spoken, and the seconds of speech so far.
    """
    if 0.0 not in deltas or not texts or seeds < 1:
        raise InputError("calibration needs d = 0, a text and a seed to compare with")
    takes = [(text, seed) for text in texts for seed in range(seeds)]
    lengths_s: dict[float, list[float]] = {delta: [] for delta in sorted(deltas)}
    spoken_s = 0.0
    for n, (delta, (text, seed)) in enumerate(itertools.product(lengths_s, takes), 1):
        speech = synth.speak(text, voice=voice, speed=speed_of(delta, speed_map), seed=seed)
        if not speech.duration_s:
            raise InputError(f"nothing was said of {text!r}; calibration needs texts that can be spoken")
        lengths_s[delta].append(speech.duration_s)
        spoken_s += speech.duration_s
        done(n / (len(lengths_s) * len(takes)), spoken_s)
    return [_pace(delta, own, lengths_s[0.0]) for delta, own in lengths_s.items()]


def _pace(delta: float, lengths_s: Sequence[float], at_zero_s: Sequence[float]) -> Pace:
    logs = [math.log(zero / own) for own, zero in zip(lengths_s, at_zero_s, strict=True)]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return Pace(delta, math.exp(statistics.fmean(logs)), error)


def keep(place: Place, model: str, paces: Sequence[Pace], *, n_texts: int, seeds: int, voice: str | None) -> Path:
    """Fit a map through what was measured and keep it beside the checkpoint."""
    about = {
        "model": model,
        "voice": voice,
        "n_texts": n_texts,
        "seeds": seeds,
        "measured": [{"duration_delta": p.duration_delta, "speed": p.speed, "error": p.error} for p in paces],
    }
    return write_map(place.folder, fit([(p.duration_delta, p.speed) for p in paces]), about)
