"""How the transformers library (5.23) states these models: the shapes in its config.json files, its tensor names.

Its q, k and v are three matrices, and its RoPE turns the halves of a head where the checkpoints turn pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from sonant.checkpoint.name_map import rename
from sonant.checkpoint.tensor import Array, LazyTensor
from sonant.errors import CheckpointError
from sonant.families.latent.fields import Fields
from sonant.layers.flow import FlowShape
from sonant.layers.mimi import MimiShape
from sonant.layers.seanet import SeanetShape
from sonant.layers.transformer import TransformerShape

ACTIVATIONS = {"gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh"}
CODEC_FOLDER = "audio_tokenizer"
"""Where, beside the model, its codec lies: config.json and model.safetensors of a PocketTTSAudioTokenizer."""

_LAYER_NAMES = (
    ("{at*}.self_attn.o_proj.weight", "{at}.self_attn.out_proj.weight"),
    ("{at*}.mlp.fc1.weight", "{at}.linear1.weight"),
    ("{at*}.mlp.fc2.weight", "{at}.linear2.weight"),
    ("{at*}.input_layernorm.{p}", "{at}.norm1.{p}"),
    ("{at*}.post_attention_layernorm.{p}", "{at}.norm2.{p}"),
    ("{at*}.self_attn_layer_scale.scale", "{at}.layer_scale_1.scale"),
    ("{at*}.mlp_layer_scale.scale", "{at}.layer_scale_2.scale"),
)
LM_NAMES = (
    *_LAYER_NAMES,
    ("model.embed_tokens.weight", "flow_lm.conditioner.embed.weight"),
    ("model.audio_prompt_proj.weight", "flow_lm.speaker_proj_weight"),
    ("model.num_speakers_embed.weight", "flow_lm.conditioner.num_speakers.embed.weight"),
    ("model.num_speakers_proj.weight", "flow_lm.conditioner.num_speakers.output_proj.weight"),
    ("model.duration_delta_proj.weight", "flow_lm.conditioner.duration_delta.output_proj.weight"),
    ("model.audio_latent_proj.weight", "flow_lm.input_linear.weight"),
    ("model.bos_latent", "flow_lm.bos_emb"),
    ("latent_mean", "flow_lm.emb_mean"),
    ("latent_std", "flow_lm.emb_std"),
    ("model.norm.{p}", "flow_lm.out_norm.{p}"),
    ("eos_head.{p}", "flow_lm.out_eos.{p}"),
    ("model.layers.{at*}", "flow_lm.transformer.layers.{at}"),
    ("flow_head.timestep_embeddings.{i}.freqs", "flow_lm.flow_net.time_embed.{i}.freqs"),
    ("flow_head.timestep_embeddings.{i}.fc1.{p}", "flow_lm.flow_net.time_embed.{i}.mlp.0.{p}"),
    ("flow_head.timestep_embeddings.{i}.fc2.{p}", "flow_lm.flow_net.time_embed.{i}.mlp.2.{p}"),
    ("flow_head.timestep_embeddings.{i}.norm.weight", "flow_lm.flow_net.time_embed.{i}.mlp.3.alpha"),
    ("flow_head.cond_proj.{p}", "flow_lm.flow_net.cond_embed.{p}"),
    ("flow_head.input_proj.{p}", "flow_lm.flow_net.input_proj.{p}"),
    ("flow_head.layers.{i}.norm.{p}", "flow_lm.flow_net.res_blocks.{i}.in_ln.{p}"),
    ("flow_head.layers.{i}.fc1.{p}", "flow_lm.flow_net.res_blocks.{i}.mlp.0.{p}"),
    ("flow_head.layers.{i}.fc2.{p}", "flow_lm.flow_net.res_blocks.{i}.mlp.2.{p}"),
    ("flow_head.layers.{i}.adaln_proj.{p}", "flow_lm.flow_net.res_blocks.{i}.adaLN_modulation.1.{p}"),
    ("flow_head.final_layer.proj.{p}", "flow_lm.flow_net.final_layer.linear.{p}"),
    ("flow_head.final_layer.adaln_proj.{p}", "flow_lm.flow_net.final_layer.adaLN_modulation.1.{p}"),
)
_CODEC_NAMES = (
    *_LAYER_NAMES,
    ("latent_proj.weight", "mimi.quantizer.output_proj.weight"),
    ("decoder.upsample.conv.weight", "mimi.upsample.convtr.weight"),
    ("encoder.downsample.conv.weight", "mimi.downsample.conv.weight"),
    ("{side}.decoder_seanet.layers.{at*}", "mimi.decoder.model.{at}"),
    ("{side}.encoder_seanet.layers.{at*}", "mimi.encoder.model.{at}"),
    ("{side}.decoder_transformer.layers.{at*}", "mimi.decoder_transformer.transformer.layers.{at}"),
    ("{side}.encoder_transformer.layers.{at*}", "mimi.encoder_transformer.transformer.layers.{at}"),
)
UNUSED = ("latent_stats_num_updates", "loss_weighting.{path*}")


def theta(fields: Fields) -> float:
    """The base of RoPE; only its plain form is known."""
    if not fields.has("rope_parameters"):
        return 10_000.0
    rope = fields.sub("rope_parameters")
    rope.must_be("rope_type", "default", "default")
    return rope.number("rope_theta", 10_000.0)


def lm_shape(fields: Fields) -> TransformerShape:
    """The backbone of a GradiumPhononTTSConfig or PocketTTSConfig."""
    fields.must_be("layer_norm_eps", 1e-5, 1e-5)
    fields.must_be("attention_bias", False, False)
    return _layers(fields)


def flow_shape(fields: Fields, kinds: tuple[str, ...]) -> FlowShape:
    """Its flow head, with one step."""
    flow, width, latent = fields.sub("flow_head_config"), fields.size("hidden_size"), fields.size("latent_dim")
    for name, wanted in (("condition_dim", width), ("latent_dim", latent), ("layer_norm_eps", 1e-6),
                         ("rms_norm_eps", 1e-5), ("max_period", 10_000.0), ("hidden_act", "silu")):
        flow.must_be(name, wanted, wanted)
    return FlowShape(flow.choice("flow_type", kinds, "lsd"), latent, width, flow.size("hidden_size"),
                     flow.size("num_hidden_layers"))


def codec_shape(fields: Fields) -> MimiShape:
    """A PocketTTSAudioTokenizerConfig: the same sizes for both directions."""
    fields.must_be("model_type", "pocket_tts_audio_tokenizer")
    for name, wanted in (("audio_channels", 1), ("use_causal_conv", True), ("pad_mode", "constant"), ("norm_eps", 1e-5),
                         ("trim_right_ratio", 1.0), ("use_conv_shortcut", False), ("attention_bias", False),
                         ("upsample_groups", fields.size("hidden_size"))):
        fields.must_be(name, wanted, wanted)
    seanet = SeanetShape(fields.size("hidden_size"), fields.size("num_filters"), fields.sizes("upsampling_ratios"),
                         fields.size("kernel_size"), fields.size("last_kernel_size"),
                         fields.size("residual_kernel_size"), fields.size("num_residual_layers"),
                         fields.size("dilation_growth_rate"), fields.size("compress"))
    window = fields.size("sliding_window")
    layers = _layers(fields, window=window, layer_scale=True)
    return MimiShape(fields.size("latent_dim"), fields.size("latent_stride"), layers, seanet)


def _layers(fields: Fields, *, window: int = 0, layer_scale: bool = False) -> TransformerShape:
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    return TransformerShape(
        width, fields.size("num_hidden_layers"), heads, fields.size("num_key_value_heads", heads),
        fields.size("head_dim", width // heads), fields.size("intermediate_size"),
        activation=ACTIVATIONS[fields.choice("hidden_act", tuple(ACTIVATIONS))], theta=theta(fields), window=window,
        layer_scale=layer_scale)


def codec_names(shape: MimiShape) -> tuple[tuple[str, str], ...]:
    """The rules for a codec's names; transposed convolutions are not called so in the port."""
    step = 2 + shape.seanet.residual_layers
    places = [2 + step * i for i in range(len(shape.seanet.ratios))]
    transposed = tuple(
        (f"mimi.decoder.model.{at}.conv.{{p}}", f"mimi.decoder.model.{at}.convtr.{{p}}") for at in places)
    return _CODEC_NAMES + transposed


