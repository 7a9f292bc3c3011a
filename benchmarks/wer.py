"""Word error rate of sonant against the official package on the same phonemes, weights and voice, heard by Whisper.

    python benchmarks/wer.py speak PROSE.jsonl --weights FOLDER --out FOLDER2          (where sonant is installed)
    python benchmarks/wer.py official PROSE.jsonl --weights FOLDER --out FOLDER2       (where torch and kokoro are)
    python benchmarks/wer.py hear PROSE.jsonl --out FOLDER2 [--model WHISPER_FOLDER]   (where faster-whisper is)

PROSE.jsonl has lines {"text", "phonemes"}. `hear` prints the word error rate of each engine's audio and their
difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "speech"), str(ROOT / "src")]
SAMPLE_RATE = 24_000


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def speak(prose: Path, weights: Path, out: Path, precision: str, engine: str) -> None:
    from sonant.engine.load import load

    driver = load(
        "kokoro-82m", weights=weights / "kokoro-v1_0.pth", cache=weights / "sonant-cache", precision=precision
    )._driver
    voice = driver._catalog.get("af_heart")
    for i, line in enumerate(lines(prose)):
        samples, _ = driver.speak_phonemes(line["phonemes"], voice, 1.0, np.array([[0, i]], np.int32))
        np.save(out / f"{engine}-{i:03d}.npy", samples)


def official(prose: Path, weights: Path, out: Path) -> None:
    import torch
    from kokoro.model import KModel

    model = KModel(
        repo_id="hexgrad/Kokoro-82M", config=str(weights / "config.json"), model=str(weights / "kokoro-v1_0.pth")
    ).eval()
    # The voice that sonant ships is f16; the same numbers for both.
    voice = torch.from_numpy(np.fromfile(weights / "af_heart.bin", "<f4").astype(np.float16).astype(np.float32))
    for i, line in enumerate(lines(prose)):
        torch.manual_seed(i)
        style = voice.reshape(510, 256)[len(line["phonemes"]) - 1][None]
        np.save(out / f"official-{i:03d}.npy", model(line["phonemes"], style, 1.0).numpy())


def hear(prose: Path, out: Path, model: Path | None) -> None:
    from recogniser import Recogniser

    recogniser, texts = Recogniser(model), [line["text"] for line in lines(prose)]
    engines = sorted({path.name.split("-")[0] for path in out.glob("*-000.npy")})
    for engine in engines:
        heard = [recogniser.hear(np.load(out / f"{engine}-{i:03d}.npy"), SAMPLE_RATE) for i in range(len(texts))]
        (out / f"{engine}.heard.json").write_text(json.dumps(heard, indent=0), encoding="utf-8")
        sys.stdout.write(f"{engine}: {recogniser.errors(texts, heard)}\n")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["speak", "official", "hear"])
    arguments.add_argument("prose", type=Path)
    arguments.add_argument("--weights", type=Path)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--precision", default="f32")
    arguments.add_argument("--model", type=Path)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "speak":
        speak(given.prose, given.weights, given.out, given.precision, "sonant" + given.precision.replace("f32", ""))
    elif given.what == "official":
        official(given.prose, given.weights, given.out)
    else:
        hear(given.prose, given.out, given.model)


if __name__ == "__main__":
    main()
