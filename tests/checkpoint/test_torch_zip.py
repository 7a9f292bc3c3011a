"""The restricted torch reader: real archives, hand-made ones, and hostile ones that must neither run nor crash."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import crafted
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.checkpoint.tensor import Tensor
from sonant.checkpoint.torch_zip import flat_tensors, open_torch
from sonant.errors import CheckpointError

DATA = Path(__file__).parent / "data"


@pytest.fixture
def opened(tmp_path):
    def open_bytes(raw: bytes):
        path = tmp_path / "x.pt"
        path.write_bytes(raw)
        return open_torch(path)

    return open_bytes


class TestRealArchives:
    """Made by torch 2.13 (data/make_torch_small.py)."""

    @pytest.fixture(params=["torch_small.pt", "torch_small_p4.pt"])
    def tree(self, request):
        return open_torch(DATA / request.param)

    def test_views_share_one_storage(self, tree):
        base = np.arange(24, dtype=np.float32).reshape(4, 6)
        views = {name: tensor.array for name, tensor in tree["views"].items()}
        np.testing.assert_array_equal(views["whole"], base)
        np.testing.assert_array_equal(views["transposed"], base.T)
        np.testing.assert_array_equal(views["row"], base[2])
        np.testing.assert_array_equal(views["strided"], base[1:, ::2])
        assert np.shares_memory(views["whole"], views["row"])
        assert not any(view.flags.writeable for view in views.values())

    def test_every_type(self, tree):
        tags = ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"]
        assert [tensor.dtype for tensor in tree["types"].values()] == tags
        for tensor in tree["types"].values():
            wanted = [0, 1, 1, 1] if tensor.dtype == "bool" else [0, 1, 2, 3]
            assert tensor.f32().tolist() == wanted

    def test_state_dict_parameter_and_plain_values(self, tree):
        names = [name for name, _ in flat_tensors(tree["state"])]
        assert names == ["bias", "weight_g", "weight_v"]
        assert tree["parameter"].array.tolist() == [1, 1]
        assert tree["scalar"].array == 2.5
        assert tree["empty"].shape == (0, 3)
        assert tree["plain"] == {
            "step": 70000, "rate": 0.5, "name": "höhe", "none": None, "flags": [True, False], "pair": (1, -2),
        }  # fmt: skip


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_crafted_archive(opened, method):
    rng = np.random.default_rng(1)
    tree = {"a": {"x": rng.normal(size=(3, 4)).astype(np.float32), "y": np.arange(5)}, "b": np.float16([1.5])}
    found = dict(flat_tensors(opened(crafted.torch_file(tree, method))))
    assert list(found) == ["a.x", "a.y", "b"]
    np.testing.assert_array_equal(found["a.x"].array, tree["a"]["x"])
    np.testing.assert_array_equal(found["a.y"].array, tree["a"]["y"])
    assert found["b"].dtype == "f16"


def refused(opened, body: bytes, says: str, storages: dict[str, bytes] | None = None) -> None:
    with pytest.raises(CheckpointError, match=says) as caught:
        opened(crafted.archive(crafted.program(body), storages))
    assert "x.pt" in str(caught.value)


class Exploit:
    """Runs a command when unpickled by Python's pickle."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


