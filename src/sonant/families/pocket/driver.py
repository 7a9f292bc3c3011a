"""Pocket TTS's driver: a language model over voice, text and frames, its codec, and voices from recordings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sonant.audio.reader import Recording
from sonant.backends.backend import Backend, CancelFlag, Executable
from sonant.errors import CheckpointError, InputError, TextError
from sonant.families.latent.driver import LatentDriver, Setup, first_of, piece_seed, temperature_of
from sonant.families.latent.frames import ChunkRequest, LatentFrames
from sonant.families.latent.front import Chunk, FrontEnd
from sonant.families.latent.heads import Head
from sonant.families.latent.voices import VoiceReader
from sonant.families.pocket import model
from sonant.families.pocket.cloning import clip_of, save_voice
from sonant.families.pocket.config import PocketConfig
from sonant.families.pocket.frames import Weights, encode_voice, load_networks
from sonant.families.pocket.weights import SPEAKER, can_clone
from sonant.options import SpeakOptions
from sonant.program.recipe import Recipe

DEFAULT_VOICES = {"en": "alba", "it": "giovanni", "es": "lola", "de": "juergen", "pt": "rafael", "fr": "estelle",
                  "nl": "daan"}
LEAST_FRAMES = 6
"""Before it no frame ends the speech: the logit of some voices is over the threshold before a word is spoken."""
KEPT_BEYOND = 1
"""pocket_tts keeps one frame more after the end than its guess from the text says."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class PocketDriver(LatentDriver):
    """A loaded Pocket TTS checkpoint on one backend."""

    def __init__(self, config: PocketConfig, weights: Weights, backend: Backend, setup: Setup) -> None:
        self.config, self._weights, self._backend, self._language = config, weights, backend, setup.language
        self._cache = setup.cache
        self._encoder: Executable | None = None
        cloning = setup.may_clone and can_clone(frozenset(weights)) and bool(np.any(weights[SPEAKER]))
        self.capabilities = setup.capabilities(cloning=cloning, speed=False, guidance=False)
        front = FrontEnd(tokenizer=setup.tokenizer, rules=config.rules, frame_rate_hz=config.frame_rate_hz)

        def frames(heads: tuple[Head, ...], rows: int) -> LatentFrames:
            networks = load_networks(config, weights, backend, precision=setup.precision, heads=heads,
                                     cache=setup.cache)
            return LatentFrames(networks, rows)

        reader = VoiceReader(config.lm, weights.get(SPEAKER), bos_row(config, weights))
        super().__init__(setup, {setup.language: front}, frames, reader, config.sample_rate)

    def clone(self, name: str, recording: Recording, *, keep: Path | None = None,
              cancel: CancelFlag | None = None) -> None:
        """A voice `name` from a recording of 1 to 30 s; keep: a file to save it in.

        Raises InputError (a recording that is silent, clipped or too short; a name that is taken) and CheckpointError
        where this checkpoint cannot clone.
        """
        if not _NAME.fullmatch(name) or name in self._catalog.names():
            raise InputError(f"voice name {name!r}: wanted a new one, of letters, digits, - and _")
        if not self.capabilities.cloning:
            raise CheckpointError("this checkpoint cannot make a voice of a recording; take the one whose name ends in "
                                  "-cloning")
        clip = clip_of(recording, self.sample_rate)
        if self._encoder is None:
            self._encoder = self._backend.load(Recipe(model.encoder_program, self.config), self._weights,
                                               cache=self._cache)
        rows = self._reader.project(encode_voice(self._encoder, clip, self.config, cancel))
        if keep is not None:
            save_voice(keep, rows)
        self._cloned[name] = self._reader.prompt(name, rows)

    def check(self, options: SpeakOptions) -> None:
        super().check(options)
        if options.speed != 1:
            raise InputError(f"speed is {options.speed!r}; Pocket TTS has no control of its speed: leave it at 1")

    def pieces(self, source: str, options: SpeakOptions) -> Iterator[Chunk]:
        return map(_at_own_speed, super().pieces(source, options))

    def request(self, piece: Chunk, index: int, options: SpeakOptions) -> ChunkRequest:
        after = self.config.frames_after_eos
        return ChunkRequest(
            voice=self.voice(options), ids=np.array(piece.ids, np.int32), seed=piece_seed(options, index),
            temperature=temperature_of(options, self.config.temperature), eos_threshold=self.config.eos_threshold,
            least_frames=LEAST_FRAMES,
            frames_after_eos=piece.frames_after_eos + KEPT_BEYOND if after is None else after - 1)

    def default_voice(self) -> str:
        found = first_of(self._catalog.names(), (DEFAULT_VOICES.get(self._language, "alba"), "alba"))
        if found is None:
            raise CheckpointError("no voice of Pocket TTS is here; sonant models pull brings those of its catalogue")
        return found


def bos_row(config: PocketConfig, weights: Weights) -> np.ndarray | None:
    """[1, D]: what stands before a voice."""
    if config.bos_row is not None:
        row: np.ndarray = weights["flow_lm.conditioner.embed.weight"][[config.bos_row]]
        return row
    return weights["flow_lm.bos_before_voice"][0] if config.bos_before_voice else None


def _at_own_speed(piece: Chunk) -> Chunk:
    if piece.speed != 1:
        raise TextError(f"{piece.text!r:.60} is marked to be spoken at {piece.speed:g} times the speed; Pocket TTS has "
                        "no control of it: take the mark out")
    return piece
