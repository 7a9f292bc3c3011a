"""sonant and its peers stream the same frames from the same random weights, alternating in one run.

    python benchmarks/streaming_peers.py --weights FOLDER --model phonon --out benchmarks/results/phonon.json \
        sonant-q8:2 sonant-f32:2 ptts-f32:2:/path/of/its/python ptts-q8:2:/path/of/its/python …

FOLDER is what streaming_checkpoints.py wrote. Prints medians, how many times faster each sonant is than each peer, and
how far each engine's audio is from the first engine's, in parts of the loudest sample: the same numbers say the same.
"""

from __future__ import annotations

import argparse
import tempfile
from array import array
from pathlib import Path

import rounds

WORKER = Path(__file__).with_name("streaming_worker.py")
FADED = 240
"""The first samples are not compared: pocket_tts fades in."""


def compared(results: list[rounds.Result], folder: Path) -> list[rounds.Result]:
    """The results with their difference to the first engine's audio."""
    said = {
        (r["engine"], r["threads"]): array("f", audio(folder, r["engine"], r["threads"]).read_bytes()) for r in results
    }
    reference = next(iter(said.values()))
    loudest = max(map(abs, reference))
    differences = {
        key: max(abs(a - b) for a, b in zip(samples[FADED:], reference[FADED:], strict=True)) / loudest
        for key, samples in said.items()
    }
    return [{**r, "difference": differences[r["engine"], r["threads"]]} for r in results]


def audio(folder: Path, engine: str, threads: int) -> Path:
    return folder / f"{engine}-{threads}.f32"


def table(groups: rounds.Groups, streams: int) -> list[str]:
    figures = (
        ("ms / frame", "frame_ms", ".2f"),
        ("CPU ms / frame", "cpu_frame_ms", ".2f"),
        ("first audio ms", "ttfa_ms", ".1f"),
        ("load s", "load_s", ".2f"),
        ("peak RSS MiB", "rss_mib", ".0f"),
        ("above Python with numpy MiB", "loaded_mib", ".0f"),
        ("difference", "difference", ".0e"),
    )
    heads = ["threads", "engine", "rtf (spread)", *(head for head, _, _ in figures), "times faster than"]
    heads += [f"{streams} streams"] * (streams > 1)
    lines = [row(heads), "|---" * len(heads) + "|"]
    for (threads, engine), runs in groups.items():
        cells = [str(threads), engine, rounds.spread(runs, 4)]
        cells += [format(rounds.median(runs, name), digits) for _, name, digits in figures]
        rtf = rounds.median(runs, "rtf")
        peers = rounds.peers(groups, threads) if engine.startswith("sonant") else {}
        cells.append(", ".join(f"{peer} {slower / rtf:.2f}" for peer, slower in peers.items()) or "–")
        if streams > 1:
            gains = [r for r in runs if "streams_gain" in r]
            cells.append(f"× {rounds.median(gains, 'streams_gain'):.2f}" if gains else "–")
        lines.append(row(cells))
    return lines


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def command(given: argparse.Namespace, folder: Path, one: rounds.Engine) -> list[str]:
    options = {"threads": one.threads, "weights": given.weights, "model": given.model, "frames": given.frames}
    options |= {"calls": given.calls, "audio": audio(folder, one.name, one.threads)}
    if one.name.startswith("sonant"):
        options["streams"] = given.streams
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [str(WORKER), one.name, *words, *(["--pin"] if given.pin else [])]


def main() -> None:
    parser = rounds.parser()
    parser.add_argument("--model", required=True, help="phonon, pocket-100m, pocket-2m or pocket-24l")
    parser.add_argument("--frames", type=int, default=200, help="50 to 225 in steps of 25")
    parser.add_argument("--calls", type=int, default=3, help="measured calls in a process")
    parser.add_argument("--streams", type=int, default=1, help="also as many at once (sonant)")
    parser.add_argument("--pin", action="store_true", help="each engine on as many cores as it is given threads")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = rounds.alternate(given, lambda e: command(given, Path(folder), e))
        results = compared(results, Path(folder))
    rounds.publish(results, table(rounds.quiet(results), given.streams), given.out)


if __name__ == "__main__":
    main()
