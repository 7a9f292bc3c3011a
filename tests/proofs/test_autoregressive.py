"""Proof (a): streams of an autoregressive model share batches, prefixes and chunks, and never hear of it.

Each claim is shown on every backend. "Bit for bit" is claimed of the native backend on each instruction set; NumPy
multiplies through a BLAS that picks another kernel, and so another order of sums, for another number of rows, so there
the same claim holds to 1e-5 and for equal tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from tiny_autoregressive import (
    CAPACITY,
    STOP,
    STRIDE,
    VOCABULARY,
    codec_program,
    looped_program,
    prefill_program,
    step_program,
    weights_of,
)

from sonant.backends.backend import Backend, Executable, States

I32 = np.int32
TOLERANCE = 1e-5
N_ROWS = 10


@dataclass
class Stream:
    """One utterance: its prefix, its choices, the row it owns, and what it has given so far."""

    seed: int
    row: int
    prefix: list[int]
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    cap: int = 30
    tokens: list[int] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)
    done: bool = False

    def at(self, row: int) -> Stream:
        return Stream(self.seed, row, self.prefix, self.temperature, self.top_k, self.top_p, self.cap)


STREAMS = [
    Stream(11, 0, [3, 5, 7], temperature=1.2),
    Stream(12, 1, [9], temperature=0.0, cap=12),
    Stream(13, 2, [4, 4, 8, 15, 16, 23], top_k=5),
    Stream(14, 3, [1, 2], temperature=0.8, top_p=0.7),
    Stream(15, 4, [22, 21, 20, 19, 18], temperature=2.0, cap=40),
    Stream(16, 5, [6, 6], top_k=3, top_p=0.9),
    Stream(17, 6, [17], cap=25),
    Stream(18, 7, [10, 11, 12, 13], temperature=0.5),
]


class Model:
    """The four Programs on one backend."""

    def __init__(self, backend: Backend, dtype: str) -> None:
        programs = [prefill_program(dtype), step_program(dtype), looped_program(dtype), codec_program(dtype),
                    codec_program(dtype, streaming=False)]
        weights = weights_of(*programs)
        self.prefill, self.step, self.looped, self.codec, self.codec_at_once = backend.load_all(programs, weights)

    def start(self, states: States, s: Stream, chunks: Iterable[int] = (99,)) -> None:
        """Reset the stream's row and read its prefix, but for the last token, in pieces of these lengths."""
        states.reset(s.row)
        ids, at = s.prefix[:-1], 0
        states.write("token", s.row, np.array(s.prefix[-1], I32))
        for size in chunks:
            piece = ids[at:at + size]
            if piece:
                positions = np.arange(at, at + len(piece), dtype=I32)[None]
                self.prefill.run({"ids": np.array([piece], I32), "positions": positions, "rows": np.array([s.row], I32),
                                  "following": np.array(s.prefix[-1:], I32)}, states=states)
                at += len(piece)

    def advance(self, states: States, streams: list[Stream]) -> None:
        """One step for all of `streams`, in one batch in this order."""
        done, tokens, logits = self.step.run(choices(streams), states=states)
        for i, s in enumerate(streams):
            s.tokens.append(int(tokens[i]))
            s.logits.append(logits[i])
            s.done = bool(done[i])


def choices(streams: list[Stream]) -> dict[str, np.ndarray]:
    return {
        "rows": np.array([s.row for s in streams], I32),
        "temperature": np.array([s.temperature for s in streams], np.float32),
        "top_k": np.array([s.top_k for s in streams], I32),
        "top_p": np.array([s.top_p for s in streams], np.float32),
        "seed": np.array([[s.seed, 5] for s in streams], I32),
        "cap": np.array([s.cap for s in streams], I32),
    }


def alone(model: Model, stream: Stream) -> Stream:
    s = stream.at(0)
    states = model.step.create_states(1)
    model.start(states, s)
    while not s.done:
        model.advance(states, [s])
    return s


@pytest.fixture(scope="module")
def models(backends: dict[str, Backend]) -> dict[str, Model]:
    return {name: Model(backend, "f32") for name, backend in backends.items()}


