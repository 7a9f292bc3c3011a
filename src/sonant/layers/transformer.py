"""A pre-norm transformer with rotary positions whose keys and values live in states: language models and codecs.

Weight names are those of Moshi and its descendants: `layers.{i}.{norm1, norm2}`, `self_attn.{in_proj, out_proj}` (q, k
and v stacked in one matrix), `linear1`, `linear2`, `layer_scale_1`, `layer_scale_2`. RoPE turns interleaved pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sonant.errors import ProgramError
from sonant.layers.dense import layer_norm, linear
from sonant.layers.scope import Scope
from sonant.program import ops
from sonant.program.program import Value

ACTIVATIONS = {"gelu": ops.gelu, "gelu_tanh": ops.gelu_tanh}


@dataclass(frozen=True)
class TransformerShape:
    """Sizes of the stack. heads x head_size may differ from width; window: how many keys a query sees, 0 = all."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    activation: str = "gelu_tanh"
    theta: float = 10_000.0
    window: int = 0
    layer_scale: bool = False

    @property
    def attention_width(self) -> int:
        """Channels of the queries and of what attention gives."""
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Channels of the keys, and of the values."""
        return self.kv_heads * self.head_size


@dataclass(frozen=True)
class Cache:
    """Where a run stands: the rows of its slots [B], the position of its first query in each [B], positions held."""

    rows: Value
    position: Value
    capacity: int


@dataclass(frozen=True)
class Listening:
    """Attention that is to be recorded: (layer, head) pairs in order, and the key positions they look at, [B, N]."""

    keys: Value
    heads: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if list(self.heads) != sorted(self.heads):
            raise ProgramError(f"heads to listen to must be in the order of their layers, got {self.heads}")


def transformer(
    s: Scope, x: Value, shape: TransformerShape, cache: Cache, listening: Listening | None = None
) -> tuple[Value, Value | None]:
    """[B, T, width] → [B, T, width], and of the heads that are listened to [B, T, heads, N].

    States `{scope}.layers.{i}.k` and `.v` [capacity, kv_width]: a ring where there is a window, else linear.
    """
    table = ops.rope_table(cache.position, length=x.shape[1], size=shape.head_size, theta=shape.theta)
    heard: list[Value] = []
    for i in range(shape.layers):
        x = _layer(s / "layers" / i, x, shape, cache, table, heard, _of_layer(listening, i))
    return x, ops.concat(heard, axis=2) if heard else None


def _of_layer(listening: Listening | None, layer: int) -> Listening | None:
    if listening is None:
        return None
    heads = tuple(pair for pair in listening.heads if pair[0] == layer)
    return Listening(listening.keys, heads) if heads else None


def _layer(
    s: Scope,
    x: Value,
    shape: TransformerShape,
    cache: Cache,
    table: Value,
    heard: list[Value],
    listening: Listening | None,
) -> Value:
    attend, (a, kv) = s / "self_attn", (shape.attention_width, shape.kv_width)
    qkv = linear(attend / "in_proj", layer_norm(s / "norm1", x), a + 2 * kv, bias=False)  # [B,T,A+2K]
    q = ops.rope(ops.slice(qkv, 2, 0, a), table, heads=shape.heads)  # [B,T,A]
    k = ops.rope(ops.slice(qkv, 2, a, a + kv), table, heads=shape.kv_heads)  # [B,T,K]
    v = ops.slice(qkv, 2, a + kv, a + 2 * kv)  # [B,T,K]
    program, kind = s.program, "ring" if shape.window else "kv"
    state_k, state_v = (program.add_state(f"{s.path}.{n}", kind, (cache.capacity, kv)) for n in "kv")
    scale, heads, kv_heads = shape.head_size**-0.5, shape.heads, shape.kv_heads
    y = ops.attention(q, k, v, rows=cache.rows, position=cache.position, heads=heads, kv_heads=kv_heads, scale=scale,
                      mask="causal", window=shape.window, state_k=state_k, state_v=state_v)  # [B,T,A]
    if listening is not None:
        ids = tuple(head for _, head in listening.heads)
        heard.append(ops.attention_weights(q, listening.keys, cache.rows, head_ids=ids, heads=heads,
                                           kv_heads=kv_heads, scale=scale, state_k=state_k))  # [B,T,heads,N]
    x = ops.add(x, _scaled(s / "layer_scale_1", linear(attend / "out_proj", y, shape.width, bias=False), shape))
    y = linear(s / "linear1", layer_norm(s / "norm2", x), shape.inner, bias=False)  # [B,T,inner]
    y = linear(s / "linear2", ACTIVATIONS[shape.activation](y), shape.width, bias=False)
    return ops.add(x, _scaled(s / "layer_scale_2", y, shape))


def _scaled(s: Scope, x: Value, shape: TransformerShape) -> Value:
    return ops.mul(x, s.vector("scale", shape.width)) if shape.layer_scale else x
