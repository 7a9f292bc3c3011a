"""Record what the official Pocket TTS packages compute: tests/families/pocket/data/golden_*.npz.

Needs, in a virtual environment of its own, torch, pocket_tts 4.0.1 and transformers 5.23:

    PYTHONPATH=src python tools/record_pocket_golden.py

Every variant is a tiny model of one kind of release, with the random weights of tests/families/latent/latent_golden.py;
noise is sonant's own numbers, put in the place of torch's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "families" / "latent"))
sys.path.insert(0, str(ROOT / "tests" / "families" / "pocket"))

import latent_golden as golden  # noqa: E402 - found through the lines above
import numpy as np  # noqa: E402
import pocket_variants as variants  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


def official(configuration: dict[str, Any], steps: int = 1) -> Any:
    """pocket_tts's model of a configuration, with our random weights."""
    import pocket_tts.modules.text_conditioner as conditioner

    conditioner.build_tokenizer = lambda n_bins, path, kind="sentencepiece": None
    from pocket_tts.models.mimi import build_mimi
    from pocket_tts.models.tts_model import TTSModel, stamp_state_names
    from pocket_tts.utils.config import Config

    config = Config(**configuration)
    model = TTSModel._from_pydantic_config(config, variants.TEMPERATURE, steps, None, config.default_eos_threshold,
                                           origin=None)
    latent = config.mimi.inner_dim or config.mimi.seanet.dimension
    model.flow_lm.speaker_proj_weight = torch.nn.Parameter(torch.zeros(config.flow_lm.transformer.d_model, latent))
    model.mimi = build_mimi(config.mimi)
    stamp_state_names(model.eval())
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for key, tensor in model.state_dict().items():
        tensor.copy_(torch.from_numpy(golden.random_tensor(key, tuple(tensor.shape))))
    return model


@contextmanager
def our_noise(module: Any, attribute: str, replacement: Any) -> Iterator[None]:
    own = getattr(module, attribute)
    setattr(module, attribute, replacement)
    try:
        yield
    finally:
        setattr(module, attribute, own)


def frames(model: Any, state: Any, draws: np.ndarray, logits: list[float]) -> np.ndarray:
    """[N, L]: the latents of N steps, each fed the one before; EOS logits are appended to `logits`."""
    numbers = iter(torch.from_numpy(draws))
    hook = model.flow_lm.out_eos.register_forward_hook(lambda m, given, result: logits.append(float(result)))
    x, out = torch.full((1, 1, draws.shape[1]), float("nan")), []
    with our_noise(torch.nn.init, "normal_", lambda t, mean, std: t.copy_(next(numbers)[None] * std)):
        for _ in range(len(draws)):
            x, _ = model._run_flow_lm_and_increment_step(model_state=state, backbone_input_latents=x)
            out.append(x[0, 0].numpy())
    hook.remove()
    return np.stack(out)


def language_model(model: Any) -> dict[str, np.ndarray]:
    """Hidden states of the first frame by layer, latents, EOS logits, and the keys and values of the voice."""
    from pocket_tts.modules.stateful_module import init_states

    lm, hidden = model.flow_lm, {}
    clip = golden.random_array("clip", (1, variants.VOICE, lm.speaker_proj_weight.shape[1]))
    voice = torch.nn.functional.linear(torch.from_numpy(clip), lm.speaker_proj_weight)
    if lm.insert_bos_before_voice:
        voice = torch.cat([lm.bos_before_voice, voice], dim=1)
    state = init_states(lm, 1, 96)
    model._run_flow_lm_and_increment_step(model_state=state, audio_conditioning=voice)
    cache = state["transformer.layers.1.self_attn"]["cache"][:, 0, : voice.shape[1]].flatten(2).numpy().copy()
    model._run_flow_lm_and_increment_step(model_state=state, text_tokens=torch.tensor([variants.TEXT]))

    def keep(index: int) -> Any:
        def hook(module: Any, given: Any, result: torch.Tensor) -> None:
            hidden.setdefault(f"hidden.{index}", result[0].numpy().copy())

        return hook

    hooks = [layer.register_forward_hook(keep(i)) for i, layer in enumerate(lm.transformer.layers)]
    logits: list[float] = []
    latents = frames(model, state, golden.noise(variants.SEED, variants.FRAMES, lm.ldim), logits)
    for hook in hooks:
        hook.remove()
    return {**hidden, "latents": latents, "eos": np.array(logits[-variants.FRAMES :]), "voice_cache": cache}


def codec(model: Any) -> dict[str, np.ndarray]:
    """Samples of random latents, and latents of random samples."""
    from pocket_tts.modules.stateful_module import init_states

    latents = golden.random_array("codec latents", (1, variants.CODEC_FRAMES, model.config.mimi.quantizer.dimension))
    samples = golden.random_array("codec samples", (1, 1, 1920 * variants.CODEC_FRAMES), 0.1)
    state = init_states(model.mimi, 1, 16 * variants.CODEC_FRAMES)
    return {"samples": model.mimi.decode_from_latent(torch.from_numpy(latents), state)[0, 0].numpy(),
            "clip_latents": model.mimi.encode_to_latent(torch.from_numpy(samples))[0].numpy()}


