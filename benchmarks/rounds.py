"""What comparisons of engines share: alternating fresh processes on a quiet machine, medians and ratios, the machine.

Runs that other work disturbed do not count where a quieter one of the same engine exists.
"""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
QUIET_CORES = 0.1
"""Runs during which other work took more than this do not count, where a quieter one exists."""

TURN_S = 40

Result = dict[str, Any]


class Failed(Exception):
    """A process that did not end well; says what it said last."""


class Turn:
    """Takes turns with others on this machine, who lock the same file while they compute: alone for what is timed, else
    with others who share it. A turn lasts over several pieces of work, and ends with one that ends after `TURN_S`.
    Without a file everyone is taken to be alone.
    """

    def __init__(self, lock: Path | None, *, shared: bool = False) -> None:
        self.lock, self.shared = lock, shared
        self._file: IO[str] | None = None
        self._began = 0.0

    def __enter__(self) -> None:
        if self.lock is not None and self._file is None:
            self._file = self.lock.open("a")
            fcntl.flock(self._file, fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX)
            self._began = time.time()

    def __exit__(self, *_: object) -> None:
        if self._file is not None and time.time() - self._began > TURN_S:
            self._file.close()
            self._file = None


def usual(more: Mapping[str, str]) -> dict[str, str]:
    """This environment as a user's, and `more`: whoever develops may have told Python to write no compiled files, and
    without them a start is mostly compiling."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | dict(more)


def output_of(command: list[str], environment: Mapping[str, str]) -> tuple[str, float]:
    """What a process writes, and how many cores other work kept busy meanwhile. Raises Failed."""
    own, busy, began = _children_s(), busy_s(), time.time()
    done = subprocess.run(command, env=usual(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(last_line(done.stderr))
    other_cores = (busy_s() - busy - (_children_s() - own)) / (time.time() - began)
    return done.stdout, round(other_cores, 3)


def first_byte_s(command: list[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds from the start of a process to the first byte of its output, and the most MiB it held until its end
    (never less than this process, whose mark it begins with). Raises Failed."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=usual(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        came = process.stdout.read(1)
        seconds = time.perf_counter() - began
        while process.stdout.read(1 << 20):
            pass
        said = process.stderr.read().decode(errors="replace")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not came:
        raise Failed(last_line(said))
    return seconds, used.ru_maxrss / 2**10


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def busy_s() -> float:
    """CPU seconds that all cores together have worked since the machine started."""
    fields = [int(n) for n in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(limit_s: float) -> None:
    """Until other work takes less than a tenth of one core, or the limit."""
    end = time.time() + limit_s
    while time.time() < end:
        before, began = busy_s(), time.time()
        time.sleep(0.5)
        if busy_s() - before < QUIET_CORES * (time.time() - began):
            return


def quiet(runs: list[Result]) -> list[Result]:
    """The runs of one engine that count."""
    limit = max(QUIET_CORES, min(r["other_cores"] for r in runs))
    return [r for r in runs if r["other_cores"] <= limit]


def figures(runs: Iterable[Result], name: str) -> list[float]:
    """A figure of every run that has it."""
    return [r[name] for r in runs if r.get(name) is not None]


def median(runs: Iterable[Result], name: str) -> float | None:
    found = figures(runs, name)
    return statistics.median(found) if found else None


def to_best(own: float | None, others: Iterable[float | None]) -> float | None:
    """A figure of which less is better, in parts of the best of the others."""
    known = [o for o in others if o is not None]
    return own / min(known) if own is not None and known else None


def machine() -> dict[str, str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": _git("rev-parse", "--short", "HEAD") + (" with changes" if changed else ""),
        "date": time.strftime("%Y-%m-%d"),
    }


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
