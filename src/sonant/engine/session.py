"""Sessions: text goes in as it is written, speech comes out as it is made. docs/sessions.md is the page for readers."""

from __future__ import annotations

from types import TracebackType

from sonant.engine.speaking import Speaking
from sonant.errors import InputError
from sonant.families.family import Driver
from sonant.options import SessionOptions, SpeakOptions
from sonant.types import AudioChunk


class Session:
    """Made by `Synthesizer.session`; a context that ends with everything stopped. Safe to use from several threads and
    tasks: text may be written in one and chunks taken in another.

    `for chunk in session` and `async for chunk in session` wait for chunks until the text has ended (`end`) and all of
    it is spoken. A computation that fails, and `cancel`, end the session: whoever takes or writes gets that error.
    """

    def __init__(self, driver: Driver, speak: SpeakOptions, session: SessionOptions) -> None:
        driver.pieces("", speak)  # raises what is wrong with voice, language or lexicon
        self._work = Speaking(driver, speak, session)
        self.sample_rate = driver.sample_rate
        """Hz of its chunks."""

    def feed(self, text: str) -> None:
        """More text, of any size. Never waits. Raises InputError after `end`."""
        _check(text)
        self._work.change(lambda pending: pending.append(text))

    def flush(self) -> None:
        """Speak everything that is pending, whatever may follow it."""
        self._work.change(lambda pending: pending.flush())

    def end(self) -> None:
        """No more text will come: the rest is spoken, then the chunks end."""
        self._work.end()

    def cancel(self) -> None:
        """Stop within the current kernel or step; chunks that were not taken are lost, whoever waits for one gets
        Cancelled. Does not wait."""
        self._work.cancel()

    def set_pending(self, text: str, *, at: int | None = None) -> None:
        """Replace the text that has not been spoken. at: where the caller takes that to begin in the whole text.

        Without `at` it is what is pending at this moment. With it, an edit that comes too late is a conflict, which
        the session's on_conflict decides; InputError when that is "raise", or `at` is not in the text.
        """
        _check(text)
        self._work.change(lambda pending: pending.replace(pending.spoken_end if at is None else at, text))

    def set_text(self, text: str) -> None:
        """Replace the whole text, as an editor has it; what differs from spoken text is a conflict, as above."""
        _check(text)
        self._work.change(lambda pending: pending.replace(0, text))

    def ready(self) -> tuple[AudioChunk, ...]:
        """Take the chunks that are there, without waiting; none while the next one is computed."""
        return self._work.take_ready()

    @property
    def text(self) -> str:
        """All text so far; the places of the words are places in it."""
        return self._work.look()[0]

    @property
    def spoken_text(self) -> str:
        """What has been handed to the model and is never changed."""
        text, spoken_end, _ = self._work.look()
        return text[:spoken_end]

    @property
    def pending_text(self) -> str:
        """The rest of the text, which can be edited."""
        text, spoken_end, _ = self._work.look()
        return text[spoken_end:]

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be done as it was asked for, in words."""
        return self._work.look()[2]

    def close(self) -> None:
        """Stop everything, and wait until it has stopped. The end of the context does it."""
        self._work.cancel()
        self._work.join()

    def __iter__(self) -> Session:
        return self

    def __next__(self) -> AudioChunk:
        chunk = self._work.take()
        if chunk is None:
            raise StopIteration
        return chunk

    def __aiter__(self) -> Session:
        return self

    async def __anext__(self) -> AudioChunk:
        chunk = await self._work.atake()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        import asyncio

        self._work.cancel()
        await asyncio.to_thread(self._work.join)

    def __del__(self) -> None:
        if hasattr(self, "_work"):  # not when the constructor raised
            self._work.cancel()


def _check(text: object) -> None:
    if not isinstance(text, str):
        raise InputError(f"text is a {type(text).__name__}; wanted a str")
