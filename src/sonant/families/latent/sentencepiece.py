"""Reads a SentencePiece .model: a protobuf message of which the Unigram pieces and the normalizer are needed.

Fields used: ModelProto 1 pieces, 2 trainer_spec, 3 normalizer_spec; SentencePiece 1 piece, 2 score, 3 type;
TrainerSpec 3 model_type, 24 treat_whitespace_as_suffix, 35 byte_fallback; NormalizerSpec 2 precompiled_charsmap,
3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces, 6 rule table (training only).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sonant.errors import CheckpointError
from sonant.families.latent.charsmap import CharsMap
from sonant.families.latent.normalizers import mapped
from sonant.families.latent.tokenizer import SPACE, Tokenizer, Vocabulary
from sonant.families.latent.traced import Traced

_UNIGRAM = 1
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
_BONUS = 0.1
_SPACES = re.compile("  +")
Value = int | bytes


def read_sentencepiece(data: bytes, name: str) -> Tokenizer:
    """The tokenizer of these bytes. Raises CheckpointError naming what is broken or cannot be done."""
    pieces: list[_Piece] = []
    trainer: dict[int, Value] = {}
    normalizer: dict[int, Value] = {}
    for number, value in _fields(data, name):
        if number == 1:
            pieces.append(_piece(_message(value, "a piece", name), len(pieces), name))
        elif number == 2:
            trainer.update(_fields(_message(value, "trainer_spec", name), name))
        elif number == 3:
            normalizer.update(_fields(_message(value, "normalizer_spec", name), name))
    if not pieces:
        raise CheckpointError(f"{name} has no pieces; wanted a SentencePiece model or a tokenizer.json")
    if trainer.get(3, _UNIGRAM) != _UNIGRAM:
        raise CheckpointError(f"{name}: the model is of type {trainer[3]!r}; only Unigram (1) can be read")
    if trainer.get(24, 0):
        raise CheckpointError(f"{name}: white space as a suffix cannot be read")
    symbols = tuple(sorted((p.text for p in pieces if p.kind == _USER_DEFINED), key=len, reverse=True))
    return Tokenizer(_vocabulary(pieces, trainer, name), _Normalizer(normalizer, symbols, name), lambda text, _: [text])


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    score: float
    kind: int


def _vocabulary(pieces: list[_Piece], trainer: dict[int, Value], name: str) -> Vocabulary:
    unknown = [i for i, piece in enumerate(pieces) if piece.kind == _UNKNOWN]
    if len(unknown) != 1:
        raise CheckpointError(f"{name} has {len(unknown)} unknown pieces; wanted one")
    normal = [piece.score for piece in pieces if piece.kind == _NORMAL]
    highest = max(normal, default=0.0)
    names: dict[str, int] = {}
    scores: dict[str, tuple[int, float]] = {}
    for number, piece in enumerate(pieces):
        if piece.text in names or not piece.text:
            raise CheckpointError(f"{name}: piece {number} ({piece.text!r}) is empty or there twice")
        names[piece.text] = number
        if piece.kind == _NORMAL:
            scores[piece.text] = number, piece.score
        elif piece.kind == _USER_DEFINED:
            # So much that it always wins, as in the original, which counts bytes.
            scores[piece.text] = number, len(piece.text.encode()) * highest - _BONUS
    spelled: tuple[int, ...] = ()
    if trainer.get(35, 0):
        missing = [byte for byte in range(256) if f"<0x{byte:02X}>" not in names]
        if missing:
            raise CheckpointError(f"{name}: byte fallback without the piece <0x{missing[0]:02X}>")
        spelled = tuple(names[f"<0x{byte:02X}>"] for byte in range(256))
    lowest = min(normal, default=0.0)
    return Vocabulary(scores, names, len(pieces), unknown[0], lowest, spelled, np.float32)


class _Normalizer:
    """The character map, then white space: ends and runs taken away, a space put in front, ▁ for each."""

    def __init__(self, spec: dict[int, Value], symbols: tuple[str, ...], name: str) -> None:
        charsmap = spec.get(2, b"")
        if not isinstance(charsmap, bytes):
            raise CheckpointError(f"{name}: the character map is not a string of bytes")
        self._chars = CharsMap(charsmap, name) if charsmap else None
        self._prefix, self._tidy = bool(spec.get(3, 1)), bool(spec.get(4, 1))
        if not spec.get(5, 1):
            raise CheckpointError(f"{name}: white space that is not escaped cannot be read")
        self._symbols = symbols

    def __call__(self, text: Traced) -> Traced:
        text = self._mapped(text)
        if self._tidy:
            text = text.strip(" ").sub(_SPACES, " ")
        if text and self._prefix:
            text = Traced.made(" ", text.start, text.start) + text
        return text.translate({" ": SPACE})

    def _mapped(self, text: Traced) -> Traced:
        if self._chars is None:
            return text
        if not any(symbol in text.text for symbol in self._symbols):
            return mapped(text, self._chars)
        parts: list[Traced] = []
        kept = at = 0
        while at < len(text):
            symbol = next((s for s in self._symbols if text.text.startswith(s, at)), "")
            if not symbol:
                at += 1
                continue
            parts += (mapped(text[kept:at], self._chars), text[at : at + len(symbol)])
            kept = at = at + len(symbol)
        return Traced.join((*parts, mapped(text[kept:], self._chars)))


def _piece(data: bytes, number: int, name: str) -> _Piece:
    fields = dict(_fields(data, name))
    text, score, kind = fields.get(1, b""), fields.get(2, b"\0\0\0\0"), fields.get(3, _NORMAL)
    if not isinstance(text, bytes) or not isinstance(score, bytes) or len(score) != 4 or not isinstance(kind, int):
        raise CheckpointError(f"{name}: piece {number} has fields of the wrong kinds")
    value = struct.unpack("<f", score)[0]
    if not math.isfinite(value) or not _NORMAL <= kind <= _BYTE:
        raise CheckpointError(f"{name}: piece {number} has the score {value} and the type {kind}")
    try:
        return _Piece(text.decode("utf-8"), value, kind)
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{name}: piece {number} is not UTF-8") from error


def _message(value: Value, what: str, name: str) -> bytes:
    if not isinstance(value, bytes):
        raise CheckpointError(f"{name}: {what} is not a message")
    return value


def _fields(data: bytes, name: str) -> Iterator[tuple[int, Value]]:
    """The fields of a message: numbers of varints, bytes of everything else."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at, name)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at, name)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at, name)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise CheckpointError(f"{name}: byte {at} begins a field of wire type {wire}; not a SentencePiece model")
        if size > len(data) - at:
            raise CheckpointError(f"{name} is cut off: a field of {size} bytes at {at}, and {len(data) - at} are left")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int, name: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise CheckpointError(f"{name} is cut off within a number")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise CheckpointError(f"{name}: a number of more than ten bytes at {at}; not a SentencePiece model")
