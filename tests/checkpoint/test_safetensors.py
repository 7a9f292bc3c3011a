"""The safetensors reader and writer: round trips, the format's rules, and files that break them."""

from __future__ import annotations

import itertools
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.checkpoint.safetensors import SafetensorsWriter, open_safetensors, write_safetensors
from sonant.checkpoint.tensor import Tensor
from sonant.errors import CheckpointError


def file_of(header: object, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def opened(tmp_path, raw: bytes):
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw)
    return open_safetensors(path)


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
def test_round_trip_of_every_type(tmp_path, kind):
    array = np.arange(15).astype(kind).reshape(3, 5)
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"a": array, "scalar": array[0, 1], "empty": array[:0]}, {"who": "me"})
    found = open_safetensors(path)
    assert set(found) == {"a", "scalar", "empty"}
    assert found.metadata == {"who": "me"}
    np.testing.assert_array_equal(found["a"], array)
    assert found["a"].dtype == array.dtype
    assert found["scalar"].shape == ()
    assert found["empty"].shape == (0, 5)
    assert not found["a"].flags.writeable


def test_bf16_is_tagged_and_widened_exactly(tmp_path):
    values = np.array([1.0, -2.5, 0.15625, 3e38], np.float32)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"a": Tensor(bits, "bf16"), "b": bits})
    found = open_safetensors(path)
    assert (found.dtype("a"), found.dtype("b")) == ("bf16", "u16")
    np.testing.assert_array_equal(found.tensor("a").f32(), (values.view(np.uint32) >> 16 << 16).view(np.float32))


def test_every_tensor_starts_on_a_cache_line_without_holes(tmp_path):
    path = tmp_path / "x.safetensors"
    tensors = {f"t{i}": np.full(i, i, np.float32) for i in range(40)}
    write_safetensors(path, tensors)
    raw = path.read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    assert all((8 + size + header[name]["data_offsets"][0]) % 64 == 0 for name in tensors)
    ranges = sorted(header[name]["data_offsets"] for name in header)
    assert all(after[0] == before[1] for before, after in itertools.pairwise(ranges))
    assert ranges[-1][1] == len(raw) - 8 - size
    found = open_safetensors(path)
    assert set(found) == set(tensors)  # fillers are hidden
    assert found["t7"].tolist() == [7] * 7


def test_misaligned_tensor_is_copied(tmp_path):
    values = np.arange(3, dtype="<f4")
    raw = file_of({"pad": entry("U8", [1], 0, 1), "a": entry("F32", [3], 1, 13)}, b"\0" + values.tobytes())
    found = opened(tmp_path, raw)
    assert found["a"].flags.aligned
    np.testing.assert_array_equal(found["a"], values)


