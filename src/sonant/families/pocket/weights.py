"""Pocket TTS's tensors and checkpoints: the model.safetensors of Kyutai, and the transformers port of it."""

from __future__ import annotations

from sonant.checkpoint.name_map import TensorSpec
from sonant.families.latent.source import Layout
from sonant.families.latent.weights import Specs, decoder_specs, encoder_specs, lm_specs
from sonant.families.pocket.config import PocketConfig, parse

SPEAKER = "flow_lm.speaker_proj_weight"
"""[D, V]: from latents of a recording to voice rows. Without it, and the encoder, a checkpoint cannot clone."""


def pocket_tensors(config: PocketConfig, names: frozenset[str] = frozenset()) -> Specs:
    """Every tensor by its name, in the layout of the checkpoints but for convolutions."""
    width, rank = config.lm.width, config.text_rank
    out = {
        "flow_lm.conditioner.embed.weight": TensorSpec((config.text_rows, rank or width)),
        **lm_specs(config.lm, config.flow),
        **decoder_specs(config.decoder),
    }
    if rank is not None:
        out["flow_lm.conditioner.proj.weight"] = TensorSpec((width, rank))
    if config.z_width is not None:
        out["flow_lm.z_proj.weight"] = TensorSpec((config.z_width, width))
    if config.bos_row is None and config.bos_before_voice:
        out["flow_lm.bos_before_voice"] = TensorSpec((1, 1, width))
    if can_clone(names):
        out[SPEAKER] = TensorSpec((width, config.encoder.latent))
        out |= encoder_specs(config.encoder)
    return out


def can_clone(names: frozenset[str]) -> bool:
    """Whether a checkpoint of these tensors has what turns a recording into a voice."""
    return SPEAKER in names and any(name.startswith("mimi.encoder.") for name in names)


LAYOUT = Layout(
    format="pocket-1",
    parse=parse,
    lm=lambda config: config.lm,
    flow=lambda config: config.flow,
    codec=lambda config: config.decoder,
    specs=pocket_tensors,
)
