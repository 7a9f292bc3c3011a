"""Frame models: streams that are the same however they are cut, batched, and whichever rows they lie in."""

from __future__ import annotations

from typing import Any

import latent_golden as golden
import numpy as np
import pocket_models as models
import pytest

from sonant.backends.backend import CancelFlag
from sonant.backends.native import NativeBackend
from sonant.backends.numpy import NumpyBackend
from sonant.errors import BackendError
from sonant.families.latent.frames import VOICE_ROWS, ChunkRequest, LatentFrames, LatentStream, VoicePrompt
from sonant.families.pocket.frames import load_networks

SPEECH = 1e-5
"""Between backends, of the largest magnitude; as in test_parity."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return models.read("large", tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="module")
def frames(checkpoint: Any) -> LatentFrames:
    config, weights = checkpoint
    heads = ((0, 1), (1, 0))
    return LatentFrames(load_networks(config, weights, NativeBackend(threads=2), heads=heads), n_rows=4)


def voice(name: str, length: int = 8) -> VoicePrompt:
    return VoicePrompt(name, golden.random_array(f"voice {name}", (length, 64), 0.3))


def request(text: int = 6, **changes: Any) -> ChunkRequest:
    ids = (np.arange(text) * 5 + 7) % 40
    given = {"voice": voice("a"), "ids": ids, "seed": (5, text), "temperature": 0.3, "eos_threshold": 1e9,
             "frames_after_eos": 2}
    return ChunkRequest(**{**given, **changes})


def alone(model: LatentFrames, wanted: ChunkRequest, count: int, row: int = 0) -> LatentStream:
    stream = model.begin(row, wanted, CancelFlag())
    for _ in range(count):
        model.step([stream])
    return stream


@pytest.mark.parametrize("sizes", [(1,) * 16, (1, 1, 2, 4, 8), (8, 8), (3, 5, 7, 1), (16,)])
def test_samples_are_the_same_however_they_are_cut(sizes: tuple[int, ...], frames: LatentFrames) -> None:
    """Bit for bit, over more frames than the codec's window."""
    whole, cut = (alone(frames, request(20), 32, row) for row in (0, 1))
    wanted = np.concatenate([frames.decode([whole], 16)[0] for _ in range(2)])
    found = np.concatenate([frames.decode([cut], n)[0] for n in (*sizes, *sizes)])
    np.testing.assert_array_equal(found, wanted)


def test_a_stream_among_others_is_the_stream_alone(frames: LatentFrames) -> None:
    """Streams that join later, have other voices and texts, and leave: bit for bit, what was heard as well."""
    wishes = [request(6), request(9, voice=voice("b", 3)), request(4, voice=voice("c", 20), temperature=0.7)]
    wanted = [alone(frames, w, 9) for w in wishes]
    streams: list[LatentStream] = []
    for row, wish in zip((2, 0, 3), wishes, strict=True):
        streams.append(frames.begin(row, wish, CancelFlag()))
        for _ in range(3):
            frames.step(streams)
    for stream in reversed(streams):
        while stream.made < 9:
            frames.step([s for s in streams if s.made < 9])
    for stream, own in zip(streams, wanted, strict=True):
        np.testing.assert_array_equal(np.stack(stream.latents), np.stack(own.latents))
        np.testing.assert_array_equal(np.stack(stream.heard), np.stack(own.heard))
    joined = frames.decode(streams, 4)
    for samples, own in zip(joined, wanted, strict=True):
        frames._codec_states.reset(own.row)
        np.testing.assert_array_equal(samples, frames.decode([own], 4)[0])


def test_attention_is_a_share_of_the_text(frames: LatentFrames) -> None:
    stream = alone(frames, request(7), 3)
    heard = np.stack(stream.heard)
    assert heard.shape == (3, 2, 7)
    np.testing.assert_allclose(heard.sum(-1), 1, atol=1e-5)  # a softmax in f32


def test_more_voices_than_rows_for_them(frames: LatentFrames) -> None:
    """The one that was not used for longest makes room, and comes back the same."""
    first = voice("0")
    wanted = alone(frames, request(voice=first), 2).latents
    for i in range(1, VOICE_ROWS + 3):
        alone(frames, request(voice=voice(str(i))), 1)
    assert first not in frames._voices
    np.testing.assert_array_equal(alone(frames, request(voice=first), 2).latents, wanted)


def test_a_cancelled_voice_leaves_its_row_free(checkpoint: Any) -> None:
    config, weights = checkpoint
    frames = LatentFrames(load_networks(config, weights, NumpyBackend()), n_rows=1)
    flag = CancelFlag()
    flag.set()
    for _ in range(VOICE_ROWS + 1):
        with pytest.raises(Exception, match="cancel"):
            frames.begin(0, request(), flag)
    assert len(alone(frames, request(), 1).latents) == 1


@pytest.mark.parametrize(("precision", "kept"), [("f16", 3e-3), ("bf16", 3e-2), ("q8", 5e-2)])
def test_every_precision_on_both_backends(precision: str, kept: float, checkpoint: Any) -> None:
    """kept: of the f32 model's first latent and samples, what the rounding of weights and products may change; 11, 8
    and 7 bits through about twenty layers. The end logit comes of the same states."""
    config, weights = checkpoint
    found = {}
    for name, backend, p in (("f32", NumpyBackend(), "f32"), ("numpy", NumpyBackend(), precision),
                             ("native", NativeBackend(threads=2), precision)):
        frames = LatentFrames(load_networks(config, weights, backend, precision=p), n_rows=1)
        stream = alone(frames, request(), 1)
        latent = stream.latents[0]
        stream.latents = list(golden.random_array("codec latents", (4, 8)))
        found[name] = (latent, frames.decode([stream], 4)[0])
    for number in range(2):
        exact, numpy, native = (found[name][number] for name in ("f32", "numpy", "native"))
        scale = np.abs(exact).max()
        assert 0 < np.abs(numpy - exact).max() / scale <= kept
        # one rounding of an input to the other side of a step of int8 or bf16 is more than sums in another order
        assert np.abs(native - numpy).max() / scale <= (SPEECH if precision == "f16" else kept)


def test_numbers_that_are_none_fail_the_stream(checkpoint: Any) -> None:
    config, weights = checkpoint
    damaged = {**weights, "flow_lm.out_norm.bias": np.full(64, np.inf, np.float32)}
    frames = LatentFrames(load_networks(config, damaged, NativeBackend(threads=1)), n_rows=1)
    with pytest.raises(BackendError, match="not finite"):
        alone(frames, request(), 1)
