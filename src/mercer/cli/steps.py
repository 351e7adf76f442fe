"""Steps before the model, fitted and applied block by block: files may be larger than memory."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.arrays import Array
from mercer.cli.errors import WorkError
from mercer.data import Block, Fold, Source
from mercer.data.errors import format_names
from mercer.estimators.pipeline import mapped, through
from mercer.linalg import Moments
from mercer.methods.preparation import column_deviation, require_finite_sums
from mercer.problem import Problem
from mercer.rules import Count


class Means(Fold):
    """Mean of the values that there are in every column, each as often as its row counts."""

    label = "means"

    def __init__(self, d: int) -> None:
        self.sums, self.counts = np.zeros(d), np.zeros(d)
        self.row_bytes = 24 * d

    def add(self, block: Block) -> None:
        rows = block.dense(np.float64)
        there = ~np.isnan(rows)
        with np.errstate(invalid="ignore", over="ignore"):  # of infinities: refused later
            self.sums += block.count @ np.where(there, rows, 0.0)
        self.counts += block.count @ there

    def merge(self, other: Self) -> None:
        self.sums += other.sums
        self.counts += other.counts

    def spawn(self) -> Self:
        return type(self)(len(self.sums))

    def arrays(self) -> dict[str, Array]:
        return {"sums": self.sums, "counts": self.counts}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.sums, self.counts = arrays["sums"].copy(), arrays["counts"].copy()


def imputer(source: Source) -> SimpleImputer:
    """Return an imputer that has seen all rows."""
    means = source.fold(Means(source.shape[1]))
    empty, endless = means.counts == 0, ~np.isfinite(means.sums)
    if empty.any():
        raise WorkError(
            f"No row has a value in {_named(source, empty)}. Leave such columns out: --columns."
        )
    if endless.any():
        raise WorkError(
            f"There is no mean of {_named(source, endless)}: infinity is among the values, or "
            f"their sum is too large. Drop such rows, or leave such columns out: --columns."
        )
    # The mean of one row is that row: what is learnt of it is learnt of all.
    return SimpleImputer().fit((means.sums / means.counts)[None, :].astype(source.dtype))


def scaler(source: Source) -> StandardScaler:
    """Return a scaler that has seen all rows; of sparse ones it leaves the zeros.

    It divides by what `PCA(scale=True)` divides by: the deviation with divisor n − 1.
    """
    problem = Problem(source, Count(1), scale=True)
    moments = source.fold(Moments(source.shape[1], source.reference, np.float64, diagonal=True))
    require_finite_sums(source, moments.mean, moments.scatter)
    made = StandardScaler(with_mean=not source.sparse)
    made.n_features_in_, made.n_samples_seen_ = source.shape[1], _whole(source.count)
    made.mean_, made.var_ = moments.mean, moments.scatter / problem.divisor
    deviation = column_deviation(problem, moments.scatter, moments.mean)
    made.scale_ = np.where(np.isfinite(deviation), deviation, 1.0)
    return made


def learnt(source: Source, *, impute: bool, scale: bool) -> tuple[list[tuple[str, Any]], Source]:
    """Return the fitted steps, and the rows once they have gone through them."""
    steps: list[tuple[str, Any]] = []
    names = source.names
    for name, wanted, fit in (("impute", impute, imputer), ("scale", scale, scaler)):
        if wanted:
            steps.append((name, fit(source)))
            source = through([steps[-1][1]], source)
    if steps and names is not None:
        # Names are the first step's: what it hands on is an array, as in any pipeline.
        steps[0][1].feature_names_in_ = np.asarray(names, dtype=object)
    return steps, source


def joined(steps: list[tuple[str, Any]], last: Any) -> Any:
    """Return the pipeline of fitted steps, or the last alone where there are no others."""
    if not steps:
        return last
    return Pipeline([*steps, (type(last).__name__.lower(), last)])


def back(steps: list[Any], source: Source) -> Source:
    """Return rows as they were before the steps; values that were filled in stay so."""
    for step in reversed(steps):
        if isinstance(step, StandardScaler):
            source = mapped(source, step.inverse_transform, source.shape[1])
    return source


def _whole(count: float) -> Any:
    return int(count) if count == int(count) else np.float64(count)


def _named(source: Source, which: Any) -> str:
    """Write the names of some columns, or their numbers where they have no names."""
    at = np.flatnonzero(which).tolist()
    return format_names([str(i) if source.names is None else str(source.names[i]) for i in at])
