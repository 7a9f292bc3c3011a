"""Restricted reader of torch archives (.pth, .pt; the zip form that torch >= 1.6 saves).

Nothing is executed: `pickle` is not used. A small interpreter walks the opcodes of data.pkl and knows only the
plain values, containers and three constructors that a state dict needs; every other opcode or global is refused
by name. Tensors are read-only views into the mapped file (copies where a member is deflated or misaligned).
Format: torch/serialization.py (`_legacy_save` is another, older form and refused), torch/_utils.py
(`_rebuild_tensor_v2`), Python's pickletools for the opcodes.
"""

from __future__ import annotations

import os
import reprlib
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from sonant.checkpoint.tensor import DTYPES, Tensor, array_at, element_count, map_file, possible_shape
from sonant.checkpoint.zip_members import STORED, Member, ZipMembers
from sonant.errors import CheckpointError

MAX_PICKLE_BYTES = 64 << 20  # the largest checkpoint of the families we know has 0.6 MB
MAX_DEPTH = 32
MAX_VALUES = 1_000_000

_STORAGE_DTYPES = {
    "DoubleStorage": "f64",
    "FloatStorage": "f32",
    "HalfStorage": "f16",
    "BFloat16Storage": "bf16",
    "LongStorage": "i64",
    "IntStorage": "i32",
    "ShortStorage": "i16",
    "CharStorage": "i8",
    "ByteStorage": "u8",
    "BoolStorage": "bool",
}


@dataclass(frozen=True)
class _Global:
    """A whitelisted name in the pickle: a symbol, never looked up in Python."""

    name: str


@dataclass(frozen=True)
class _Storage:
    """One storage of the archive: `count` elements of `dtype`, the bytes of `member`."""

    dtype: str
    count: int
    member: Member


_ORDERED_DICT = _Global("collections.OrderedDict")
_REBUILD_TENSOR = _Global("torch._utils._rebuild_tensor_v2")
_REBUILD_PARAMETER = _Global("torch._utils._rebuild_parameter")
_GLOBALS = {g.name: g for g in (_ORDERED_DICT, _REBUILD_TENSOR, _REBUILD_PARAMETER)} | {
    f"torch.{name}": _Global(f"torch.{name}") for name in _STORAGE_DTYPES
}
_MARK = _Global("<mark>")


