"""What benchmarks of engines share: alternating rounds of fresh processes on a quiet machine, medians, ratios, results.

Each engine is NAME:THREADS[:PYTHON], PYTHON being the interpreter that has it installed. A worker process prints its
figures as one JSON line; runs that other work disturbed do not count where a quieter one of the same engine exists.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
QUIET_CORES = 0.1
"""Runs during which other work took more than this do not count, where a quieter one exists."""

Result = dict[str, Any]
Groups = dict[tuple[int, str], list[Result]]
"""(threads, engine) → its runs"""


@dataclass(frozen=True)
class Engine:
    name: str
    threads: int
    python: str


def engine(spec: str) -> Engine:
    name, threads, *python = spec.split(":", 2)
    return Engine(name, int(threads), python[0] if python else sys.executable)


def parser() -> argparse.ArgumentParser:
    """The arguments that every comparison has."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("engines", nargs="+", type=engine, metavar="NAME:THREADS[:PYTHON]")
    arguments.add_argument("--weights", type=Path, required=True)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--patience-s", type=float, default=60, help="how long to wait for a quiet machine")
    return arguments


def alternate(
    given: argparse.Namespace,
    command: Callable[[Engine], list[str]],
    environment: Callable[[Engine], Mapping[str, str]] = lambda _: {},
) -> list[Result]:
    """Every engine once a round. command: the worker and its arguments; environment: what an engine needs set."""
    results = []
    for number in range(given.rounds):
        for one in given.engines:
            wait_for_quiet(given.patience_s)
            result = measured([one.python, "-W", "ignore", *command(one)], one, environment(one))
            results.append({**result, "engine": one.name, "threads": one.threads, "round": number})
            sys.stderr.write(
                f"{one.name}:{one.threads}: rtf {result['rtf']:.4f}, other cores {result['other_cores']}\n"
            )
    return results


def measured(command: list[str], one: Engine, environment: Mapping[str, str]) -> Result:
    """One run, and how many cores other work kept busy meanwhile."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy, began = busy_s(), time.time()
    variables = {**os.environ, "OMP_NUM_THREADS": str(one.threads), "BENCH_STARTED": str(began), **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{one.name} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    other_cores = (busy_s() - busy - own_s) / (time.time() - began)
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "other_cores": round(other_cores, 3)}


def busy_s() -> float:
    """CPU seconds that all cores together have worked since the machine started."""
    fields = [int(n) for n in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(limit_s: float) -> None:
    """Until other work takes less than a tenth of one core, or the limit."""
    end = time.time() + limit_s
    while time.time() < end:
        before = busy_s()
        time.sleep(1)
        if busy_s() - before < QUIET_CORES:
            return


def quiet(results: list[Result]) -> Groups:
    """The runs that count."""
    groups: Groups = {}
    for r in results:
        groups.setdefault((r["threads"], r["engine"]), []).append(r)
    return {
        key: [r for r in runs if r["other_cores"] <= max(QUIET_CORES, min(o["other_cores"] for o in runs))]
        for key, runs in sorted(groups.items())
    }


def median(runs: list[Result], figure: str) -> float:
    return statistics.median(r[figure] for r in runs)


def spread(runs: list[Result], digits: int) -> str:
    """rtf: median (lowest–highest)."""
    values = [r["rtf"] for r in runs]
    return f"{median(runs, 'rtf'):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def peers(groups: Groups, threads: int) -> dict[str, float]:
    """The median rtf of every engine but sonant, at a number of threads."""
    return {e: median(runs, "rtf") for (t, e), runs in groups.items() if t == threads and not e.startswith("sonant")}


def machine() -> dict[str, str]:
    name = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "cpu": name,
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
    }


def publish(results: list[Result], table: list[str], out: Path | None) -> None:
    """Print the machine and the table; write machine and results."""
    about = machine()
    sys.stdout.write(json.dumps(about, indent=1) + "\n" + "\n".join(table) + "\n")
    if out:
        out.write_text(json.dumps({"machine": about, "results": results}, indent=1) + "\n", encoding="utf-8")
