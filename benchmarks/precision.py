"""What lowering one part of Kokoro at a time does to its speech, against the same in f32.

    PYTHONPATH=src python benchmarks/precision.py FOLDER bf16 int8 [--clips 8] [--parts decoder …] [--dnsmos]

FOLDER holds Kokoro's weights. A part is the beginning of the names of its weights: all dense nodes on such weights are
computed in the precision, everything else in f32, with the same noise. Prints the part's share of the arithmetic, the
mean and largest |Δ log-mel| of a clip in dB where the durations stayed, and in how many clips a duration changed; with
--dnsmos (needs `speechmos`) the mean change of the overall score too. Clips are passages of prose.jsonl, voices taking
turns. This is what the precision policy is decided on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rounds

from sonant.backends.backend import Executable, Weights
from sonant.backends.native import NativeBackend
from sonant.checkpoint.cache import default_cache_root
from sonant.engine.load import available_cores, load_driver
from sonant.layers.scope import ARITHMETIC
from sonant.options import LoadOptions
from sonant.program.cost import cost
from sonant.program.program import Node, Program
from sonant.program.recipe import Recipe, recorded

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / "families" / "kokoro")]
import golden  # noqa: E402

PROSE = Path(__file__).with_name("prose.jsonl")
VOICES = ("af_heart", "am_michael")
PARTS = (
    "decoder.generator.resblocks",
    "decoder.generator.noise_res",
    "decoder.generator.ups",
    "decoder.generator.noise_convs",
    "decoder.generator.conv_post",
    "decoder.generator",
    "decoder.encode",
    "decoder.decode",
    "decoder",
    "predictor.F0",
    "predictor.N",
    "predictor.text_encoder",
    "text_encoder",
    "bert",
)


@dataclass(frozen=True)
class Take:
    """One clip: samples [S], frames [P] of its phonemes, and the sizes of its Programs."""

    samples: np.ndarray
    frames: np.ndarray

    @property
    def sizes(self) -> dict[str, int]:
        return {"P": len(self.frames), "T": int(self.frames.sum())}


class PartBackend:
    """The native backend, which lowers the dense nodes of one part of each Program before it loads it."""

    name = "native, one part lowered"

    def __init__(self, native: NativeBackend, part: str, precision: str) -> None:
        self.native, self.part, self.precision = native, part, precision
        self.programs: list[Program] = []

    def load(self, program: Program | Recipe, weights: Weights, *, cache: Path | None = None) -> Executable:
        return self.load_all([program], weights)[0]

    def load_all(
        self, programs: Sequence[Program | Recipe], weights: Weights, *, cache: Path | None = None
    ) -> Sequence[Executable]:
        dtype, arithmetic = ARITHMETIC[self.precision]
        lowered = [recorded(program) for program in programs]
        for program in lowered:
            for node in self.nodes(program):
                node.attrs["precision"], node.inputs[1].dtype = arithmetic, dtype
        self.programs += lowered
        return self.native.load_all(lowered, weights)

    def nodes(self, program: Program) -> list[Node]:
        """The dense nodes of the part, but for those on a weight that others than dense nodes read too."""
        others = {v for n in program.nodes if "precision" not in n.attrs for v in n.inputs}
        dense = (n for n in program.nodes if "precision" in n.attrs and n.inputs[1] not in others)
        return [n for n in dense if n.inputs[1].name.startswith(f"{self.part}.")]

    def share(self, sizes: dict[str, int]) -> float:
        """Of all arithmetic."""
        own, total = (
            sum(cost(node, sizes).flop for p in self.programs for node in nodes(p))
            for nodes in (self.nodes, lambda p: p.nodes)
        )
        return own / total


def takes(backend: Any, folder: Path, lines: Sequence[dict[str, str]], voices: Sequence[str]) -> list[Take]:
    """Every clip as this backend speaks it."""
    driver = load_driver(
        "kokoro-82m", backend, LoadOptions(precision="f32"), folder, None, default_cache_root(os.environ)
    )
    packs = [driver._catalog.get(name) for name in voices]
    seeds = (np.array([[0, i]], np.int32) for i in range(len(lines)))
    return [
        Take(*driver.speak_phonemes(line["phonemes"], packs[i % len(packs)], 1.0, seed))
        for i, (line, seed) in enumerate(zip(lines, seeds, strict=True))
    ]


def effect(lowered: list[Take], exact: list[Take], *, listen: bool) -> str:
    pairs = list(zip(lowered, exact, strict=True))
    same = [(a, b) for a, b in pairs if np.array_equal(a.frames, b.frames)]
    differences = [np.abs(golden.log_mel_db(a.samples) - golden.log_mel_db(b.samples)).mean() for a, b in same]
    mel = f"{np.mean(differences):7.3f} {max(differences):7.3f}" if same else f"{'–':>7} {'–':>7}"
    said = f"{mel} {len(pairs) - len(same):9d}"
    if listen:
        from dnsmos import heard

        change = np.mean([heard(a.samples)["overall"] - heard(b.samples)["overall"] for a, b in pairs])
        said += f" {change:+7.3f}"
    return said


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("precisions", nargs="+", choices=[p for p in ARITHMETIC if p != "f32"])
    arguments.add_argument("--clips", type=int, default=8)
    arguments.add_argument("--voices", nargs="+", default=VOICES)
    arguments.add_argument("--parts", nargs="+", default=PARTS)
    arguments.add_argument("--isa")
    arguments.add_argument("--lock", type=Path, help="a file that others on this machine lock while they compute")
    arguments.add_argument("--dnsmos", action="store_true")
    given = arguments.parse_args()
    lines = [json.loads(line) for line in PROSE.read_text(encoding="utf-8").splitlines()][: given.clips]
    native = NativeBackend(threads=available_cores(), isa=given.isa)
    turn = rounds.Turn(given.lock, shared=True)
    with turn:
        exact = takes(native, given.folder, lines, given.voices)
    heads = f"{'part':<30} {'in':<5} {'work':>6} {'mean dB':>7} {'largest':>7} {'durations':>9}"
    sys.stdout.write(f"{heads}{' overall' if given.dnsmos else ''}\n")
    for part in given.parts:
        for precision in given.precisions:
            backend = PartBackend(native, part, precision)
            with turn:
                lowered = takes(backend, given.folder, lines, given.voices)
                said = effect(lowered, exact, listen=given.dnsmos)
            share = backend.share(exact[0].sizes)
            if not share:
                raise SystemExit(f"no dense node has weights called {part}.…")
            sys.stdout.write(f"{part:<30} {precision:<5} {share:6.1%} {said}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