class TestNothingIsExecuted:
    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_os_system(self, opened, tmp_path, protocol):
        marker = tmp_path / "marker"
        with pytest.raises(CheckpointError, match=r"(posix|nt)\.system.*nothing was executed"):
            opened(crafted.archive(pickle.dumps({"a": [Exploit(marker)]}, protocol)))
        assert not marker.exists()

    @pytest.mark.parametrize("module", ["builtins", "__builtin__"])
    def test_eval(self, opened, module):
        body = crafted.name(module, "eval") + crafted.tuple_of(crafted.text("1")) + b"R"
        refused(opened, body, rf"{module}\.eval")

    @pytest.mark.parametrize(
        "full",
        ["torch.load", "torch._utils._rebuild_tensor", "torch.FloatTensor", "collections.Counter", "torch.hub.load",
         "torch.storage._load_from_bytes", "torch.FloatStorage.__class__", "sonant.errors.SonantError"],
    )  # fmt: skip
    def test_names_that_look_innocent(self, opened, full):
        module, _, attribute = full.rpartition(".")
        refused(opened, crafted.name(module, attribute), "not part of a plain state dict")
        refused(opened, crafted.text(module) + crafted.text(attribute) + b"\x93", "not part of a plain state dict")

    @pytest.mark.parametrize(
        ("body", "opcode"),
        [
            (b"\x82\x01", r"b'\\x82'"),  # EXT1
            (b"\x83\x01\0", r"b'\\x83'"),  # EXT2
            (b"\x84\x01\0\0\0", r"b'\\x84'"),  # EXT4
            (b"(i__builtin__\neval\n", "b'i'"),  # INST
            (b"(cos\nsystem\no", "os.system"),  # OBJ needs a class first
            (b"(o", "b'o'"),
            (b")\x81", r"b'\\x81'"),  # NEWOBJ
            (b"))}\x92", r"b'\\x92'"),  # NEWOBJ_EX
            (b"Pname\n", "b'P'"),  # PERSID
            (b"S'a'\n", 'b"?.S'),  # STRING: its body is evaluated by old unpicklers
            (b"I1\n", "b'I'"),
            (b"N2", "b'2'"),  # DUP
            (b"N0", "b'0'"),  # POP
            (b"\x96\x08\0\0\0\0\0\0\0" + b"a" * 8, r"b'\\x96'"),  # BYTEARRAY8
            (b"\x97", r"b'\\x97'"),  # NEXT_BUFFER
        ],
    )
    def test_opcodes_outside_the_list(self, opened, body, opcode):
        refused(opened, body, opcode)

    @pytest.mark.parametrize(
        "body",
        [
            crafted.name("collections", "OrderedDict") + b")R}" + crafted.text("__class__") + b"Nsb",
            b"}}" + crafted.text("_metadata") + b"Nsb",  # a plain dict has no attributes
            crafted.name("collections", "OrderedDict") + b"}b",  # BUILD on the class itself
            b"]Nb",
        ],
    )
    def test_build(self, opened, body):
        refused(opened, body, "BUILD")

    @pytest.mark.parametrize(
        "body",
        [
            crafted.name("collections", "OrderedDict") + b"NR",
            crafted.name("collections", "OrderedDict") + crafted.tuple_of(b"]") + b"R",
            crafted.text("os") + b")R",
            crafted.name("torch", "FloatStorage") + b")R",
            crafted.name("torch._utils", "_rebuild_tensor_v2") + b")R",
            crafted.name("torch._utils", "_rebuild_parameter") + crafted.tuple_of(b"N", b"N", b"N") + b"R",
        ],
    )
    def test_calls_with_wrong_things(self, opened, body):
        refused(opened, body, "calls")


class TestMalformedPickles:
    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b"", "empty stack"),
            (b"NN", "left over"),
            (b"(", "empty stack"),
            (b"u", "empty stack|no mark"),
            (b"t", "no mark"),
            (b"h\x05", "memo 5 is not set"),
            (b"j\xff\xff\xff\xff", "memo 4294967295"),
            (b"q\x00", "empty stack"),
            (b"\x94", "empty stack"),
            (b"]NNs", "not a dict"),
            (b"}(Nu", "not a dict"),  # an odd number of items
            (b"}]Ns", "dict key of type list"),
            (b"}(K\x01NK\x01Nu", "twice"),
            (b"}Na", "not a list"),
            (b"\x8a\xff", "255 bytes"),
            (b"X\xff\xff\xff\x7fabc", "ends too early"),
            (b"X\x01\0\0\0\xff", "UTF-8"),
            (b"cos\nsystem", "without an end"),
            (b"NN\x93", "not part of"),
            (b"NQ", "persistent id"),
            (b"\x80\x07N", "protocol 7"),
            (crafted.name("torch", "FloatStorage"), "bare"),
            (crafted.tuple_of(crafted.text("storage")) + b"Q", "persistent id"),
        ],
    )
    def test_refused(self, opened, body, says):
        refused(opened, body, says)

    def test_a_list_that_holds_itself(self, opened):
        refused(opened, b"]q\0h\0a", "nests or repeats")

    def test_a_dict_that_holds_itself(self, opened):
        refused(opened, b"}q\0" + crafted.text("a") + b"h\0s", "nests or repeats")

    def test_deep_nesting(self, opened):
        refused(opened, b"N" + b"\x85" * 100_000, "nests or repeats")
        refused(opened, b"(" * 100_000 + b"N" + b"t" * 100_000, "nests or repeats")

    def test_repetition_that_doubles(self, opened):
        """Thirty lists, each holding the last one twice: a billion values from 200 bytes."""
        body = b"]q\0" + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(28))
        body += b"\x86" * 28
        refused(opened, body, "nests or repeats")

    def test_deep_values_in_error_messages(self, opened):
        """Showing what came must not recurse into what the file nested."""
        deep = b"N" + b"\x85" * 50_000
        refused(opened, deep + crafted.text("x") + b"\x93", "not part of")
        stored = crafted.storage("0", "FloatStorage", 1)
        args = crafted.tuple_of(stored, deep, deep, deep, b"\x89", b"N")
        body = crafted.name("torch._utils", "_rebuild_tensor_v2") + args + b"R"
        refused(opened, body, "a tensor with offset", {"0": b"1234"})

    def test_pickle_truncated_at_every_byte(self, opened):
        whole = zipfile.ZipFile(io.BytesIO((DATA / "torch_small.pt").read_bytes()))
        pickled = whole.read("torch_small/data.pkl")
        storages = {n.rpartition("/")[2]: whole.read(n) for n in whole.namelist() if "/data/" in n}
        assert opened(crafted.archive(pickled, storages))["scalar"].array == 2.5
        for size in range(len(pickled)):
            with pytest.raises(CheckpointError):
                opened(crafted.archive(pickled[:size], storages))


