"""sonant and its peers on the same Kokoro weights, texts, voice and threads, alternating in one run.

    python benchmarks/kokoro_peers.py --weights FOLDER --rounds 5 --out benchmarks/results/kokoro_peers.json \
        sonant-f32:1 onnxruntime-int8:1 torch:1 vox-f32:1:/path/of/vox/python …

FOLDER holds config.json, kokoro-v1_0.pth, af_heart.bin (f32), and for the peers their own forms of the same weights;
benchmarks/README.md says how it is made. Prints medians and the ratio to the best peer.
"""

from __future__ import annotations

from pathlib import Path

import rounds

WORKER = Path(__file__).with_name("kokoro_worker.py")
# The allocator settings under which torch is fastest; without them it returns memory to the system at every step.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


def table(groups: rounds.Groups) -> list[str]:
    lines = [
        "| threads | engine | rtf (spread) | short / long | sentence ms | cold start s | peak RSS MiB | to best peer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (threads, engine), runs in groups.items():
        rtf, short, long, sentence, cold, rss = (
            rounds.median(runs, f) for f in ("rtf", "rtf_short", "rtf_long", "sentence_ms", "cold_s", "rss_mib")
        )
        peers = rounds.peers(groups, threads).values()
        ratio = f"{rtf / min(peers):.2f}" if peers else "–"
        lines.append(
            f"| {threads} | {engine} | {rounds.spread(runs, 3)} | {short:.3f} / {long:.3f} | {sentence:.0f} | "
            f"{cold:.2f} | {rss:.0f} | {ratio} |"
        )
    return lines


def main() -> None:
    given = rounds.parser().parse_args()
    results = rounds.alternate(
        given,
        lambda e: [str(WORKER), e.name, "--threads", str(e.threads), "--weights", str(given.weights)],
        lambda e: TUNED_MALLOC if e.name == "torch" else {},
    )
    rounds.publish(results, table(rounds.quiet(results)), given.out)


if __name__ == "__main__":
    main()
