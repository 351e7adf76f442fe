"""Sparse rows, never made dense: TF-IDF of 20 newsgroups, 18846×35189, 100 axes."""

from __future__ import annotations

from sklearn import decomposition

import mercer
from benchmarks import data
from benchmarks.accuracy import residual
from benchmarks.harness import Race, Row, Side, peers, skipped

REPEATS = 3
_TOL = 1e-6


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time the fits to equal tolerance, and compute the residuals that they truly have."""
    try:
        A = data.news(quick)
    except data.Absent as absent:
        return [skipped("sparse", absent)]
    k = 20 if quick else 100
    how = {"tol": _TOL, "random_state": 0}
    solvers = ("krylov", "auto")
    ours = [
        Side(f"Mercer {name}", lambda name=name: mercer.PCA(k, svd_solver=name, **how).fit(A))
        for name in solvers
    ]
    theirs = peers("arpack", lambda: decomposition.PCA(k, svd_solver="arpack", **how).fit(A))
    race = Race(ours, theirs, repeats or REPEATS)
    rows = []
    for name, side in zip(solvers, ours, strict=True):
        case = f"sparse {A.shape[0]}×{A.shape[1]} {name}"
        rows += [
            race.row(case, must=1.5, aim=3, ours=side.name),
            race.compare(
                case, "true residual", lambda m: residual(m, A), ours=side.name, must=_TOL
            ),
        ]
    return rows
