"""sonant and every peer that is installed, on the same weights, texts, voice and threads, alternating in one run.

    PYTHONPATH=src python benchmarks/peers.py kokoro phonon --weights FOLDER --threads 2 1 --rounds 3 \\
        --python /an/environment/bin/python --python /another/bin/python --out benchmarks/results/peers

FOLDER has a folder for each model (benchmarks/README.md says how they are made). Peers are looked for in this
interpreter and in those given; one that is found nowhere, lacks its form of the weights or fails at its first run is
named as absent. Writes OUT.json, OUT.md (tables) and OUT.svg, after every round.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import report
import rounds
from engines import SAMPLE_RATE, Engine, is_sonant, sonant_cache
from worker import MODELS

WORKER = Path(__file__).with_name("worker.py")
# The allocator settings under which torch is fastest; without them it returns memory to the system at every step.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
COMPARED = slice(240, 2 * SAMPLE_RATE)
"""Samples: pocket_tts fades in, and later on random weights have made much of every rounding."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """An engine that takes part."""

    model: str
    name: str
    threads: int
    python: str
    folder: Path

    @property
    def label(self) -> str:
        return f"{self.model} {self.name} at {self.threads} threads"

    @property
    def environment(self) -> dict[str, str]:
        own = {"OMP_NUM_THREADS": str(self.threads), "SONANT_CACHE": str(sonant_cache(self.folder))}
        return own | (TUNED_MALLOC if self.name == "torch" else {})

    def worker(self, *options: str) -> list[str]:
        command = [self.python, "-W", "ignore", str(WORKER), self.model, self.name]
        return [*command, "--threads", str(self.threads), "--weights", str(self.folder), *options]

    def sonant(self, verb: str, *options: str) -> list[str]:
        chosen = MODELS[self.model].options(self.folder, self.name, self.threads)
        return [self.python, "-m", "sonant.cli", verb, *options, *chosen]

    def first(self) -> list[str]:
        """The command that says one sentence, from nothing."""
        if not is_sonant(self.name):
            return self.worker("--first")
        model = MODELS[self.model]
        return self.sonant("say", model.texts(self.folder)[0].text, "--model", model.name, "-o", "-", "--quiet")


def found(given: argparse.Namespace, absent: dict[str, str]) -> Iterator[Entry]:
    """Who takes part; fills `absent` with the others, and why."""
    installed = {python: packages(python) for python in [sys.executable, *given.python]}
    for model in given.models:
        folder = given.weights / model
        if not folder.is_dir():
            absent[model] = f"no folder {model} among the weights"
            continue
        for name in given.engines or [*MODELS[model].sonant, *MODELS[model].engines]:
            try:
                engine = MODELS[model].engine(name)
            except KeyError:
                absent[f"{model} {name}"] = "not an engine of this model"
                continue
            python = sys.executable if is_sonant(name) else place(engine, installed)
            lacking = [file for file in engine.files if not (folder / file).is_file()]
            if python is None:
                absent[f"{model} {name}"] = f"no interpreter has {' and '.join(engine.packages)}"
            elif lacking:
                absent[f"{model} {name}"] = f"no {', '.join(lacking)} among the weights"
            else:
                yield from (Entry(model, name, threads, python, folder) for threads in given.threads)


def packages(python: str) -> set[str]:
    listing = "import importlib.metadata as m; print(*{d.metadata['Name'].lower() for d in m.distributions()})"
    return set(subprocess.run([python, "-c", listing], capture_output=True, text=True, check=True).stdout.split())


def place(engine: Engine, installed: dict[str, set[str]]) -> str | None:
    """The first interpreter that has all that it needs."""
    return next((python for python, names in installed.items() if names.issuperset(engine.packages)), None)


def run(entry: Entry, options: list[str], audio: Path) -> rounds.Result:
    """One round of one engine: a start from nothing, then all texts. Raises rounds.Failed."""
    cold_s, cold_rss_mib = rounds.first_byte_s(entry.first(), entry.environment)
    said, other_cores = rounds.output_of(entry.worker("--audio", str(audio), *options), entry.environment)
    result = json.loads(said.strip().splitlines()[-1])
    name = {"model": entry.model, "engine": entry.name, "threads": entry.threads}
    return {**name, **result, "cold_s": cold_s, "cold_rss_mib": cold_rss_mib, "other_cores": other_cores}


def floor(entry: Entry) -> dict[str, object]:
    """What the ceilings of this machine allow: the least rtf for what sonant computes, from `sonant perf`."""
    model = MODELS[entry.model]
    text = model.texts(entry.folder)[0].text
    profile = json.loads(rounds.output_of(entry.sonant("perf", model.name, text, "--json"), entry.environment)[0])
    nodes, audio_s = profile["nodes"], profile["audio_s"]
    return {
        "model": entry.model,
        "engine": entry.name,
        "threads": entry.threads,
        "rtf": sum(n["floor_s"] for n in nodes) / audio_s,
        "gflop_per_s": sum(n["flop"] for n in nodes) / audio_s / 1e9,
        "ceilings": profile["ceilings"],
    }


def alternate(
    given: argparse.Namespace, entries: list[Entry], absent: dict[str, str], folder: Path
) -> Iterator[report.Report]:
    """A round that does not count, which fills caches and shows who can take part; then every engine once a round, and
    what is known after it."""
    about, turn, results = rounds.machine(), rounds.Turn(given.lock), []
    able, floors = able_ones(given, entries, absent, turn)
    options = ["--streams", str(given.streams)] if given.streams > 1 else []
    options += ["--pin"] if given.pin else []
    for number in range(given.rounds):
        for entry in list(able):
            with turn:
                rounds.wait_for_quiet(given.patience_s)
                try:
                    result = run(entry, options, audio(folder, entry.model, entry.name, entry.threads))
                except rounds.Failed as why:
                    absent[entry.label] = f"failed in round {number + 1}: {why}"
                    able.remove(entry)
                    continue
            results.append({**result, "round": number})
            heard = f"rtf {result['rtf']:.4f}, other cores {result['other_cores']}"
            sys.stderr.write(f"{entry.model} {entry.name}:{entry.threads}: {heard}\n")
        yield report.Report(about, absent, floors, [*compared(results, folder)])


def able_ones(
    given: argparse.Namespace, entries: list[Entry], absent: dict[str, str], turn: rounds.Turn
) -> tuple[list[Entry], list[dict[str, object]]]:
    """Those whose first run does not fail, and the floors of sonant's."""
    able, floors = [], []
    for entry in entries:
        with turn:
            rounds.wait_for_quiet(given.patience_s)
            try:
                rounds.first_byte_s(entry.first(), entry.environment)
                floors += [floor(entry)] if is_sonant(entry.name) else []
                able.append(entry)
            except rounds.Failed as why:
                absent[entry.label] = f"failed: {why}"
    return able, floors


