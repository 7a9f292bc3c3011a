"""Kokoro's driver: phonemes → durations → f0 and energy → harmonic spectrum → audio, and the times of the words."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sonant.backends.backend import Backend, CancelFlag, Weights
from sonant.errors import BackendError, UnknownName
from sonant.families.family import PieceAudio, check_sampling, refuse_clone, with_pauses
from sonant.families.kokoro import model, text
from sonant.families.kokoro.config import KokoroConfig
from sonant.families.kokoro.timing import word_timings
from sonant.families.kokoro.voices import VoiceCatalog, VoicePack
from sonant.options import SPEED_RANGE, SpeakOptions
from sonant.program.recipe import Recipe
from sonant.types import Capabilities, VoiceInfo

if TYPE_CHECKING:
    from sonant.audio.reader import Recording
    from sonant.text.pieces import Piece

DEFAULT_VOICE = "af_heart"
PRECISIONS = tuple(model.POLICY)
MAX_FRAMES_PER_ID = 200
"""5 s for one phoneme: far beyond any real duration, a bound on memory when the numbers go wrong."""

CAPABILITIES = Capabilities(
    languages=text.LANGUAGES,
    named_voices=True,
    voice_blending=True,
    cloning=False,
    speed=True,
    streaming_grain="piece",
    word_source="duration",
    licence="Apache-2.0",
)


def automatic(backend: Backend) -> str:
    """The precision that is fastest on `backend` of those that keep the speech."""
    made_of = {"int8_row": "int8", "bf16": "bf16"}
    return next((made_of[products] for products in backend.fast if products in made_of), "f32")


class KokoroDriver:
    """A loaded Kokoro checkpoint on one backend."""

    sample_rate = model.SAMPLE_RATE
    capabilities = CAPABILITIES

    def __init__(
        self,
        config: KokoroConfig,
        weights: Weights,
        backend: Backend,
        *,
        voices: VoiceCatalog,
        precision: str,
        cache: Path | None,
    ) -> None:
        self.config, self._catalog = config, voices
        if precision not in PRECISIONS:
            raise UnknownName("precision of Kokoro", precision, PRECISIONS)
        self._text = backend.load(Recipe(model.text_program, config), weights, cache=cache)
        self._prosody = backend.load(Recipe(model.prosody_program, config), weights, cache=cache)
        self._source = backend.load(Recipe(model.source_program, config), weights, cache=cache)
        self._decoder = backend.load(Recipe(model.decoder_program, config, precision), weights, cache=cache)

    def voices(self) -> list[VoiceInfo]:
        packs = [self._catalog.get(name) for name in self._catalog.names()]
        return [VoiceInfo(p.name, p.language, p.gender) for p in packs]

    def clone(self, name: str, recording: Recording, *, keep: Path | None = None,
              cancel: CancelFlag | None = None) -> None:
        refuse_clone("Kokoro speaks with the voices it was trained with, and with blends of them")

    def pieces(self, source: str, options: SpeakOptions) -> Iterator[Piece]:
        check_sampling(options, self.capabilities)
        language = options.language or self._voice(options).language or text.LANGUAGES[0]
        return text.pieces(source, language, text.reading_of(options), first_piece=options.first_piece)

    def _voice(self, options: SpeakOptions) -> VoicePack:
        return self._catalog.get(options.voice or DEFAULT_VOICE)

    def stream_piece(
        self, piece: Piece, index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        """The piece as one stretch: Kokoro's networks look at all of it at once."""
        seed = np.array([[options.seed, index]], np.uint32).view(np.int32)
        low, high = SPEED_RANGE
        speed = min(max(options.speed * piece.speed, low), high)
        if piece.phonemes:
            samples, frames = self.speak_phonemes(piece.phonemes, self._voice(options), speed, seed, cancel)
        else:  # a text of pauses alone
            samples, frames = np.zeros(0, np.float32), np.zeros(0, np.int64)
        audio = PieceAudio(samples, word_timings(piece, frames, samples))
        yield with_pauses(audio, self.sample_rate, before_s=piece.pause_before_s, after_s=piece.pause_after_s)

    def speak_phonemes(
        self, phonemes: str, voice: VoicePack, speed: float, seed: np.ndarray, cancel: CancelFlag | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Samples f32 [600*T] and the frames i64 [P] of every token id (both ends included); seed is i32 [1,2]."""
        ids = text.token_ids(phonemes, self.config.vocab)
        row = np.ascontiguousarray(voice.style(len(phonemes)))
        half = self.config.style_dim
        acoustic, prosodic = row[None, :half], row[None, half:]
        given = {"ids": ids, "style": prosodic, "speed": np.array([speed], np.float32)}
        predicted, encoding, encoded = self._text.run(given, cancel=cancel)
        frames = _whole_frames(predicted[0])
        index = np.repeat(np.arange(len(frames), dtype=np.int32), frames)[None]
        f0_hz, energy = self._prosody.run({"encoding": encoding, "index": index, "style": prosodic}, cancel=cancel)
        spectrum = self._source.run({"f0_hz": f0_hz, "seed": seed}, cancel=cancel)[0]
        audio = self._decoder.run(
            {
                "text": encoded,
                "index": index,
                "f0_hz": f0_hz,
                "energy": energy,
                "spectrum": spectrum,
                "style": acoustic,
            },
            cancel=cancel,
        )[0]
        return audio[0], frames


def _whole_frames(predicted: np.ndarray) -> np.ndarray:
    """i64 [P]: rounded half to even, at least one frame each, as the official model does."""
    if not np.isfinite(predicted).all() or predicted.max() > MAX_FRAMES_PER_ID:
        raise BackendError(
            f"Kokoro predicted a duration of {predicted.max():g} frames for one phoneme; the weights are "
            "damaged or not Kokoro's"
        )
    frames: np.ndarray = np.maximum(np.rint(predicted), 1).astype(np.int64)
    return frames
