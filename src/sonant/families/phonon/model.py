"""Phonon as three Programs: prefill (voice and text → keys and values), step (a frame → the next) and codec (frames →
samples).

Axes: B slots, T positions, F frames of 80 ms, D = lm.width, L = flow.latent. One sequence of positions a slot:
[voice rows][text rows][BOS frame][frames...]. Source: Gradium's ptts 0.4.2. Figures: docs/families/phonon.md.
"""

from __future__ import annotations

from sonant.families.phonon.config import PhononConfig
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
"""Philox draw site of the flow head's noise."""

B, T, F, N = (Dim.symbol(s) for s in "BTFN")


def prefill_program(config: PhononConfig, *, precision: str = "f32") -> Program:
    """x [B,T,D] (rows of the voice and of the text), rows [B], position [B] of the first → nothing: fills the cache."""
    p = Program("phonon.prefill")
    x = p.input("x", (B, T, config.lm.width))
    cache = Cache(p.input("rows", (B,), "i32"), p.input("position", (B,), "i32"), CAPACITY)
    transformer(Scope.at(p, "flow_lm", precision) / "transformer", x, config.lm, cache)
    return p


def step_program(
    config: PhononConfig, *, precision: str = "f32", heads: tuple[tuple[int, int], ...] = (), guided: bool = False
) -> Program:
    """latent [B,1,L] of the frame before (normalised; the BOS latent first), condition [B,1,D], rows [B], position [B],
    seed [B,2], frame [B], temperature [B] → latent [B,1,L], EOS logit [B].

    heads: (layer, head) pairs whose attention over the positions keys [B,N] is a third output [B,H,N]. guided:
    classifier-free guidance. A slot then has two rows, rows and position are [2B] (all the conditioned ones, then all
    those without a prefix), and guidance [B] is how far from the second to the first.
    """
    p = Program("phonon.step")
    s = Scope.at(p, "flow_lm", precision)
    latent, condition = p.input("latent", (B, 1, config.flow.latent)), p.input("condition", (B, 1, config.lm.width))
    branches = 2 * B if guided else B
    cache = Cache(p.input("rows", (branches,), "i32"), p.input("position", (branches,), "i32"), CAPACITY)
    seed, frame = p.input("seed", (B, 2), "i32"), p.input("frame", (B,), "i32")
    temperature = p.input("temperature", (B,))
    keys = p.input("keys", (B, N), "i32") if heads else None

    x = ops.add(linear((s / "input_linear").exact, latent, config.lm.width, bias=False), condition)  # [B,1,D]
    if guided:
        x = ops.concat([x, x], axis=0)  # [2B,1,D]
    listening = Listening(_of_first_branch(keys, guided), heads) if keys is not None else None
    h, heard = transformer(s / "transformer", x, config.lm, cache, listening)
    h = layer_norm(s / "out_norm", h)
    if guided:
        h = _guide(h, p.input("guidance", (B,)))  # [B,1,D]
    eos = linear((s / "out_eos").exact, h, 1)  # [B,1,1]
    noise = ops.randn(seed, frame, length=1, channels=config.flow.latent, site=NOISE_SITE)
    noise = ops.mul(noise, ops.reshape(ops.sqrt(temperature), (B, 1, 1)))  # [B,1,L]
    p.outputs = [sample_latent(s / "flow_net", h, noise, config.flow), ops.reshape(eos, (B,))]
    if heard is not None:
        p.outputs.append(ops.reshape(ops.slice(heard, 0, 0, B), (B, len(heads), N)))
    return p


def _of_first_branch(keys: Value, guided: bool) -> Value:
    """[B,N] → [2B,N] that leaves all keys of the second branch out."""
    if not guided:
        return keys
    return ops.concat([keys, ops.expand(keys.program.constant([[-1]]), keys.shape)], axis=0)


def _guide(h: Value, guidance: Value) -> Value:
    """[2B,1,D] → [B,1,D]: null + guidance * (conditioned - null)"""
    conditioned, null = ops.slice(h, 0, 0, B), ops.slice(h, 0, B, 2 * B)
    return ops.add(null, ops.mul(ops.sub(conditioned, null), ops.reshape(guidance, (B, 1, 1))))


def codec_program(config: PhononConfig, *, precision: str = "f32") -> Program:
    """latents [B,F,L] (denormalised) of the frames from `frame` [B] on, rows [B] → samples [B,1920*F]. F up to
    mimi.MOST_FRAMES."""
    p = Program("phonon.codec")
    latents = p.input("latents", (B, F, config.codec.latent))
    rows, frame = p.input("rows", (B,), "i32"), p.input("frame", (B,), "i32")
    p.outputs = [mimi.decoder(Scope.at(p, "mimi", mimi.PRECISION[precision]), latents, config.codec, rows, frame)]
    return p
