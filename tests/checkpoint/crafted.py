"""Files made by hand, byte by byte: torch archives, pickles, ONNX models, good and bad; without torch or onnx."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}


# -- pickles --


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def integer(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def tuple_of(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def dict_of(items: Mapping[str, bytes]) -> bytes:
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def storage(key: str, kind: str, count: int) -> bytes:
    return tuple_of(text("storage"), name("torch", kind), text(key), text("cpu"), integer(count)) + b"Q"


def tensor(stored: bytes, shape: Iterable[int], strides: Iterable[int], offset: int = 0) -> bytes:
    sizes = [tuple_of(*map(integer, values)) for values in (shape, strides)]
    hooks = name("collections", "OrderedDict") + b")R"
    args = tuple_of(stored, integer(offset), *sizes, b"\x89", hooks)
    return name("torch._utils", "_rebuild_tensor_v2") + args + b"R"


def program(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


# -- archives --


def archive(pickled: bytes, storages: Mapping[str, bytes] | None = None, method: int = zipfile.ZIP_STORED) -> bytes:
    """A torch zip archive of `pickled` (a whole pickle) and its storages."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr("archive/data.pkl", pickled)
        file.writestr("archive/byteorder", b"little")
        for key, raw in (storages or {}).items():
            file.writestr(f"archive/data/{key}", raw)
        file.writestr("archive/version", b"3\n")
    return out.getvalue()


def torch_file(tree: Mapping[str, Any], method: int = zipfile.ZIP_STORED) -> bytes:
    """What torch.save would write of nested dicts of numpy arrays."""
    storages: dict[str, bytes] = {}

    def value(item: Any) -> bytes:
        if isinstance(item, Mapping):
            return dict_of({key: value(child) for key, child in item.items()})
        key = str(len(storages))
        array = np.ascontiguousarray(item)
        storages[key] = array.tobytes()
        strides = [step // array.itemsize for step in array.strides]
        return tensor(storage(key, STORAGES[array.dtype.name], array.size), np.shape(item), strides[: np.ndim(item)])

    return archive(program(value(tree)), storages, method)


# -- ONNX --


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


DATA_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def onnx_tensor(label: str, array: Any) -> bytes:
    array = np.asarray(array)
    dims = b"".join(number(1, n) for n in array.shape)
    return dims + number(2, DATA_TYPES[array.dtype.name]) + block(8, label) + block(9, array.tobytes())


def onnx_node(
    op_type: str, label: str, inputs: Iterable[str], outputs: Iterable[str], attributes: bytes = b""
) -> bytes:
    parts = [block(1, item) for item in inputs] + [block(2, item) for item in outputs]
    return b"".join(parts) + block(3, label) + block(4, op_type) + attributes


def onnx_model(nodes: Iterable[bytes], initializers: Iterable[bytes]) -> bytes:
    graph = b"".join(block(1, n) for n in nodes) + block(2, "graph") + b"".join(block(5, t) for t in initializers)
    return number(1, 9) + block(7, graph) + block(8, block(1, "") + number(2, 20))
