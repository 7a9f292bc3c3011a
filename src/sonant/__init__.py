"""sonant: text to speech on your own machine, with the start and end time of every word.

import sonant
speech = sonant.load("kokoro-82m").speak("Hello there.")
speech.save("hello.wav")
speech.words  # (WordTiming(text='Hello', start_s=…, end_s=…, …), …)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sonant.errors import (
    BackendError,
    Cancelled,
    CheckpointError,
    InputError,
    MissingExtra,
    SonantError,
    TextError,
    UnknownName,
)

if TYPE_CHECKING:
    from sonant.engine.load import load
    from sonant.engine.session import Session
    from sonant.engine.synthesizer import Synthesizer
    from sonant.types import AudioChunk, PhonemeTiming, Speech, VoiceInfo, WordTiming

__version__ = "0.1.0"
__all__ = [
    "AudioChunk",
    "BackendError",
    "Cancelled",
    "CheckpointError",
    "InputError",
    "MissingExtra",
    "PhonemeTiming",
    "Session",
    "SonantError",
    "Speech",
    "Synthesizer",
    "TextError",
    "UnknownName",
    "VoiceInfo",
    "WordTiming",
    "load",
]

# Everything that needs numpy is imported when first asked for, so that `import sonant` costs nothing.
_HOMES = {
    "load": "sonant.engine.load",
    "Session": "sonant.engine.session",
    "Synthesizer": "sonant.engine.synthesizer",
    "AudioChunk": "sonant.types",
    "PhonemeTiming": "sonant.types",
    "Speech": "sonant.types",
    "VoiceInfo": "sonant.types",
    "WordTiming": "sonant.types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sonant' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
