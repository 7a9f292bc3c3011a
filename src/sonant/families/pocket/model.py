"""Pocket TTS as four Programs: prefill (voice and text → keys and values), step (a frame → the next), codec (frames →
samples) and encoder (a recording → what its voice is).

Axes: B slots, T positions, F frames of 80 ms, D = lm.width, L = flow.latent. One sequence of positions a slot:
[BOS row][voice rows][text rows][BOS frame][frames...]. Source: pocket_tts 4.0.1. Figures: docs/families/pocket.md.
"""

from __future__ import annotations

from sonant.families.pocket.config import PocketConfig
from sonant.layers import mimi
from sonant.layers.dense import layer_norm, linear
from sonant.layers.flow import sample_latent
from sonant.layers.scope import Scope
from sonant.layers.transformer import Cache, Listening, transformer
from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.program import Program, Value

CAPACITY = 1024
"""Positions of one slot, 80 s without its prefix: more than the cap on frames lets a chunk of text have."""

NOISE_SITE = 1
"""Philox draw site of the flow head's noise; the ones after it are drawn again where a number is clamped away."""
DRAWS = 4

B, T, F, N = (Dim.symbol(s) for s in "BTFN")


def prefill_program(config: PocketConfig, *, precision: str = "f32") -> Program:
    """x [B,T,D] (rows of the voice and of the text), rows [B], position [B] of the first → nothing: fills the cache."""
    p = Program("pocket.prefill")
    x = p.input("x", (B, T, config.lm.width))
    cache = Cache(p.input("rows", (B,), "i32"), p.input("position", (B,), "i32"), CAPACITY)
    transformer(Scope.at(p, "flow_lm", precision) / "transformer", x, config.lm, cache)
    return p


def step_program(
    config: PocketConfig,
    *,
    precision: str = "f32",
    heads: tuple[tuple[int, int], ...] = (),
    noise_clamp: float | None = None,
) -> Program:
    """latent [B,1,L] of the frame before (normalised; the BOS latent first), rows [B], position [B], seed [B,2],
    frame [B], temperature [B] → latent [B,1,L], EOS logit [B].

    heads: (layer, head) pairs whose attention over the positions keys [B,N] is a third output [B,H,N]. noise_clamp:
    no number of the noise is beyond it.
    """
    p = Program("pocket.step")
    s = Scope.at(p, "flow_lm", precision)
    latent = p.input("latent", (B, 1, config.flow.latent))
    cache = Cache(p.input("rows", (B,), "i32"), p.input("position", (B,), "i32"), CAPACITY)
    seed, frame = p.input("seed", (B, 2), "i32"), p.input("frame", (B,), "i32")
    temperature = p.input("temperature", (B,))
    listening = Listening(p.input("keys", (B, N), "i32"), heads) if heads else None

    x = linear((s / "input_linear").exact, latent, config.lm.width, bias=False)  # [B,1,D]
    h, heard = transformer(s / "transformer", x, config.lm, cache, listening)
    h = layer_norm(s / "out_norm", h)
    if config.z_width is not None:
        h = linear((s / "z_proj").exact, h, config.z_width, bias=False)  # [B,1,Z]
    eos = linear((s / "out_eos").exact, h, 1)  # [B,1,1]
    std = ops.reshape(ops.sqrt(temperature), (B, 1, 1))
    noise = _noise(seed, frame, std, config.flow.latent, noise_clamp)  # [B,1,L]
    p.outputs = [sample_latent(s / "flow_net", h, noise, config.flow), ops.reshape(eos, (B,))]
    if heard is not None:
        p.outputs.append(ops.reshape(heard, (B, len(heads), N)))
    return p


def _noise(seed: Value, frame: Value, std: Value, channels: int, clamp: float | None) -> Value:
    """[B,1,channels]. A number beyond `clamp` is drawn again, the last draw held at it: a truncated normal but for
    the odds that DRAWS numbers in a row fall outside."""
    draws = [ops.mul(ops.randn(seed, frame, length=1, channels=channels, site=NOISE_SITE + i), std)
             for i in range(1 if clamp is None else DRAWS)]
    if clamp is None:
        return draws[0]
    noise = ops.minimum(ops.maximum(draws[-1], -clamp), clamp)
    for draw in reversed(draws[:-1]):
        noise = ops.where(ops.greater(ops.abs(draw), clamp), noise, draw)
    return noise


def codec_program(config: PocketConfig, *, precision: str = "f32") -> Program:
    """latents [B,F,L] (denormalised) of the frames from `frame` [B] on, rows [B] → samples [B,1920*F]. F up to
    mimi.MOST_FRAMES."""
    p = Program("pocket.codec")
    latents = p.input("latents", (B, F, config.decoder.latent))
    rows, frame = p.input("rows", (B,), "i32"), p.input("frame", (B,), "i32")
    p.outputs = [mimi.decoder(Scope.at(p, "mimi", mimi.PRECISION[precision]), latents, config.decoder, rows, frame)]
    return p


def encoder_program(config: PocketConfig) -> Program:
    """samples [B,1920*F] of the frames from `frame` [B] on, rows [B] → latents [B,F,V] of a voice. In f32: a voice is
    encoded once. F up to mimi.MOST_FRAMES."""
    p = Program("pocket.encoder")
    samples = p.input("samples", (B, F * config.encoder.frame_samples))
    rows, frame = p.input("rows", (B,), "i32"), p.input("frame", (B,), "i32")
    p.outputs = [mimi.encoder(Scope(p, "mimi"), samples, config.encoder, rows, frame)]
    return p
