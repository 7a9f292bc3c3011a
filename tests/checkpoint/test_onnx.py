"""The ONNX reader on models made byte by byte, good and broken; the recovery of dynamically quantized weights."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from crafted import block, number, onnx_model, onnx_node, onnx_tensor, varint
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.checkpoint.onnx import open_onnx, parse_onnx
from sonant.checkpoint.onnx_weights import float_weights
from sonant.errors import CheckpointError


def attribute(name: str, kind: int, *fields: bytes) -> bytes:
    return block(5, block(1, name) + number(20, kind) + b"".join(fields))


class TestReader:
    def test_nodes(self):
        attributes = b"".join(
            [
                attribute("axis", 2, number(3, -1)),
                attribute("alpha", 1, varint(2 << 3 | 5) + struct.pack("<f", 0.5)),
                attribute("mode", 3, block(4, "linear")),
                attribute("value", 4, block(5, onnx_tensor("", np.float32([1, 2])))),
                attribute("floats", 6, block(7, struct.pack("<2f", 1, 2))),
                attribute("ints", 7, block(8, varint(1) + varint(-2)), number(8, 3)),
                attribute("strings", 8, block(9, "a"), block(9, "b")),
                attribute("graph", 5, block(6, b"")),
            ]
        )
        model = parse_onnx(onnx_model([onnx_node("Add", "/a/Add", ["x", ""], ["y"], attributes)], []), "m")
        (node,) = model.nodes
        assert (node.op_type, node.name, node.inputs, node.outputs) == ("Add", "/a/Add", ("x", ""), ("y",))
        value = node.attributes.pop("value")
        assert value.array.tolist() == [1, 2]
        assert node.attributes == {
            "axis": -1, "alpha": 0.5, "mode": "linear", "floats": [1, 2], "ints": [1, -2, 3], "strings": ["a", "b"],
            "graph": None,
        }  # fmt: skip
        assert model.opsets == {"": 20}

    @pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool"])
    def test_raw_initializers(self, tmp_path, kind):
        array = np.arange(6).astype(kind).reshape(2, 3)
        (tmp_path / "m.onnx").write_bytes(onnx_model([], [onnx_tensor("w", array), onnx_tensor("s", array[0, 0])]))
        found = open_onnx(tmp_path / "m.onnx").initializers
        np.testing.assert_array_equal(found["w"].array, array)
        assert found["w"].array.dtype == array.dtype
        assert found["s"].shape == ()

    @pytest.mark.parametrize(
        ("data_type", "fields", "tag", "values"),
        [
            (1, block(4, struct.pack("<2f", 0.5, 2)), "f32", [0.5, 2]),
            (1, b"".join(varint(4 << 3 | 5) + struct.pack("<f", v) for v in (0.5, 2)), "f32", [0.5, 2]),
            (11, block(10, struct.pack("<2d", 0.5, 2)), "f64", [0.5, 2]),
            (3, block(5, varint(-3) + varint(7)), "i8", [-3, 7]),
            (2, number(5, 200) + number(5, 1), "u8", [200, 1]),
            (9, block(5, b"\0\1"), "bool", [False, True]),
            (10, block(5, varint(0x3C00) + varint(0xC000)), "f16", [1, -2]),
            (16, block(5, varint(0x3F80) + varint(0xC000)), "bf16", [1, -2]),
            (7, block(7, varint(-5) + varint(1 << 40)), "i64", [-5, 1 << 40]),
            (13, block(11, varint((1 << 64) - 1) + varint(0)), "u64", [(1 << 64) - 1, 0]),
        ],
    )
    def test_typed_initializers(self, data_type, fields, tag, values):
        raw = number(1, 2) + number(2, data_type) + block(8, "w") + fields
        tensor = parse_onnx(onnx_model([], [raw]), "m").initializers["w"]
        assert tensor.dtype == tag
        assert (tensor.f32() if tag == "bf16" else tensor.array).tolist() == values

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (number(1, 2) + number(2, 1) + block(9, bytes(4)), "4 bytes, wanted 8"),
            (number(1, 2) + number(2, 1) + block(4, bytes(4)), "1 values, wanted 2"),
            (number(1, 1) + number(2, 1) + block(4, bytes(3)), "broken number"),
            (number(1, -1) + number(2, 1), "impossible shape"),
            (number(1, 1 << 40) + number(1, 1 << 40) + number(2, 1), "impossible shape"),
            (number(1, 1) * 17 + number(2, 1), "impossible shape"),
            (number(1, 1) + number(2, 8), "data type 8"),
            (number(1, 1) + number(2, 3) + number(5, 200), "does not fit i8"),
            (number(1, 1) + number(2, 1) + number(14, 1), "another file"),
            (number(1, 1) + number(2, 1) + block(13, b""), "another file"),
            (number(1, 1) + number(2, 1) + block(3, b""), "segments"),
            (number(1, 1) + number(2, 1) + number(9, 5), "wrong wire type"),
            (number(1, 1) + number(2, 1) + number(4, 5), "wrong wire type"),
            (block(2, b"1"), "wrong wire type"),
        ],
    )
    def test_bad_initializers(self, raw, says):
        with pytest.raises(CheckpointError, match=says):
            parse_onnx(onnx_model([], [raw + block(8, "w")]), "m")

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (b"", "0 graphs"),
            (block(7, b"") * 2, "2 graphs"),
            (block(7, block(15, b"")), "sparse"),
            (b"\x80" * 11, "more than 10 bytes"),
            (b"\x80", "runs past"),
            (b"\x3a\x05abc", "runs past"),
            (b"\x3b", "wire type 3"),
            (b"\x00\x00", "field number 0"),
            (b"\x39abc", "runs past"),
            (block(7, block(1, block(1, b"\xff"))), "UTF-8"),
            (number(7, 1), "wrong wire type"),
        ],
    )
    def test_bad_messages(self, raw, says):
        with pytest.raises(CheckpointError, match=says):
            parse_onnx(raw, "m")

    def test_two_initializers_of_one_name(self):
        with pytest.raises(CheckpointError, match="two initializers"):
            parse_onnx(onnx_model([], [onnx_tensor("w", np.float32(1))] * 2), "m")


def quantized_graph() -> bytes:
    """One of each quantized kind, as onnxruntime writes them."""

    def product(op: str, path: str, weight: str, zero: str) -> list[bytes]:
        return [
            onnx_node("DynamicQuantizeLinear", f"{path}_q", ["x"], [f"{path}_x", f"{path}_sx", f"{path}_zx"]),
            onnx_node(op, path, [f"{path}_x", weight, f"{path}_zx", zero], [f"{path}_y"]),
            onnx_node("Cast", f"{path}_cast", [f"{path}_y"], [f"{path}_f"]),
            onnx_node("Mul", f"{path}_scales", [f"{path}_sx", f"{weight}_scale"], [f"{path}_s"]),
            onnx_node("Mul", f"{path}_mul", [f"{path}_f", f"{path}_s"], [f"{path}_out"]),
        ]

    nodes = [
        *product("ConvInteger", "/half/conv/Conv_quant", "cw", "cz"),
        *product("MatMulInteger", "/half/fc/MatMul_quant", "mw", "mz"),
        *product("MatMulInteger", "/half/fc_1/MatMul_quant", "mw", "mz"),  # shared
        onnx_node("Gather", "/half/emb/Gather", ["half.emb.weight_quantized", "ids"], ["rows"]),
        onnx_node("DequantizeLinear", "/half/emb/Dequantize", ["rows", "es", "ez"], ["out"]),
        onnx_node("ConvTranspose", "/half/up/ConvTranspose", ["x", "uw"], ["out2"]),
        onnx_node("MatMul", "/half/l/MatMul", ["x", "lw"], ["out3"]),
        onnx_node("MatMul", "/half/attention/MatMul", ["x", "y"], ["out4"]),
        onnx_node("DynamicQuantizeLSTM", "/half/lstm/LSTM_quant",
                  ["x", "W", "R", "B", "", "h", "c", "", "Ws", "Wz", "Rs", "Wz"], ["out5"]),
    ]  # fmt: skip
    return onnx_model(nodes, [onnx_tensor(name, array) for name, array in QUANTIZED.items()])


_RNG = np.random.default_rng(3)
QUANTIZED = {
    "cw": _RNG.integers(0, 255, (3, 2, 5), dtype=np.uint8),
    "cw_scale": np.float32(0.25),
    "cz": np.uint8(120),
    "mw": _RNG.integers(-128, 127, (4, 3), dtype=np.int8),
    "mw_scale": np.float32([0.5, 1, 2]),
    "mz": np.int8([1, 0, -1]),
    "half.emb.weight_quantized": _RNG.integers(-128, 127, (5, 2), dtype=np.int8),
    "es": np.float32(0.125),
    "ez": np.int8(3),
    "uw": _RNG.normal(size=(2, 3, 4)).astype(np.float32),
    "lw": _RNG.normal(size=(4, 1)).astype(np.float32),
    "W": _RNG.integers(-128, 127, (2, 3, 8), dtype=np.int8),
    "R": _RNG.integers(-128, 127, (2, 2, 8), dtype=np.int8),
    "B": _RNG.normal(size=(2, 16)).astype(np.float32),
    "Ws": np.float32([0.5, 0.25]),
    "Rs": np.float32([2, 4]),
    "Wz": np.int8([0, 0]),
    "half.conv.bias": np.float32([1, 2, 3]),
    "/half/Constant_output_0": np.float32(9),
}


class TestRecovery:
    def test_every_kind(self):
        lazy = float_weights(parse_onnx(quantized_graph(), "m"))
        found = {name: tensor.read() for name, tensor in lazy.items()}
        assert all(found[name].shape == lazy[name].shape for name in found)
        q = {name: array.astype(np.float32) for name, array in QUANTIZED.items()}
        np.testing.assert_array_equal(found.pop("half.conv.weight"), (q["cw"] - q["cz"]) * q["cw_scale"])
        np.testing.assert_array_equal(found.pop("half.fc.weight"), ((q["mw"] - q["mz"]) * q["mw_scale"]).T)
        wanted = (q["half.emb.weight_quantized"] - q["ez"]) * q["es"]
        np.testing.assert_array_equal(found.pop("half.emb.weight"), wanted)
        np.testing.assert_array_equal(found.pop("half.up.weight"), q["uw"])
        np.testing.assert_array_equal(found.pop("half.l.weight"), q["lw"].T)
        np.testing.assert_array_equal(found.pop("half.conv.bias"), [1, 2, 3])
        order = [0, 1, 4, 5, 6, 7, 2, 3]  # i o f c → i f g o, with H = 2
        for d, suffix in enumerate(("", "_reverse")):
            wanted = {"weight_ih": q["W"][d].T * q["Ws"][d], "weight_hh": q["R"][d].T * q["Rs"][d]}
            wanted |= {"bias_ih": q["B"][d, :8], "bias_hh": q["B"][d, 8:]}
            for name, value in wanted.items():
                np.testing.assert_array_equal(found.pop(f"half.lstm.{name}_l0{suffix}"), value[order])
        assert found == {}

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"mw_scale": np.float32([1, 2])}, "scale"),
            ({"mz": np.int8([1, 2])}, "zero point"),
            ({"W": np.zeros((2, 3, 12), np.int8)}, "do not fit"),
            ({"B": np.zeros((2, 8), np.float32)}, "do not fit"),
            ({"Ws": np.float32(1)}, "do not fit"),
            ({"R": np.zeros(3, np.int8)}, "do not fit"),
            ({"stray": np.int8([1])}, "no known node consumes: stray"),
            ({"cw": None}, "'cw' is not a constant"),
            ({"cw_scale": None}, "no multiplication by its weight scale"),
            ({"half.conv.weight": np.float32([1])}, "two different weights"),
        ],
    )
    def test_unknown_exports(self, monkeypatch, change, says):
        for name, value in change.items():
            monkeypatch.delitem(QUANTIZED, name, raising=False)
            if value is not None:
                monkeypatch.setitem(QUANTIZED, name, value)
        model = parse_onnx(quantized_graph(), "m")
        with pytest.raises(CheckpointError, match=says):
            float_weights(model)


def _read(raw: bytes) -> None:
    try:
        for tensor in float_weights(parse_onnx(raw, "m")).values():
            tensor.read()
    except CheckpointError:
        pass


def test_truncated_at_every_byte():
    raw = quantized_graph()
    for size in range(len(raw)):
        _read(raw[:size])


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_flipped_bytes_give_weights_or_an_error(data):
    raw = bytearray(quantized_graph())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    _read(bytes(raw))
