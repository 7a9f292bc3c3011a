"""The figures of a comparison as JSON, as tables in Markdown, and as a picture in SVG."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import rounds
from engines import SONANT, is_sonant

FIGURES = (
    ("rtf", "rtf", ".4f"),
    ("first audio ms", "ttfa_ms", ".0f"),
    ("of a paragraph ms", "paragraph_ttfa_ms", ".0f"),
    ("cold start s", "cold_s", ".2f"),
    ("peak RSS MiB", "rss_mib", ".0f"),
    ("of the command MiB", "cold_rss_mib", ".0f"),
    ("loaded MiB", "loaded_mib", ".0f"),
    ("cores busy", "cpu_cores", ".2f"),
    ("streams gain", "streams_gain", ".2f"),
    ("difference", "difference", ".0e"),
)
"""Head, name in the results, format. Those that no engine has are left out."""

RATIOS = ("rtf", "ttfa_ms", "paragraph_ttfa_ms", "cold_s", "rss_mib")
PICTURED = RATIOS
"""The figures of which less is better."""

BAR, WIDTH, LABELS = 20, 460, 190


@dataclass(frozen=True)
class Report:
    """machine: versions and commit too; absent: who did not take part, and why; floors: of every sonant engine, the
    least rtf that the ceilings allow; results: one a run."""

    machine: dict[str, str]
    absent: dict[str, str]
    floors: list[dict[str, Any]]
    results: list[rounds.Result]

    def write(self, out: Path) -> None:
        """OUT.json, OUT.md and OUT.svg."""
        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(self.markdown() + "\n", encoding="utf-8")
        out.with_suffix(".svg").write_text(self.svg(), encoding="utf-8")

    def groups(self) -> Iterator[tuple[str, int, dict[str, list[rounds.Result]]]]:
        """(model, threads, engine → its runs that count)"""
        for model, threads in dict.fromkeys((r["model"], r["threads"]) for r in self.results):
            here = [r for r in self.results if (r["model"], r["threads"]) == (model, threads)]
            names = dict.fromkeys(r["engine"] for r in here)
            yield model, threads, {n: rounds.quiet([r for r in here if r["engine"] == n]) for n in names}

    def floor(self, model: str, engine: str, threads: int) -> dict[str, Any] | None:
        wanted = (model, engine, threads)
        return next((f for f in self.floors if (f["model"], f["engine"], f["threads"]) == wanted), None)

    # --- Markdown -----------------------------------------------------------------------------------------------------
    def markdown(self) -> str:
        versions = {f"{name} {v}": None for r in self.results for name, v in r.get("versions", {}).items()}
        lines = [", ".join(f"{key} {value}" for key, value in self.machine.items()) + "."]
        lines += ["Packages of the peers: " + ", ".join(versions) + "." if versions else "No peer took part."]
        lines += [f"**Absent: {name}: {why}.**" for name, why in self.absent.items()]
        for model, threads, engines in self.groups():
            lines += ["", f"## {title(model, threads)}", "", *self._figures(model, threads, engines)]
            ratios = self._ratios(engines)
            lines += ["", "In parts of the best peer (each figure's own):", "", *ratios] if ratios else []
            lines += ["", *self._ceilings(model, threads, engines)]
        return "\n".join(lines)

    def _figures(self, model: str, threads: int, engines: dict[str, list[rounds.Result]]) -> list[str]:
        shown = [f for f in FIGURES if any(rounds.figures(runs, f[1]) for runs in engines.values())]
        exact = self.floor(model, f"{SONANT}-f32", threads)
        rows = []
        for engine, runs in engines.items():
            cells = [engine] + [_cell(rounds.figures(runs, name), rounds.median(runs, name), f) for _, name, f in shown]
            own, rtf = self.floor(model, engine, threads), rounds.median(runs, "rtf")
            cells += [f"{found['rtf'] / rtf:.0%}" if found and rtf else "–" for found in (exact, own)]
            rows.append(cells)
        return _table(["engine", *(head for head, _, _ in shown), "f32 floor / rtf", "own floor / rtf"], rows)

    def _ratios(self, engines: dict[str, list[rounds.Result]]) -> list[str]:
        peers = [runs for name, runs in engines.items() if not is_sonant(name)]
        shown = [(head, n) for head, n, _ in FIGURES if n in RATIOS and any(rounds.figures(p, n) for p in peers)]
        rows = []
        for engine, runs in engines.items():
            ratios = [rounds.to_best(rounds.median(runs, n), [rounds.median(p, n) for p in peers]) for _, n in shown]
            if is_sonant(engine) and any(ratios):
                rows.append([engine, *("–" if r is None else f"{r:.2f}" for r in ratios)])
        return _table(["engine", *(head for head, _ in shown)], rows) if rows else []

    def _ceilings(self, model: str, threads: int, engines: dict[str, list[rounds.Result]]) -> list[str]:
        rows = []
        for engine in engines:
            found = self.floor(model, engine, threads)
            if found is None:
                continue
            ceilings = found["ceilings"]
            rates = ", ".join(f"{kind} {rate / 1e9:.0f}" for kind, rate in ceilings["flops"].items())
            largest = ceilings["read"][max(ceilings["read"], key=int)]
            work = f"{found['gflop_per_s']:.1f}"
            rows.append([engine, ceilings["isa"], rates, f"{largest / 1e9:.0f}", work, f"{found['rtf']:.4f}"])
        heads = ["engine", "instruction set", "peak GFLOP/s", "memory GB/s", "GFLOP per s of audio", "floor of the rtf"]
        return _table(heads, rows) if rows else []

    # --- SVG ----------------------------------------------------------------------------------------------------------
    def svg(self) -> str:
        """A panel for each figure of each model and number of threads: a bar of the median for each engine, a line from
        the least to the most, and, for the rtf, a tick where the engine's own floor is."""
        parts, y = [], 0
        for model, threads, engines in self.groups():
            for head, name, digits in FIGURES:
                if name not in PICTURED or not any(rounds.figures(runs, name) for runs in engines.values()):
                    continue
                heading = f"{title(model, threads)}: {head}"
                parts.append(f'<text x="4" y="{y + 15}" font-weight="bold">{escape(heading)}</text>')
                floors = {e: self.floor(model, e, threads) for e in engines} if name == "rtf" else {}
                parts += _bars(engines, name, digits, y + BAR, {e: f["rtf"] for e, f in floors.items() if f})
                y += BAR * (len(engines) + 2)
        size = f'width="{LABELS + WIDTH + 120}" height="{y}"'
        background = '<rect width="100%" height="100%" fill="white"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
        return "\n".join([head, background, *parts, "</svg>", ""])