class TestTensorsThatLie:
    @pytest.mark.parametrize(
        ("count", "shape", "strides", "offset"),
        [
            (6, (7,), (1,), 0),
            (6, (2, 3), (4, 1), 0),
            (6, (2, 3), (3, 1), 1),
            (6, (2, 3), (3,), 0),
            (6, (2, 3), (-3, 1), 5),
            (6, (-2, 3), (3, 1), 0),
            (6, (6,), (1,), -1),
            (6, (0,), (1,), 7),
            (6, (1 << 40,), (0,), 0),
            (6, (7,), (0,), 0),  # expanded: more elements than are stored
            (6, (1 << 62, 1 << 62), (1, 1), 0),
            (6, (0, 1 << 62), (1, 1), 0),
            (6, (1,) * 17, (1,) * 17, 0),
            (6, (2,), (1 << 62,), 0),
            (6, (1, 6), (6, 1), 1 << 62),
        ],
    )
    def test_geometry(self, opened, count, shape, strides, offset):
        body = crafted.tensor(crafted.storage("0", "FloatStorage", count), shape, strides, offset)
        refused(opened, body, "a tensor", {"0": bytes(4 * count)})

    def test_types_of_the_geometry(self, opened):
        stored = crafted.storage("0", "FloatStorage", 1)
        for offset, shape in ((b"N", b")"), (b"K\0", b"]"), (b"K\0", b"\x88\x85"), (b"\x88", b")")):
            args = crafted.tuple_of(stored, offset, shape, shape, b"\x89", b"N")
            body = crafted.name("torch._utils", "_rebuild_tensor_v2") + args + b"R"
            refused(opened, body, "a tensor with offset", {"0": b"1234"})

    @pytest.mark.parametrize(
        ("key", "kind", "count", "says"),
        [
            ("0", "FloatStorage", 2, "4 bytes, wanted 2 elements"),
            ("0", "FloatStorage", 0, "4 bytes, wanted 0"),
            ("0", "FloatStorage", 1 << 60, "wanted 1152921504606846976"),
            ("0", "FloatStorage", -1, "wrong type, key or size"),
            ("1", "FloatStorage", 1, "storage 1 is not in the archive"),
            ("../0", "FloatStorage", 1, "not in the archive"),
            ("0", "QInt8Storage", 1, "not part of"),
        ],
    )
    def test_storages(self, opened, key, kind, count, says):
        body = crafted.tensor(crafted.storage(key, kind, count), (1,), (1,))
        refused(opened, body, says, {"0": b"1234"})

    def test_a_tensor_of_no_storage(self, opened):
        refused(opened, crafted.tensor(b"N", (1,), (1,)), "without a storage")


