"""Tensors of the latent language models: which there are, under which names, and what is folded into them.

The names are those of the original checkpoints, in one spelling: `flow_lm.*`, `mimi.*`. Folded once, when a checkpoint
is converted: the adaLN rows of the flow head (layers/flow.py); when it is loaded: its time embeddings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from sonant.checkpoint.name_map import TensorSpec
from sonant.layers.flow import TIMES, FlowShape
from sonant.layers.mimi import MimiShape
from sonant.layers.seanet import SeanetShape
from sonant.layers.transformer import TransformerShape

Array = NDArray[np.float32]
Specs = dict[str, TensorSpec]
FLOW = "flow_lm.flow_net"
FREQUENCIES = 128
"""Cosines, and sines, of a time embedding."""

ORIGINAL_NAMES = (
    ("flow_lm.backbone.{p*}", "flow_lm.transformer.{p}"),
    ("flow_lm.flow.{p*}", "flow_lm.flow_net.{p}"),
    ("mimi.model.{p*}", "mimi.{p}"),
    ("flow_lm.condition_provider.conditioners.{p*}", "flow_lm.conditioner.{p}"),
    ("flow_lm.conditioner.transcript_in_segment.{p*}", "flow_lm.conditioner.{p}"),
    ("flow_lm.conditioner.speaker_wavs.output_proj.weight", "flow_lm.speaker_proj_weight"),
    ("flow_lm.fuser.padding_value", "flow_lm.bos_before_voice"),
    ("{p*}.in_proj_weight", "{p}.in_proj.weight"),
    ("{p*}.conv.conv.{q}", "{p}.conv.{q}"),
    ("{p*}.convtr.convtr.{q}", "{p}.convtr.{q}"),
)
"""Spellings that releases have used → the one used here, in order."""

UNUSED = (
    "flow_lm.flow_net.w_s_t.{p*}",
    "flow_lm.conditioner.learnt_padding",
    "flow_lm.conditioner.{name}.learnt_padding",
    "flow_lm.num_ema_updates",
    "mimi.quantizer.vq{p*}",
    "mimi.quantizer.logvar_proj.{p*}",
    "mimi.quantizer.logvar_param",
    "mimi.wavlm_{p*}",
    "speaker_mimi.{p*}",
    "flow_lm.speaker_proj_weight",
    "mimi.encoder.{p*}",
    "mimi.encoder_transformer.{p*}",
    "mimi.downsample.{p*}",
)
"""What only training used, and parts of an encoder where a model has no use for them."""


def lm_specs(lm: TransformerShape, flow: FlowShape) -> Specs:
    """The language model with its flow head, but for its tables."""
    width, latent = lm.width, flow.latent
    return {
        "flow_lm.input_linear.weight": TensorSpec((width, latent)),
        "flow_lm.bos_emb": TensorSpec((latent,)),
        "flow_lm.emb_mean": TensorSpec((latent,)),
        "flow_lm.emb_std": TensorSpec((latent,)),
        **_pair("flow_lm.out_norm", (width,), width),
        **_pair("flow_lm.out_eos", (1, flow.condition), 1),
        **transformer_specs("flow_lm.transformer", lm),
        **flow_specs(flow),
    }


def transformer_specs(path: str, shape: TransformerShape) -> Specs:
    """The layers of layers/transformer.py."""
    out: Specs = {}
    a, kv, width = shape.attention_width, shape.kv_width, shape.width
    for i in range(shape.layers):
        at = f"{path}.layers.{i}"
        out[f"{at}.self_attn.in_proj.weight"] = TensorSpec((a + 2 * kv, width))
        out[f"{at}.self_attn.out_proj.weight"] = TensorSpec((width, a))
        out[f"{at}.linear1.weight"] = TensorSpec((shape.inner, width))
        out[f"{at}.linear2.weight"] = TensorSpec((width, shape.inner))
        out |= _pair(f"{at}.norm1", (width,), width) | _pair(f"{at}.norm2", (width,), width)
        if shape.layer_scale:
            out |= {f"{at}.layer_scale_{n}.scale": TensorSpec((width,)) for n in (1, 2)}
    return out


def flow_specs(shape: FlowShape) -> Specs:
    """The flow head as the checkpoints have it."""
    w = shape.width
    out = _pair(f"{FLOW}.cond_embed", (w, shape.condition), w) | _pair(f"{FLOW}.input_proj", (w, shape.latent), w)
    for i in range(TIMES[shape.kind]):
        at = f"{FLOW}.time_embed.{i}"
        out |= {f"{at}.freqs": TensorSpec((FREQUENCIES,)), f"{at}.mlp.3.alpha": TensorSpec((w,))}
        out |= _pair(f"{at}.mlp.0", (w, 2 * FREQUENCIES), w) | _pair(f"{at}.mlp.2", (w, w), w)
    for i in range(shape.depth):
        at = f"{FLOW}.res_blocks.{i}"
        out |= _pair(f"{at}.in_ln", (w,), w) | _pair(f"{at}.adaLN_modulation.1", (3 * w, w), 3 * w)
        out |= _pair(f"{at}.mlp.0", (w, w), w) | _pair(f"{at}.mlp.2", (w, w), w)
    at = f"{FLOW}.final_layer"
    return out | _pair(f"{at}.linear", (shape.latent, w), shape.latent) | _pair(f"{at}.adaLN_modulation.1", (2 * w, w),
                                                                              2 * w)


def decoder_specs(shape: MimiShape) -> Specs:
    """The codec from latents to samples."""
    width, kernel = shape.transformer.width, 2 * shape.stride
    out = {
        "mimi.quantizer.output_proj.weight": TensorSpec((width, 1, shape.latent), "conv1d"),
        "mimi.upsample.convtr.weight": TensorSpec((width, kernel, 1), "conv_transpose1d", groups=width),
        **transformer_specs("mimi.decoder_transformer.transformer", shape.transformer),
    }
    ends, i = shape.seanet, 1
    c = ends.filters << len(ends.ratios)
    out |= _conv("mimi.decoder.model.0", c, ends.kernel, width)
    for ratio in ends.ratios:
        c //= 2
        weight = TensorSpec((c, 2 * ratio, 2 * c), "conv_transpose1d")
        out |= {f"mimi.decoder.model.{i + 1}.convtr.weight": weight,
                f"mimi.decoder.model.{i + 1}.convtr.bias": TensorSpec((c,))}
        for j in range(ends.residual_layers):
            out |= _residual(f"mimi.decoder.model.{i + 2 + j}", c, ends)
        i += 2 + ends.residual_layers
    return out | _conv(f"mimi.decoder.model.{i + 1}", 1, ends.last_kernel, c)


def encoder_specs(shape: MimiShape) -> Specs:
    """The codec from samples to latents."""
    width, ends, i = shape.transformer.width, shape.seanet, 1
    out = {"mimi.downsample.conv.weight": TensorSpec((shape.latent, 2 * shape.stride, width), "conv1d"),
           **transformer_specs("mimi.encoder_transformer.transformer", shape.transformer)}
    c = ends.filters
    out |= _conv("mimi.encoder.model.0", c, ends.kernel, 1)
    for ratio in reversed(ends.ratios):
        for j in range(ends.residual_layers):
            out |= _residual(f"mimi.encoder.model.{i + j}", c, ends)
        i += ends.residual_layers
        c *= 2
        out |= _conv(f"mimi.encoder.model.{i + 1}", c, 2 * ratio, c // 2)
        i += 2
    return out | _conv(f"mimi.encoder.model.{i + 1}", width, ends.last_kernel, c)


def _pair(path: str, weight: tuple[int, ...], bias: int) -> Specs:
    return {f"{path}.weight": TensorSpec(weight), f"{path}.bias": TensorSpec((bias,))}


def _conv(path: str, n: int, k: int, c: int) -> Specs:
    weight = TensorSpec((n, k, c), "conv1d", weight_norm=True)
    return {f"{path}.conv.weight": weight, f"{path}.conv.bias": TensorSpec((n,))}


def _residual(path: str, c: int, ends: SeanetShape) -> Specs:
    inner = c // ends.compress
    return _conv(f"{path}.block.1", inner, ends.residual_kernel, c) | _conv(f"{path}.block.3", c, 1, inner)


def folded_specs(specs: Specs, shape: FlowShape) -> Specs:
    """`specs` as `folded` leaves them."""
    kept = {name: spec for name, spec in specs.items() if not _is_modulation(name)}
    return kept | _pair(f"{FLOW}.adaln", (shape.modulations * shape.width, shape.width),
                        shape.modulations * shape.width)


def folded(tensors: Iterable[tuple[str, Array]], shape: FlowShape) -> Iterator[tuple[str, Array]]:
    """The tensors one by one, the adaLN linears of the flow head joined to one at the end."""
    parts: dict[str, Array] = {}
    for name, array in tensors:
        if _is_modulation(name):
            parts[name] = array
        else:
            yield name, array
    places = [f"{FLOW}.res_blocks.{i}" for i in range(shape.depth)] + [f"{FLOW}.final_layer"]
    weight, bias = (np.concatenate([parts[f"{at}.adaLN_modulation.1.{p}"] for at in places])
                    for p in ("weight", "bias"))
    scales = [3 * i + 1 for i in range(shape.depth)] + [3 * shape.depth + 1]
    bias.reshape(-1, shape.width)[scales] += 1
    yield f"{FLOW}.adaln.weight", weight
    yield f"{FLOW}.adaln.bias", bias


def _is_modulation(name: str) -> bool:
    return name.startswith(FLOW) and ".adaLN_modulation." in name


def time_vectors(tensors: Mapping[str, Array], shape: FlowShape, norm: str) -> dict[str, Array]:
    """`times.{n}` of layers/flow.py: the mean embedding of what the head is told in step n, in f64.

    norm: what an embedding is divided by the root of, its mean square or its (unbiased, about its mean) variance.
    """
    out = {}
    for n in range(shape.steps if TIMES[shape.kind] else 0):
        embeddings = [_embedded(tensors, i, t, norm) for i, t in enumerate(shape.step_times(n))]
        out[f"{FLOW}.times.{n}"] = np.mean(embeddings, axis=0).astype(np.float32)
    return out


class WithDerived(Mapping[str, Array]):
    """The tensors of a checkpoint and what was derived from them; none is read before it is asked for."""

    def __init__(self, tensors: Mapping[str, Array], derived: Mapping[str, Array]) -> None:
        self._tensors, self._derived = tensors, derived

    def __getitem__(self, name: str) -> Array:
        return self._derived[name] if name in self._derived else self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._tensors), **dict.fromkeys(self._derived)})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _embedded(tensors: Mapping[str, Array], i: int, time: float, norm: str) -> NDArray[np.float64]:
    parts = {p: tensors[f"{FLOW}.time_embed.{i}.{p}"].astype(np.float64)
             for p in ("freqs", "mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias", "mlp.3.alpha")}
    angles = time * parts["freqs"]
    h = parts["mlp.0.weight"] @ np.concatenate([np.cos(angles), np.sin(angles)]) + parts["mlp.0.bias"]
    h = parts["mlp.2.weight"] @ (h / (1 + np.exp(-h))) + parts["mlp.2.bias"]
    power = {"mean_square": np.mean(h * h), "variance": np.var(h, ddof=1)}[norm]
    embedded: NDArray[np.float64] = h * parts["mlp.3.alpha"] / np.sqrt(power + 1e-5)
    return embedded
