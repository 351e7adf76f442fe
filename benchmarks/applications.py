"""What the axes are used for: subspace classifiers on a basis, and on all rows."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks import data
from benchmarks.harness import Race, Row, Side, skipped
from mercer import KernelPCA, SubspaceClassifier
from mercer.kernels import RBF
from mercer.landmarks import KMeans
from mercer.methods import Subset


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time what an application does most often."""
    return _digits(repeats or 7, quick)


def _digits(repeats: int, quick: bool) -> list[Row]:
    """Predict the test digits of USPS, by a tenth of the rows and by all."""
    n = 800 if quick else 7291
    case = f"SubspaceClassifier.predict, 2007 USPS digits, {n} training rows, 10 % basis"
    try:
        with np.load(data.find("usps.npz")) as table:
            X, T = (table[name] / float(table["scale"]) for name in ("X", "X_test"))
            y, t = table["y"], table["y_test"]
    except FileNotFoundError as error:
        return [skipped(case, error)]
    # c and r of either as `python -m papers usps` chooses them.
    few = _fitted(X[:n], y[:n], 40, method=Subset(0.1, select=KMeans(nearest=False)))
    full = _fitted(X[:n], y[:n], 190, eigen_solver="dense")
    ours = Side("Subset(0.1)", lambda: few.predict(T))
    race = Race([ours], [Side("all rows", lambda: full.predict(T))], repeats)
    error = race.compare(case, "error", lambda found: float((found != t).mean()), unit="%")
    return [race.row(case, must=5.0), error]


def _fitted(X: data.Array, y: data.Array, axes: int, **how: object) -> SubspaceClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in quick runs classes have fewer rows than axes
        model = KernelPCA(axes, kernel=RBF(0.01), random_state=0, **how)
        return SubspaceClassifier(model).fit(X, y)