@pytest.fixture(scope="module")
def rounded_models(native_backends: dict[str, Backend]) -> dict[str, Model]:
    """Weights and products in bf16: rounding makes a difference in the last bit a difference that is heard."""
    return {name: Model(backend, "bf16") for name, backend in native_backends.items()}


@pytest.fixture(scope="module")
def integer_models(native_backends: dict[str, Backend]) -> dict[str, Model]:
    """Weights in q8 and products of integers."""
    return {name: Model(backend, "q8") for name, backend in native_backends.items()}


@pytest.fixture(scope="module")
def numpy_q8(backends: dict[str, Backend]) -> Model:
    return Model(backends["numpy"], "q8")


@pytest.fixture(params=["models", "rounded_models", "integer_models"])
def each(request: pytest.FixtureRequest) -> Iterator[tuple[str, Model]]:
    return iter(request.getfixturevalue(request.param).items())


def assert_same(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    if name == "numpy":
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def assert_same_stream(name: str, found: Stream, wanted: Stream) -> None:
    assert found.tokens == wanted.tokens, name
    assert_same(name, np.array(found.logits), np.array(wanted.logits))


def test_a_prepared_run_is_the_run_of_what_its_inputs_hold(each: Iterator[tuple[str, Model]]) -> None:
    for name, model in each:
        for streams in (STREAMS[:1], STREAMS[:3]):
            found, wanted = model.step.create_states(8), model.step.create_states(8)
            for s in streams:
                model.start(found, s)
                model.start(wanted, s)
            given = choices(streams)
            prepared = model.step.prepare(given, states=found)
            for temperature in (1.0, 0.3, 2.0):
                given["temperature"][:] = temperature
                for a, b in zip(prepared.run(), model.step.run(given, states=wanted), strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=name)


def test_the_streams_differ_and_end_by_themselves(models: dict[str, Model]) -> None:
    streams = [alone(models["numpy"], s) for s in STREAMS]
    assert len({tuple(s.tokens) for s in streams}) == len(streams)
    stopped = [s for s in streams if s.tokens[-1] == STOP]
    capped = [s for s in streams if s.tokens[-1] != STOP]
    assert stopped
    assert capped
    for s in capped:
        assert len(s.prefix) - 1 + len(s.tokens) == s.cap
    assert all(STOP not in s.tokens[:-1] for s in streams)


def test_numpy_and_native_give_equal_tokens(models: dict[str, Model]) -> None:
    wanted = [alone(models["numpy"], s) for s in STREAMS]
    for name, model in models.items():
        for stream, reference in zip(STREAMS, wanted, strict=True):
            found = alone(model, stream)
            assert found.tokens == reference.tokens, name
            np.testing.assert_allclose(found.logits, reference.logits, rtol=0, atol=TOLERANCE * 5, err_msg=name)


def test_a_stream_alone_is_the_same_stream_among_eight(each: Iterator[tuple[str, Model]]) -> None:
    """Every few steps another stream joins; who is done leaves, and its row goes to the next that waits."""
    for name, model in each:
        rng = np.random.default_rng(3)
        states = model.step.create_states(N_ROWS)
        waiting = [s.at(-1) for s in STREAMS for _ in range(2)]
        free, playing, finished = list(range(N_ROWS)), [], []
        most = 0
        while waiting or playing:
            while waiting and len(playing) < 8 and rng.random() < 0.6:
                stream = waiting.pop(int(rng.integers(len(waiting))))
                stream.row = free.pop(int(rng.integers(len(free))))
                model.start(states, stream)
                playing.append(stream)
            order = rng.permutation(len(playing))
            playing = [playing[i] for i in order]
            if playing:
                model.advance(states, playing)
            most = max(most, len(playing))
            free += [s.row for s in playing if s.done]
            finished += [s for s in playing if s.done]
            playing = [s for s in playing if not s.done]
        assert most == 8
        assert len(finished) == 2 * len(STREAMS)
        by_seed = {s.seed: alone(model, s) for s in STREAMS}
        for stream in finished:
            assert_same_stream(name, stream, by_seed[stream.seed])


def test_threads_change_no_bit(models: dict[str, Model]) -> None:
    bits: dict[str, bytes] = {}
    for name, model in models.items():
        isa = name.rsplit("-", 1)[0]
        found = b"".join(np.array(alone(model, s).logits).tobytes() for s in STREAMS[:3])
        assert bits.setdefault(isa, found) == found, name


@pytest.mark.parametrize("chunks", [[1] * 9, [2, 3, 4], [5, 1], [99]], ids=str)
def test_a_prefix_in_pieces_is_the_prefix_at_once(each: Iterator[tuple[str, Model]], chunks: list[int]) -> None:
    stream = STREAMS[4]
    for name, model in each:
        whole = model.step.create_states(1)
        model.start(whole, stream.at(0))
        pieces = model.step.create_states(1)
        found = stream.at(0)
        model.start(pieces, found, chunks)
        for state in ("0.k", "0.v", "1.k", "1.v", "position", "token"):
            assert_same(name, pieces.read(state, 0), whole.read(state, 0))
        while not found.done:
            model.advance(pieces, [found])
        assert_same_stream(name, found, alone(model, stream))


def test_integers_are_near_the_floats_and_numpy_agrees(models: dict[str, Model], integer_models: dict[str, Model],
                                                       numpy_q8: Model) -> None:
    """A number may round the other way where its last f32 bit differs, so tokens are compared for one stream only."""
    wanted = alone(numpy_q8, STREAMS[0])
    exact = alone(models["numpy"], STREAMS[0])
    assert np.abs(wanted.logits[0] - exact.logits[0]).max() > 1e-4
    np.testing.assert_allclose(wanted.logits[0], exact.logits[0], rtol=0, atol=0.3)
    for name, model in integer_models.items():
        found = alone(model, STREAMS[0])
        assert found.tokens == wanted.tokens, name
        np.testing.assert_allclose(found.logits, wanted.logits, rtol=0, atol=TOLERANCE * 5, err_msg=name)


def test_several_prefixes_are_read_in_one_batch(each: Iterator[tuple[str, Model]]) -> None:
    streams = [STREAMS[0], STREAMS[0].at(3), STREAMS[0].at(7)]
    ids = np.array([s.prefix[:-1] for s in streams], I32)
    for name, model in each:
        states = model.step.create_states(8)
        model.prefill.run({"ids": ids, "positions": np.tile(np.arange(ids.shape[1], dtype=I32), (3, 1)),
                           "rows": np.array([s.row for s in streams], I32),
                           "following": np.array([s.prefix[-1] for s in streams], I32)}, states=states)
        found = streams[2].at(7)
        while not found.done:
            model.advance(states, [found])
        assert_same_stream(name, found, alone(model, STREAMS[0]))


def test_a_prefix_snapshot_is_copied_not_read_again(each: Iterator[tuple[str, Model]]) -> None:
    """A voice: its prefix is read once into a row of its own, and every stream begins from a copy."""
    for name, model in each:
        voice = Stream(99, 9, [4, 8, 15, 16, 23, 19])
        states = model.step.create_states(N_ROWS)
        model.start(states, voice)
        for seed, row in ((31, 0), (32, 6), (31, 3)):
            states.copy(9, row)
            copied = Stream(seed, row, voice.prefix)
            while not copied.done:
                model.advance(states, [copied])
            assert_same_stream(name, copied, alone(model, Stream(seed, 0, voice.prefix)))
        assert states.read("position", 9) == len(voice.prefix) - 1


@pytest.mark.parametrize("members", [[0], [1], [0, 3, 5], list(range(8))], ids=str)
def test_a_loop_node_is_the_host_stepping(each: Iterator[tuple[str, Model]], members: list[int]) -> None:
    streams = [STREAMS[i] for i in members]
    for name, model in each:
        by_host = [s.at(i) for i, s in enumerate(streams)]
        states = model.step.create_states(len(streams))
        for s in by_host:
            model.start(states, s)
        count = 0
        while not all(s.done for s in by_host):
            model.advance(states, by_host)
            count += 1
        looped = model.looped.create_states(len(streams))
        for s in by_host:
            model.start(looped, s.at(s.row))
        tokens, logits, steps = model.looped.run({"trips": np.zeros(CAPACITY, I32), **choices(by_host)}, states=looped)
        assert steps.tolist() == [count], name
        assert tokens[:count].T.tolist() == [s.tokens for s in by_host]
        assert not tokens[count:].any()
        np.testing.assert_array_equal(logits[:count].transpose(1, 0, 2), [s.logits for s in by_host], err_msg=name)
        for state in ("0.k", "1.v", "position", "token", "done"):
            for row in range(len(streams)):
                np.testing.assert_array_equal(looped.read(state, row), states.read(state, row))


def test_a_loop_that_may_not_take_that_long_stops_at_its_trips(models: dict[str, Model]) -> None:
    stream = STREAMS[4]
    for model in models.values():
        states = model.looped.create_states(1)
        model.start(states, stream.at(0))
        inputs = {"trips": np.zeros(4, I32), **choices([stream.at(0)])}
        tokens, _, steps = model.looped.run(inputs, states=states)
        again, _, _ = model.looped.run(inputs, states=states)
        assert steps.tolist() == [4]
        assert [*tokens[:, 0], *again[:, 0]] == alone(model, stream).tokens[:8]


# --- codec ------------------------------------------------------------------------------------------------------------
TOKENS = np.random.default_rng(8).integers(0, VOCABULARY, (3, 30)).astype(I32)


def decode(codec: Executable, states: States, rows: list[int], tokens: np.ndarray, sizes: Iterable[int]) -> np.ndarray:
    """Samples of `tokens` [B,T], decoded in pieces of the lengths `sizes`, the last one again and again."""
    pieces, at, size = [], 0, 1
    lengths = iter(sizes)
    while at < tokens.shape[1]:
        size = next(lengths, size)
        pieces += codec.run({"tokens": tokens[:, at:at + size], "rows": np.array(rows, I32)}, states=states)
        at += size
    return np.concatenate(pieces, axis=1)


@pytest.mark.parametrize("sizes", [[1], [2], [3], [5], [1, 2, 3, 5, 8], [29, 1]], ids=str)
def test_a_codec_in_chunks_is_the_codec_at_once(each: Iterator[tuple[str, Model]], sizes: list[int]) -> None:
    for name, model in each:
        whole = decode(model.codec, model.codec.create_states(1), [0], TOKENS[:1], [30])
        assert whole.shape == (1, 30 * STRIDE)
        assert np.abs(whole).max() > 0.1
        assert_same(name, decode(model.codec, model.codec.create_states(1), [0], TOKENS[:1], sizes), whole)


def test_streaming_from_a_fresh_state_is_the_plain_convolution(models: dict[str, Model]) -> None:
    for name, model in models.items():
        whole = decode(model.codec, model.codec.create_states(1), [0], TOKENS[:1], [30])
        (plain,) = model.codec_at_once.run({"tokens": TOKENS[:1], "rows": np.zeros(1, I32)})
        np.testing.assert_allclose(whole, plain, rtol=0, atol=1e-6, err_msg=name)


def test_codec_streams_share_batches(each: Iterator[tuple[str, Model]]) -> None:
    """Three streams, one of which joins late and one of which leaves early."""
    for name, model in each:
        states = model.codec.create_states(5)
        heard: list[list[np.ndarray]] = [[], [], []]
        at = [0, 0, 0]
        for members, size in (([0, 2], 4), ([2, 1, 0], 5), ([1, 0], 6), ([0], 3), ([1, 0], 2)):
            rows = np.array([m + 2 for m in members], I32)
            tokens = np.stack([TOKENS[m, at[m]:at[m] + size] for m in members])
            (samples,) = model.codec.run({"tokens": tokens, "rows": rows}, states=states)
            for m, piece in zip(members, samples, strict=True):
                heard[m].append(piece)
                at[m] += size
        for m in range(3):
            wanted = decode(model.codec, model.codec.create_states(1), [0], TOKENS[m:m + 1, :at[m]], [at[m]])[0]
            assert_same(name, np.concatenate(heard[m]), wanted)


def test_numpy_and_native_decode_alike(models: dict[str, Model]) -> None:
    reference = decode(models["numpy"].codec, models["numpy"].codec.create_states(3), [0, 1, 2], TOKENS, [7])
    for name, model in models.items():
        found = decode(model.codec, model.codec.create_states(3), [0, 1, 2], TOKENS, [7])
        np.testing.assert_allclose(found, reference, rtol=0, atol=TOLERANCE, err_msg=name)
