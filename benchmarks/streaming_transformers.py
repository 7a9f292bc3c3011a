"""Phonon and Pocket TTS of transformers 5.23 with the weights of a checkpoint in its publisher's layout.

transformers has a name map for Phonon only, and the processors need files that the publishers' folders lack; so names
are mapped here, and token ids put together. GELU kind and window of Phonon are those of Gradium's own runtime.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers as hf
from safetensors.torch import load_file
from transformers.initialization import no_init_weights

HEAD = 64
VOICE_BOS = 4002
"""Pocket's id of the row before the voice; 4001 and 4003 stand for latents, whose rows of the table are not read."""

LAYER = (
    (r"self_attn\.out_proj", "self_attn.o_proj"),
    (r"linear(\d)", r"mlp.fc\1"),
    (r"norm1", "input_layernorm"),
    (r"norm2", "post_attention_layernorm"),
    (r"layer_scale_1", "self_attn_layer_scale"),
    (r"layer_scale_2", "mlp_layer_scale"),
)
LANGUAGE_MODEL = (
    (r"^flow_lm\.condition_provider\.conditioners\.(num_speakers|duration_delta)\.embed", r"model.\1_embed"),
    (r"^flow_lm\.condition_provider\.conditioners\.(num_speakers|duration_delta)\.output_proj", r"model.\1_proj"),
    (r"^flow_lm\.condition_provider\.conditioners\.transcript_in_segment\.embed", "model.embed_tokens"),
    (r"^flow_lm\.condition_provider\.conditioners\.speaker_wavs\.output_proj", "model.audio_prompt_proj"),
    (r"^flow_lm\.conditioner\.embed", "model.embed_tokens"),
    (r"^flow_lm\.speaker_proj_weight", "model.audio_prompt_proj.weight"),
    (r"^flow_lm\.input_linear", "model.audio_latent_proj"),
    (r"^flow_lm\.bos_emb", "model.bos_latent"),
    (r"^flow_lm\.emb_", "latent_"),
    (r"^flow_lm\.out_norm", "model.norm"),
    (r"^flow_lm\.out_eos", "eos_head"),
    (r"^flow_lm\.transformer", "model"),
    (r"^flow_lm\.flow_net", "flow_head"),
    (r"time_embed\.(\d)\.mlp\.0", r"timestep_embeddings.\1.fc1"),
    (r"time_embed\.(\d)\.mlp\.2", r"timestep_embeddings.\1.fc2"),
    (r"time_embed\.(\d)\.mlp\.3\.alpha", r"timestep_embeddings.\1.norm.weight"),
    (r"time_embed", "timestep_embeddings"),
    (r"flow_head\.cond_embed", "flow_head.cond_proj"),
    (r"res_blocks\.(\d)\.in_ln", r"layers.\1.norm"),
    (r"res_blocks\.(\d)\.mlp\.0", r"layers.\1.fc1"),
    (r"res_blocks\.(\d)\.mlp\.2", r"layers.\1.fc2"),
    (r"res_blocks", "layers"),
    (r"final_layer\.linear", "final_layer.proj"),
    (r"adaLN_modulation\.1", "adaln_proj"),
)
CODEC = (
    (r"^mimi\.quantizer\.output_proj", "latent_proj"),
    (r"^mimi\.upsample\.convtr\.convtr", "decoder.upsample.conv"),
    (r"^mimi\.decoder_transformer\.transformer", "decoder.decoder_transformer"),
    (r"^mimi\.decoder\.model", "decoder.decoder_seanet.layers"),
    (r"\.convtr\.", ".conv."),
)
UNUSED = ("mimi.encoder", "mimi.downsample")
"""What only hears a voice."""


def builder(folder: Path, threads: int, text: str, frames: int) -> Callable[[], torch.Tensor]:
    """A function that speaks the text and returns samples [S]. The voice's prefix is computed once."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    tensors = load_file(folder / "model.safetensors")
    phonon = (folder / "config.json").is_file()
    model = language_model(tensors, phonon)
    codec = audio_tokenizer(tensors, phonon)
    config = model.config
    latents = torch.from_numpy(np.load(folder / "voice_latents.npy"))[None]
    voice = [config.audio_prompt_token_id] * latents.shape[1]
    voice = voice if phonon else [VOICE_BOS, *voice]
    prefix = model(input_ids=torch.tensor([voice]), audio_prompt_latents=latents, use_cache=True).past_key_values
    words = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids
    ids = torch.tensor([[*words, config.audio_bos_token_id]])

    def speak() -> torch.Tensor:
        said = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            past_key_values=copy.deepcopy(prefix),
            frames_after_eos=1,
            max_new_tokens=frames,
            do_sample=False,
            return_dict_in_generate=True,
        )
        return codec.decode(said.audio_latents).audio_values[0, 0]

    return speak


def language_model(tensors: dict[str, torch.Tensor], phonon: bool) -> Any:
    named = renamed({n: t for n, t in tensors.items() if n.startswith("flow_lm.")}, LANGUAGE_MODEL)
    bos = named.pop("flow_lm.bos_before_voice", None)
    if bos is not None:
        table = named["model.embed_tokens.weight"]
        named["model.embed_tokens.weight"] = torch.cat([table, torch.zeros(1, table.shape[1]), bos[0], bos[0]])
    width = named["model.norm.weight"].shape[0]
    shape = {
        "hidden_size": width,
        "num_attention_heads": width // HEAD,
        "num_hidden_layers": sum(n.endswith("o_proj.weight") for n in named),
        "intermediate_size": named["model.layers.0.mlp.fc1.weight"].shape[0],
        "hidden_act": "gelu_pytorch_tanh",
        "flow_head_config": {"condition_dim": width},
    }
    if phonon:
        return loaded(hf.GradiumPhononTTSForConditionalGeneration, hf.GradiumPhononTTSConfig(**shape), named)
    return loaded(hf.PocketTTSForConditionalGeneration, hf.PocketTTSConfig(**shape), named)


def audio_tokenizer(tensors: dict[str, torch.Tensor], phonon: bool) -> Any:
    kept = {n: t for n, t in tensors.items() if n.startswith("mimi.") and not n.startswith(UNUSED)}
    config = hf.PocketTTSAudioTokenizerConfig(encoder_config=None, sliding_window=251 if phonon else 250)
    return loaded(hf.PocketTTSAudioTokenizerModel, config, renamed(kept, CODEC))


def loaded(model_class: Any, config: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """Every tensor must have its place, and all but what training needs be given."""
    with no_init_weights():
        model = model_class(config)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    missing = [n for n in missing if "loss_weighting" not in n and "num_updates" not in n]
    if missing or unexpected:
        raise SystemExit(f"transformers: missing {missing}, unexpected {unexpected}")
    return model.eval()


def renamed(tensors: dict[str, torch.Tensor], names: tuple[tuple[str, str], ...]) -> dict[str, torch.Tensor]:
    found = {}
    for name, value in tensors.items():
        for pattern, new in (*names, *LAYER):
            name = re.sub(pattern, new, name)
        if not name.endswith("in_proj.weight"):
            found[name] = value
            continue
        q, k, v = value.chunk(3)
        for part, weight in (("q", halves(q)), ("k", halves(k)), ("v", v)):
            found[name.replace("in_proj", f"{part}_proj")] = weight
    return found


def halves(weight: torch.Tensor) -> torch.Tensor:
    """Rows of RoPE pairs that lie side by side → all first ones of a head, then all second ones."""
    rows, columns = weight.shape
    return weight.view(rows // HEAD, HEAD // 2, 2, columns).transpose(1, 2).reshape(rows, columns)
