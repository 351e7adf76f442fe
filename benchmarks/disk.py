"""Rows in a file, more of them than the memory allowed: 200000×512 float32 in 256 MiB.

The file is in the page cache when the race begins: both sides read it at the same speed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import decomposition

import mercer
from benchmarks import data
from benchmarks.accuracy import eigenvalue_error, exact, span_error
from benchmarks.harness import MIB, Race, Row, Side, peers, skipped
from benchmarks.peak import growth

REPEATS = 3
_AXES = 50


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time a fit of the file; compare with the exact axes; measure the process."""
    n, d = (20_000, 128) if quick else (200_000, 512)
    case = f"disk {n}×{d} float32"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        data.write_rows(path, n, d)
        usual, large = (
            peers(f"IncrementalPCA, batches of {size}", batches(str(path), size))
            for size in (5 * d, 50 * d)  # its default, and the fastest that fits in 256 MiB
        )
        race = Race([Side("Mercer", ours(str(path)))], [*usual, *large], repeats or REPEATS)
        values, axes = exact(np.load(path, mmap_mode="r"), _AXES)
        return [
            race.row(case, must=15, theirs=usual),
            race.row(f"{case}, its large batches", theirs=large),
            race.compare(case, "eigenvalue error", lambda model: eigenvalue_error(model, values)),
            race.compare(case, "sine of largest angle", lambda model: span_error(model, axes)),
            _memory(case, path),
        ]


def ours(path: str) -> Callable[[], Any]:
    """Return the fit of a file in 256 MiB."""

    def fit() -> Any:
        with mercer.config_context(memory="256MiB"):
            return mercer.PCA(_AXES).fit(path)

    return fit


def batches(path: str, size: int) -> Callable[[], Any]:
    """Return the incremental fit of a memory-mapped file."""

    def fit() -> Any:
        model, X = decomposition.IncrementalPCA(_AXES), np.load(path, mmap_mode="r")
        rows = data.chunks(len(X), size)
        # A last batch of fewer rows than axes would be refused.
        if rows[-1].stop - rows[-1].start < _AXES:
            rows[-2:] = [slice(rows[-2].start, rows[-1].stop)]
        for batch in rows:
            model.partial_fit(X[batch])
        return model

    return fit


def _memory(case: str, path: Path) -> Row:
    try:
        grown = growth("benchmarks.disk:ours", str(path))
    except OSError as error:
        return skipped(case, error)
    peer = growth("benchmarks.disk:batches", str(path), 5 * np.load(path, mmap_mode="r").shape[1])
    return Row(
        case,
        "memory growth",
        grown["growth"],
        peer["growth"],
        unit="MiB",
        must=300 * MIB,
        note="the peer's counts the pages of its memory map",
    )