def original_names(
    tensors: Mapping[str, LazyTensor], rules: tuple[tuple[str, str], ...], head_size: int, where: str
) -> dict[str, LazyTensor]:
    """The tensors under the names of the original checkpoints, q, k and v stacked and in pairs."""
    out: dict[str, LazyTensor] = {}
    for name, tensor in tensors.items():
        before, projection, after = name.partition(".self_attn.q_proj.")
        if ".self_attn.k_proj." in name or ".self_attn.v_proj." in name:
            continue
        if projection:
            parts = [f"{before}.self_attn.{p}_proj.{after}" for p in "qkv"]
            missing = [part for part in parts if part not in tensors]
            if missing:
                raise CheckpointError(f"{where}: {missing[0]} is missing beside {name}")
            name, tensor = f"{before}.self_attn.in_proj.{after}", _stacked([tensors[p] for p in parts], head_size)
        out[rename(name, rules)] = tensor
    return out


def _stacked(qkv: list[LazyTensor], head_size: int) -> LazyTensor:
    rows, columns = sum(t.shape[0] for t in qkv), qkv[0].shape[1]
    return LazyTensor((rows, columns), partial(_stack, qkv, head_size))


def _stack(qkv: list[LazyTensor], head_size: int) -> Array:
    q, k, v = (t.read() for t in qkv)
    return np.concatenate([_pairs(q, head_size), _pairs(k, head_size), v])


def _pairs(w: Array, head_size: int) -> Array:
    """[H*size, C] whose heads hold the halves of each pair apart → beside each other."""
    return w.reshape(-1, 2, head_size // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
