"""What one step of Phonon 31M and one call of its codec take on the native backend, op by op, with random weights.

    PYTHONPATH=src python benchmarks/native_steps.py [step codec] [--precision f32 q8] [--threads 1] [--isa avx2]
        [--streams 1 8] [--frames 1 8] [--ops]

Each figure is the least of many runs, in processor time for one thread (what else runs on the machine disturbs it less)
and in elapsed time for more. `python` is the time of a run outside the kernels and the executor.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np

from sonant.backends.native import NativeBackend
from sonant.families.phonon import model
from sonant.families.phonon.config import PhononConfig
from sonant.layers.flow import FlowShape
from sonant.layers.mimi import MimiShape
from sonant.layers.seanet import SeanetShape
from sonant.layers.transformer import TransformerShape
from sonant.program.program import Program

CONFIG = PhononConfig(
    lm=TransformerShape(512, 6, 8, 8, 64, 2048),
    flow=FlowShape("lsd", 32, 512, 512, 6),
    codec=MimiShape(32, 16, TransformerShape(512, 2, 8, 8, 64, 2048, window=251, layer_scale=True),
                    SeanetShape(512, 64, (6, 5, 4), 7, 3, 3)),
    speakers=None, delta=None, text_rows=4001, voice_width=512, time_norm="mean_square",
    sample_rate=24000, frame_rate_hz=12.5, temperature=0.3, eos_threshold=4.0,
)  # fmt: skip
POSITION = 300
MMAC = {"step": 29.1, "codec": 270.7}
"""Million products of a step of one stream, and of a frame of the codec."""


def weights_of(program: Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    found = {}
    for name, v in program.weights.items():
        scale = 1.0 if len(v.shape) == 1 else 1.0 / np.sqrt(np.prod(v.shape[1:]))
        found[name] = (scale * rng.standard_normal(v.shape)).astype(np.float32)
    return found


def step_inputs(b: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {
        "latent": rng.standard_normal((b, 1, 32)).astype(np.float32),
        "condition": rng.standard_normal((b, 1, 512)).astype(np.float32),
        "rows": np.arange(b, dtype=np.int32), "position": np.full(b, POSITION, np.int32),
        "seed": np.ones((b, 2), np.int32), "frame": np.zeros(b, np.int32), "temperature": np.ones(b, np.float32),
    }  # fmt: skip


def codec_inputs(frames: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "latents": rng.standard_normal((1, frames, 32)).astype(np.float32),
        "rows": np.zeros(1, np.int32), "frame": np.full(1, 40, np.int32),
    }  # fmt: skip


def least(run: Callable[[], object], clock: Callable[[], float], budget_s: float) -> float:
    run()
    best, until = np.inf, time.perf_counter() + budget_s
    while time.perf_counter() < until:
        start = clock()
        run()
        best = min(best, clock() - start)
    return best


def measure(name: str, precision: str, count: int, options: argparse.Namespace) -> None:
    program = (model.step_program if name == "step" else model.codec_program)(CONFIG, precision=precision)
    executable = NativeBackend(threads=options.threads, isa=options.isa).load(program, weights_of(program))
    states = executable.create_states(count if name == "step" else 1)
    inputs = step_inputs(count) if name == "step" else codec_inputs(count)
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    taken = least(lambda: executable.run(inputs, states=states), clock, options.budget)
    peak = 2e-3 * MMAC[name] * count / taken
    text = (f"{name} {precision} x{count} {executable.backend.isa} {options.threads} threads: {1e3 * taken:8.3f} ms, "
            f"{1e3 * taken / count:7.3f} ms each, {peak:6.1f} GFLOP/s\n")
    sys.stdout.write(text)
    sys.stdout.flush()
    if options.ops:
        seconds = np.zeros(len(executable.nodes))
        runs = 30
        for _ in range(runs):
            executable.run(inputs, states=states, seconds=seconds)
        by_op: Counter[str] = Counter()
        for node, spent in zip(executable.nodes, seconds, strict=True):
            by_op[node.op] += spent
        for op, spent in by_op.most_common():
            sys.stdout.write(f"    {op:20} {1e6 * spent / runs:9.1f} us\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["step", "codec"])
    parser.add_argument("--precision", nargs="+", default=["f32", "q8"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--frames", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--budget", type=float, default=2.0)
    parser.add_argument("--ops", action="store_true", help="the time of each op as well (elapsed time)")
    options = parser.parse_args()
    for name in options.what:
        for precision in options.precision:
            for count in options.streams if name == "step" else options.frames:
                measure(name, precision, count, options)


if __name__ == "__main__":
    main()
