"""Memory beside data that is in memory already: at most a quarter of it and 64 MiB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import decomposition

import mercer
from benchmarks import data
from benchmarks.harness import MIB, Row, skipped
from benchmarks.peak import growth

_CASES = {"tall float64": 50, "tall float32": 50, "wide float32": 0.9}


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Measure the fits of `tall` and `wide`, once each: a peak is not noisy as a time is."""
    rows = []
    for case in _CASES:
        try:
            ours, peer = (growth("benchmarks.memory:prepare", case, who, quick) for who in _WHO)
        except OSError as error:
            rows.append(skipped(case, error))
            continue
        size = _rows(case, quick).nbytes
        rows.append(
            Row(
                f"memory {case}",
                "memory growth",
                ours["growth"],
                peer["growth"],
                unit="MiB",
                must=size / 4 + 64 * MIB,
                note=f"X {size / MIB:.0f} MiB; returned arrays {ours['returned'] / MIB:.1f} MiB",
            )
        )
    return rows


_WHO = {"mercer": mercer.PCA, "sklearn": decomposition.PCA}


def prepare(case: str, who: str, quick: bool) -> Callable[[], Any]:
    """Make the data of a case and return the fit."""
    X = _rows(case, quick)
    return lambda: _WHO[who](_CASES[case]).fit(X)


def _rows(case: str, quick: bool) -> data.Array:
    shape, dtype = case.split()
    return (data.tall(dtype, quick) if shape == "tall" else data.wide(quick))[0]
