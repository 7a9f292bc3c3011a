"""Frames of speech from a latent language model, several streams at once: the frame model of Phonon and Pocket TTS.

One stream speaks one chunk of text: [voice][text] are put into its rows of the cache (the voice is copied from a row
that was filled once), then each step turns the frame before into the next one. Here are the rules of when a chunk ends;
what a family feeds beside the latent (a condition, a second branch) is its subclass's.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from sonant.backends.backend import CancelFlag, Executable, Prepared
from sonant.errors import BackendError, TextError
from sonant.families.latent.chunks import frame_cap

Array = np.ndarray
VOICE_ROWS = 8
"""Voices whose keys and values are kept ready. A row costs the memory of the positions that were written to it."""


@dataclass(frozen=True, eq=False)
class VoicePrompt:
    """What precedes the text: rows [P, D], or the keys and values [P, kv_width] of every layer where a voice was
    published as those."""

    name: str
    rows: Array | None = None
    keys_values: tuple[tuple[Array, Array], ...] = ()

    @property
    def length(self) -> int:
        return len(self.keys_values[0][0] if self.rows is None else self.rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class ChunkRequest:
    """One chunk of text, ids [N], and how it is spoken. seed: (seed, index of the piece); frames_after_eos: kept after
    the one that ends; least_frames: before which no frame ends it."""

    voice: VoicePrompt
    ids: Array
    seed: tuple[int, int]
    temperature: float
    eos_threshold: float
    frames_after_eos: int
    least_frames: int = 0


@dataclass(eq=False)
class LatentStream:
    """Where one stream stands. text: the positions of its text; made, decoded: frames so far; eos_frame: the one with
    which the model ended; latents: those not decoded yet; heard: of each frame, what the heads that are listened to
    saw of the text [H, N]."""

    row: int
    request: ChunkRequest
    latent: Array
    position: int
    most_frames: int
    made: int = 0
    decoded: int = 0
    eos_frame: int | None = None
    latents: list[Array] = field(default_factory=list)
    heard: list[Array] = field(default_factory=list)

    @property
    def text(self) -> Array:
        first = self.request.voice.length
        return np.arange(first, first + len(self.request.ids), dtype=np.int32)

    @property
    def spoken(self) -> bool:
        """The model said that its text is spoken, and all frames that are kept after that are made."""
        return self.eos_frame is not None and self.made > self.eos_frame + self.request.frames_after_eos

    @property
    def ended(self) -> bool:
        return self.spoken or self.made >= self.most_frames

    @property
    def pending(self) -> int:
        return len(self.latents)

    def take(self, latent: Array, eos: float, heard: Array | None) -> None:
        """The frame that was just made."""
        wants = self.request
        if self.eos_frame is None and self.made >= wants.least_frames and eos > wants.eos_threshold:
            self.eos_frame = self.made
        if heard is not None:
            self.heard.append(heard[:, : len(wants.ids)].copy())
        self.latent, self.made, self.position = latent, self.made + 1, self.position + 1
        self.latents.append(latent)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Streams that step together, and what the step Program is given for them."""

    streams: list[LatentStream]
    given: dict[str, Array]
    prepared: Prepared

    def move_on(self, positions: list[int]) -> None:
        """To where its streams stand now."""
        latents, frames = self.given["latent"], self.given["frame"]
        for i, stream in enumerate(self.streams):
            latents[i, 0] = stream.latent
            frames[i] = stream.made
        self.given["position"][:] = positions


@dataclass(frozen=True)
class Networks:
    """The Programs of a checkpoint, loaded, and the tables that stay on the host."""

    prefill: Executable
    step: Executable
    codec: Executable
    text_table: Array
    text_projection: Array | None
    bos_latent: Array
    latent_mean: Array
    latent_std: Array
    frame_rate_hz: float
    capacity: int

    @property
    def listens(self) -> bool:
        """Whether a step records attention."""
        return any(v.name == "keys" for v in self.step.program.inputs)


