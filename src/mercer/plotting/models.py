"""What figures ask of a fitted model, whether ours, scikit-learn's, or the end of a pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import to_numpy
from mercer.data import Source, as_source
from mercer.estimators.pipeline import parts
from mercer.plotting.panels import Values, chosen


def split(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the components, and the estimator that has the components."""
    before, last = parts(model)
    while hasattr(last, "estimator_"):
        more, last = parts(last.estimator_)
        before += more
    return before, last


def shares(model: Any) -> Values | None:
    """Return the shares of the variance of the components of a model, where it has them."""
    ratio = getattr(split(model)[1], "explained_variance_ratio_", None)
    return None if ratio is None else to_numpy(ratio)


def scores_of(model: Any, X: Any, components: Any, most: int) -> tuple[Values, list[int]]:
    """Return the scores of rows along some components, and which: n by as many is all it holds."""
    before, axes = split(model)
    if not hasattr(axes, "transform"):
        raise TypeError(
            f"This {type(axes).__name__} has no transform, which gives scores: it is not fitted, "
            f"or never has it. Pass a fitted PCA or KernelPCA, or a pipeline that ends in one."
        )
    if before or not hasattr(axes, "projection_"):
        rows = Slices(X)
        width = axes.transform(_ready(before, rows.read(0, 1))).shape[1]
        drawn = chosen(components, width, most)
        return rows.each(lambda x: axes.transform(_ready(before, x)), drawn), drawn
    # Ours give a source a source, whose columns need not be there all at once.
    scores = axes.transform(as_source(X))
    drawn = chosen(components, scores.shape[1], most)
    if not isinstance(scores, Source):  # set_output asks for a table
        return dense(scores)[:, drawn], drawn
    picked = scores.map(lambda block: block.rows[:, drawn], len(drawn))
    with progress.session():
        return to_numpy(picked.collect()), drawn


def errors_of(model: Any, X: Any) -> Values:
    """Return each row's squared distance from the components: n numbers are all it holds."""
    before, axes = split(model)
    if hasattr(axes, "reconstruction_error"):
        error: Callable[[Any], Any] = axes.reconstruction_error
    elif hasattr(axes, "inverse_transform"):

        def error(rows: Any) -> Any:
            rows = dense(rows)
            left = rows - to_numpy(axes.inverse_transform(axes.transform(rows)))
            return np.einsum("ij,ij->i", left, left)

    else:
        raise TypeError(
            f"This {type(axes).__name__} has neither reconstruction_error nor inverse_transform: "
            f"it is not fitted, or never has them. Pass a fitted PCA, KernelPCA or "
            f"NoveltyDetector, or a pipeline that ends in one."
        )
    if not before and hasattr(axes, "reconstruction_error"):
        return to_numpy(error(X)).astype(np.float64)
    rows = Slices(X)
    return rows.each(lambda x: to_numpy(error(_ready(before, x)))[:, None], [0])[:, 0]


def feature_names(model: Any, d: int) -> list[str]:
    """Return the names of the columns that the components were found for."""
    before, axes = split(model)
    names = getattr(axes, "feature_names_in_", None)
    for step in [] if names is not None else reversed(before):
        try:
            names = step.get_feature_names_out()
            break
        except (AttributeError, ValueError):  # a step that cannot name its columns
            names = getattr(step, "feature_names_in_", None)
            if names is not None:
                break
    if names is None or len(names) != d:
        return [f"x{j}" for j in range(d)]
    return [str(column) for column in names]


class Slices(Source):
    """Rows as what they are, DataFrames and sparse matrices too, block by block."""

    parallel = False

    def __init__(self, X: Any) -> None:
        if isinstance(X, (str, os.PathLike)):
            X = as_source(X)
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        self.X = X.tocsr() if hasattr(X, "tocsr") else X
        n, *rest = X.shape
        if n == 0:
            raise ValueError(f"X has shape {tuple(X.shape)}: there are no rows to draw.")
        self.shape = (int(n), int(rest[0]) if rest else 1)
        self.dtype = np.dtype(np.float64)

    def read(self, start: int, stop: int) -> Any:
        if isinstance(self.X, Source):
            return self.X.read(start, stop)
        return self.X.iloc[start:stop] if hasattr(self.X, "iloc") else self.X[start:stop]

    def each(self, f: Callable[[Any], Any], columns: Sequence[int]) -> Values:
        """Return some columns of f of the rows, in float64."""

        def picked(block: Any) -> Values:
            with progress.quiet():  # a block is a part of the task that is announced
                return dense(f(block.rows))[:, list(columns)]

        width, extra = len(columns), 3 * self.shape[1] * 8
        with progress.session():
            found: Values = self.map(picked, width, np.float64, extra).collect()
        return found


def dense(X: Any) -> Values:
    """Bring rows to the host, dense."""
    return to_numpy(X.toarray() if hasattr(X, "toarray") else X)


def _ready(before: list[Any], rows: Any) -> Any:
    for step in before:
        rows = step.transform(rows)
    return rows