class TestArchives:
    def test_not_a_zip(self, opened):
        for raw in (b"x", b"\x80\x02}.", b"PK\5\6", bytes(1000), b"PK\5\6" + b"\xff" * 18):
            with pytest.raises(CheckpointError):
                opened(raw)

    def test_the_form_before_torch_1_6(self, opened):
        with pytest.raises(CheckpointError, match=r"older than torch 1\.6"):
            opened(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.")

    def test_no_or_two_pickles(self, opened):
        for names in ((), ("a/data.pkl", "b/data.pkl")):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as file:
                for name in names:
                    file.writestr(name, b"\x80\x02N.")
            with pytest.raises(CheckpointError, match=r"data\.pkl members, wanted 1"):
                opened(out.getvalue())

    def test_big_endian(self, opened):
        raw = crafted.torch_file({"a": np.zeros(1, np.float32)}).replace(b"little", b"biggie")
        with pytest.raises(CheckpointError, match="big-endian"):
            opened(raw)

    def test_two_members_of_one_name(self, opened):
        raw = crafted.archive(crafted.program(b"N"), {"0": b"1", "1": b"2"})
        with pytest.raises(CheckpointError, match="two members"):
            opened(raw.replace(b"archive/data/1", b"archive/data/0"))

    def test_encrypted(self, opened):
        raw = bytearray(crafted.archive(crafted.program(b"N")))
        raw[raw.index(b"PK\1\2") + 8] |= 1
        with pytest.raises(CheckpointError, match="encrypted"):
            opened(bytes(raw))

    def test_deflate_bombs(self, opened):
        """20 MB of zeros in 20 kB, as the pickle and as a storage."""
        zeros = bytes(20 << 20)
        with pytest.raises(CheckpointError, match="claims to inflate"):
            opened(crafted.archive(zeros, method=zipfile.ZIP_DEFLATED))
        body = crafted.tensor(crafted.storage("0", "ByteStorage", len(zeros)), (len(zeros),), (1,))
        with pytest.raises(CheckpointError, match="claims to inflate"):
            opened(crafted.archive(crafted.program(body), {"0": zeros}, zipfile.ZIP_DEFLATED))

    def test_a_member_that_inflates_to_more_or_less_than_it_says(self, opened):
        raw = crafted.torch_file({"a": np.random.default_rng(0).normal(size=100)}, zipfile.ZIP_DEFLATED)
        size = struct.pack("<I", 800)
        for wrong in (799, 801):
            lie = raw.replace(size, struct.pack("<I", wrong))
            with pytest.raises(CheckpointError):
                opened(lie)

    def test_overlapping_members(self, opened):
        raw = bytearray(crafted.archive(crafted.program(b"N"), {"0": b"1234", "1": b"1234"}))
        entries = [i for i in range(len(raw)) if raw[i : i + 4] == b"PK\1\2"]
        raw[entries[3] + 42 : entries[3] + 46] = raw[entries[2] + 42 : entries[2] + 46]
        with pytest.raises(CheckpointError, match="overlaps"):
            opened(bytes(raw))

    def test_truncated_at_every_byte(self, opened):
        raw = crafted.torch_file({"a": {"x": np.arange(3, dtype=np.float32)}, "b": np.arange(2)})
        assert len(raw) < 2000
        for size in range(len(raw)):
            with pytest.raises(CheckpointError):
                opened(raw[:size])

    def test_real_archive_truncated(self, opened):
        raw = (DATA / "torch_small.pt").read_bytes()
        for size in (*range(0, len(raw) - 200, 11), *range(len(raw) - 200, len(raw))):
            with pytest.raises(CheckpointError):
                opened(raw[:size])


def _read_all(tree: object) -> None:
    if isinstance(tree, Tensor):
        tree.f32()
    elif isinstance(tree, dict):
        for value in tree.values():
            _read_all(value)


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_flipped_bytes_give_values_or_an_error(tmp_path_factory, data):
    raw = bytearray((DATA / "torch_small.pt").read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzz.pt"
    path.write_bytes(raw)
    with contextlib.suppress(CheckpointError):
        _read_all(open_torch(path))


_PIECES = st.sampled_from(
    [b"}", b"]", b")", b"(", b"N", b"t", b"u", b"s", b"a", b"e", b"R", b"Q", b"b", b"\x85", b"\x86", b"q\0", b"h\0",
     b"q\1", b"h\1", b"K\1", crafted.text("a"), crafted.text("_metadata"), crafted.name("collections", "OrderedDict"),
     crafted.name("torch._utils", "_rebuild_tensor_v2"), crafted.storage("0", "FloatStorage", 3),
     crafted.tensor(crafted.storage("0", "FloatStorage", 3), (3,), (1,))]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(_PIECES, max_size=30))
def test_random_programs_give_values_or_an_error(tmp_path_factory, pieces):
    path = tmp_path_factory.getbasetemp() / "fuzz.pt"
    path.write_bytes(crafted.archive(crafted.program(b"".join(pieces)), {"0": bytes(12)}))
    with contextlib.suppress(CheckpointError):
        _read_all(open_torch(path))
