"""Record what the official Kokoro package computes: tests/families/kokoro/data/golden_tiny.npz and golden_real.npz.

Needs, in a virtual environment of its own, torch and kokoro 0.9.4, and for the real weights the official files as a
folder (config.json, kokoro-v1_0.pth, voices/af_heart.pt):

    PYTHONPATH=src python tools/record_kokoro_golden.py tiny
    PYTHONPATH=src python tools/record_kokoro_golden.py real FOLDER PHONEMES.json

PHONEMES.json is a list of phoneme strings (tests/families/kokoro/data/benchmark_phonemes.json).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "families" / "kokoro"))
import golden  # noqa: E402 - found through the line above

CONFIG = json.loads((ROOT / "src/sonant/families/kokoro/data/config.json").read_text(encoding="utf-8"))
TINY_IDS = [0, *[(7 * i) % 25 + 16 for i in range(14)], 0]


def official_model(config: dict[str, Any], weights: str | None) -> Any:
    from kokoro.model import KModel

    if weights is None:
        with tempfile.NamedTemporaryFile(suffix=".pth") as empty:
            torch.save({}, empty.name)
            model = KModel(repo_id="hexgrad/Kokoro-82M", config=config, model=empty.name).eval()
        for name, parameter in model.named_parameters():
            parameter.data.copy_(torch.from_numpy(golden.random_tensor(name, tuple(parameter.shape))))
        for module in model.modules():
            if isinstance(module, torch.nn.InstanceNorm1d):  # the published file has no affine here
                module.weight.data.fill_(1)
                module.bias.data.zero_()
        return model
    return KModel(repo_id="hexgrad/Kokoro-82M", config=config, model=weights).eval()


def stages(model: Any, ids: list[int], style: torch.Tensor) -> dict[str, np.ndarray]:
    """Every kept stage of one utterance with the noise off; `own_audio` is made with the model's own spectrum."""
    kept: dict[str, torch.Tensor] = {}

    def keep(name: str) -> Any:
        return lambda module, given, result: kept.__setitem__(name, result[0] if isinstance(result, tuple) else result)

    hooks = [
        module.register_forward_hook(keep(name))
        for name, module in (
            ("dur_enc", model.predictor.text_encoder),
            ("F0", model.predictor.F0_proj),
            ("N", model.predictor.N_proj),
            ("text_encoder", model.text_encoder),
        )
    ]
    own, frames = run(model, ids, style, kept, inject=False)
    injected, _ = run(model, ids, style, kept, inject=True)
    for hook in hooks:
        hook.remove()
    arrays = {name: tensor[0].numpy() for name, tensor in kept.items()}
    arrays["text_encoder"], arrays["magnitude"] = arrays["text_encoder"].T, arrays["magnitude"].T
    return {
        **arrays,
        "F0": arrays["F0"].ravel(),
        "N": arrays["N"].ravel(),
        "audio": injected,
        "own_audio": own,
        "frames": frames,
    }


def run(model: Any, ids: list[int], style: torch.Tensor, kept: dict[str, torch.Tensor], *, inject: bool) -> Any:
    """(audio, frames) without noise, with the model's own spectrum or the injected one."""
    stft = model.decoder.generator.stft
    transform, noise = stft.transform, torch.randn_like

    def spectrum(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        magnitude, angle = transform(x)
        kept["magnitude"] = magnitude
        if not inject:
            return magnitude, angle
        given = torch.from_numpy(golden.injected_spectrum(magnitude.shape[-1]).T[None].copy())
        return given[:, : golden.BINS], given[:, golden.BINS :]

    torch.randn_like, stft.transform = torch.zeros_like, spectrum
    try:
        with torch.no_grad():
            audio, frames = model.forward_with_tokens(torch.tensor([ids]), style, 1.0)
    finally:
        torch.randn_like, stft.transform = noise, transform
    return audio.numpy().ravel(), frames.numpy()


def kept_form(arrays: dict[str, np.ndarray], prefix: str = "") -> dict[str, np.ndarray]:
    out = {f"{prefix}frames": arrays["frames"].astype(np.int16)}
    for name in golden.STAGES:
        out |= {prefix + key: value for key, value in golden.sample(name, np.ascontiguousarray(arrays[name])).items()}
    return out


def main(mode: str, *arguments: str) -> None:
    golden.DATA.mkdir(exist_ok=True)
    if mode == "tiny":
        model = official_model(golden.tiny_config(CONFIG), None)
        shapes = {name: list(p.shape) for name, p in model.named_parameters()}
        (golden.DATA / "tiny_shapes.json").write_text(json.dumps(shapes, indent=0) + "\n", encoding="utf-8")
        style = torch.from_numpy(golden.random_tensor("style", (1, 256))) * 3
        recorded = {"ids": np.array(TINY_IDS), **kept_form(stages(model, TINY_IDS, style))}
    else:
        folder, phonemes = Path(arguments[0]), json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
        model = official_model(CONFIG, str(folder / "kokoro-v1_0.pth"))
        voice = torch.load(folder / "voices" / "af_heart.pt", weights_only=True)
        voice = voice.half().float()  # the packaged voice is f16
        recorded = {}
        for i, text in enumerate(phonemes):
            ids = [0, *(CONFIG["vocab"][c] for c in text), 0]
            arrays = stages(model, ids, voice[len(text) - 1])
            recorded |= kept_form(arrays, f"{i}/")
            if i < golden.LOGMEL_TEXTS:
                recorded[f"{i}/log_mel"] = golden.log_mel_db(arrays["own_audio"]).astype(np.float16)
    np.savez_compressed(golden.DATA / f"golden_{mode}.npz", **recorded)
    sys.stdout.write(f"golden_{mode}.npz: {len(recorded)} arrays\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
