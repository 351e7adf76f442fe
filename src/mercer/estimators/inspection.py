"""Access to fitted models for displays and reports: spectrum, names, scores, errors."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import Array, as_csr, is_sparse, to_numpy
from mercer.data import Source, SparseSource, as_source, is_lazy
from mercer.estimators.validation import check_rows, columns_of_fit
from mercer.projection import LinearProjection
from mercer.rules import Rule, as_rule

Values = npt.NDArray[Any]
_RULE_NAMES = {
    "Count": "{k}",
    "Fraction": "{p} of the variance",
    "RelativeError": "error ≤ {e:g}",
    "Threshold": "≥ {eps:g} λ₁",
    "Kaiser": "Kaiser",
    "BrokenStick": "broken stick",
    "ParallelAnalysis": "parallel analysis",
    "MLE": "Minka",
    "GavishDonoho": "Gavish–Donoho",
}
# Bytes that a step needs for its own copies of an entry of a row.
_COPIES = 16


def parts(model: Any) -> tuple[list[Any], Any]:
    """Return the steps of a pipeline, or of a search, before the model, and the model."""
    before: list[Any] = []
    while hasattr(model, "best_estimator_") or hasattr(model, "steps"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
            continue
        *steps, model = [step for _, step in model.steps]
        before += [step for step in steps if step not in (None, "passthrough")]
    return before, model


def through(steps: Sequence[Any], source: Source, width: int | None = None) -> Source:
    """Return rows through fitted steps, computed when read; `width` columns if not as before.

    Sparse rows that stay sparse are transformed at once.
    """
    if not steps:
        return source
    nameless = [copy.copy(step) for step in steps]  # names were checked, and blocks have none
    for step in nameless:
        step.__dict__.pop("feature_names_in_", None)

    if source.sparse:
        rows = _preprocess(nameless, source.load())
        if hasattr(rows, "tocsr"):
            return SparseSource(rows).weighted(source.weights)
    return mapped(source, lambda rows: _preprocess(nameless, rows), width or source.shape[1])


def mapped(source: Source, f: Callable[[Any], Any], width: int) -> Source:
    """Return rows through a function of plain arrays."""
    extra = _COPIES * (source.shape[1] + width)
    return source.map(lambda block: f(block.dense(source.dtype)), width, extra_bytes=extra)


def undo(steps: Sequence[Any], rows: Any) -> Any:
    """Undo the scaling by steps before a model; imputed values stay."""
    for step in reversed(steps):
        if hasattr(step, "scale_") and hasattr(step, "inverse_transform"):
            rows = np.asarray(step.inverse_transform(rows))
    return rows


def unwrap(model: Any) -> tuple[list[Any], Any]:
    """Return the preprocessing steps, and the estimator that has the components."""
    steps, last = parts(model)
    while hasattr(last, "estimator_"):
        inner_steps, last = parts(last.estimator_)
        steps += inner_steps
    return steps, last


def explained_ratio(model: Any) -> Values | None:
    """Return `explained_variance_ratio_` of a model on the host, or None."""
    ratio = getattr(unwrap(model)[1], "explained_variance_ratio_", None)
    return None if ratio is None else to_numpy(ratio)


def fitted_feature_names(model: Any) -> list[str]:
    """Return the names of the columns that the components combine: x0, x1, … without names."""
    steps, estimator = unwrap(model)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and steps:
        names = getattr(steps[0], "feature_names_in_", None)
        with contextlib.suppress(AttributeError, ValueError):  # a step may not name its output
            for step in steps:
                names = step.get_feature_names_out(names)
    d = int(estimator.n_features_in_)
    if names is None or len(names) != d:
        return [f"x{j}" for j in range(d)]
    return [str(name) for name in names]


def select_components(
    components: Any, count: int, most: int, what: str = "components"
) -> list[int]:
    """Return the indices of the components, or rows, to show, of `count` that exist.

    `components` is a number of leading ones, an iterable of indices, or None for the first `most`.
    """
    if not count:
        raise ValueError("The model has no components to draw.")
    if components is None:
        return list(range(min(count, most)))
    first = range(int(components)) if isinstance(components, Integral) else components
    selected = [int(j) for j in first]
    if not selected or not all(0 <= j < count for j in selected):
        raise ValueError(
            f"{what}={components!r}, but there are {count} {what}: pass the number of leading "
            f"{what} to draw, or indices from 0 to {count - 1}."
        )
    return selected


def selected_scores(model: Any, X: Any, components: Any, most: int) -> tuple[Values, list[int]]:
    """Return the scores of rows on some components, and which; nothing larger is stored."""
    steps, estimator = unwrap(model)
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"This {type(estimator).__name__} has no transform method to compute scores. Pass a "
            f"fitted PCA or KernelPCA, or a pipeline that ends in one."
        )
    if steps or not hasattr(estimator, "projection_"):
        rows = SlicedRows(X)
        count = estimator.transform(_preprocess(steps, rows.read(0, 1))).shape[1]
        selected = select_components(components, count, most)
        scores = rows.apply(lambda x: estimator.transform(_preprocess(steps, x)), selected)
        return scores, selected
    lazy = estimator.transform(as_source(columns_of_fit(estimator, X)))
    selected = select_components(components, lazy.shape[1], most)
    if not isinstance(lazy, Source):  # set_output returns a table
        return host_rows(lazy)[:, selected], selected
    columns = lazy.map(lambda block: block.rows[:, selected], len(selected))
    with progress.session():
        return to_numpy(columns.collect()), selected


def squared_errors(model: Any, X: Any) -> Values:
    """Return the squared distance of each row from its reconstruction, block by block."""
    steps, estimator = unwrap(model)
    if hasattr(estimator, "reconstruction_error"):
        error: Callable[[Any], Any] = estimator.reconstruction_error
        if not steps:
            return to_numpy(error(X)).astype(np.float64)
    elif hasattr(estimator, "inverse_transform"):

        def error(rows: Any) -> Any:
            rows = host_rows(rows)
            rest = rows - to_numpy(estimator.inverse_transform(estimator.transform(rows)))
            return np.einsum("ij,ij->i", rest, rest)

    else:
        raise TypeError(
            f"This {type(estimator).__name__} has neither reconstruction_error nor "
            f"inverse_transform. Pass a fitted PCA, KernelPCA or NoveltyDetector, or a pipeline "
            f"that ends in one."
        )
    return SlicedRows(X).apply(lambda x: to_numpy(error(_preprocess(steps, x)))[:, None], [0])[:, 0]


def host_rows(X: Any) -> Values:
    """Return rows as a dense array on the host."""
    return to_numpy(X.toarray() if hasattr(X, "toarray") else X)


def _preprocess(steps: Sequence[Any], rows: Any) -> Any:
    for step in steps:
        rows = step.transform(rows)
    return rows


class SlicedRows(Source):
    """Rows of arrays, DataFrames or sparse matrices, read as slices."""

    parallel = False

    def __init__(self, X: Any) -> None:
        if isinstance(X, (str, os.PathLike)) or is_lazy(X):
            X = as_source(X)
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        self.X = as_csr(X) if is_sparse(X) else X
        n, *columns = X.shape
        if n == 0:
            raise ValueError(f"X has shape {tuple(X.shape)}: there are no rows to draw.")
        self.shape = (int(n), int(columns[0]) if columns else 1)
        self.dtype = np.dtype(np.float64)

    def read(self, start: int, stop: int) -> Any:
        if isinstance(self.X, Source):
            return self.X.read(start, stop)
        return self.X.iloc[start:stop] if hasattr(self.X, "iloc") else self.X[start:stop]

    def apply(self, function: Callable[[Any], Any], columns: Sequence[int]) -> Values:
        """Return some columns of a function of the rows, in float64."""

        def selected(block: Any) -> Values:
            with progress.quiet():  # the pass itself reports progress
                return host_rows(function(block.rows))[:, list(columns)]

        extra_bytes = 3 * self.shape[1] * 8
        with progress.session():
            values: Values = self.map(selected, len(columns), np.float64, extra_bytes).collect()
        return values


class LastBlock(Source):
    """A source that keeps the block last read by each thread."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shape, self.dtype, self.names = source.shape, source.dtype, source.names
        self.weights, self.sparse = source.weights, source.sparse
        self.parallel, self.uneven = source.parallel, source.uneven
        self.last = threading.local()

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def row_bytes(self) -> int:
        return self.source.row_bytes

    def read(self, start: int, stop: int) -> Array:
        if getattr(self.last, "span", None) != (start, stop):
            self.last.span, self.last.rows = None, None
            self.last.rows = self.source.read(start, stop)
            self.last.span = (start, stop)
        return self.last.rows

    def load(self) -> Any:
        return self.source.load()

    def _take(self, at: Values) -> Array:
        return self.source.take(at)


