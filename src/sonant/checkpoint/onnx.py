"""Minimal reader of ONNX files: nodes and initializers, straight from the protobuf wire format.

Field numbers from onnx/onnx.proto3 (ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto). Read: what a
weight recovery needs. Passed over: value infos, docs, functions, subgraphs. Refused: external data, sparse and
string tensors, segments. Initializers with raw_data are views into the buffer.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sonant.checkpoint.tensor import DTYPES, Array, Buffer, Tensor, array_at, element_count, map_file, possible_shape
from sonant.errors import CheckpointError

# TensorProto.DataType; the second column is the field that holds values without raw_data
_DATA_TYPES = {
    1: ("f32", 4),
    2: ("u8", 5),
    3: ("i8", 5),
    4: ("u16", 5),
    5: ("i16", 5),
    6: ("i32", 5),
    7: ("i64", 7),
    9: ("bool", 5),
    10: ("f16", 5),
    11: ("f64", 10),
    12: ("u32", 11),
    13: ("u64", 11),
    16: ("bf16", 5),
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}

_Range = tuple[int, int]  # begin and end of a length-delimited field in the buffer


@dataclass(frozen=True)
class Node:
    op_type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]  # int, float, str, lists of them, Tensor; None for kinds that are passed over
    domain: str = ""


@dataclass(frozen=True)
class OnnxModel:
    """`where` names the file in errors; opsets maps a domain to its version."""

    where: str
    nodes: tuple[Node, ...]
    initializers: dict[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opsets: dict[str, int] = field(default_factory=dict)


def open_onnx(path: str | os.PathLike[str]) -> OnnxModel:
    return parse_onnx(map_file(Path(path)), str(path))


def parse_onnx(buffer: Buffer, where: str) -> OnnxModel:
    """The graph of a serialized ModelProto. CheckpointError if a length, type or size is out of place."""
    reader = _Reader(buffer, where)
    model = reader.message((0, len(buffer)))
    graphs = model.ranges(7)
    if len(graphs) != 1:
        raise CheckpointError(f"{where}: holds {len(graphs)} graphs, wanted 1; it is not an ONNX model or is truncated")
    graph = reader.message(graphs[0])
    if graph.ranges(15):
        raise CheckpointError(f"{where}: has sparse initializers, which are not read")
    opsets = [reader.message(r) for r in model.ranges(8)]
    return OnnxModel(
        where=where,
        nodes=tuple(_node(reader, r) for r in graph.ranges(1)),
        initializers=_initializers(reader, graph.ranges(5)),
        inputs=tuple(reader.message(r).text(1) for r in graph.ranges(11)),
        outputs=tuple(reader.message(r).text(1) for r in graph.ranges(12)),
        opsets={o.text(1): o.integer(2) for o in opsets},
    )


class _Reader:
    """Splits a buffer into protobuf fields; every position is checked before it is read."""

    def __init__(self, buffer: Buffer, where: str):
        self.buffer, self.where = buffer, where

    def error(self, at: int, what: str) -> CheckpointError:
        return CheckpointError(f"{self.where}: byte {at}: {what}; not an ONNX model, or truncated")

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """(value, position after it); at most 64 bits in 10 bytes."""
        value = 0
        for shift in range(0, 70, 7):
            if at >= end:
                raise self.error(at, "an integer runs past its message")
            byte = self.buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, at
        raise self.error(at, "an integer of more than 10 bytes")

    def fields(self, span: _Range) -> Iterator[tuple[int, int, Any]]:
        """(field number, wire type, value): an int, or the range of a length-delimited or fixed-size field."""
        at, end = span
        while at < end:
            key, at = self.varint(at, end)
            number, wire = key >> 3, key & 7
            if number == 0:
                raise self.error(at, "field number 0")
            if wire == _VARINT:
                value, at = self.varint(at, end)
                yield number, wire, value
                continue
            if wire == _BYTES:
                size, at = self.varint(at, end)
            elif wire in _FIXED:
                size = _FIXED[wire]
            else:
                raise self.error(at, f"wire type {wire}")
            if size > end - at:
                raise self.error(at, f"a field of {size} bytes runs past its message")
            yield number, wire, (at, at + size)
            at += size

    def message(self, span: _Range) -> _Message:
        values: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for number, wire, value in self.fields(span):
            values[number].append((wire, value))
        return _Message(self, span[0], values)


@dataclass(frozen=True)
class _Message:
    """The fields of one message by number, in file order."""

    reader: _Reader
    at: int
    values: dict[int, list[tuple[int, Any]]]

    def _of(self, number: int, wire: int) -> list[Any]:
        found = self.values.get(number, ())
        if any(kind != wire for kind, _ in found):
            raise self.reader.error(self.at, f"field {number} has a wrong wire type")
        return [value for _, value in found]

    def ranges(self, number: int) -> list[_Range]:
        return self._of(number, _BYTES)

    def texts(self, number: int) -> tuple[str, ...]:
        try:
            return tuple(self.reader.buffer[a:b].decode("utf-8") for a, b in self.ranges(number))
        except UnicodeDecodeError as error:
            raise self.reader.error(self.at, f"field {number} is not UTF-8") from error

    def text(self, number: int) -> str:
        found = self.texts(number)
        return found[-1] if found else ""

    def integer(self, number: int) -> int:
        """The last value, signed, as protobuf's int32 and int64 are; 0 if absent."""
        found = self._of(number, _VARINT)
        return _signed(found[-1]) if found else 0

    def integers(self, number: int) -> list[int]:
        """A repeated integer field, packed or not."""
        out: list[int] = []
        for wire, value in self.values.get(number, ()):
            if wire == _VARINT:
                out.append(_signed(value))
            elif wire == _BYTES:
                at, end = value
                while at < end:
                    item, at = self.reader.varint(at, end)
                    out.append(_signed(item))
            else:
                raise self.reader.error(self.at, f"field {number} has a wrong wire type")
        return out

    def floats(self, number: int, dtype: str) -> Array:
        """A repeated float or double field, packed or not."""
        parts = [self.reader.buffer[a:b] for wire, (a, b) in self._spans(number)]
        raw = b"".join(parts)
        if len(raw) % DTYPES[dtype].itemsize:
            raise self.reader.error(self.at, f"field {number} holds a broken number")
        return np.frombuffer(raw, DTYPES[dtype])

    def _spans(self, number: int) -> list[tuple[int, _Range]]:
        found = self.values.get(number, [])
        if any(wire == _VARINT for wire, _ in found):
            raise self.reader.error(self.at, f"field {number} has a wrong wire type")
        return found


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _node(reader: _Reader, span: _Range) -> Node:
    message = reader.message(span)
    attributes = [reader.message(r) for r in message.ranges(5)]
    return Node(
        op_type=message.text(4),
        name=message.text(3),
        inputs=message.texts(1),
        outputs=message.texts(2),
        attributes={a.text(1): _attribute(reader, a) for a in attributes},
        domain=message.text(7),
    )


