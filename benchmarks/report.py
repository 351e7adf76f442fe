"""What ran where, the table, and the file of results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import text
from benchmarks.environment import load
from benchmarks.harness import MIB, Row

RESULTS = Path(__file__).resolve().parent / "results"
_HEAD = ("case", "measure", "Mercer", "scikit-learn", "ratio", "must", "aim", "met", "note")


def heading(facts: dict[str, Any]) -> str:
    """Return the environment as text."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    threads = ", ".join(
        f"{pool['internal_api']} {pool['version'] or ''} {pool['num_threads']}".replace("  ", " ")
        for pool in facts["threads"]
    )
    load = f"; load {facts['load'][0]:.1f}" if facts["load"] else ""
    return (
        f"{facts['date']}: {versions}\n{facts['cpu']}, {facts['cores']} cores{load}\n"
        f"Threads of both sides: {threads}; the peer also with BLAS at 1, its better median counts"
    )


def save(name: str, rows: list[Row], facts: dict[str, Any], quick: bool) -> Path:
    """Write the rows with all their times to results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'-quick' if quick else ''}.json"
    lines = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
    facts = facts | {"load after": load(), "quick": quick, "rows": lines}
    written = json.dumps(facts, indent=1, ensure_ascii=False)
    path.write_text(written + "\n", encoding="utf-8")
    return path


def table(rows: list[Row], markdown: bool = False) -> str:
    """Return the rows as a table, plain or Markdown."""
    return text.table([_HEAD, *(_cells(row) for row in rows)], markdown)


def _cells(row: Row) -> tuple[str, ...]:
    if row.ratio is None:
        must, aim = (_figure(x, row.unit, "≤ ") for x in (row.must, row.aim))
    else:
        must, aim = (_figure(x, "×", "≥ ") for x in (row.must, row.aim))
    met = {True: "yes", False: "NO", None: "–"}[row.met]
    ours, peer = (_figure(x, row.unit) for x in (row.ours, row.peer))
    return row.case, row.measure, ours, peer, _figure(row.ratio, "×"), must, aim, met, row.note


def _figure(x: float | None, unit: str, sign: str = "") -> str:
    if x is None:
        return "–"
    if unit == "MiB":
        return f"{sign}{x / MIB:.0f} MiB"
    plain = f"{x:.3g}" if 0.01 <= abs(x) < 1000 else f"{x:.1e}"
    texts = {"s": f"{x:.3g} s", "×": f"{x:.2f}×", "%": f"{100 * x:.2g} %"}
    return sign + texts.get(unit, plain)