@dataclass(frozen=True)
class EvaluatedRows:
    """Rows with their scores and squared errors, computed block by block when they are read."""

    raw: Source  # as passed
    preprocessed: Source  # as the components see them
    scores: Source
    errors: Source | None  # None for a precomputed kernel, without k(x, x) of new rows


def evaluated_rows(steps: Sequence[Any], model: Any, X: Any) -> EvaluatedRows:
    """Return rows of X with what a PCA or KernelPCA after some steps computes of them."""
    if steps:
        raw: Source = LastBlock(check_rows(steps[0], X, reset=False))
        preprocessed: Source = LastBlock(through(steps, raw, int(model.n_features_in_)))
        model._rows(preprocessed, reset=False)
    else:
        raw = preprocessed = LastBlock(model._rows(X, reset=False))
    errors = None if getattr(model, "kernel_", True) is None else model._residuals(preprocessed)
    return EvaluatedRows(raw, preprocessed, model._scores(preprocessed), errors)


class FittedSpectrum:
    """Eigenvalues of a fitted model, their total, and how many components a rule would keep."""

    def __init__(self, model: Any) -> None:
        estimator = unwrap(model)[1]
        projection = getattr(estimator, "projection_", None)
        ratio = getattr(estimator, "explained_variance_ratio_", None)
        values = getattr(estimator, "explained_variance_", getattr(estimator, "eigenvalues_", None))
        if values is None:
            raise ValueError(
                f"This {type(estimator).__name__} has neither explained_variance_ nor "
                f"eigenvalues_: it is not fitted, or has no spectrum. Pass a fitted PCA or "
                f"KernelPCA."
            )
        self.linear = hasattr(estimator, "components_")
        self.values = to_numpy(values).astype(np.float64)
        self.total: float | None = None
        if projection is not None:
            self.values, self.total = projection.eigenvalues, float(projection.total_variance)
        elif ratio is not None:
            share = float(to_numpy(ratio).sum(dtype=np.float64))
            self.total = float(self.values.sum()) / share if share > 0 else 0.0
        elif getattr(estimator, "n_components", 0) is None:  # scikit-learn's KernelPCA, complete
            self.total = float(self.values.sum())
        self.n, self.d = self._size(estimator)

    @property
    def shares(self) -> Values | None:
        """Share of each component in the total variance, if that is known."""
        return variance_shares(self.values, self.total)

    def _size(self, estimator: Any) -> tuple[int | None, int | None]:
        """Return the sum of weights and the number of features, where they are known."""
        rows = getattr(estimator, "n_samples_", None)
        if rows is None and hasattr(estimator, "eigenvectors_"):
            rows = estimator.eigenvectors_.shape[0]
        if rows is None and hasattr(estimator, "plan_"):
            rows = estimator.plan_.size.n
        if rows is None:
            return None, None
        eigenvalues = getattr(estimator, "eigenvalues_", None)
        if eigenvalues is None and hasattr(estimator, "singular_values_"):
            eigenvalues = to_numpy(estimator.singular_values_).astype(np.float64) ** 2
        variances = to_numpy(getattr(estimator, "explained_variance_", []))
        count = float(rows)
        if eigenvalues is not None and len(variances) and variances[0] > 0:
            # An eigenvalue of the scatter matrix is (Σw − 1) times a variance.
            count = float(to_numpy(eigenvalues)[0] / variances[0]) + 1
        n = max(round(count), int(rows))
        projection = getattr(estimator, "projection_", None)
        if isinstance(projection, LinearProjection):  # columns of weight zero do not count
            return n, int(np.isfinite(projection.divisor).sum())
        return n, int(estimator.components_.shape[1]) if self.linear else n

    def named_rules(self, rules: Iterable[Any] | Mapping[str, Any]) -> dict[str, Rule]:
        """Return the rules for `n_components`, by name."""
        n, d = self.n or 2**62, self.d or 2**62
        if isinstance(rules, Mapping):
            return {name: as_rule(rule, n, d) for name, rule in rules.items()}
        return {rule_name(rule): rule for rule in (as_rule(rule, n, d) for rule in rules)}

    def cut(self, rule: Rule) -> int | None:
        """Return how many components a rule keeps; None where it needs more eigenvalues."""
        if self.total is None:
            return None
        values, n, d = np.maximum(self.values, 0.0), self.n, self.d
        if n is None or d is None:
            # Every other rule depends on the number of rows or columns.
            if type(rule).__name__ not in ("Fraction", "Threshold", "Count"):
                return None
            n = d = len(values) + 1
        values = values[: min(n, d)]
        zeros = min(n, d) - len(values)
        if zeros > 0 and self.total - values.sum() <= 1e-12 * self.total:
            values = np.concatenate([values, np.zeros(zeros)])
        k = rule.choose(values, self.total, n, d)
        return k if k is None else min(k, len(self.values))


def variance_shares(values: Any, total: float | None) -> Values | None:
    """Return eigenvalues as shares of the total variance; zeros where there is none."""
    if total is None:
        return None
    shares: Values = np.asarray(values, np.float64) / (total if total > 0 else np.inf)
    return shares


def rule_name(rule: Rule) -> str:
    """Return the name of a rule as displays and reports write it."""
    name = _RULE_NAMES.get(type(rule).__name__)
    if name is None or not type(rule).__module__.startswith("mercer.rules"):
        return repr(rule)
    values = rule.get_params()
    if "p" in values:
        values["p"] = f"{100 * values['p']:.4g} %"
    return name.format(**values)
