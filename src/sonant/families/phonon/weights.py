"""Phonon's tensors and checkpoints: Gradium's model.safetensors, and the transformers port of it."""

from __future__ import annotations

from sonant.checkpoint.name_map import TensorSpec
from sonant.families.latent.source import Layout
from sonant.families.latent.weights import Specs, decoder_specs, lm_specs
from sonant.families.phonon.config import PhononConfig, parse

PADDING = "flow_lm.conditioner.learnt_padding"
"""[1,1,D], a row in the place of the text: in the null branch of guidance where that is not empty."""


def phonon_tensors(config: PhononConfig, names: frozenset[str] = frozenset()) -> Specs:
    """Every tensor by its name, in the layout of the checkpoints but for convolutions."""
    width, speakers, delta = config.lm.width, config.speakers, config.delta
    out = {
        "flow_lm.conditioner.embed.weight": TensorSpec((config.text_rows, width)),
        "flow_lm.speaker_proj_weight": TensorSpec((width, config.voice_width)),
        **lm_specs(config.lm, config.flow),
        **decoder_specs(config.codec),
    }
    if speakers is not None:
        out["flow_lm.conditioner.num_speakers.embed.weight"] = TensorSpec((speakers.rows, speakers.width))
        out["flow_lm.conditioner.num_speakers.output_proj.weight"] = TensorSpec((width, speakers.width))
    if delta is not None:
        out["flow_lm.conditioner.duration_delta.output_proj.weight"] = TensorSpec((width, delta.width))
    return out | ({PADDING: TensorSpec((1, 1, width))} if PADDING in names else {})


LAYOUT = Layout(
    format="phonon-1",
    parse=parse,
    lm=lambda config: config.lm,
    flow=lambda config: config.flow,
    codec=lambda config: config.codec,
    specs=phonon_tensors,
)
