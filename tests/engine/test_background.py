"""Streams in threads and tasks: the same chunks, one thread, errors arrive, cancelling stops the computation."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest
from counting import CountingDriver

from sonant.engine.synthesizer import Synthesizer
from sonant.errors import InputError

SOON_S = 0.5
"""behaviour.md: a client that goes away stops the computation within half a second."""


@pytest.fixture
def synth(driver: CountingDriver) -> Synthesizer:
    return Synthesizer("counting", driver)


def test_the_same_speech_by_every_way(synth: Synthesizer) -> None:
    async def asynchronous() -> tuple[list[float], np.ndarray]:
        chunks = [chunk async for chunk in synth.astream("a b c")]
        return [c.start_s for c in chunks], (await synth.aspeak("a b c")).samples

    starts, samples = asyncio.run(asynchronous())
    whole = synth.speak("a b c")
    assert starts == [c.start_s for c in synth.stream("a b c")]
    np.testing.assert_array_equal(samples, whole.samples)
    with synth.background("a b c") as chunks:
        np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), whole.samples)


def test_the_loop_goes_on_and_one_thread_computes(synth: Synthesizer, driver: CountingDriver) -> None:
    async def main() -> None:
        task = asyncio.create_task(synth.aspeak("a b slow"))
        turns = 0
        while not driver.is_slow.is_set():
            await asyncio.sleep(0.001)
            turns += 1
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert len(driver.threads) == 1
    assert threading.current_thread().name not in driver.threads


def test_cancelling_the_task_stops_the_computation(synth: Synthesizer, driver: CountingDriver) -> None:
    async def main() -> float:
        task = asyncio.create_task(anext(synth.astream("slow b")))  # type: ignore[arg-type]
        while not driver.is_slow.is_set():
            await asyncio.sleep(0.001)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(driver.stopped.wait, SOON_S)
        return time.monotonic() - began

    assert asyncio.run(main()) < SOON_S
    assert driver.spoken == [0]


def test_a_timeout_stops_the_computation(synth: Synthesizer, driver: CountingDriver) -> None:
    async def main() -> None:
        await asyncio.wait_for(synth.aspeak("slow b"), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(main())
    assert driver.stopped.wait(SOON_S)


def test_leaving_the_async_loop_early_computes_no_more(synth: Synthesizer, driver: CountingDriver) -> None:
    async def main() -> None:
        async for _ in synth.astream("a b c"):
            break
        stream = synth.astream("a b c")
        await anext(stream)
        await stream.aclose()

    asyncio.run(main())
    assert driver.spoken == [0, 0]
    assert driver.cancel is not None
    assert driver.cancel.is_set


def test_async_errors_arrive(synth: Synthesizer) -> None:
    async def main() -> list[int]:
        stream = synth.astream("a bad c")
        found = [int((await anext(stream)).samples[0])]
        with pytest.raises(RuntimeError, match="the computation failed"):
            await anext(stream)
        with pytest.raises(InputError, match="text is a int"):
            await synth.aspeak(3)  # type: ignore[arg-type]
        return found

    assert asyncio.run(main()) == [0]
    with pytest.raises(InputError, match="speed is 9"):
        synth.astream("a", speed=9)  # not awaited: options are checked at once


def test_eight_tasks_get_their_own_audio(synth: Synthesizer) -> None:
    async def main() -> list[int]:
        texts = [" ".join("a" * n) for n in range(1, 9)]
        return [len(s.words) for s in await asyncio.gather(*map(synth.aspeak, texts))]

    assert asyncio.run(main()) == list(range(1, 9))


def test_background_is_only_a_little_ahead(synth: Synthesizer, driver: CountingDriver) -> None:
    with synth.background("a b c d e f g", ahead=2) as chunks:
        time.sleep(0.1)
        assert len(driver.spoken) <= 4
        assert sum(1 for _ in chunks) == 7
    assert next(chunks, None) is None


def test_background_errors_arrive(synth: Synthesizer) -> None:
    with synth.background("a bad") as chunks:
        next(chunks)
        with pytest.raises(RuntimeError, match="the computation failed"):
            next(chunks)
        assert next(chunks, None) is None


def test_closing_a_background_stream_stops_the_computation(synth: Synthesizer, driver: CountingDriver) -> None:
    chunks = synth.background("slow b c")
    assert driver.is_slow.wait(5)
    began = time.monotonic()
    chunks.close()
    assert time.monotonic() - began < SOON_S
    assert driver.stopped.is_set()
    assert not any(t.name == "sonant-stream" for t in threading.enumerate())
    assert list(chunks) == []


def test_a_stopped_background_stream_gives_what_is_ready(synth: Synthesizer, driver: CountingDriver) -> None:
    with synth.background("a b slow c", ahead=2) as chunks:
        assert driver.is_slow.wait(5)
        chunks.stop()
        assert [c.words[0].text for c in chunks] == ["a", "b"]
    assert driver.stopped.is_set()
