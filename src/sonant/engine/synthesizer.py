"""A loaded model that speaks. `speak` is `stream` joined: one code path, the same cuts; so are the async ones."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from sonant.backends.backend import CancelFlag
from sonant.engine.background import BackgroundStream, Start, iterate
from sonant.engine.delivery import Delivery
from sonant.errors import InputError, UnknownName
from sonant.families.family import Driver
from sonant.options import ALIGNED, SessionOptions, SpeakOptions
from sonant.types import AudioChunk, Capabilities, Speech, VoiceInfo

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sonant.engine.session import Session


class SpeakArguments(TypedDict, total=False):
    """What `speak` and its like take by name; SpeakOptions has their meaning, ranges and defaults."""

    voice: str | None
    speed: float
    seed: int
    language: str | None
    markup: str
    text_format: str
    lexicon: str | os.PathLike[str] | Mapping[str, str] | None
    paragraph_pause_s: float
    heading_pause_s: float
    words: str
    first_piece: str
    temperature: float | None
    guidance: float | None


def speak_options(arguments: SpeakArguments) -> SpeakOptions:
    """Checked. Raises UnknownName for an option that does not exist, InputError for a value out of range."""
    for name in arguments:
        if name not in SpeakArguments.__annotations__:
            raise UnknownName("option", name, SpeakArguments.__annotations__)
    return SpeakOptions(**arguments)


class Synthesizer:
    """Made by `sonant.load`. Safe to use from several threads and tasks; each call has its own workspace."""

    def __init__(self, name: str, driver: Driver, *, reference: Callable[[], Synthesizer] | None = None) -> None:
        """reference: brings up the voice that words are aligned with, when they first are."""
        self.name, self._driver = name, driver
        self._bring_reference = reference
        self._reference: Synthesizer | None = None

    @property
    def sample_rate(self) -> int:
        """Hz of all that it makes."""
        return self._driver.sample_rate

    @property
    def capabilities(self) -> Capabilities:
        """What its family can do."""
        return self._driver.capabilities

    def voices(self) -> list[VoiceInfo]:
        """The voices it has by name."""
        return self._driver.voices()

    def speak(self, text: str, *, cancel: CancelFlag | None = None, **options: Unpack[SpeakArguments]) -> Speech:
        """The whole text as one Speech: mono float32 samples [S] in −1…1, and its words in seconds.

        Options (SpeakArguments), all by name:
        voice: a name or a blend such as `af_heart:0.7,am_michael:0.3`. speed: 0.25 to 4, 2.0 is twice as fast. seed:
        the same seed gives the same audio. language: BCP-47, by default the voice's own. markup: what becomes of tags
        such as [pause 1s]: auto, strict or off. text_format: plain or markdown. lexicon: the user's own words, a TSV or
        PLS file or {word: phonemes}. paragraph_pause_s, heading_pause_s: silence after them. words: native, or align
        for times found by laying Kokoro's speech over the sound (docs/align.md). first_piece: full, or short for a
        first chunk that comes sooner: the text is cut behind its first sentence, or inside a long one (docs/text.md).
        temperature, guidance: of models that sample (see `capabilities`).

        cancel: stops the computation within its current kernel once another thread sets it. Text without anything to
        say gives an empty Speech. Raises InputError (unknown voice or option, bad value, not text), TextError (text
        that cannot be read as asked), BackendError, Cancelled.
        """
        chosen = speak_options(options)
        return self._joined(list(self._starter(text, chosen)(cancel or CancelFlag())), text, chosen)

    def stream(
        self, text: str, *, cancel: CancelFlag | None = None, **options: Unpack[SpeakArguments]
    ) -> Generator[AudioChunk, None, None]:
        """The same audio as `speak`, chunk by chunk as it is made; arguments and errors as there, options and text
        checked at once.

        Every chunk holds samples [S], where they begin in the stream (`start_s`), and the words that sound in them,
        timed from the start of the stream. Nothing is computed ahead; closing the iterator early ends the work.
        """
        chosen = speak_options(options)
        own = cancel if cancel is not None else CancelFlag()
        return self._chunks(self._pieces(text, chosen), chosen, own, owned=cancel is None)

    def astream(self, text: str, **options: Unpack[SpeakArguments]) -> AsyncGenerator[AudioChunk, None]:
        """`async for chunk in synth.astream(text)`: the same chunks, computed in a thread while the loop goes on.

        Options are checked at once, everything else is raised by the first chunk. Cancelling the task that waits for
        a chunk stops the computation within its current kernel; leaving the loop early stops it too.
        """
        chosen = speak_options(options)
        return iterate(self._starter(text, chosen))

    async def aspeak(self, text: str, **options: Unpack[SpeakArguments]) -> Speech:
        """`await synth.aspeak(text)`: the same Speech as `speak`, computed in a thread while the loop goes on.

        Arguments and errors as for `speak`. Cancelling the task stops the computation within its current kernel.
        """
        chosen = speak_options(options)
        chunks = [c async for c in iterate(self._starter(text, chosen))]
        return self._joined(chunks, text, chosen)

    def background(self, text: str, *, ahead: int = 2, **options: Unpack[SpeakArguments]) -> BackgroundStream:
        """The chunks of `stream`, computed by a thread up to `ahead` chunks before they are taken.

        Whoever waits for a chunk notices Ctrl-C within a tenth of a second; `close()` stops the computation within
        its current kernel. Options are checked at once, everything else is raised by the first chunk.
        """
        chosen = speak_options(options)
        return BackgroundStream(self._starter(text, chosen), ahead=ahead)

    def session(
        self,
        *,
        commit: str = "auto",
        idle_ms: float | None = None,
        on_conflict: str = "keep",
        ahead: int = 2,
        **options: Unpack[SpeakArguments],
    ) -> Session:
        """Speech of a text that is still being written: `feed` and `end` it, from any thread, and take the chunks.

        commit: when text is spoken. auto: at the ends of sentences, behind a clause of a long one, and what seems to
        be finished after idle_ms (500; math.inf: never) without new text. sentence: at the ends of sentences only.
        manual: at `flush` and `end` only. on_conflict: what becomes of an edit of text that has been spoken: keep (the
        spoken part stays, with a note), raise (InputError) or respeak (from the changed sentence on). ahead: how many
        chunks are computed before they are taken. Options as for `speak`, all checked at once.
        """
        from sonant.engine.session import Session

        chosen = SessionOptions(commit=commit, idle_ms=idle_ms, on_conflict=on_conflict, ahead=ahead)
        spoken = speak_options(options)
        return Session(self._driver_for(spoken), spoken, chosen)

    def align(
        self,
        samples: np.ndarray,
        sample_rate: int,
        text: str,
        *,
        cancel: CancelFlag | None = None,
        **options: Unpack[SpeakArguments],
    ) -> Speech:
        """When the words of `text` sound in a recording of it: float `samples` [S] or [S, channels] at any rate.

        The text is spoken with these options (as for `speak`; a voice near to the recording's helps a little), and that
        speech is laid over the recording (docs/align.md). Gives the recording in mono with its words, `word_source`
        align. Raises InputError where the text does not fit the recording or one of them is empty, and what `speak`
        raises.
        """
        from sonant.engine.alignment import align_recording, mono

        recording = mono(samples, sample_rate)
        return align_recording(recording, sample_rate, self._timekeeper().speak(text, cancel=cancel, **options))

    def clone(
        self,
        name: str,
        recording: str | os.PathLike[str] | np.ndarray,
        sample_rate: int | None = None,
        *,
        keep: str | os.PathLike[str] | None = None,
        cancel: CancelFlag | None = None,
    ) -> VoiceInfo:
        """A voice `name` from a recording of someone who agreed to it: a file, or float samples [S] or [S, channels]
        at `sample_rate`, of any rate, 1 to 30 s long (the rest is left out).

        keep: a .safetensors file to save the voice in, for a folder of `voices`. The voice is there for this
        Synthesizer at once. Raises InputError (the model cannot clone, see `capabilities`; a recording that is too
        short, silent, clipped or damaged; a name that is taken), MissingExtra (a format or rate that needs
        `sonant[audio]`).
        """
        from sonant.audio.reader import Recording, read_audio
        from sonant.engine.alignment import mono

        if isinstance(recording, np.ndarray):
            if sample_rate is None:
                raise InputError("samples without a sample_rate; pass the rate of the recording in Hz")
            taken = Recording(mono(recording, sample_rate), sample_rate)
        else:
            taken = read_audio(recording)
        self._driver.clone(name, taken, keep=None if keep is None else Path(keep), cancel=cancel)
        return VoiceInfo(name, None, None)

    def _timekeeper(self) -> Synthesizer:
        """A voice whose own word times are exact."""
        if self.capabilities.word_source == "duration":
            return self
        if self._reference is None:
            if self._bring_reference is None:
                raise InputError(f"{self.name} has no exact word times of its own and was given no voice to align with")
            self._reference = self._bring_reference()
        return self._reference

    def _starter(self, text: str, options: SpeakOptions) -> Start:
        return lambda cancel: self._chunks(self._pieces(text, options), options, cancel)

    def _pieces(self, text: str, options: SpeakOptions) -> Iterable[Any]:
        if not isinstance(text, str):
            raise InputError(f"text is a {type(text).__name__}; wanted a str")
        return self._driver.pieces(text, options)

    def _chunks(
        self, pieces: Iterable[Any], options: SpeakOptions, cancel: CancelFlag, *, owned: bool = False
    ) -> Generator[AudioChunk, None, None]:
        try:
            yield from Delivery(self._driver_for(options), options, cancel).chunks(pieces)
        finally:
            if owned:
                cancel.set()

    def _driver_for(self, options: SpeakOptions) -> Driver:
        if options.words != ALIGNED:
            return self._driver
        from sonant.engine.alignment import AlignedDriver

        return AlignedDriver(self._driver, self._timekeeper)

    def _joined(self, chunks: list[AudioChunk], text: str, options: SpeakOptions) -> Speech:
        samples = np.concatenate([c.samples for c in chunks]) if chunks else np.zeros(0, np.float32)
        words = tuple(w for c in chunks for w in c.words)
        source = self._driver_for(options).capabilities.word_source
        return Speech(samples, self.sample_rate, words, source, text)
