"""What the drivers of Phonon and Pocket TTS have in common: text → chunks → frames → samples and word times."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.errors import CheckpointError, UnknownName
from sonant.families.family import PieceAudio, check_sampling
from sonant.families.frames import FrameModel, Scheduler
from sonant.families.latent.estimate import EstimatedTimes
from sonant.families.latent.frames import VOICE_ROWS, ChunkRequest, LatentFrames, LatentStream, VoicePrompt
from sonant.families.latent.front import Chunk, FrontEnd, reading_of
from sonant.families.latent.heads import AlignmentHeads, Head
from sonant.families.latent.recording import AttentionRecord
from sonant.families.latent.respellings import Respellings
from sonant.families.latent.takes import Take, take
from sonant.families.latent.timing import AttentionTimes
from sonant.families.latent.tokenizer import Tokenizer
from sonant.families.latent.voices import VoiceCatalog, VoiceReader
from sonant.options import SpeakOptions
from sonant.types import Capabilities, VoiceInfo, WordTiming

_LOG = logging.getLogger("sonant.speech")

STREAMS = 8
"""Texts that are spoken at once; further ones wait for a row."""
FADE_IN_S = 0.005
"""A codec that begins anew has a small step in its first samples, about -41 dBFS: heard as a click."""

Schedule = Callable[[FrameModel[LatentStream]], Scheduler[LatentStream]]
MakeFrames = Callable[[tuple[Head, ...], int], LatentFrames]
"""From the heads that are listened to and the number of rows."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a checkpoint is loaded with, beside its weights. languages: BCP-47, the first where nothing says another.
    schedule: how the streams of a frame model share it. may_clone: its publisher meant it to make voices of recordings.
    cache: a folder where the backend may keep what it derives."""

    tokenizer: Tokenizer
    languages: tuple[str, ...]
    licence: str
    voices: VoiceCatalog
    heads: AlignmentHeads | None
    schedule: Schedule
    may_clone: bool = False
    precision: str = "f32"
    cache: Path | None = None

    @property
    def language(self) -> str:
        """The first, without its region."""
        return base_language(self.languages[0])

    def capabilities(self, *, cloning: bool, speed: bool, guidance: bool) -> Capabilities:
        return Capabilities(
            languages=self.languages, named_voices=True, voice_blending=False, cloning=cloning, speed=speed,
            streaming_grain="frame", word_source="attention" if self.heads else "estimate", licence=self.licence,
            temperature=True, guidance=guidance)


class LatentDriver:
    """A loaded checkpoint on one backend. Subclasses say what a chunk asks of their model, and what they refuse."""

    capabilities: Capabilities

    def __init__(self, setup: Setup, fronts: Mapping[str, FrontEnd], frames: MakeFrames, reader: VoiceReader,
                 sample_rate: int) -> None:
        """fronts: the text side of each language, without regions, the one to take where nothing says another first.
        Raises CheckpointError for heads that the model does not have, and for a tokenizer of another model."""
        if setup.heads is not None:
            setup.heads.check(reader.lm.layers, reader.lm.heads, "the heads that follow the text")
        self.sample_rate, self._fronts, self._heads = sample_rate, fronts, setup.heads
        self._make_frames, self._catalog, self._reader = frames, setup.voices, reader
        self._frames = frames(listened(setup.heads), STREAMS)
        rows = len(self._frames.networks.text_table)
        if setup.tokenizer.vocab_size > rows:
            raise CheckpointError(f"the tokenizer has {setup.tokenizer.vocab_size} pieces, the model's table of texts "
                                  f"{rows} rows; is it the tokenizer of another model?")
        self._scheduler = setup.schedule(self._frames)
        self._cloned: dict[str, VoicePrompt] = {}
        self._read_voice = functools.lru_cache(VOICE_ROWS)(lambda name: reader.read(setup.voices.find(name)))

    @property
    def frame_samples(self) -> int:
        """Samples of a frame."""
        return round(self.sample_rate / self._frames.networks.frame_rate_hz)

    @property
    def n_layers(self) -> int:
        return self._reader.lm.layers

    @property
    def n_heads(self) -> int:
        """Query heads of a layer."""
        return self._reader.lm.heads

    def voices(self) -> list[VoiceInfo]:
        return self._catalog.infos() + [VoiceInfo(name, None, None) for name in sorted(self._cloned)]

    def pieces(self, source: str, options: SpeakOptions) -> Iterator[Chunk]:
        self.check(options)
        front = self._fronts[self._read_in(options)]
        return front.chunks(source, reading_of(options), Respellings.load(options.lexicon))

    def stream_piece(
        self, piece: Chunk, index: int, options: SpeakOptions, cancel: CancelFlag
    ) -> Generator[PieceAudio, None, None]:
        """Stretches of 1, 2, 4, then 8 frames."""
        before, after = (np.zeros(round(s * self.sample_rate), np.float32)
                         for s in (piece.pause_before_s, piece.pause_after_s))
        if not piece.ids:  # a text of pauses alone
            yield PieceAudio(np.concatenate([before, after]), tuple(_silent(w) for w in piece.words))
            return
        shift_s, words = len(before) / self.sample_rate, self._times(piece)
        request = self.request(piece, index, options)
        for stream, samples in self.scheduler(options).stream(request, cancel, chunk_frames=None):
            is_last = stream.ended and not stream.pending
            told = words.add(stream, samples, is_last=is_last)
            parts = [before, samples, after] if is_last else [before, samples]
            yield PieceAudio(np.concatenate(parts), tuple(w.shifted(shift_s) for w in told))
            before = before[:0]
            if is_last and not stream.spoken:
                _LOG.warning("the speech of %r did not end within %d frames; it was cut there", piece.text, stream.made)

    def record_attention(self, text: str, options: SpeakOptions, cancel: CancelFlag) -> Iterator[AttentionRecord]:
        """See recording.AttentionRecorder."""
        every = tuple((layer, head) for layer in range(self.n_layers) for head in range(self.n_heads))
        frames = self._make_frames(every, 1)
        for index, piece in enumerate(self.pieces(text, options)):
            if not piece.ids:
                continue
            stream, samples = frames.begin(0, self.request(piece, index, options), cancel), []
            while not stream.ended:
                frames.step([stream])
                samples += frames.decode([stream], 1)
            heard = np.stack(stream.heard, axis=1)  # [layers*heads, frames, tokens]
            yield AttentionRecord(text, piece.words, heard, np.concatenate(samples))

    def takes(
        self, text: str, options: SpeakOptions, cancel: CancelFlag, *, led_by: Sequence[np.ndarray] | None = None
    ) -> list[Take]:
        """See takes.LatentSpeaker."""
        pieces = [(i, piece) for i, piece in enumerate(self.pieces(text, options)) if piece.ids]
        leads = [None] * len(pieces) if led_by is None else led_by
        return [take(self._alone, self.request(piece, i, options), cancel, lead)
                for (i, piece), lead in zip(pieces, leads, strict=True)]

    @functools.cached_property
    def _alone(self) -> LatentFrames:
        """A frame model of one row, beside that of the scheduler."""
        return self._make_frames((), 1)

    def check(self, options: SpeakOptions) -> None:
        """Raises InputError for what this family cannot do, and for a voice or a language that is not there."""
        check_sampling(options, self.capabilities)
        self.voice(options)
        self._read_in(options)

    def scheduler(self, options: SpeakOptions) -> Scheduler[LatentStream]:
        """Who speaks with these options."""
        return self._scheduler

    def request(self, piece: Chunk, index: int, options: SpeakOptions) -> ChunkRequest:
        """What a chunk asks of the model."""
        raise NotImplementedError

    def default_voice(self) -> str:
        """The one that is taken where none is named."""
        raise NotImplementedError

    def voice(self, options: SpeakOptions) -> VoicePrompt:
        name = options.voice or self.default_voice()
        if name in self._cloned:
            return self._cloned[name]
        if name not in self._catalog.names():
            raise UnknownName("voice", name, [*self._catalog.names(), *self._cloned])
        return self._read_voice(name)

    def _read_in(self, options: SpeakOptions) -> str:
        """The one that is asked for, else the voice's where the model reads it, else the first."""
        if options.language is not None:
            asked = base_language(options.language)
            if asked not in self._fronts:
                raise UnknownName("language of this model", options.language, self._fronts)
            return asked
        name = options.voice or self.default_voice()
        own = self._catalog.find(name).language if name in self._catalog.names() else None
        return base_language(own) if own and base_language(own) in self._fronts else next(iter(self._fronts))

    def _times(self, piece: Chunk) -> _Times:
        return _Times(piece, self._heads, self.sample_rate, self.frame_samples)


