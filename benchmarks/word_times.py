"""Word times of several voices against PocketSphinx and the energy of the samples.

    python benchmarks/word_times.py --voices FOLDER [af_heart af_bella am_michael am_adam bf_emma]

FOLDER holds the official voices. Needs the weights, pocketsphinx and soxr (pip install '.[kokoro,speech]').
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import sonant

SPEECH_TESTS = Path(__file__).parent.parent / "tests" / "speech"
sys.path.insert(0, str(SPEECH_TESTS))
import instruments  # noqa: E402
from test_word_times import TEXTS  # noqa: E402

VOICES = ["af_heart", "af_bella", "am_michael", "am_adam", "bf_emma"]


def summary(differences: list[float]) -> str:
    ms = np.abs(differences) * 1e3
    return (
        f"{len(ms)} words, median {np.median(ms):.0f} ms, p90 {np.percentile(ms, 90):.0f}, "
        f"within 100 ms {np.mean(ms <= 100):.1%}, mean {np.mean(differences) * 1e3:+.0f}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("voices", nargs="*", default=VOICES)
    arguments.add_argument("--voices", dest="folder", required=True)
    given = arguments.parse_args()
    synth = sonant.load("kokoro-82m", voices=given.folder)
    everything: list[float] = []
    onsets_ms: list[float] = []
    ends_ms: list[float] = []
    for voice in given.voices:
        found: list[float] = []
        for text in TEXTS:
            speech = synth.speak(text, voice=voice)
            starts = instruments.aligned_starts(speech.samples, speech.sample_rate, [w.text for w in speech.words])
            if starts is not None:
                found += [w.start_s - s for w, s in zip(speech.words, starts, strict=True)]
            onset = instruments.energy_onsets(speech.samples, speech.sample_rate)
            onsets_ms.append(float(np.abs(onset - speech.words[0].start_s).min()) * 1e3)
            end = instruments.energy_end(speech.samples, speech.sample_rate)
            ends_ms.append(abs(speech.words[-1].end_s - end) * 1e3)
        sys.stdout.write(f"{voice}: {summary(found)}\n")
        everything += found
    sys.stdout.write(f"all: {summary(everything)}\n")
    sys.stdout.write(f"first word against energy: median {np.median(onsets_ms):.0f} ms, largest {max(onsets_ms):.0f}\n")
    sys.stdout.write(
        f"last word's end against energy: median {np.median(ends_ms):.0f} ms, largest {max(ends_ms):.0f}\n"
    )


if __name__ == "__main__":
    main()
