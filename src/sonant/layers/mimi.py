"""Mimi as a VAE codec: continuous latents at 12.5 Hz ↔ samples, streamed in either direction.

decoder: projection, learned upsampling, a windowed transformer, SEANet; encoder: the same ends, the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sonant.layers import seanet
from sonant.layers.scope import Scope
from sonant.layers.seanet import SeanetShape
from sonant.layers.transformer import Cache, TransformerShape, transformer
from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.program import Value

PRECISION = {"f32": "f32", "f16": "f16", "bf16": "bf16", "q8": "int8"}
"""Of the codec, by that of its model. Many rows meet a weight here: blocks of 32 cost more than their products."""

MOST_FRAMES = 16
"""Frames of one run: what the ring of the transformer has room for beside its window."""


@dataclass(frozen=True)
class MimiShape:
    """One direction of the codec. latent: channels of a latent; stride: transformer positions in a frame."""

    latent: int
    stride: int
    transformer: TransformerShape
    seanet: SeanetShape

    @property
    def frame_samples(self) -> int:
        return self.stride * prod(self.seanet.ratios)

    @property
    def capacity(self) -> int:
        """Positions the ring must hold."""
        return self.transformer.window + MOST_FRAMES * self.stride - 1


def decoder(s: Scope, latents: Value, shape: MimiShape, rows: Value, frame: Value) -> Value:
    """Latents [B, F, latent] of the frames from `frame` [B] on → samples [B, F*frame_samples]"""
    width = shape.transformer.width
    x = ops.conv1d(latents, (s / "quantizer" / "output_proj").exact.matrix("weight", width, 1, shape.latent))  # [B,F,W]
    x = seanet.causal_conv_transpose1d((s / "upsample").exact, x, width, rows, stride=shape.stride, groups=width,
                                       bias=False)  # [B,16F,W]
    cache = Cache(rows, ops.mul(frame, shape.stride), shape.capacity)
    x, _ = transformer(s / "decoder_transformer" / "transformer", x, shape.transformer, cache)
    x = seanet.decoder(s / "decoder", x, shape.seanet, rows)  # [B,1920F,1]
    return ops.reshape(x, x.shape[:2])


def encoder(s: Scope, samples: Value, shape: MimiShape, rows: Value, frame: Value) -> Value:
    """Samples [B, F*frame_samples] of the frames from `frame` [B] on → latents [B, F, latent]"""
    x = ops.reshape(samples, (*samples.shape, 1))  # [B,1920F,1]
    x = seanet.encoder(s / "encoder", x, shape.seanet, rows)  # [B,16F,W]
    cache = Cache(rows, ops.mul(frame, shape.stride), shape.capacity)
    x, _ = transformer(s / "encoder_transformer" / "transformer", x, shape.transformer, cache)
    return _downsample(s / "downsample", x, shape, rows, frame)


def _downsample(s: Scope, x: Value, shape: MimiShape, rows: Value, frame: Value) -> Value:
    """[B, 16F, W] → [B, F, latent], kernel 2*stride; before the first input its value is repeated"""
    (batch, length, width), stride = x.shape, shape.stride
    state = s.program.add_state(s.path, "history", (stride, int(width)))
    is_first = ops.reshape(ops.cast(ops.equal(frame, 0), "f32"), (batch, 1, 1))
    repeated = ops.expand(ops.slice(x, 1, 0, 1), (batch, stride, width))
    x = ops.concat([ops.where(is_first, repeated, ops.state_read(rows, state)), x], axis=1)  # [B,16+16F,W]
    ops.state_write(rows, ops.slice(x, 1, length, Dim.of(length) + stride), state)
    w = (s / "conv").matrix("weight", shape.latent, 2 * stride, int(width))
    return ops.conv1d(x, w, stride=stride, precision=s.precision)