def say_absent(absent: dict[str, str]) -> None:
    for name, why in absent.items():
        sys.stderr.write(f"ABSENT: {name}: {why}\n")


def audio(folder: Path, model: str, engine: str, threads: int) -> Path:
    return folder / f"{model}-{engine}-{threads}.f32"


def compared(results: list[rounds.Result], folder: Path) -> Iterable[rounds.Result]:
    """Where every engine says the same number of frames: how far the audio is from the first one's, in parts of the
    loudest sample."""
    first: dict[str, rounds.Result] = {}
    for r in results:
        if MODELS[r["model"]].calls > 1:
            base = _samples(folder, first.setdefault(r["model"], r))
            pairs = zip(_samples(folder, r), base, strict=True)
            r["difference"] = max(abs(a - b) for a, b in pairs) / max(map(abs, base))
        yield r


def _samples(folder: Path, r: rounds.Result) -> array[float]:
    return array("f", audio(folder, r["model"], r["engine"], r["threads"]).read_bytes())[COMPARED]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=[*MODELS], metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--weights", type=Path, required=True, help="a folder with a folder for each model")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, choices=range(1, 100), metavar="N", default=3)
    parser.add_argument("--engines", nargs="+", help="sonant-PRECISION, sonant-PRECISION-ISA, or names of peers")
    parser.add_argument("--python", action="append", default=[], help="an interpreter that has peers installed")
    parser.add_argument("--out", type=Path, required=True, help="without suffix: .json, .md and .svg are written")
    parser.add_argument("--streams", type=int, default=1, help="also as many at once (sonant's streaming models)")
    parser.add_argument("--pin", action="store_true", help="each engine on as many cores as it is given threads")
    parser.add_argument("--lock", type=Path, help="a file that others on this machine lock while they compute")
    parser.add_argument("--patience-s", type=float, default=30, help="how long to wait for a quiet machine")
    given = parser.parse_args()
    for model in given.models:
        if model not in MODELS:
            parser.error(f"no model {model}; there are {', '.join(MODELS)}")
    return given


def main() -> None:
    given = arguments()
    absent: dict[str, str] = {}
    entries = list(found(given, absent))
    say_absent(absent)
    with tempfile.TemporaryDirectory() as folder:
        for made in alternate(given, entries, absent, Path(folder)):
            made.write(given.out)
    sys.stdout.write(given.out.with_suffix(".md").read_text(encoding="utf-8"))
    say_absent(absent)


if __name__ == "__main__":
    main()
