"""Many more columns than rows: 1400×40000 float32, nine tenths of the variance."""

from __future__ import annotations

from sklearn import decomposition

import mercer
from benchmarks import data
from benchmarks.accuracy import eigenvalue_error, exact
from benchmarks.harness import Race, Row, Side, peers

REPEATS = 3


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time PCA(0.9) and compare the eigenvalues, and how many there are."""
    X, kind = data.wide(quick)
    case = f"wide {X.shape[0]}×{X.shape[1]} float32"
    ours = Side("Mercer", lambda: mercer.PCA(0.9).fit(X))
    theirs = peers("PCA", lambda: decomposition.PCA(0.9).fit(X))
    race = Race([ours], theirs, repeats or REPEATS)
    time = race.row(case, must=10, aim=15)
    time.note = f"{kind}; {time.note}"
    values, _ = exact(X)
    error = race.compare(case, "eigenvalue error", lambda model: eigenvalue_error(model, values))
    counts = (race.models[name].n_components_ for name in ("Mercer", race.best()))
    error.note = "axes: {} and {}".format(*counts)
    return [time, error]