def frame_counts(model: Any) -> np.ndarray:
    """Kept frames for each (threshold, frames after EOS, cap) of variants.STOPS, by the package's own loop."""
    import queue
    import threading

    from pocket_tts.modules.stateful_module import init_states

    found = []
    for threshold, after, cap in variants.STOPS:
        model.eos_threshold = threshold
        state, latents = init_states(model.flow_lm, 1, 128), queue.Queue()
        model._run_flow_lm_and_increment_step(model_state=state, text_tokens=torch.tensor([variants.TEXT]))
        numbers = iter(torch.from_numpy(golden.noise(variants.SEED, cap, model.flow_lm.ldim)))
        with our_noise(torch.nn.init, "normal_", lambda t, mean, std, n=numbers: t.copy_(next(n)[None] * std)):
            model._autoregressive_generation(state, cap, after, latents, threading.Event())
        found.append(latents.qsize() - 1)  # the last item says that there are no more
    return np.array(found)


def pocket(name: str) -> dict[str, np.ndarray]:
    model = official(variants.config(name, official=True), variants.STEPS.get(name, 1))
    kept = {"shapes": _text({key: list(t.shape) for key, t in model.state_dict().items()})}
    with torch.no_grad():
        arrays = {**language_model(model), **codec(model)}
        if name == "large":
            kept["counts"] = frame_counts(model)
            arrays |= prepared_clip()
    return kept | {k: v for key, array in arrays.items() for k, v in golden.sample(key, array).items()}


def prepared_clip() -> dict[str, np.ndarray]:
    from pocket_tts.data.audio_utils import end_on_pause

    return {"prepared": end_on_pause(torch.from_numpy(variants.clip())[None], 24_000)[0].numpy()}


def port() -> dict[str, np.ndarray]:
    """The transformers models: hidden states and attention of the frames, latents, codec both ways."""
    from transformers import (
        PocketTTSAudioTokenizerConfig,
        PocketTTSAudioTokenizerModel,
        PocketTTSConfig,
        PocketTTSForConditionalGeneration,
    )

    lm = PocketTTSForConditionalGeneration(PocketTTSConfig(**variants.PORT, attn_implementation="eager")).eval()
    coder = PocketTTSAudioTokenizerModel(PocketTTSAudioTokenizerConfig(**variants.PORT_CODEC)).eval()
    kept = {}
    for key, model in (("shapes", lm), ("codec_shapes", coder)):
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(golden.random_tensor(name, tuple(tensor.shape))))
        kept[key] = _text({name: list(t.shape) for name, t in model.state_dict().items()})
        kept[key.replace("shapes", "config")] = _text(model.config.to_dict())
    clip = golden.random_array("clip", (1, variants.VOICE, variants.PORT["latent_dim"]))
    ids = [[lm.config.audio_prompt_bos_token_id, *[lm.config.audio_prompt_token_id] * variants.VOICE, *variants.TEXT,
            lm.config.audio_bos_token_id]]
    numbers = iter(torch.from_numpy(golden.noise(variants.SEED, variants.FRAMES, variants.PORT["latent_dim"])))
    with our_noise(torch, "randn", lambda *a, **k: next(numbers)[None].clone()), torch.no_grad():
        out = lm.generate(input_ids=torch.tensor(ids), audio_prompt_latents=torch.from_numpy(clip), frames_after_eos=1,
                          max_new_tokens=variants.FRAMES, eos_threshold=1e9, do_sample=True,
                          temperature=variants.TEMPERATURE, return_dict_in_generate=True, output_scores=True,
                          output_hidden_states=True, output_attentions=True)
    first = 1 + variants.VOICE
    weights = [[step[layer][0, head, -1, first : first + len(variants.TEXT)] for layer, head in variants.PORT_HEADS]
               for step in out.attentions]
    heard = np.array([[(w / w.sum()).numpy() for w in frame] for frame in weights])
    arrays = {"latents": out.audio_latents[0].numpy(), "heard": heard,
              "eos": np.array([float(s) for s in out.scores])}
    for i, h in enumerate(out.hidden_states[1][1:]):  # of the second frame: that step has one position
        arrays[f"hidden.{i}"] = h[0].numpy()
    latents = golden.random_array("codec latents", (1, variants.CODEC_FRAMES, variants.PORT_CODEC["latent_dim"]))
    samples = golden.random_array("codec samples", (1, 1, 1920 * variants.CODEC_FRAMES), 0.1)
    with torch.no_grad():
        arrays["samples"] = coder.decode(torch.from_numpy(latents)).audio_values[0, 0].numpy()
        arrays["clip_latents"] = coder.encode(torch.from_numpy(samples)).latents[0].numpy()
    return kept | {k: v for key, array in arrays.items() for k, v in golden.sample(key, array).items()}


def _text(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def main() -> None:
    variants.DATA.mkdir(exist_ok=True)
    for name in (*variants.CHANGES, "port"):
        recorded = port() if name == "port" else pocket(name)
        np.savez_compressed(variants.DATA / f"golden_{name}.npz", **recorded)
        sys.stdout.write(f"golden_{name}.npz: {len(recorded)} arrays\n")


if __name__ == "__main__":
    main()