class LatentFrames:
    """`n_rows` streams of one checkpoint: a FrameModel (families/frames.py) whose requests are ChunkRequests."""

    branches = 1
    """Rows of the cache that a stream has."""

    def __init__(self, networks: Networks, n_rows: int) -> None:
        self.networks, self.n_rows = networks, n_rows
        rows = n_rows * self.branches
        self._states = networks.step.create_states(rows + VOICE_ROWS)
        self._codec_states = networks.codec.create_states(n_rows)
        self._voices: OrderedDict[VoicePrompt, int] = OrderedDict()
        self._free_voice_rows = list(range(rows, rows + VOICE_ROWS))
        self._voice_lock = threading.Lock()
        self._batch: _Batch | None = None

    def begin(self, row: int, request: ChunkRequest, cancel: CancelFlag) -> LatentStream:
        """Raises TextError for no tokens, and for more than there are positions for."""
        n, voice, count = self.networks, request.voice, len(request.ids)
        most = frame_cap(count, n.frame_rate_hz)
        if not count:
            raise TextError("a chunk of text without tokens cannot be spoken")
        if voice.length + count + most > n.capacity:
            raise TextError(f"{count} tokens in one chunk of text, after {voice.length} positions of the voice "
                            f"{voice.name!r}, are more than fit: {n.capacity} positions with the speech")
        self._put_voice(voice, row * self.branches, cancel)
        self._prefill(self.text_rows(request.ids), row * self.branches, voice.length, cancel)
        self._codec_states.reset(row)
        return LatentStream(row, request, n.bos_latent, voice.length + count, most)

    def text_rows(self, ids: Array) -> Array:
        """[N, D] of the tokens ids [N]."""
        n = self.networks
        rows = n.text_table[ids]
        return np.ascontiguousarray(rows if n.text_projection is None else rows @ n.text_projection.T)

    def step(self, streams: Sequence[LatentStream], *, threads: int | None = None) -> None:
        """One more frame for each stream. Raises BackendError where the model makes no numbers."""
        latents, eos, *heard = self._batch_of(streams).prepared.run(threads=threads)
        for i, stream in enumerate(streams):
            latent, logit = latents[i, 0].copy(), float(eos[i])
            if not math.isfinite(np.vdot(latent, latent)) or not math.isfinite(logit):
                raise BackendError("a frame of speech is not finite; the weights or the voice are damaged")
            stream.take(latent, logit, heard[0][i] if heard else None)

    def decode(self, streams: Sequence[LatentStream], n_frames: int, *, threads: int | None = None) -> list[Array]:
        """The next `n_frames` pending frames of each as samples [n_frames * frame_samples]."""
        n = self.networks
        latents = np.stack([s.latents[:n_frames] for s in streams]) * n.latent_std + n.latent_mean
        given = {
            "latents": np.ascontiguousarray(latents, np.float32),
            "rows": np.array([s.row for s in streams], np.int32),
            "frame": np.array([s.decoded for s in streams], np.int32),
        }
        samples = n.codec.run(given, states=self._codec_states, threads=threads)[0]
        for s in streams:
            del s.latents[:n_frames]
            s.decoded += n_frames
        return list(samples)

    def _batch_of(self, streams: Sequence[LatentStream]) -> _Batch:
        """The one of the step before where the same streams go on."""
        batch = self._batch
        if batch is None or batch.streams != [*streams]:
            given = self._inputs(streams)
            batch = self._batch = _Batch([*streams], given, self.networks.step.prepare(given, states=self._states))
        batch.move_on(self._positions(streams))
        return batch

    def _positions(self, streams: Sequence[LatentStream]) -> list[int]:
        """Of every row of the step, as in `_inputs`."""
        return [s.position for s in streams]

    def _inputs(self, streams: Sequence[LatentStream]) -> dict[str, Array]:
        """What the step Program takes."""
        given = {
            "latent": np.stack([s.latent for s in streams], dtype=np.float32)[:, None],
            "rows": np.array([s.row for s in streams], np.int32) * self.branches,
            "position": np.array(self._positions(streams), np.int32),
            "seed": np.array([s.request.seed for s in streams], np.uint32).view(np.int32),
            "frame": np.array([s.made for s in streams], np.int32),
            "temperature": np.array([s.request.temperature for s in streams], np.float32),
        }
        if self.networks.listens:
            given["keys"] = _joined([s.text for s in streams])
        return given

    def _put_voice(self, voice: VoicePrompt, row: int, cancel: CancelFlag) -> None:
        """Copy the voice into a stream's row, from the row that holds it: filled now where it has none."""
        with self._voice_lock:
            if voice not in self._voices:
                at = self._free_voice_rows.pop() if self._free_voice_rows else self._voices.popitem(last=False)[1]
                try:
                    self._fill(voice, at, cancel)
                except BaseException:
                    self._free_voice_rows.append(at)
                    raise
                self._voices[voice] = at
            self._voices.move_to_end(voice)
            self._states.copy(self._voices[voice], row, voice.length)

    def _fill(self, voice: VoicePrompt, row: int, cancel: CancelFlag) -> None:
        if voice.rows is not None:
            self._prefill(voice.rows, row, 0, cancel)
        for layer, pair in enumerate(voice.keys_values):
            for kind, values in zip("kv", pair, strict=True):
                name = f"flow_lm.transformer.layers.{layer}.{kind}"
                whole = self._states.read(name, row)
                whole[: len(values)] = values
                self._states.write(name, row, whole)

    def _prefill(self, rows: Array, row: int, position: int, cancel: CancelFlag) -> None:
        if len(rows):
            given = {"x": rows[None], "rows": np.array([row], np.int32), "position": np.array([position], np.int32)}
            self.networks.prefill.run(given, states=self._states, cancel=cancel)


def _joined(keys: Sequence[Array]) -> Array:
    """[B, N] of lists of positions, -1 where a list is shorter than the longest."""
    out = np.full((len(keys), max(map(len, keys))), -1, np.int32)
    for row, positions in zip(out, keys, strict=True):
        row[: len(positions)] = positions
    return out


class Tables(TypedDict):
    """The fields of Networks that are tensors of the checkpoint."""

    text_table: Array
    text_projection: Array | None
    bos_latent: Array
    latent_mean: Array
    latent_std: Array


def load_tables(weights: Mapping[str, Array]) -> Tables:
    """The tables of Networks, by the names that weights have."""
    return {
        "text_table": weights["flow_lm.conditioner.embed.weight"],
        "text_projection": weights.get("flow_lm.conditioner.proj.weight"),
        "bos_latent": weights["flow_lm.bos_emb"],
        "latent_mean": weights["flow_lm.emb_mean"],
        "latent_std": weights["flow_lm.emb_std"],
    }
