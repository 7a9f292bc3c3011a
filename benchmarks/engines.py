"""What an engine is to the benchmarks: where it is installed, what it needs, and how it speaks.

Imports nothing heavy, here and in kokoro_engines.py and streaming_engines.py: start-up and memory are the engine's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE_RATE = 24_000
"""Of all models here."""

SONANT = "sonant"


@dataclass(frozen=True)
class Text:
    """phonemes: of Kokoro's alphabet, for engines without a front end; frames: how many the text is spoken in, where
    that is fixed."""

    text: str
    phonemes: str = ""
    frames: int | None = None


@dataclass(frozen=True)
class Given:
    """What every engine is built with."""

    folder: Path
    model: str
    threads: int
    texts: list[Text]


Say = Callable[[Text], Iterable[Any]]
"""Speaks: chunks of samples f32 [S] as they come."""


@dataclass(frozen=True)
class Speaker:
    """A loaded engine. say: all of a text, from its phonemes where there are some, the way that is fastest as a whole.
    start: from the bare text, the way that gives a first chunk soonest; None where there is nothing sooner than the
    whole. read: text → phonemes, loaded when called, for an engine that reads no text itself."""

    say: Say
    start: Say | None = None
    read: Callable[[], Callable[[str], str]] | None = None

    def first(self, text: Text) -> Say:
        """How this text is begun by someone who has no phonemes."""
        if self.start is not None:
            return self.start
        if self.read is None:
            return self.say
        phonemes = self.read()(text.text)
        return lambda _: self.say(Text(text.text, phonemes))


@dataclass(frozen=True)
class Engine:
    """packages: the distributions to look for, the engine's own first; files: what it needs of the model's folder."""

    packages: tuple[str, ...]
    build: Callable[[Given], Speaker]
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """name: sonant's; voice and voices: as sonant takes them; calls: how often each text is spoken and timed."""

    name: str
    voice: str
    voices: bool
    engines: dict[str, Engine]
    texts: Callable[[Path], list[Text]]
    sonant: tuple[str, ...]
    """The sonant engines that are compared unless others are asked for: sonant-PRECISION or sonant-PRECISION-ISA."""
    calls: int

    def engine(self, name: str) -> Engine:
        """Raises KeyError."""
        if is_sonant(name):
            return Engine((SONANT,), lambda given: sonant(given, self, *precision_and_isa(name)))
        return self.engines[name]

    def options(self, folder: Path, name: str, threads: int) -> list[str]:
        """Of the sonant command, for the engine `name`."""
        precision, isa = precision_and_isa(name)
        options = ["--threads", str(threads), "--precision", precision, "--weights", str(folder), "--voice", self.voice]
        options += ["--isa", isa] if isa else []
        return options + (["--voices", str(folder / "voices")] if self.voices else [])


def is_sonant(engine: str) -> bool:
    return engine.startswith(f"{SONANT}-")


def precision_and_isa(name: str) -> tuple[str, str | None]:
    _, precision, *isa = name.split("-", 2)
    return precision, isa[0] if isa else None


def sonant(given: Given, model: Model, precision: str, isa: str | None) -> Speaker:
    import numpy as np

    import sonant as engine

    synth = engine.load(
        model.name,
        weights=given.folder,
        voices=given.folder / "voices" if model.voices else None,
        precision=precision,
        isa=isa,
        threads=given.threads,
        cache=sonant_cache(given.folder),
    )
    options: dict[str, Any] = {"voice": model.voice}
    if synth.capabilities.streaming_grain == "frame":
        options["temperature"] = 0.0  # so that all engines say the same
        return Speaker(*2 * [lambda text: (c.samples for c in synth.stream(text.text, **options))])
    driver, seed = synth._driver, np.zeros((1, 2), np.int32)
    pack = driver._catalog.get(model.voice)
    return Speaker(
        lambda text: [driver.speak_phonemes(text.phonemes, pack, 1.0, seed)[0]],
        lambda text: (c.samples for c in synth.stream(text.text, first_piece="short", **options)),
    )


def sonant_cache(folder: Path) -> Path:
    return folder / "sonant-cache"
