"""One process at a time: a lock on a file, given back by the system when its holder dies."""

from __future__ import annotations

import contextlib
import errno
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sonant.errors import CheckpointError

_POLL_S = 0.1
_BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock at `path` (made if need be, never removed). Yields whether it is held: with `wait`, always.

    Where the file system has no locks, all hold it: files still appear by rename only, and digests are checked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "ab")  # noqa: SIM115 - closed below
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written ({error.strerror or error})") from error
    with file:
        held = _acquire(file.fileno())
        while wait and not held:
            time.sleep(_POLL_S)
            held = _acquire(file.fileno())
        yield held


if sys.platform == "win32":
    import msvcrt

    def _acquire(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            return error.errno not in _BUSY
        return True

else:
    import fcntl

    def _acquire(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _BUSY
        return True
