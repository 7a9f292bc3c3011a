"""Playing samples as they come, through sounddevice (extra `play`)."""

from __future__ import annotations

import numpy as np

from sonant.errors import BackendError, MissingExtra

_SLICE_S = 0.1
"""Handed to the device at once, so that an interruption is noticed soon."""


class Player:
    """The default output device. Raises MissingExtra (no sounddevice or PortAudio), BackendError (no device)."""

    def __init__(self, sample_rate: int) -> None:
        try:
            import sounddevice
        except ImportError as e:
            raise MissingExtra("playing", "play") from e
        except OSError as e:
            raise BackendError(
                f"playing needs the PortAudio library ({e}); on Debian: apt install libportaudio2"
            ) from e
        self._stopped = False
        self._slice = round(sample_rate * _SLICE_S)
        try:
            self._stream = sounddevice.OutputStream(samplerate=sample_rate, channels=1, dtype="float32")
            self._stream.start()
        except sounddevice.PortAudioError as e:
            raise BackendError(f"no audio device can play {sample_rate} Hz ({e}); write a file with -o instead") from e

    def write(self, samples: np.ndarray) -> None:
        """Mono float32 [S]; returns when the device has taken them, not when they have sounded."""
        column = np.ascontiguousarray(samples, np.float32)[:, None]
        for start in range(0, len(column), self._slice):
            if self._stopped:
                return
            self._stream.write(column[start : start + self._slice])

    def stop(self) -> None:
        """Play no more than the slice that is being handed over; a signal handler may call it."""
        self._stopped = True

    def close(self) -> None:
        """Wait until everything has sounded, unless it was stopped."""
        if self._stopped:
            self._stream.abort()
        else:
            self._stream.stop()
        self._stream.close()
