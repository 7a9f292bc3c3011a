"""How a Program is recorded, kept until somebody needs it: a backend that kept its Plan has no need of it."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sonant.program.program import Program

SHARED = ("program", "layers")
"""Rooms whose code decides, beside a family's own, what is recorded."""


class Recipe:
    """`function(*arguments, **options)`, a Program that is the same whenever these and the code are.

    The arguments are values whose repr says all that is in them: numbers, strings, tuples, dataclasses of those.
    """

    def __init__(self, function: Callable[..., Program], *arguments: Any, **options: Any) -> None:
        self._function, self._arguments, self._options = function, arguments, options
        self.name = ".".join([*function.__module__.split(".")[-2:-1], function.__name__])

    def record(self) -> Program:
        return self._function(*self._arguments, **self._options)

    def key(self) -> str | None:
        """Equal keys, equal Programs. None where the code cannot be read (a package without its sources)."""
        code = code_digest(Path(sys.modules[self._function.__module__].__file__ or "").parent)
        if code is None:
            return None
        given = (code, self._function.__module__, self._function.__qualname__, self._arguments, self._options)
        return hashlib.sha256(repr(given).encode()).hexdigest()


def recorded(program: Program | Recipe) -> Program:
    return program.record() if isinstance(program, Recipe) else program


def code_digest(family: Path) -> str | None:
    """Of the source files in the folder of a family and in the shared rooms, by content."""
    rooms = [family, *(Path(__file__).parents[1] / room for room in SHARED)]
    digests = [folder_digest(room) for room in rooms]
    return None if None in digests else "".join(map(str, digests))


@functools.cache
def folder_digest(folder: Path) -> str | None:
    """Of the names and the content of the .py files below a folder; None without any."""
    files = sorted(folder.rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest() if files else None
