"""What the command reads and where it may write."""

from __future__ import annotations

import sys
from pathlib import Path

from sonant.errors import InputError


def given_text(text: str | None, file: Path | None) -> str:
    """The text of a command that takes TEXT, a --file, or standard input (`-`, or nothing but a pipe)."""
    if text is not None and file is not None:
        raise InputError("both TEXT and --file were given; give one of them")
    if file is not None and str(file) != "-":
        return read_text(file)
    if text is None and file is None and sys.stdin.isatty():
        raise InputError("there is no text: give TEXT, --file FILE, or - for standard input")
    return read_stdin() if text is None or text == "-" else text


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
