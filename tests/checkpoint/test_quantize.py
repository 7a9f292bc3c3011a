"""Files in q8: what is written, that it is read back as the same q8, and what it lost."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sonant.backends.backend import from_q8, to_q8
from sonant.checkpoint.quantize import SCALE, open_weights, quantize, restored
from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.checkpoint.tensor import Tensor
from sonant.errors import CheckpointError

META = {"sonant_format": "tiny-1", "config": "{}"}
MATRICES = {"a.weight", "odd.weight", "conv.weight"}


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"a.weight": (6, 64), "odd.weight": (3, 45), "conv.weight": (4, 3, 32), "a.bias": (6,), "table": (9, 64)}
    out = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    out["layer.scale"] = np.ones(4, np.float32)  # a name that ends as scales do
    return out


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, tensors(), META)
    return path


class TestFile:
    def test_the_layout(self, source, tmp_path):
        quantize(source, MATRICES, tmp_path / "q8.safetensors")
        found, given = open_safetensors(tmp_path / "q8.safetensors"), tensors()
        assert set(found) == set(given) | {name + SCALE for name in MATRICES}
        for name, array in given.items():
            if name in MATRICES:
                integers, scales = to_q8(array)
                np.testing.assert_array_equal(found[name], integers, strict=True)
                np.testing.assert_array_equal(found[name + SCALE], scales, strict=True)
            else:
                np.testing.assert_array_equal(found[name], array, strict=True)
        assert found.shape("odd.weight" + SCALE) == (3, 2)
        assert found.metadata["sonant_format"] == "tiny-1"
        assert found.metadata["config"] == "{}"
        assert found.metadata["sonant_precision"] == "q8"
        assert len(found.metadata["quantized_from_sha256"]) == 64

    def test_it_is_read_back_as_the_same_q8(self, source, tmp_path):
        quantize(source, MATRICES, tmp_path / "q8.safetensors")
        found, given = open_weights(tmp_path / "q8.safetensors"), tensors()
        assert set(found) == set(given)
        assert found.precision == "q8"
        for name, array in given.items():
            assert found.shape(name) == array.shape
            if name in MATRICES:
                for ours, wanted in zip(to_q8(found[name]), to_q8(array), strict=True):
                    np.testing.assert_array_equal(ours, wanted, strict=True)
                np.testing.assert_array_equal(found[name], from_q8(*to_q8(array)))
            else:
                np.testing.assert_array_equal(found[name], array, strict=True)
        assert found.get("a.weight" + SCALE) is None
        assert found.get("nothing") is None

    def test_a_file_of_floats_is_read_as_it_is(self, source):
        found = open_weights(source)
        assert found.precision is None
        for name, array in tensors().items():
            np.testing.assert_array_equal(found[name], array, strict=True)

    @pytest.mark.parametrize("kind", ["f16", "bf16"])
    def test_other_floats(self, tmp_path, kind):
        bits = {"f16": np.float16, "bf16": np.uint16}[kind]
        stored = tensors()["a.weight"].astype(np.float16) if kind == "f16" else np.full((6, 64), 0x3F80, bits)
        path, target = tmp_path / "model.safetensors", tmp_path / "q8.safetensors"
        write_safetensors(path, {"w": Tensor(stored, kind), "kept": Tensor(stored, kind)}, META)
        (one,) = quantize(path, {"w"}, target).tensors
        assert (one.bytes_before, one.bytes_after) == (6 * 64 * 2, 6 * 64 + 6 * 2 * 2)
        assert open_safetensors(target).dtype("kept") == kind
        wide = Tensor(stored, kind).f32()
        np.testing.assert_array_equal(open_weights(target)["kept"], wide, strict=True)
        np.testing.assert_array_equal(open_weights(target)["w"], from_q8(*to_q8(wide)))

    def test_memory_stays_that_of_a_few_tensors(self, tmp_path):
        path, one = tmp_path / "model.safetensors", np.ones((256, 1024), np.float32)
        write_safetensors(path, {f"w{i}": one for i in range(24)})
        quantize(path, {"w0"}, tmp_path / "first.safetensors")  # what is imported and cached once
        tracemalloc.start()
        quantize(path, {f"w{i}" for i in range(24)}, tmp_path / "q8.safetensors")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # the integers, 1/4 of a tensor, and slabs of 1/4 of it, some in f64: the model has 24 times one tensor
        assert peak < 4 * one.nbytes


class TestExactness:
    """The integers and scales survive being read as float32 and quantized again, whatever the values."""

    shapes = st.tuples(st.integers(1, 3), st.integers(1, 70))

    @given(
        values=arrays.arrays(np.float32, shapes, elements=st.floats(-8, 8, width=32)),
        size=st.sampled_from([1.0, 1e-2, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7]),
    )
    def test_restored(self, values, size):
        q8 = to_q8(values * np.float32(size))
        for ours, wanted in zip(to_q8(restored(*q8)), q8, strict=True):
            np.testing.assert_array_equal(ours, wanted)

    def test_tiny_values_are_the_hard_ones(self):
        """Without the correction most of these come back as another q8."""
        rng = np.random.default_rng(0)
        q8 = to_q8((rng.standard_normal((2000, 32)) * 2e-5).astype(np.float32))
        naive = to_q8(from_q8(*q8))
        assert (naive[1] != q8[1]).any()
        for ours, wanted in zip(to_q8(restored(*q8)), q8, strict=True):
            np.testing.assert_array_equal(ours, wanted)

    def test_it_stays_within_half_a_step(self):
        rng = np.random.default_rng(1)
        integers, scales = to_q8((rng.standard_normal((500, 64)) * 1e-5).astype(np.float32))
        off = np.abs(restored(integers, scales) - from_q8(integers, scales))
        assert (off <= 0.5 * np.repeat(scales.astype(np.float32), 32, axis=-1)).all()

    def test_zeros(self):
        values = np.zeros((2, 40), np.float32)
        np.testing.assert_array_equal(restored(*to_q8(values)), values)


class TestErrors:
    def test_what_was_lost(self, source, tmp_path):
        found = quantize(source, MATRICES, tmp_path / "q8.safetensors")
        assert [t.name for t in found.tensors] == [name for name in open_safetensors(source) if name in MATRICES]
        for one in found.tensors:
            values = tensors()[one.name].astype(np.float64)
            lost = from_q8(*to_q8(tensors()[one.name])) - values
            assert one.rms == pytest.approx(np.sqrt((lost**2).sum() / (values**2).sum()))
            assert one.worst_block >= one.rms
            assert 0 < one.rms < 0.02  # a step is 1/127 of the largest of 32 normal values
            assert one.shape == values.shape
        assert found.kept_bytes == sum(a.nbytes for name, a in tensors().items() if name not in MATRICES)
        assert found.bytes_before == source.stat().st_size
        assert found.bytes_after == (tmp_path / "q8.safetensors").stat().st_size
        assert min(t.rms for t in found.tensors) <= found.rms <= max(t.rms for t in found.tensors)

    def test_the_worst_block(self, tmp_path):
        values = np.ones((1, 64), np.float32)  # exact but for the second block
        values[0, 32:] = [100] + [0.3] * 31
        write_safetensors(tmp_path / "model.safetensors", {"w": values})
        (one,) = quantize(tmp_path / "model.safetensors", {"w"}, tmp_path / "q8.safetensors").tensors
        block = values[:, 32:]
        lost = from_q8(*to_q8(block)) - block
        assert one.worst_block == pytest.approx(np.sqrt((lost**2).sum() / (block**2).sum()), rel=1e-6)

    def test_nothing_to_lose(self, tmp_path):
        write_safetensors(tmp_path / "model.safetensors", {"w": np.zeros((2, 32), np.float32)})
        found = quantize(tmp_path / "model.safetensors", {"w"}, tmp_path / "q8.safetensors")
        assert (found.rms, found.tensors[0].rms, found.tensors[0].worst_block) == (0, 0, 0)


class TestRefused:
    def test_a_matrix_that_is_not_there(self, source, tmp_path):
        with pytest.raises(CheckpointError, match="has no tensors nothing to store in q8"):
            quantize(source, {"nothing"}, tmp_path / "q8.safetensors")
        assert not (tmp_path / "q8.safetensors").exists()

    @pytest.mark.parametrize("value", [np.inf, np.nan, 1e7])
    def test_values_beyond_q8(self, tmp_path, value):
        write_safetensors(tmp_path / "model.safetensors", {"w": np.full((2, 32), value, np.float32)})
        with pytest.raises(CheckpointError, match=r"model\.safetensors: w: a weight is not finite, or too large"):
            quantize(tmp_path / "model.safetensors", {"w"}, tmp_path / "q8.safetensors")
        assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"w": np.zeros((2, 32), np.int32)}, "w is i32; only floats"),
            ({"w": np.zeros((2, 0), np.float32)}, "it is empty"),
            ({"w": np.zeros((2, 32), np.float32), "w.scale": np.zeros(3, np.float32)}, r"or w\.scale exists"),
        ],
    )
    def test_what_is_no_matrix(self, tmp_path, given, says):
        write_safetensors(tmp_path / "model.safetensors", given)
        with pytest.raises(CheckpointError, match=says):
            quantize(tmp_path / "model.safetensors", {"w"}, tmp_path / "q8.safetensors")

    def test_twice(self, source, tmp_path):
        quantize(source, MATRICES, tmp_path / "q8.safetensors")
        with pytest.raises(CheckpointError, match="is stored in q8 already"):
            quantize(tmp_path / "q8.safetensors", {"table"}, tmp_path / "again.safetensors")

    @pytest.mark.parametrize(
        ("metadata", "scale", "says"),
        [
            ({}, np.ones((2, 1), np.float16), r"int8, but there is no f16 w\.scale \[2, 1\]"),
            ({"sonant_precision": "q8", "sonant_quantized": "q8-1"}, np.ones((2, 2), np.float16), "there is no f16"),
            ({"sonant_precision": "q8", "sonant_quantized": "q8-1"}, np.ones((2, 1), np.float32), "there is no f16"),
            ({"sonant_precision": "q8", "sonant_quantized": "q8-1"}, None, "there is no f16"),
            ({"sonant_precision": "q8", "sonant_quantized": "q8-2"}, np.ones((2, 1), np.float16), "convert it again"),
            ({"sonant_precision": "q4"}, np.ones((2, 1), np.float16), r"is stored in q4 \(None\), wanted q8"),
        ],
    )
    def test_files_that_are_not_ours(self, tmp_path, metadata, scale, says):
        given = {"w": np.zeros((2, 32), np.int8)} | ({} if scale is None else {"w.scale": scale})
        write_safetensors(tmp_path / "x.safetensors", given, metadata)
        with pytest.raises(CheckpointError, match=says):
            open_weights(tmp_path / "x.safetensors")

    @pytest.mark.parametrize(("integer", "scale"), [(-128, 1.0), (1, np.inf), (1, np.nan), (1, -1.0)])
    def test_numbers_that_q8_does_not_have(self, tmp_path, integer, scale):
        given = {"w": np.full((2, 32), integer, np.int8), "w.scale": np.full((2, 1), scale, np.float16)}
        write_safetensors(tmp_path / "x.safetensors", given, {"sonant_precision": "q8", "sonant_quantized": "q8-1"})
        found = open_weights(tmp_path / "x.safetensors")
        with pytest.raises(CheckpointError, match="w holds what q8 does not"):
            found["w"]
