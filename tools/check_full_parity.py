"""Phonon and Pocket TTS at their released sizes, random weights, against the official packages: prints the differences.

Needs the virtual environment of tools/record_phonon_golden.py, and the native module built for its Python or --numpy:

    PYTHONPATH=src python tools/check_full_parity.py phonon [--numpy]
    PYTHONPATH=src python tools/check_full_parity.py pocket english english_7m_2026-10 … [--numpy]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import record_phonon_golden as of_phonon
import record_pocket_golden as of_pocket
import torch
from latent_golden import random_array, random_tensor
from phonon_models import FULL, SENTENCES, shapes, write
from pocket_variants import CODEC_FRAMES, FRAMES, SEED, TEMPERATURE, TEXT, VOICE

from sonant.backends.backend import CancelFlag
from sonant.checkpoint.safetensors import write_safetensors
from sonant.families.latent.frames import ChunkRequest, LatentFrames, VoicePrompt
from sonant.families.latent.source import folder_of
from sonant.families.latent.stated import Stated
from sonant.families.phonon import frames as phonon_frames
from sonant.families.phonon.programs import SIZES
from sonant.families.phonon.weights import LAYOUT as PHONON
from sonant.families.pocket import frames as pocket_frames
from sonant.families.pocket import model as pocket_model
from sonant.families.pocket.config import released
from sonant.families.pocket.weights import LAYOUT as POCKET
from sonant.families.pocket.weights import SPEAKER

WAVE_FRAMES = 30
"""Frames of Phonon's waveform; random weights double a rounding error every few frames."""


def backend() -> Any:
    if "--numpy" in sys.argv:
        from sonant.backends.numpy import NumpyBackend

        return NumpyBackend()
    from sonant.backends.native import NativeBackend

    return NativeBackend(threads=2)


def tell(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    sys.stdout.write(f"  {name}: largest difference {np.abs(found - wanted).max():.2g} of {np.abs(wanted).max():.3g}\n")


def phonon() -> None:
    import ptts

    stated = json.loads(SIZES.read_text(encoding="utf-8"))
    stated["conditioners"][0]["lut"]["tokenizer"] = "noop"
    stated["fuser"] = {"sum": ["num_speakers", "duration_delta"], "prepend": ["speaker_wavs", "transcript_in_segment"]}
    voice = random_array("voice", (125, 512), 0.3)
    with tempfile.TemporaryDirectory() as temporary:
        folder = write(Path(temporary), shapes(FULL), stated)
        of_phonon.tokenizer().save(str(folder / "tokenizer.json"))
        engine = ptts.TTS(str(folder), device="cpu", lang="none", quant="f32", eos_threshold=1e9)
        engine.add_voice_from_embedding("v", voice)
        wanted = engine.synth(SENTENCES[1], voice="v", temperature=0.0)[: 1920 * WAVE_FRAMES]
        config, weights = PHONON.read(*folder_of(folder))
    model = phonon_frames.PhononFrames(phonon_frames.load_networks(config, weights, backend()), 1)
    ids = np.array(of_phonon.tokenizer().encode(SENTENCES[1]).ids)
    request = phonon_frames.PhononRequest(
        voice=VoicePrompt("v", voice), ids=ids, seed=(0, 0), temperature=0.0, eos_threshold=1e9, frames_after_eos=1,
        condition=phonon_frames.condition(config, weights, 0.0))
    samples = spoken(model, request, WAVE_FRAMES)
    sys.stdout.write(f"phonon-31m: {len(weights)} tensors\n")
    for frames in (4, 10, WAVE_FRAMES):
        tell(f"samples of {frames} frames", samples[: 1920 * frames], wanted[: 1920 * frames])


def spoken(model: LatentFrames, request: Any, frames: int) -> np.ndarray:
    stream = model.begin(0, request, CancelFlag())
    for _ in range(frames):
        model.step([stream])
    return np.concatenate([model.decode([stream], 1)[0] for _ in range(frames)])


def pocket(name: str) -> None:
    configuration = dict(released(name).model)
    official_form = of_pocket.variants._without_nulls(configuration)
    official_form["flow_lm"]["lookup_table"]["tokenizer_path"] = "none"
    official = of_pocket.official(official_form)
    with torch.no_grad():
        wanted = {**of_pocket.language_model(official), **of_pocket.codec(official)}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.safetensors"
        write_safetensors(path, {n: random_tensor(n, tuple(t.shape)) for n, t in official.state_dict().items()})
        config, weights = POCKET.read(path, Stated(configuration))
    networks = pocket_frames.load_networks(config, weights, backend())
    clip = random_array("clip", (1, VOICE, config.encoder.latent))[0] @ weights[SPEAKER].T
    rows = np.concatenate([weights["flow_lm.bos_before_voice"][0], clip]) if config.bos_before_voice else clip
    request = ChunkRequest(voice=VoicePrompt("clip", rows), ids=np.array(TEXT), seed=SEED,
                                         temperature=TEMPERATURE, eos_threshold=1e9, frames_after_eos=1)
    model = LatentFrames(networks, 1)
    stream = model.begin(0, request, CancelFlag())
    for _ in range(FRAMES):
        model.step([stream])
    sys.stdout.write(f"pocket {name}: {len(weights)} tensors\n")
    tell(f"latents of {FRAMES} frames", np.stack(stream.latents), wanted["latents"])
    latents = random_array("codec latents", (1, CODEC_FRAMES, config.decoder.latent))[0]
    stream.latents, stream.decoded = list((latents - networks.latent_mean) / networks.latent_std), 0
    tell("samples", np.concatenate([model.decode([stream], 4)[0] for _ in range(CODEC_FRAMES // 4)]), wanted["samples"])
    encoder = backend().load(pocket_model.encoder_program(config), weights)
    samples = random_array("codec samples", (1, 1, 1920 * CODEC_FRAMES), 0.1)[0, 0]
    tell("encoded latents", pocket_frames.encode_voice(encoder, samples, config), wanted["clip_latents"])


def main() -> None:
    what, *names = [a for a in sys.argv[1:] if not a.startswith("--")]
    if what == "phonon":
        phonon()
    for name in names:
        pocket(name)


if __name__ == "__main__":
    main()