class _Times:
    """The words of one piece as they become known: from the attention of its heads, else estimated. And its start is
    faded in."""

    def __init__(self, piece: Chunk, heads: AlignmentHeads | None, sample_rate: int, frame_samples: int) -> None:
        self._frame_samples, self._taken = frame_samples, 0
        self._fade = round(FADE_IN_S * sample_rate)
        self._attention: AttentionTimes | None = None
        self._estimate = EstimatedTimes(piece.words, sample_rate=sample_rate)
        if heads is not None:
            self._attention = AttentionTimes(piece.words, len(piece.ids), sample_rate=sample_rate,
                                             frame_samples=frame_samples, lead_frames=heads.lead_frames)

    def add(self, stream: LatentStream, samples: np.ndarray, *, is_last: bool) -> list[WordTiming]:
        """The words that end in these samples, which follow those before."""
        first, self._taken = self._taken, self._taken + len(samples) // self._frame_samples
        if not first:
            samples[: self._fade] *= np.linspace(0, 1, self._fade, dtype=np.float32)
        if self._attention is None:
            told = self._estimate.add(samples)
            return told + self._estimate.finish() if is_last else told
        told = self._attention.add(np.stack(stream.heard[first : self._taken]), samples)
        return told + self._attention.finish() if is_last else told


def base_language(tag: str) -> str:
    """A BCP-47 tag without its region: en of en-US."""
    return tag.partition("-")[0].lower()


def listened(heads: AlignmentHeads | None) -> tuple[Head, ...]:
    """The heads in the order in which a step records them."""
    return tuple(sorted(heads.heads)) if heads else ()


def _silent(word: Any) -> WordTiming:
    return WordTiming(word.text, 0.0, 0.0, word.start, word.end)


def temperature_of(options: SpeakOptions, own: float) -> float:
    """The one that is asked for, else the checkpoint's own."""
    return own if options.temperature is None else options.temperature


def piece_seed(options: SpeakOptions, index: int) -> tuple[int, int]:
    return options.seed, index


def first_of(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first wanted name that there is, else the first that there is."""
    return next((n for n in wanted if n in names), names[0] if names else None)