def title(model: str, threads: int) -> str:
    return f"{model}, {threads} thread{'s' * (threads > 1)}"


def _bars(
    engines: dict[str, list[rounds.Result]], name: str, digits: str, y: int, floors: dict[str, float]
) -> Iterator[str]:
    most = max(v for runs in engines.values() for v in rounds.figures(runs, name))
    for i, (engine, runs) in enumerate(engines.items()):
        top, middle = y + i * BAR, rounds.median(runs, name)
        yield f'<text x="{LABELS - 6}" y="{top + 14}" text-anchor="end">{escape(engine)}</text>'
        if middle is None:
            continue
        low, high, end = (LABELS + WIDTH * v / most for v in (*_range(rounds.figures(runs, name)), middle))
        colour = "#2e6da4" if is_sonant(engine) else "#b0b7bf"
        yield f'<rect x="{LABELS}" y="{top + 2}" width="{end - LABELS:.1f}" height="{BAR - 5}" fill="{colour}"/>'
        yield f'<path d="M{low:.1f} {top + 9}H{high:.1f}" stroke="black"/>'
        yield f'<text x="{high + 6:.1f}" y="{top + 14}">{middle:{digits}}</text>'
        if engine in floors:
            x = LABELS + WIDTH * floors[engine] / most
            yield f'<path d="M{x:.1f} {top}v{BAR - 1}" stroke="#d9534f" stroke-width="2"/>'


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _cell(values: list[float], middle: float | None, digits: str) -> str:
    """median (lowest–highest)"""
    if middle is None:
        return "–"
    low, high = _range(values)
    spread = f" ({low:{digits}}–{high:{digits}})" if f"{low:{digits}}" != f"{high:{digits}}" else ""
    return f"{middle:{digits}}{spread}"


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