def _attribute(reader: _Reader, message: _Message) -> Any:
    """The value by AttributeProto.type: 1 float, 2 int, 3 string, 4 tensor, 6 floats, 7 ints, 8 strings."""
    kind = message.integer(20)
    if kind == 1:
        values = message.floats(2, "f32")
        return float(values[-1]) if values.size else 0.0
    if kind == 2:
        return message.integer(3)
    if kind == 3:
        return message.text(4)
    if kind == 4:
        return _tensor(reader, message.ranges(5)[-1])[1] if message.ranges(5) else None
    if kind == 6:
        return message.floats(7, "f32").tolist()
    if kind == 7:
        return message.integers(8)
    if kind == 8:
        return list(message.texts(9))
    return None


def _initializers(reader: _Reader, spans: list[_Range]) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    for span in spans:
        name, tensor = _tensor(reader, span)
        if name in out:
            raise CheckpointError(f"{reader.where}: two initializers are named {name!r}")
        out[name] = tensor
    return out


def _tensor(reader: _Reader, span: _Range) -> tuple[str, Tensor]:
    message = reader.message(span)
    name, shape, kind = message.text(8), message.integers(1), message.integer(2)
    where = f"{reader.where}: initializer {name!r}"
    if kind not in _DATA_TYPES:
        raise CheckpointError(f"{where}: data type {kind} is not read; wanted one of {sorted(_DATA_TYPES)}")
    if message.integer(14) or message.ranges(13):
        raise CheckpointError(f"{where}: its data lies in another file; wanted a self-contained model")
    if message.ranges(3):
        raise CheckpointError(f"{where}: is split into segments, which are not read")
    if any(n < 0 for n in shape) or not possible_shape(shape):
        raise CheckpointError(f"{where}: impossible shape {shape[:20]}")
    dtype, values_field = _DATA_TYPES[kind]
    if raw := message.ranges(9):
        begin, end = raw[-1]
        wanted = element_count(shape) * DTYPES[dtype].itemsize
        if end - begin != wanted:
            raise CheckpointError(f"{where}: {end - begin} bytes, wanted {wanted} for shape {shape} of {dtype}")
        return name, Tensor(array_at(reader.buffer, begin, dtype, shape), dtype)
    values = _typed_values(message, dtype, values_field, where)
    if values.size != element_count(shape):
        raise CheckpointError(f"{where}: {values.size} values, wanted {element_count(shape)} for shape {shape}")
    return name, Tensor(values.reshape(shape), dtype)


def _typed_values(message: _Message, dtype: str, number: int, where: str) -> Array:
    if number in (4, 10):
        return message.floats(number, dtype)
    values = message.integers(number)
    if dtype == "u64":
        values = [value % (1 << 64) for value in values]
    stored = np.dtype("<u2") if dtype == "f16" else DTYPES[dtype]  # f16 and bf16 travel as their bits
    if dtype == "bool":
        return np.array([value != 0 for value in values], np.bool_)
    limits = np.iinfo(stored)
    if any(not limits.min <= value <= limits.max for value in values):
        raise CheckpointError(f"{where}: a value does not fit {dtype}")
    return np.array(values, stored).view(DTYPES[dtype])
