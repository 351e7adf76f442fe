"""Imputation and scaling, fitted block by block: files may be larger than memory."""

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
from mercer.estimators.inspection import mapped, through
from mercer.linalg import Moments
from mercer.methods.preparation import column_deviation, require_finite_sums
from mercer.problem import Problem
from mercer.rules import Count


class ColumnMeans(Fold):
    """Weighted mean of every column, without its missing values."""

    label = "means"

    def __init__(self, d: int) -> None:
        self.sums, self.counts = np.zeros(d), np.zeros(d)
        self.row_bytes = 24 * d

    def add(self, block: Block) -> None:
        rows = block.dense(np.float64)
        present = ~np.isnan(rows)
        with np.errstate(invalid="ignore", over="ignore"):  # of infinities: refused later
            self.sums += block.count @ np.where(present, rows, 0.0)
        self.counts += block.count @ present

    def merge(self, other: Self) -> None:
        self.sums += other.sums
        self.counts += other.counts

    def spawn(self) -> Self:
        return type(self)(len(self.sums))

    def arrays(self) -> dict[str, Array]:
        return {"sums": self.sums, "counts": self.counts}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.sums, self.counts = arrays["sums"].copy(), arrays["counts"].copy()


def fit_imputer(source: Source) -> SimpleImputer:
    """Return an imputer fitted to all rows."""
    means = source.fold(ColumnMeans(source.shape[1]))
    empty, infinite = means.counts == 0, ~np.isfinite(means.sums)
    if empty.any():
        raise WorkError(
            f"No row has a value in {_column_names(source, empty)}. Leave such columns out: "
            f"--columns."
        )
    if infinite.any():
        raise WorkError(
            f"There is no mean of {_column_names(source, infinite)}: infinity is among the "
            f"values, or their sum is too large. Drop such rows, or leave such columns out: "
            f"--columns."
        )
    # The mean of one row is that row: fitting the row of means sets the statistics.
    return SimpleImputer().fit((means.sums / means.counts)[None, :].astype(source.dtype))


def fit_scaler(source: Source) -> StandardScaler:
    """Return a scaler fitted to all rows; sparse rows are not centered.

    It divides as `PCA(scale=True)` does: by the standard deviation with divisor n − 1.
    """
    problem = Problem(source, Count(1), scale=True)
    moments = source.fold(Moments(source.shape[1], source.reference, np.float64, diagonal=True))
    require_finite_sums(source, moments.mean, moments.scatter)
    scaler = StandardScaler(with_mean=not source.sparse)
    scaler.n_features_in_, scaler.n_samples_seen_ = source.shape[1], _integer(source.count)
    scaler.mean_, scaler.var_ = moments.mean, moments.scatter / problem.divisor
    deviation = column_deviation(problem, moments.scatter, moments.mean)
    scaler.scale_ = np.where(np.isfinite(deviation), deviation, 1.0)
    return scaler


def fit_steps(source: Source, *, impute: bool, scale: bool) -> tuple[list[tuple[str, Any]], Source]:
    """Return the fitted steps, and the rows transformed by them."""
    steps: list[tuple[str, Any]] = []
    names = source.names
    for name, wanted, fit in (("impute", impute, fit_imputer), ("scale", scale, fit_scaler)):
        if wanted:
            steps.append((name, fit(source)))
            source = through([steps[-1][1]], source)
    if steps and names is not None:
        # Only the first step knows names: it returns an array, as in any pipeline.
        steps[0][1].feature_names_in_ = np.asarray(names, dtype=object)
    return steps, source


def join_steps(steps: list[tuple[str, Any]], last: Any) -> Any:
    """Return the pipeline of fitted steps, or the last step if it is the only one."""
    if not steps:
        return last
    return Pipeline([*steps, (type(last).__name__.lower(), last)])


def undo(steps: list[Any], source: Source) -> Source:
    """Return rows as they were before the steps; imputed values stay."""
    for step in reversed(steps):
        if isinstance(step, StandardScaler):
            source = mapped(source, step.inverse_transform, source.shape[1])
    return source


def _integer(count: float) -> Any:
    return int(count) if count == int(count) else np.float64(count)


def _column_names(source: Source, which: Any) -> str:
    """Write the names of some columns, or their numbers if they have no names."""
    at = np.flatnonzero(which).tolist()
    return format_names([str(i) if source.names is None else str(source.names[i]) for i in at])
