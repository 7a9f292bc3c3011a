"""Record what the official Phonon packages compute: tests/families/phonon/data/golden_{ptts,port}.npz.

Needs, in a virtual environment of its own, torch, ptts 0.4.2, tokenizers and transformers 5.23:

    PYTHONPATH=src python tools/record_phonon_golden.py

Every variant is a tiny model with the random weights of tests/families/latent/latent_golden.py. ptts speaks at
temperature 0, where there is no noise; in the port the noise is sonant's own numbers, put in the place of torch's.
"""

from __future__ import annotations

import json
import os
import string
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "families" / "latent"))
sys.path.insert(0, str(ROOT / "tests" / "families" / "phonon"))

import latent_golden as golden  # noqa: E402 - found through the lines above
import numpy as np  # noqa: E402
import phonon_models as models  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
PIECES = 4000


def tokenizer() -> Any:
    """A Unigram tokenizer of 4000 pieces: bytes, letters, and made-up ones to fill it."""
    from tokenizers import Tokenizer, decoders, normalizers
    from tokenizers import models as kinds

    pieces = ["<unk>", "<s>", "</s>", "<pad>", *(f"<0x{i:02X}>" for i in range(256)), "▁"]
    for c in string.ascii_letters + string.digits + ".,!?'-:;()":
        pieces += [c, f"▁{c}"]
    pieces += [f"▁zz{i}" for i in range(PIECES - len(pieces))]
    scores = [0.0 if i < 4 else -30.0 if p.startswith("<0x") else 2.0 * len(p.replace("▁", "")) - 12.0
              for i, p in enumerate(pieces)]
    made = Tokenizer(kinds.Unigram(list(zip(pieces, scores, strict=True)), unk_id=0, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Replace(" ", "▁"), normalizers.Prepend("▁")])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)])
    return made


def waveforms() -> dict[str, np.ndarray]:
    """Of each variant ptts's samples, of each sentence its ids, of each (sentence, threshold) its frames."""
    import ptts

    kept: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in models.VARIANTS:
            folder = models.write(Path(temporary) / name, models.shapes(), models.config(name))
            tokenizer().save(str(folder / "tokenizer.json"))
            conditions = {"duration_delta": models.DELTAS[name]} if name in models.DELTAS else None

            def speaker(threshold: float, *, at: Path = folder, given: Any = conditions,
                        guidance: float | None = models.GUIDANCE.get(name)) -> Any:
                engine = ptts.TTS(str(at), device="cpu", lang="none", quant="f32", eos_threshold=threshold,
                                  conditions=given, cfg_coef=guidance)
                engine.add_voice_from_embedding("v", models.voice())
                return engine

            samples = speaker(1e9).synth(models.SENTENCES[1], voice="v", temperature=0.0)
            kept |= golden.sample(f"samples.{name}", samples[: 1920 * models.LENGTHS.get(name, models.SHORT)])
            if name == "plain":
                counts = [[len(speaker(t).synth(s, voice="v", temperature=0.0)) // 1920 for t in models.THRESHOLDS]
                          for s in models.SENTENCES]
                kept["counts"] = np.array(counts)
    for i, sentence in enumerate(models.SENTENCES):
        kept[f"ids.{i}"] = np.array(tokenizer().encode(sentence).ids, np.int16)
    return kept


@contextmanager
def our_noise(numbers: np.ndarray) -> Iterator[None]:
    own, left = torch.randn, iter(torch.from_numpy(numbers))
    torch.randn = lambda *a, **k: next(left)[None].clone()
    try:
        yield
    finally:
        torch.randn = own


def port() -> dict[str, np.ndarray]:
    """The transformers models: hidden states and attention of the frames, latents, samples."""
    from transformers import (
        GradiumPhononTTSConfig,
        GradiumPhononTTSForConditionalGeneration,
        PocketTTSAudioTokenizerConfig,
        PocketTTSAudioTokenizerModel,
    )

    lm = GradiumPhononTTSForConditionalGeneration(
        GradiumPhononTTSConfig(**models.PORT, attn_implementation="eager")).eval()
    coder = PocketTTSAudioTokenizerModel(PocketTTSAudioTokenizerConfig(**models.PORT_CODEC, encoder_config=None)).eval()
    kept = {}
    for key, module in (("shapes", lm), ("codec_shapes", coder)):
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(golden.random_tensor(name, tuple(tensor.shape))))
        kept[key] = _text({name: list(t.shape) for name, t in module.state_dict().items()})
        kept[key.replace("shapes", "config")] = _text(module.config.to_dict())
    clip = golden.random_array("clip", (1, models.VOICE, models.PORT["audio_prompt_dim"]))
    ids = [[*[lm.config.audio_prompt_token_id] * models.VOICE, *models.TEXT, lm.config.audio_bos_token_id]]
    with our_noise(golden.noise(models.SEED, models.FRAMES, 8)), torch.no_grad():
        out = lm.generate(input_ids=torch.tensor(ids), audio_prompt_latents=torch.from_numpy(clip), frames_after_eos=1,
                          max_new_tokens=models.FRAMES, eos_threshold=1e9, do_sample=True,
                          temperature=models.TEMPERATURE, return_dict_in_generate=True, output_scores=True,
                          output_hidden_states=True, output_attentions=True)
        latents = golden.random_array("codec latents", (1, models.CODEC_FRAMES, 8))
        samples = coder.decode(torch.from_numpy(latents)).audio_values[0, 0].numpy()
    place = slice(models.VOICE, models.VOICE + len(models.TEXT))
    heard = [[step[layer][0, head, -1, place] for layer, head in models.HEADS] for step in out.attentions]
    arrays = {"latents": out.audio_latents[0].numpy(), "samples": samples,
              "heard": np.array([[(w / w.sum()).numpy() for w in frame] for frame in heard]),
              "eos": np.array([float(s) for s in out.scores])}
    for i, h in enumerate(out.hidden_states[1][1:]):  # of the second frame: that step has one position
        arrays[f"hidden.{i}"] = h[0].numpy()
    return kept | {k: v for key, array in arrays.items() for k, v in golden.sample(key, array).items()}


def _text(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def main() -> None:
    models.DATA.mkdir(exist_ok=True)
    for name, record in (("ptts", waveforms), ("port", port)):
        recorded = record()
        np.savez_compressed(models.DATA / f"golden_{name}.npz", **recorded)
        sys.stdout.write(f"golden_{name}.npz: {len(recorded)} arrays\n")


if __name__ == "__main__":
    main()
