"""What the command reads and where it may write."""

from __future__ import annotations

import sys
from pathlib import Path

from sonant.errors import InputError


def read_stdin() -> str:
    """Raises InputError when it is not UTF-8."""
    return _utf8(sys.stdin.buffer.read(), "standard input")


def read_text(path: Path) -> str:
    """Raises InputError when the file cannot be read or is not UTF-8."""
    try:
        return _utf8(path.read_bytes(), str(path))
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from e


def _utf8(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"{name} is not UTF-8 (byte {e.start}); convert it first") from e


def check_writable(*paths: Path) -> None:
    """Say so before the work, not after it."""
    for path in paths:
        if path.is_dir():
            raise InputError(f"cannot write {path}: it is a folder")
        if not path.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {path.parent}")
