"""sonant and its peers on the same Kokoro weights, texts, voice and threads, alternating in one run.

    python benchmarks/kokoro_peers.py --weights FOLDER --rounds 5 --out benchmarks/results/kokoro_peers.json \
        sonant-f32:1 onnxruntime-int8:1 torch:1 vox-f32:1:/path/of/vox/python …

Each engine is NAME:THREADS[:PYTHON]. FOLDER holds config.json, kokoro-v1_0.pth, af_heart.bin (f32), and for the peers
their own forms of the same weights; benchmarks/README.md says how it is made. Prints medians and the ratio to the best
peer.
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
from pathlib import Path

WORKER = Path(__file__).with_name("kokoro_worker.py")
ROOT = Path(__file__).parent.parent
QUIET_CORES = 0.1
"""Runs during which other work took more than this do not count, where a quieter one exists."""
FIGURES = ("rtf", "rtf_short", "rtf_long", "sentence_ms", "cold_s", "rss_mib")
# The allocator settings under which torch is fastest; without them it returns memory to the system at every step.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


def run(engine: str, threads: str, python: str, weights: Path) -> dict[str, float]:
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "BENCH_STARTED": str(time.time())}
    if engine == "torch":
        environment |= TUNED_MALLOC
    done = subprocess.run(
        [python, "-W", "ignore", str(WORKER), engine, "--threads", threads, "--weights", str(weights)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{engine} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


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


def measured(engine: str, threads: str, python: str, weights: Path) -> dict[str, float]:
    """One run, and how many cores other work kept busy meanwhile."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy, began = busy_s(), time.time()
    result = run(engine, threads, python, weights)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_s = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    return {**result, "other_cores": round((busy_s() - busy - own_s) / (time.time() - began), 3)}


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


def table(results: list[dict[str, float]]) -> str:
    groups: dict[tuple[float, str], list[dict[str, float]]] = {}
    for r in results:
        alike = [o["other_cores"] for o in results if (o["engine"], o["threads"]) == (r["engine"], r["threads"])]
        if r["other_cores"] > max(QUIET_CORES, min(alike)):
            continue
        groups.setdefault((r["threads"], str(r["engine"])), []).append(r)
    lines = [
        "| threads | engine | rtf (spread) | short / long | sentence ms | cold start s | peak RSS MiB | to best peer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (threads, engine), runs in sorted(groups.items()):
        m = {f: statistics.median(r[f] for r in runs) for f in FIGURES}
        peers = [
            statistics.median(r["rtf"] for r in other)
            for (t, e), other in groups.items()
            if t == threads and not e.startswith("sonant")
        ]
        ratio = f"{m['rtf'] / min(peers):.2f}" if peers else "–"
        low, high = min(r["rtf"] for r in runs), max(r["rtf"] for r in runs)
        lines.append(
            f"| {threads:.0f} | {engine} | {m['rtf']:.3f} ({low:.3f}–{high:.3f}) | {m['rtf_short']:.3f} / "
            f"{m['rtf_long']:.3f} | {m['sentence_ms']:.0f} | {m['cold_s']:.2f} | {m['rss_mib']:.0f} | {ratio} |"
        )
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("engines", nargs="+")
    arguments.add_argument("--weights", type=Path, required=True)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--patience-s", type=float, default=60, help="how long to wait for a quiet machine")
    given = arguments.parse_args()
    results = []
    for number in range(given.rounds):
        for spec in given.engines:
            engine, threads, *python = spec.split(":")
            wait_for_quiet(given.patience_s)
            result = measured(engine, threads, python[0] if python else sys.executable, given.weights)
            results.append({**result, "round": number})
            sys.stderr.write(f"{spec.split(':/')[0]}: rtf {result['rtf']:.3f}, other cores {result['other_cores']}\n")
    sys.stdout.write(json.dumps(machine(), indent=1) + "\n" + table(results) + "\n")
    if given.out:
        given.out.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