@pytest.mark.parametrize(
    ("header", "data", "says"),
    [
        (b"{", b"", "not valid JSON"),
        (b"\xff", b"", "not valid JSON"),
        (b"[" * 100_000, b"", "not valid JSON"),
        ([], b"", "wanted an object"),
        ({"__metadata__": {"a": 1}}, b"", "strings"),
        ({"__metadata__": []}, b"", "strings"),
        (b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":1}', b"", "twice"),
        (b'{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}', b"", "twice"),
        ({"a": 1}, b"", "wanted exactly"),
        ({"a": {"dtype": "F32", "shape": []}}, b"", "wanted exactly"),
        ({"a": entry("F33", [1], 0, 4)}, b"1234", "F33"),
        ({"a": entry(["F32"], [1], 0, 4)}, b"1234", "F32"),  # type: ignore[arg-type]
        ({"a": entry("F32", [-1], 0, 4)}, b"1234", "shape"),
        ({"a": entry("F32", [True], 0, 4)}, b"1234", "shape"),
        ({"a": entry("F32", [1.0], 0, 4)}, b"1234", "shape"),  # type: ignore[list-item]
        ({"a": entry("F32", [1] * 17, 0, 4)}, b"1234", "shape"),
        ({"a": entry("F32", [1 << 62, 4], 0, 0)}, b"", "shape"),
        ({"a": entry("F32", [0, 1 << 62, 1 << 62], 0, 0)}, b"", "shape"),
        ({"a": entry("F32", [2], 0, 4)}, b"1234", "8 bytes"),
        ({"a": entry("F32", [1], 4, 0)}, b"1234", "data_offsets"),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, b"1234", "begin, end"),
        ({"a": entry("F32", [2], 0, 8)}, b"1234", "truncated"),
        ({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, b"1234", "overlap or hole"),
        ({"a": entry("F32", [1], 4, 8)}, b"12345678", "overlap or hole"),
        ({"a": entry("F32", [1], 0, 4)}, b"12345678", "belong to none"),
    ],
)
def test_broken_headers_are_refused(tmp_path, header, data, says):
    with pytest.raises(CheckpointError, match=says) as caught:
        opened(tmp_path, file_of(header, data))
    assert "x.safetensors" in str(caught.value)


def test_many_names_one_of_them_twice(tmp_path):
    """A search for the duplicate must not be quadratic."""
    names = [f'"{i}":0' for i in range(200_000)]
    with pytest.raises(CheckpointError, match="'199999' twice"):
        opened(tmp_path, file_of(f"{{{','.join([*names, names[-1]])}}}".encode()))


def test_header_length_is_bounded(tmp_path):
    for raw in (b"\0" * 7, struct.pack("<Q", 1 << 63), struct.pack("<Q", 3) + b"{}"):
        with pytest.raises(CheckpointError):
            opened(tmp_path, raw)


def test_missing_empty_and_directory(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    for name, says in (("nothing", "cannot be opened"), ("empty", "is empty"), (".", "cannot be opened")):
        with pytest.raises(CheckpointError, match=says):
            open_safetensors(tmp_path / name)


def test_unknown_tensor(tmp_path):
    found = opened(tmp_path, file_of({}))
    with pytest.raises(CheckpointError, match="no tensor 'a'"):
        found.tensor("a")
    with pytest.raises(KeyError):
        found["a"]
    assert "a" not in found


def test_truncated_at_every_byte(tmp_path):
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"a": np.arange(5, dtype=np.float32), "b": np.arange(3, dtype=np.int8)})
    raw = path.read_bytes()
    for size in range(len(raw)):
        with pytest.raises(CheckpointError):
            opened(tmp_path, raw[:size])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bytes_give_tensors_or_an_error(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.safetensors"
    write_safetensors(path, {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(3, dtype=np.int8)})
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        found = open_safetensors(path)
        total = sum(array.nbytes for array in found.values())
    except CheckpointError:
        return
    assert total <= len(raw)


class TestWriter:
    def test_nothing_appears_after_an_error(self, tmp_path):
        path = tmp_path / "x.safetensors"
        with pytest.raises(RuntimeError), SafetensorsWriter(path, {"a": ("f32", [2])}):
            raise RuntimeError
        assert list(tmp_path.iterdir()) == []

    def test_nothing_appears_with_a_tensor_missing(self, tmp_path):
        path = tmp_path / "x.safetensors"
        with (
            pytest.raises(CheckpointError, match="never written: b"),
            SafetensorsWriter(path, {"a": ("f32", [2]), "b": ("f32", [1])}) as writer,
        ):
            writer.write("a", np.zeros(2, np.float32))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("name", "array", "says"),
        [
            ("b", np.zeros(2, np.float32), "not announced"),
            ("a", np.zeros(3, np.float32), "wanted f32"),
            ("a", np.zeros(2, np.float64), "wanted f32"),
        ],
    )
    def test_wrong_tensor(self, tmp_path, name, array, says):
        with (
            pytest.raises(CheckpointError, match=says),
            SafetensorsWriter(tmp_path / "x", {"a": ("f32", [2])}) as writer,
        ):
            writer.write(name, array)

    def test_written_twice(self, tmp_path):
        with SafetensorsWriter(tmp_path / "x", {"a": ("f32", [2])}) as writer:
            writer.write("a", np.zeros(2, np.float32))
            with pytest.raises(CheckpointError, match="already"):
                writer.write("a", np.zeros(2, np.float32))

    def test_order_and_memory_layout_do_not_matter(self, tmp_path):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        with SafetensorsWriter(tmp_path / "x", {"a": ("f32", [3, 2]), "b": ("f32", [1])}) as writer:
            writer.write("b", np.ones(1, np.float32))
            writer.write("a", array.T)
        np.testing.assert_array_equal(open_safetensors(tmp_path / "x")["a"], array.T)

    def test_reserved_names_and_types_without_a_name(self, tmp_path):
        with pytest.raises(CheckpointError, match="reserved"):
            write_safetensors(tmp_path / "x", {"__padding__.0": np.zeros(1, np.float32)})
        with pytest.raises(CheckpointError, match="complex128"):
            write_safetensors(tmp_path / "x", {"a": np.zeros(1, np.complex128)})
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(CheckpointError, match="cannot be written"):
            write_safetensors(tmp_path / "file" / "x", {"a": np.zeros(1, np.float32)})
