"""sonant's audio against the official package's on the same real weights: mean |Δ log-mel| in dB, durations, each
precision.

    PYTHONPATH=src python benchmarks/log_mel.py FOLDER [--texts 11] [--precisions f32 f16 bf16]

Needs torch and kokoro 0.9.4 beside sonant. FOLDER holds config.json, kokoro-v1_0.pth and voices/af_heart.pt.
`injected`: both decoders get the official harmonic spectrum; `own`: each makes its own, noise included, with different
generators.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "families" / "kokoro")]
import golden  # noqa: E402

from sonant.engine.load import load  # noqa: E402

PHONEMES = json.loads((golden.DATA / "benchmark_phonemes.json").read_text(encoding="utf-8"))


def official(model: Any, phonemes: str, style: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(audio, frames, harmonic spectrum [120T+1, 22])"""
    stft, kept = model.decoder.generator.stft, {}
    transform = stft.transform

    def keep(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        magnitude, angle = transform(x)
        kept["spectrum"] = torch.cat([magnitude, angle], dim=1)[0].T.numpy()
        return magnitude, angle

    stft.transform = keep
    torch.manual_seed(0)
    with torch.no_grad():
        said = model(phonemes, style, 1.0, return_output=True)
    stft.transform = transform
    return said.audio.numpy(), said.pred_dur.numpy(), np.ascontiguousarray(kept["spectrum"])


class Injected:
    """Stands for the source Program and gives back a spectrum."""

    def __init__(self, spectrum: np.ndarray) -> None:
        self.spectrum = spectrum[None]

    def run(self, inputs: Any, *, cancel: Any = None) -> list[np.ndarray]:
        return [self.spectrum]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--texts", type=int, default=len(PHONEMES))
    arguments.add_argument("--precisions", nargs="+", default=["f32", "f16", "bf16"])
    given = arguments.parse_args()
    model = torch_model(given.folder)
    voice = torch.load(given.folder / "voices" / "af_heart.pt", weights_only=True).half().float()
    drivers = {p: load("kokoro-82m", weights=given.folder, precision=p)._driver for p in given.precisions}
    seed, pack = np.zeros((1, 2), np.int32), next(iter(drivers.values()))._catalog.get("af_heart")
    differences: dict[str, list[float]] = {}
    equal = 0
    for phonemes in PHONEMES[: given.texts]:
        audio, frames, spectrum = official(model, phonemes, voice[len(phonemes) - 1])
        for precision, driver in drivers.items():
            own, found = driver.speak_phonemes(phonemes, pack, 1.0, seed)
            source, driver._source = driver._source, Injected(spectrum)
            injected, _ = driver.speak_phonemes(phonemes, pack, 1.0, seed)
            driver._source = source
            equal += int(np.array_equal(found, frames))
            wanted = golden.log_mel_db(audio)
            for kind, samples in (("injected", injected), ("own", own)):
                difference = np.abs(golden.log_mel_db(samples) - wanted).mean()
                differences.setdefault(f"{precision} {kind}", []).append(float(difference))
    sys.stdout.write(f"durations equal in {equal} of {len(drivers) * given.texts} cases\n")
    for name, values in differences.items():
        sys.stdout.write(f"{name:<14} mean |Δ log-mel| {np.mean(values):.4f} dB, largest {max(values):.4f}\n")


def torch_model(folder: Path) -> Any:
    from kokoro.model import KModel

    return KModel(
        repo_id="hexgrad/Kokoro-82M", config=str(folder / "config.json"), model=str(folder / "kokoro-v1_0.pth")
    ).eval()


if __name__ == "__main__":
    main()
