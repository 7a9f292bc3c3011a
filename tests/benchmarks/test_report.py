"""The figures of a comparison: which runs count, ratios to the best peer, shares of the floor, who was absent."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


def run(engine: str, rtf: float, *, other_cores: float = 0.0, **figures: Any) -> dict[str, Any]:
    return {"model": "kokoro", "engine": engine, "threads": 2, "rtf": rtf, "other_cores": other_cores, **figures}


def test_a_disturbed_run_counts_only_where_no_quieter_one_exists() -> None:
    import rounds

    runs = [run("a", 0.1), run("a", 0.9, other_cores=0.5), run("a", 0.3, other_cores=0.09)]
    assert rounds.median(rounds.quiet(runs), "rtf") == pytest.approx(0.2)
    assert rounds.quiet(runs[1:2]) == runs[1:2]


def test_a_figure_that_no_run_has_is_none_and_never_zero() -> None:
    import rounds

    assert rounds.median([run("a", 0.1)], "ttfa_ms") is None
    assert rounds.to_best(None, [1.0]) is None
    assert rounds.to_best(1.0, [None, None]) is None
    assert rounds.to_best(1.0, [None, 4.0, 2.0]) == 0.5


def test_the_tables_have_ratios_shares_of_the_floor_and_the_absent() -> None:
    import report

    results = [
        run("sonant-f32", 0.2, ttfa_ms=100.0),
        run("sonant-bf16", 0.1, ttfa_ms=50.0),
        run("fast", 0.4, ttfa_ms=1000.0),
        run("prompt", 0.8, ttfa_ms=200.0, versions={"prompt-tts": "1.2"}),
    ]
    ceilings = {"isa": "avx512", "flops": {"f32": 5e11, "bf16": 1e12}, "read": {"1024": 9e10, "268435456": 2e10}}
    floors = [
        {"model": "kokoro", "engine": e, "threads": 2, "rtf": rtf, "gflop_per_s": 54.8, "ceilings": ceilings}
        for e, rtf in (("sonant-f32", 0.15), ("sonant-bf16", 0.08))
    ]
    text = report.Report({"cpu": "X"}, {"kokoro torch": "not here"}, floors, results).markdown()
    assert "**Absent: kokoro torch: not here.**" in text
    assert "prompt-tts 1.2" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert ["sonant-bf16", "0.1000", "50", "150%", "80%"] in rows  # shares: of the f32 floor, of its own
    assert ["prompt", "0.8000", "200", "19%", "–"] in rows
    assert ["sonant-bf16", "0.25", "0.25"] in [row[:3] for row in rows]  # 0.1 to 0.4, and 50 ms to the other's 200
    assert ["sonant-f32", "avx512", "f32 500, bf16 1000", "20", "54.8", "0.1500"] in rows


def test_a_command_is_timed_to_its_first_byte_and_its_failure_is_told() -> None:
    import rounds

    slow = "import sys, time; sys.stdout.write('x'); sys.stdout.flush(); time.sleep(1.5)"
    seconds, peak_mib = rounds.first_byte_s([sys.executable, "-c", slow], {})
    assert 0 < seconds < 1.4
    ours_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # Linux begins a child's mark at its parent's
    assert 1 < peak_mib < ours_mib + 1000
    with pytest.raises(rounds.Failed, match="no such thing"):
        rounds.first_byte_s([sys.executable, "-c", "raise SystemExit('no such thing')"], {})
    with pytest.raises(rounds.Failed, match="no such thing"):
        rounds.output_of([sys.executable, "-c", "raise SystemExit('no such thing')"], {})
