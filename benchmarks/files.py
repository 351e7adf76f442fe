"""A CSV file of 1 000 000×50, read and fitted: time and memory beside pandas and polars.

The peers end with a table in memory; Mercer ends with rows that a fit can walk, in 1 GiB. The
file is in the page cache when the race begins.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from benchmarks.harness import MIB, Race, Row, Side, skipped
from benchmarks.peak import growth
from mercer.data.files import read_table, write_table

REPEATS = 3
_BUDGET = "1GiB"


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time the reading, then measure it and a fit of the file in processes of their own."""
    n, d = (20_000, 50) if quick else (1_000_000, 50)
    case = f"files CSV {n}×{d}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write(path, n, d)
        peers = [Side(name, PEERS[name](str(path))) for name in PEERS]
        sides = [Side("Mercer", ours(str(path))), Side("Mercer, PCA(2)", fit(str(path)))]
        race = Race(sides, peers, repeats or REPEATS)
        rows = [race.row(f"{case}, {side.name}", theirs=[side]) for side in peers]
        # The fit, its reading included, takes no longer than pandas takes to read.
        rows.append(race.row(f"{case} into PCA(2)", must=1.0, ours=sides[1], theirs=peers[:1]))
        return rows + _memory(case, path)


def write(path: Path, n: int, d: int) -> None:
    """Write rows of normal numbers, with all their digits."""

    def draw(block: Any) -> Any:
        return np.random.default_rng(block.start).standard_normal((block.length, d))

    rows = mercer.as_source(np.empty((n, 1))).map(draw, d, np.float64)
    write_table(rows, path, names=[f"x{i}" for i in range(d)])


def ours(path: str) -> Callable[[], Any]:
    """Return the reading of a file in 1 GiB."""
    _warm_up()

    def read() -> Any:
        with mercer.config_context(memory=_BUDGET):
            return read_table(path)

    return read


def fit(path: str) -> Callable[[], Any]:
    """Return the fit of a file in 1 GiB, its reading included."""
    _warm_up()

    def fitted() -> Any:
        with mercer.config_context(memory=_BUDGET):
            return mercer.PCA(2).fit(path)

    return fitted


def _warm_up() -> None:
    """Read and fit a small file, so that no figure holds imports."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "few.csv", 100, 3)
        mercer.PCA(2).fit(Path(folder) / "few.csv")


def pandas(path: str) -> Callable[[], Any]:
    """Return the reading of a file with pandas."""
    import pandas

    return lambda: pandas.read_csv(path, engine="c")


def polars(path: str) -> Callable[[], Any]:
    """Return the reading of a file with polars."""
    import polars

    return lambda: polars.read_csv(path)


PEERS = {"pandas.read_csv": pandas, "polars.read_csv": polars}


def _memory(case: str, path: Path) -> list[Row]:
    try:
        tasks = {"read": "ours", "read and PCA(2)": "fit"}
        grown = {
            what: growth(f"benchmarks.files:{task}", str(path)) for what, task in tasks.items()
        }
    except OSError as error:
        return [skipped(case, error)]
    peers = {name: growth(f"benchmarks.files:{name}", str(path)) for name in ("pandas", "polars")}
    best = min(peers, key=lambda name: int(peers[name]["growth"]))
    return [
        Row(
            f"{case}, {what}",
            "memory growth",
            figures["growth"],
            peers[best]["growth"],
            unit="MiB",
            must=1024 * MIB,
            note=f"peer: {best}, which only reads",
        )
        for what, figures in grown.items()
    ]
