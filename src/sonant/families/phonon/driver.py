"""Phonon's driver: a language model over voice, text and frames, its codec, and speed as a learned condition."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from sonant.audio.reader import Recording
from sonant.backends.backend import Backend, CancelFlag
from sonant.errors import CheckpointError, InputError
from sonant.families.family import refuse_clone
from sonant.families.frames import Scheduler
from sonant.families.latent.driver import (
    STREAMS,
    LatentDriver,
    Setup,
    base_language,
    first_of,
    listened,
    piece_seed,
    temperature_of,
)
from sonant.families.latent.frames import ChunkRequest, LatentFrames, LatentStream
from sonant.families.latent.front import Chunk, FrontEnd
from sonant.families.latent.heads import Head
from sonant.families.latent.prepare import PhononRules
from sonant.families.latent.voices import VoiceReader
from sonant.families.phonon.config import PhononConfig
from sonant.families.phonon.frames import (
    GuidedFrames,
    PhononFrames,
    PhononRequest,
    Weights,
    can_guide,
    condition,
    load_networks,
    null_prompt,
)
from sonant.families.phonon.speed import SpeedMap, delta_of
from sonant.options import SpeakOptions

DEFAULT_VOICES = ("default-voice",)
NORMALIZED = ("en", "fr", "de", "es", "pt")


class PhononDriver(LatentDriver):
    """A loaded Phonon checkpoint on one backend."""

    def __init__(self, config: PhononConfig, weights: Weights, backend: Backend, setup: Setup,
                 speed_map: SpeedMap) -> None:
        self.config, self._speeds = config, speed_map
        self.capabilities = setup.capabilities(cloning=False, speed=config.delta is not None,
                                               guidance=can_guide(config, weights))
        fronts = {language: FrontEnd(tokenizer=setup.tokenizer, rules=PhononRules(), frame_rate_hz=config.frame_rate_hz,
                                     language=language if language in NORMALIZED else "none")
                  for language in map(base_language, setup.languages)}

        def frames(heads: tuple[Head, ...], rows: int) -> LatentFrames:
            networks = load_networks(config, weights, backend, precision=setup.precision, heads=heads,
                                     cache=setup.cache)
            return PhononFrames(networks, rows)

        def guided() -> Scheduler[LatentStream]:
            networks = load_networks(config, weights, backend, precision=setup.precision, heads=listened(setup.heads),
                                     guided=True, cache=setup.cache)
            return setup.schedule(GuidedFrames(networks, STREAMS, null_prompt(config, weights)))

        self._guided = functools.cache(guided)
        reader = VoiceReader(config.lm, weights["flow_lm.speaker_proj_weight"], None)
        super().__init__(setup, fronts, frames, reader, config.sample_rate)
        self._condition = functools.lru_cache(64)(lambda delta: condition(config, weights, delta))

    def clone(self, name: str, recording: Recording, *, keep: Path | None = None,
              cancel: CancelFlag | None = None) -> None:
        refuse_clone("Phonon's speaker encoder is not part of its releases; its catalogue has the voices")

    def check(self, options: SpeakOptions) -> None:
        super().check(options)
        if options.speed != 1 and not self.capabilities.speed:
            raise InputError(f"speed is {options.speed!r}; this Phonon model was trained without control of its speed: "
                             "leave it at 1")
        delta_of(options.speed, self._speeds)

    def scheduler(self, options: SpeakOptions) -> Scheduler[LatentStream]:
        """With guidance a stream has two rows, in states of their own that are made when they are first asked for."""
        return super().scheduler(options) if options.guidance is None else self._guided()

    def request(self, piece: Chunk, index: int, options: SpeakOptions) -> ChunkRequest:
        """Markup asks for a speed within the map's; what a caller asks was checked."""
        speed = min(max(options.speed * piece.speed, self._speeds.slowest), self._speeds.fastest)
        return PhononRequest(
            voice=self.voice(options), ids=np.array(piece.ids, np.int32), seed=piece_seed(options, index),
            temperature=temperature_of(options, self.config.temperature), eos_threshold=self.config.eos_threshold,
            frames_after_eos=piece.frames_after_eos, condition=self._condition(delta_of(speed, self._speeds)),
            guidance=1.0 if options.guidance is None else options.guidance)

    def default_voice(self) -> str:
        found = first_of(self._catalog.names(), DEFAULT_VOICES)
        if found is None:
            raise CheckpointError("no voice of Phonon is here; sonant models pull brings those of its catalogue")
        return found