def open_torch(path: str | os.PathLike[str]) -> Any:
    """The object saved in `path`: a Tensor, or (nested) dicts, lists and tuples of Tensors and plain values.

    CheckpointError names what was refused if the archive is damaged or holds anything else.
    """
    where, buffer = str(path), map_file(Path(path))
    if buffer[:2] == b"\x80\x02":
        raise CheckpointError(f"{where}: is in a form older than torch 1.6; load and save it once with torch")
    archive = ZipMembers(buffer, where)
    pickles = [name for name in archive.members if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise CheckpointError(f"{where}: has {len(pickles)} data.pkl members, wanted 1; it is not a torch archive")
    prefix = pickles[0].removesuffix("data.pkl")
    if (order := archive.members.get(prefix + "byteorder")) and (
        order.size_bytes != 6 or archive.content(order) != b"little"
    ):
        raise CheckpointError(f"{where}: was saved big-endian; load and save it once with torch on a common machine")
    member = archive.members[pickles[0]]
    if member.size_bytes > MAX_PICKLE_BYTES:
        raise CheckpointError(f"{where}: data.pkl claims {member.size_bytes} bytes, the limit is {MAX_PICKLE_BYTES}")
    value = _Interpreter(archive, prefix, archive.content(member)).run()
    _check_tree(value, where)
    return value


def flat_tensors(tree: object, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """(dotted name, Tensor) of every tensor in nested dicts; other values are passed over."""
    if isinstance(tree, Tensor):
        yield prefix, tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from flat_tensors(value, f"{prefix}.{key}" if prefix else str(key))


def _check_tree(value: object, where: str) -> None:
    """Refuse what makes a walk of the result endless: cycles, deep nesting, values repeated through the memo."""
    todo, seen = [(value, 0)], 0
    while todo:
        item, depth = todo.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            raise CheckpointError(f"{where}: data.pkl nests or repeats values beyond {MAX_DEPTH} levels; refused")
        if isinstance(item, dict):
            todo.extend((child, depth + 1) for child in item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend((child, depth + 1) for child in item)
        elif isinstance(item, (_Global, _Storage)):
            raise CheckpointError(f"{where}: data.pkl holds a bare {item}, wanted tensors and plain values")


class _Interpreter:
    """Stack, memo and mark of the pickle machine (pickletools.py), for the opcodes in _OPCODES only."""

    def __init__(self, archive: ZipMembers, prefix: str, code: bytes):
        self.archive, self.prefix, self.code = archive, prefix, code
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.arrays: dict[_Storage, Any] = {}

    def error(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.archive.where}: data.pkl, byte {self.at}: {what}")

    def run(self) -> Any:
        while True:
            opcode = self.take(1)
            if opcode == b".":
                value = self.pop()
                if self.stack:
                    raise self.error("ends with values left over")
                return value
            handler = _OPCODES.get(opcode)
            if handler is None:
                raise self.error(f"opcode {opcode!r} is not allowed in a tensor archive; refused")
            handler(self)

    # -- the bytes and the stack --

    def take(self, count: int) -> bytes:
        if count > len(self.code) - self.at:
            raise self.error("ends too early; the file is truncated, fetch it again")
        self.at += count
        return self.code[self.at - count : self.at]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.error("takes a value from an empty stack")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.error("looks at an empty stack")
        return self.stack[-1]

    def pop_to_mark(self) -> list[Any]:
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                values = self.stack[i + 1 :]
                del self.stack[i:]
                return values
        raise self.error("has no mark")

    # -- plain values --

    def protocol(self) -> None:
        if (version := self.number("<B")) not in range(2, 6):
            raise self.error(f"pickle protocol {version}, wanted 2 to 5")

    def text(self, layout: str) -> str:
        try:
            return self.take(self.number(layout)).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error("a string is not UTF-8") from error

    def long(self) -> None:
        count = self.number("<B")
        if count > 8:
            raise self.error(f"an integer of {count} bytes; at most 8 are read")
        self.push(int.from_bytes(self.take(count), "little", signed=True))

    def get(self, layout: str) -> None:
        index = self.number(layout)
        if index not in self.memo:
            raise self.error(f"memo {index} is not set")
        self.push(self.memo[index])

    # -- containers --

    def items(self, pairs: list[Any]) -> None:
        target = self.top()
        if not isinstance(target, dict) or len(pairs) % 2:
            raise self.error("sets items of something that is not a dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, (str, int)):
                raise self.error(f"a dict key of type {type(key).__name__}, wanted str or int")
            if key in target:
                raise self.error(f"sets the key {key!r} twice")
            target[key] = value

    def append(self, values: list[Any]) -> None:
        if not isinstance(self.top(), list):
            raise self.error("appends to something that is not a list")
        self.top().extend(values)

    def tuple_of(self, count: int) -> None:
        self.push(tuple([self.pop() for _ in range(count)][::-1]))

    def build(self) -> None:
        """Attributes of an OrderedDict: torch hangs `_metadata` (module versions) on a state dict. Dropped."""
        state = self.pop()
        if not isinstance(self.top(), OrderedDict) or not isinstance(state, dict) or set(state) != {"_metadata"}:
            raise self.error("BUILD on something other than a state dict's _metadata; refused")

    # -- names and tensors --

    def line(self) -> str:
        end = self.code.find(b"\n", self.at)
        if end < 0:
            raise self.error("a name without an end; the file is truncated, fetch it again")
        return self.take(end + 1 - self.at)[:-1].decode("utf-8", "replace")

    def known_global(self, module: object, name: object) -> None:
        found = _GLOBALS.get(f"{module}.{name}") if isinstance(module, str) and isinstance(name, str) else None
        if found is None:
            raise self.error(
                f"refers to {_shown(module)}.{_shown(name)}, which is not part of a plain state dict; refused "
                "(nothing was executed). Save the model's state_dict() and load that"
            )
        self.push(found)

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.known_global(module, name)

    def reduce(self) -> None:
        args, function = self.pop(), self.pop()
        if not isinstance(args, tuple) or not isinstance(function, _Global):
            raise self.error("calls something that is not a whitelisted name; refused")
        if function is _ORDERED_DICT and args == ():
            self.push(OrderedDict())
        elif function is _REBUILD_TENSOR and len(args) in (6, 7):
            self.push(self.tensor(*args[:4]))
        elif function is _REBUILD_PARAMETER and len(args) == 3 and isinstance(args[0], Tensor):
            self.push(args[0])
        else:
            raise self.error(f"calls {function.name} with {len(args)} unexpected arguments; refused")

    def persistent(self) -> None:
        """('storage', type, key, device, element count) → a storage of the archive."""
        value = self.pop()
        if not isinstance(value, tuple) or len(value) != 5 or value[0] != "storage":
            raise self.error("a persistent id that is not a storage; refused")
        kind, key, count = value[1], value[2], value[4]
        dtype = _STORAGE_DTYPES.get(kind.name.removeprefix("torch.")) if isinstance(kind, _Global) else None
        if dtype is None or not isinstance(key, str) or type(count) is not int or count < 0:
            raise self.error("a storage with a wrong type, key or size; refused")
        member = self.archive.members.get(f"{self.prefix}data/{key}")
        if member is None:
            raise self.error(f"storage {_shown(key)} is not in the archive")
        if member.size_bytes != count * DTYPES[dtype].itemsize:
            raise self.error(f"storage {key!r} has {member.size_bytes} bytes, wanted {count} elements of {dtype}")
        self.push(_Storage(dtype, count, member))

    def tensor(self, storage: object, offset: object, shape: object, strides: object) -> Tensor:
        if not isinstance(storage, _Storage):
            raise self.error("a tensor without a storage; refused")
        if not (_sizes(shape) and _sizes(strides) and type(offset) is int and len(shape) == len(strides)):
            raise self.error(f"a tensor with offset {_shown(offset)}, shape {_shown(shape)}, strides {_shown(strides)}")
        count = element_count(shape)
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if count else offset
        # an expanded tensor (stride 0) may claim more elements than are stored: a bomb once copied
        if count > storage.count or (count and last >= storage.count) or not 0 <= offset <= storage.count:
            raise self.error(
                f"a tensor of shape {shape}, strides {strides}, offset {offset} "
                f"does not fit its storage of {storage.count} elements"
            )
        if count == 0:
            return Tensor(np.zeros(shape, DTYPES[storage.dtype]), storage.dtype)
        flat = self.flat(storage)
        steps = tuple(step * flat.itemsize for step in strides)
        view = np.lib.stride_tricks.as_strided(flat[offset : last + 1], shape, steps, writeable=False)
        return Tensor(view, storage.dtype)

    def flat(self, storage: _Storage) -> Any:
        """The storage as one row; made once, so that many tensors of it cannot multiply a copy."""
        if storage not in self.arrays:
            member, shape = storage.member, (storage.count,)
            if member.method == STORED:
                self.arrays[storage] = array_at(self.archive.buffer, member.offset, storage.dtype, shape)
            else:
                self.arrays[storage] = array_at(self.archive.content(member), 0, storage.dtype, shape)
        return self.arrays[storage]


def _shown(value: object) -> str:
    """A short form that does not recurse into what a hostile file nested."""
    return value[:80] if isinstance(value, str) else reprlib.repr(value)


def _sizes(value: object) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple) and all(type(n) is int and n >= 0 for n in value) and possible_shape(value)


_Handler = Callable[[_Interpreter], None]
_OPCODES: dict[bytes, _Handler] = {
    b"\x80": _Interpreter.protocol,
    b"\x95": lambda m: m.number("<Q") and None,  # FRAME: a hint about buffering only
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"J": lambda m: m.push(m.number("<i")),
    b"\x8a": _Interpreter.long,
    b"G": lambda m: m.push(m.number(">d")),
    b"X": lambda m: m.push(m.text("<I")),
    b"\x8c": lambda m: m.push(m.text("<B")),
    b"(": lambda m: m.push(_MARK),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.pop_to_mark())),
    b"\x85": lambda m: m.tuple_of(1),
    b"\x86": lambda m: m.tuple_of(2),
    b"\x87": lambda m: m.tuple_of(3),
    b"]": lambda m: m.push([]),
    b"a": lambda m: m.append([m.pop()]),
    b"e": lambda m: m.append(m.pop_to_mark()),
    b"}": lambda m: m.push({}),
    b"s": lambda m: m.items([m.pop(), m.pop()][::-1]),
    b"u": lambda m: m.items(m.pop_to_mark()),
    b"q": lambda m: m.memo.__setitem__(m.number("<B"), m.top()),
    b"r": lambda m: m.memo.__setitem__(m.number("<I"), m.top()),
    b"\x94": lambda m: m.memo.__setitem__(len(m.memo), m.top()),
    b"h": lambda m: m.get("<B"),
    b"j": lambda m: m.get("<I"),
    b"c": lambda m: m.known_global(m.line(), m.line()),
    b"\x93": _Interpreter.stack_global,
    b"R": _Interpreter.reduce,
    b"b": _Interpreter.build,
    b"Q": _Interpreter.persistent,
}
