"""GGUF: against the `gguf` package, and files made by hand to be wrong."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.checkpoint.gguf import open_gguf
from sonant.errors import CheckpointError

F32, F16, Q4_0, Q8_0, Q4_K, BF16 = 0, 1, 2, 8, 12, 30


def string(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def info(name: str, dims: tuple[int, ...], kind: int, offset: int) -> bytes:
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def file(tensors=(), data: bytes = b"", keys=(), *, version: int = 3, n_tensors=None, n_keys=None, align=32) -> bytes:
    counts = (len(tensors) if n_tensors is None else n_tensors, len(keys) if n_keys is None else n_keys)
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % align) + data


@pytest.fixture
def put(tmp_path):
    def put(raw: bytes):
        path = tmp_path / "x.gguf"
        path.write_bytes(raw)
        return path

    return put


def q8_0(integers: np.ndarray, scales: np.ndarray) -> bytes:
    return b"".join(s.tobytes() + i.tobytes() for i, s in zip(integers.reshape(-1, 32), scales.ravel(), strict=True))


class TestByHand:
    def test_every_type(self, put):
        rng = np.random.default_rng(0)
        integers = rng.integers(-127, 128, (2, 64)).astype(np.int8)
        scales = np.array([[0.5, 0.25], [1e-7, 3]], np.float16)
        f32, f16 = rng.standard_normal((3, 2)).astype(np.float32), np.array([1, -2.5, 0], np.float16)
        data = f32.tobytes() + bytes(8) + f16.tobytes() + bytes(26) + q8_0(integers, scales)
        data += bytes(-len(data) % 32)
        tensors = [info("a", (2, 3), F32, 0), info("b", (3,), F16, 32), info("c", (64, 2), Q8_0, 64)]
        tensors.append(info("d", (2,), BF16, len(data)))
        found = open_gguf(put(file(tensors, data + struct.pack("<HH", 0x3F80, 0xC020))))
        assert list(found) == ["a", "b", "c", "d"]
        assert [found.dtype(n) for n in found] == ["f32", "f16", "q8_0", "bf16"]
        assert [found[n].shape for n in found] == [(3, 2), (3,), (2, 64), (2,)]
        np.testing.assert_array_equal(found["a"].read(), f32)
        np.testing.assert_array_equal(found["b"].read(), f16.astype(np.float32))
        np.testing.assert_array_equal(found["d"].read(), [1.0, -2.5])
        wide = np.repeat(scales.astype(np.float32), 32, axis=-1)
        np.testing.assert_array_equal(found["c"].read(), integers.astype(np.float32) * wide)
        stored = found.q8("c")
        np.testing.assert_array_equal(stored[0], integers)
        np.testing.assert_array_equal(stored[1], scales)
        assert all(found[n].read().dtype == np.float32 for n in found)
        with pytest.raises(CheckpointError, match="'a' is f32, not q8_0"):
            found.q8("a")

    def test_metadata(self, put):
        keys = [
            string("a") + struct.pack("<Ii", 5, -3),
            string("b") + struct.pack("<I", 8) + string("ä"),
            string("c") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
            string("d") + struct.pack("<IIQ", 9, 8, 2) + string("x") + string(""),
            string("e") + struct.pack("<I?", 7, True),
        ]
        found = open_gguf(put(file(keys=keys, version=2)))
        assert found.metadata == {"a": -3, "b": "ä", "c": [1, 2, 3], "d": ["x", ""], "e": True}
        assert len(found) == 0

    def test_an_alignment_of_its_own(self, put):
        keys = [string("general.alignment") + struct.pack("<II", 4, 128)]
        raw = file([info("a", (1,), F32, 0), info("b", (1,), F32, 128)], struct.pack("<f124xf", 1, 2), keys, align=128)
        found = open_gguf(put(raw))
        assert [found[n].read()[0] for n in found] == [1, 2]


ONE = info("a", (32,), F32, 0)


class TestRefused:
    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (b"", "is empty"),
            (b"GGU", "truncated or no GGUF"),
            (b"GGML" + bytes(100), "does not begin with GGUF"),
            (file(version=1), "GGUF version 1; read are 2 and 3"),
            (file(version=1 << 24), "GGUF version"),  # big-endian
            (file(n_tensors=1 << 60), "more than it has bytes"),
            (file(n_keys=1 << 63), "more than it has bytes"),
            (file(n_tensors=3), "truncated or no GGUF"),
            (file([ONE, ONE], bytes(256)), "names the tensor 'a' twice"),
            (file(keys=[string("k") + struct.pack("<IB", 0, 1)] * 2), "names the key 'k' twice"),
            (file(keys=[string("k") + struct.pack("<IB", 13, 1)]), "metadata of type 13"),
            (file(keys=[string("k") + struct.pack("<IIQ", 9, 9, 1)]), "array of arrays"),
            (file(keys=[string("k") + struct.pack("<IIQ", 9, 4, 1 << 61)]), "truncated or no GGUF"),
            (file(keys=[string("k") + struct.pack("<IIQ", 9, 8, 1 << 61)]), "more than it has bytes"),
            (file(keys=[struct.pack("<Q", 1 << 62)]), "truncated or no GGUF"),
            (file(keys=[struct.pack("<Q", 1) + b"\xff" + struct.pack("<IB", 0, 1)]), "not UTF-8"),
            (file([ONE], bytes(127)), r"ends at byte 128 of 127; the file is truncated"),
            (file([info("a", (), F32, 0)]), "has 0 dims"),
            (file([info("a", (1,) * 5, F32, 0)], bytes(32)), "has 5 dims"),
            (file([info("a", (1 << 40, 1 << 40), F32, 0)], bytes(32)), "is impossible"),
            (file([info("a", (1 << 40,), F32, 0)], bytes(32)), "truncated, fetch it again"),
            (file([info("a", (1 << 63,), F32, 0)], bytes(32)), "is impossible"),
            (file([ONE, info("b", (1,), F32, 64)], bytes(256)), "'b' at byte 64 overlaps"),
            (file([info("a", (1,), F32, 4)], bytes(256)), "not aligned"),
            (file([info("a", (32,), F32, 1 << 62)], bytes(256)), "truncated, fetch it again"),
            (file([info("a", (256,), Q4_K, 0)], bytes(256)), r"is of type q4_K; .* q8 GGUF or its model\.safetensors"),
            (file([info("a", (32,), Q4_0, 0)], bytes(256)), "is of type q4_0"),
            (file([info("a", (32,), 99, 0)], bytes(256)), "is of type 99"),
            (file([info("a", (33,), Q8_0, 0)], bytes(256)), "multiple of 32"),
            (file(keys=[string("general.alignment") + struct.pack("<II", 4, 33)]), "is 33, wanted a power of two"),
            (file(keys=[string("general.alignment") + struct.pack("<II", 4, 0)]), "is 0, wanted a power of two"),
            (file(keys=[string("general.alignment") + struct.pack("<I", 8) + string("x")]), "wanted a power of two"),
        ],
    )
    def test_a_file_that_is_wrong(self, put, raw, says):
        with pytest.raises(CheckpointError, match=says):
            open_gguf(put(raw))

    @given(st.data())
    def test_a_damaged_file_is_read_or_refused(self, tmp_path_factory, data):
        keys = [string("k") + struct.pack("<IIQ", 9, 8, 2) + string("x") + string("yz")]
        raw = bytearray(file([info("a", (32, 2), Q8_0, 0), info("b", (3,), F16, 96)], bytes(128), keys))
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.getbasetemp() / "damaged.gguf"
        path.write_bytes(raw[: data.draw(st.integers(1, len(raw)))])
        try:
            found = open_gguf(path)
        except CheckpointError:
            return
        for name in found:
            assert found[name].read().shape == found[name].shape


class TestOracle:
    """The package of the format's own project writes, we read."""

    def test_the_same_values(self, tmp_path):
        gguf = pytest.importorskip("gguf", reason="pip install gguf: the format's own package, as an oracle")
        rng = np.random.default_rng(1)
        shapes = {"w": (6, 96), "conv": (4, 3, 7), "b": (5,)}
        arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        kinds = gguf.GGMLQuantizationType
        path = tmp_path / "x.gguf"
        writer = gguf.GGUFWriter(path, "phonon")
        writer.add_array("tokens", ["a", "b"])
        packed = gguf.quants.quantize(arrays["w"], kinds.Q8_0)
        writer.add_tensor("w", packed, raw_dtype=kinds.Q8_0)
        writer.add_tensor("conv", arrays["conv"].astype(np.float16))
        writer.add_tensor("b", arrays["b"])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        found = open_gguf(path)
        assert found.metadata["general.architecture"] == "phonon"
        assert found.metadata["tokens"] == ["a", "b"]
        assert {n: found[n].shape for n in found} == {n: a.shape for n, a in arrays.items()}
        np.testing.assert_array_equal(found["w"].read(), gguf.quants.dequantize(packed, kinds.Q8_0))
        np.testing.assert_array_equal(found["conv"].read(), arrays["conv"].astype(np.float16).astype(np.float32))
        np.testing.assert_array_equal(found["b"].read(), arrays["b"])
