"""The members of a zip file as byte ranges: the part of zip that torch archives use, every field checked.

Stored members stay where they are, so a mapped file gives tensors without a copy; deflated ones are inflated to
exactly their declared size, which the caller has judged first. Encryption, several disks, duplicate names and
ranges outside the file are refused. CRCs are not compared: torch can be told to write none (`set_crc32_options`).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from sonant.checkpoint.tensor import Buffer
from sonant.errors import CheckpointError

STORED, DEFLATED = 0, 8
MAX_MEMBERS = 1_000_000
MAX_RATIO = 64  # of inflated to stored bytes: weights never come near it, a zip bomb needs more

_END = struct.Struct("<4s4H2LH")  # end of central directory
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_U32, _U16 = 0xFFFFFFFF, 0xFFFF


@dataclass(frozen=True)
class Member:
    """`size_bytes` after inflation; `stored_bytes` in the file, from `offset`."""

    name: str
    method: int
    offset: int
    stored_bytes: int
    size_bytes: int


class ZipMembers:
    """The directory of a zip file held in `buffer`; `where` names the file in errors."""

    def __init__(self, buffer: Buffer, where: str):
        self.buffer, self.where = buffer, where
        self.members: dict[str, Member] = {}
        at, count, end = self._directory()
        for _ in range(count):
            at = self._read_central(at, end)
        self._refuse_overlaps()

    def content(self, member: Member) -> bytes:
        """All bytes of a member, inflated if it is deflated. Judge `size_bytes` before calling."""
        raw = self.buffer[member.offset : member.offset + member.stored_bytes]
        if member.method == STORED:
            return raw
        inflater = zlib.decompressobj(-15)
        try:
            content = inflater.decompress(raw, member.size_bytes + 1)
        except zlib.error as error:
            raise self._error(f"member {member.name!r} does not inflate ({error})") from error
        if len(content) != member.size_bytes or not inflater.eof:
            raise self._error(f"member {member.name!r} does not inflate to its declared {member.size_bytes} bytes")
        return content

    def _error(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.where}: {what}; the file is truncated or damaged, fetch it again")

    def _unpack(self, layout: struct.Struct, at: int, signature: bytes, what: str) -> tuple[int, ...]:
        if at < 0 or at + layout.size > len(self.buffer):
            raise self._error(f"{what} lies outside the file")
        found, *fields = layout.unpack_from(self.buffer, at)
        if found != signature:
            raise self._error(f"no {what} at byte {at}")
        return tuple(fields)

    def _directory(self) -> tuple[int, int, int]:
        """(start, number of members, end) of the central directory."""
        size = len(self.buffer)
        at = self.buffer.rfind(b"PK\5\6", max(0, size - _END.size - _U16))
        if at < 0:
            raise self._error("not a zip archive (no end record)")
        disk, start_disk, here, count, length, start, _ = self._unpack(_END, at, b"PK\5\6", "end record")
        if _U16 in (here, count) or _U32 in (length, start):
            _, at64, _ = self._unpack(_END64_LOCATOR, at - _END64_LOCATOR.size, b"PK\6\7", "zip64 locator")
            fields = self._unpack(_END64, at64, b"PK\6\6", "zip64 end record")
            disk, start_disk, here, count, length, start = fields[3:]
        if disk or start_disk or here != count:
            raise self._error("the archive spans several disks")
        if count > MAX_MEMBERS or start + length > at:
            raise self._error(f"the directory claims {count} members in {length} bytes at {start}")
        return start, count, start + length

    def _read_central(self, at: int, end: int) -> int:
        fields = self._unpack(_CENTRAL, at, b"PK\1\2", "directory entry")
        flags, method, stored, size = fields[2], fields[3], fields[7], fields[8]
        name_bytes, extra_bytes, comment_bytes, offset = fields[9], fields[10], fields[11], fields[15]
        name_at = at + _CENTRAL.size
        extra_at = name_at + name_bytes
        after = extra_at + extra_bytes + comment_bytes
        if after > end:
            raise self._error("a directory entry runs past the directory")
        try:
            name = self.buffer[name_at:extra_at].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._error("a member name is not UTF-8") from error
        extra = self.buffer[extra_at : extra_at + extra_bytes]
        size, stored, offset = self._zip64(extra, size, stored, offset)
        if flags & 1:
            raise CheckpointError(f"{self.where}: member {name!r} is encrypted; wanted a plain archive")
        if name in self.members:
            raise CheckpointError(f"{self.where}: two members are named {name!r}; the archive is refused")
        self.members[name] = self._located(name, method, offset, stored, size)
        return after

    def _zip64(self, extra: bytes, *fields: int) -> list[int]:
        """Sizes and offset; a field of all ones stands in the zip64 extra field, in this order."""
        wide: list[int] = []
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<2H", extra, at)
            if kind == 1 and at + 4 + length <= len(extra):
                wide = list(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            at += 4 + length
        out = []
        for value in fields:
            if value == _U32:
                if not wide:
                    raise self._error("a zip64 size is missing")
                value = wide.pop(0)
            out.append(value)
        return out

    def _located(self, name: str, method: int, offset: int, stored: int, size: int) -> Member:
        """The member with its data offset, which only the local header knows."""
        if method not in (STORED, DEFLATED) or (method == STORED and stored != size):
            raise CheckpointError(f"{self.where}: member {name!r} has method {method}; wanted stored or deflate")
        fields = self._unpack(_LOCAL, offset, b"PK\3\4", f"local header of {name!r}")
        data_at = offset + _LOCAL.size + fields[8] + fields[9]
        if method == DEFLATED and size > MAX_RATIO * (stored + MAX_RATIO):
            raise CheckpointError(f"{self.where}: member {name!r} claims to inflate {stored} bytes to {size}; refused")
        if data_at + stored > len(self.buffer):
            raise self._error(f"member {name!r} ends outside the file")
        return Member(name, method, data_at, stored, size)

    def _refuse_overlaps(self) -> None:
        """Members that share bytes are how a small file claims an endless one."""
        end = 0
        for member in sorted(self.members.values(), key=lambda m: m.offset):
            if member.offset < end:
                raise CheckpointError(f"{self.where}: member {member.name!r} overlaps another; the archive is refused")
            end = member.offset + member.stored_bytes
