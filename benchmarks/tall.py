"""Many more rows than columns, in memory: 60000×784, 50 axes."""

from __future__ import annotations

import numpy as np
from sklearn import decomposition

import mercer
from benchmarks import data
from benchmarks.accuracy import eigenvalue_error, exact
from benchmarks.harness import Race, Row, Side, peers

REPEATS = 7
_MUST = {"float32": 1.0, "float64": 0.95}


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time both precisions; compare the eigenvalues, also far from the origin."""
    rows = []
    for dtype in ("float64", "float32"):
        X, kind = data.tall(dtype, quick)
        case = f"tall {len(X)}×{X.shape[1]} {dtype}"
        race = _race(X, repeats or REPEATS)
        time = race.row(case, must=_MUST[dtype], aim=1.3)
        time.note = f"{kind}; {time.note}"
        rows += [time, _error(case, race, X)]
    # X and case are now those of float32, the last.
    X += np.float32(1000)
    rows.append(_error(f"{case} + 1000", _race(X, 1), X))
    return rows


def _race(X: data.Array, repeats: int) -> Race:
    ours = Side("Mercer", lambda: mercer.PCA(50).fit(X))
    theirs = peers("PCA", lambda: decomposition.PCA(50).fit(X))
    return Race([ours], theirs, repeats)


def _error(case: str, race: Race, X: data.Array) -> Row:
    values, _ = exact(X, 50)
    return race.compare(case, "eigenvalue error", lambda model: eigenvalue_error(model, values))
