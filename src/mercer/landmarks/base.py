"""Base class of landmark rules, sampling, and two simple rules: uniform and given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Vector, is_foreign, is_sparse, like, to_device_of, to_numpy
from mercer.checks import check_integer
from mercer.config import get_config, require_budget
from mercer.data import StringSource, as_source
from mercer.kernels.points import cast_rows
from mercer.linalg.span import Basis
from mercer.messages import format_parameter
from mercer.params import Params
from mercer.problem import KernelProblem

Rows = Any
"""Indices of rows: a list or an array of int."""


class SelectionCost(NamedTuple):
    """Cost of choosing landmarks: passes over the rows, operations, bytes.

    `extra_passes` may be needed besides, at most, depending on the data.
    """

    passes: int = 0
    work: float = 0.0
    memory: float = 0.0
    extra_passes: int = 0


class Landmarks(Params, ABC):
    """A rule that chooses the points of a basis.

    To write your own rule, define `name` and `select`; `cost` tells the plan what it takes.

    Examples
    --------
    >>> from mercer import KernelPCA
    >>> from mercer.landmarks import Landmarks
    >>> from mercer.landmarks.base import row_basis
    >>> from mercer.methods import Subset
    >>> from sklearn.datasets import load_iris
    >>> class First(Landmarks):
    ...     name = "first"
    ...
    ...     def select(self, problem, m):
    ...         return row_basis(problem, range(m))
    >>> KernelPCA(2, kernel="rbf", method=Subset(9, First())).fit(load_iris().data).X_fit_.shape
    (9, 4)
    """

    name: str
    takes = "anything"
    """The rows that the rule accepts: "vectors" or "anything"."""

    @abstractmethod
    def select(self, problem: KernelProblem, m: int) -> Basis:
        """Choose m landmarks."""

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        """Return the cost of choosing m landmarks among n rows of d columns."""
        return SelectionCost()

    def check(self, problem: KernelProblem) -> None:
        """Raise if the rule does not accept these rows."""
        strings = isinstance(problem.source, StringSource)
        if self.takes == "vectors" and (strings or problem.kernel is None):
            rows = "strings" if strings else "a precomputed kernel matrix"
            raise ValueError(
                f"{self!r} requires numeric rows, but got {rows}. Use a rule for any kind of rows, "
                f"such as 'uniform', 'rp_cholesky' or 'kernel_kmeans'."
            )


class Uniform(Landmarks):
    """Rows drawn with equal probability, or in proportion to their weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.Uniform())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "uniform"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        source = problem.source
        if source.weights is not None:
            return sample_basis(problem, source.weights, m)
        # No array of n numbers: there may be more rows than memory.
        rows = np.sort(problem.rng.choice(source.shape[0], m, replace=False, shuffle=False))
        points = None if problem.kernel is None else source.take(rows)
        return Basis(points, rows, np.full(m, source.shape[0] / m))


class Given(Landmarks):
    """Points, or indices of rows, that the user passes.

    Parameters
    ----------
    points : array-like of shape (m, d), list of str, or array-like of int of shape (m,)
        The points, which need not be rows; or the indices of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(select=landmarks.Given(range(0, 150, 5)))
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "given"

    def __init__(self, points: Any) -> None:
        self.points = points

    def __len__(self) -> int:
        shape = getattr(self.points, "shape", None)
        return len(self.points) if shape is None else int(shape[0])

    def select(self, problem: KernelProblem, m: int | None = None) -> Basis:
        rows, weights, counts = self._rows(problem.source.shape[0]), problem.source.weights, None
        if rows is None:
            basis = Basis(self._points(problem))
        else:
            # Each represents a share of all rows, in proportion to its weight.
            if weights is not None and weights[rows].sum() > 0:
                counts = np.asarray(weights[rows] * (weights.sum() / weights[rows].sum()))
            basis = row_basis(problem, rows, counts)
        if m is not None and len(basis) != m:
            raise ValueError(f"n_basis={m}, but {len(basis)} points were passed. Omit n_basis.")
        return basis

    def _rows(self, n: int) -> Any:
        """Return the indices of rows; None if the points themselves are passed."""
        if is_foreign(self.points) or is_sparse(self.points):
            return None
        rows = np.asarray(self.points)
        if rows.ndim == 1 and rows.dtype.kind == "b":
            raise ValueError(
                "Landmarks must be row indices or points, but a boolean mask was passed. Pass "
                "np.flatnonzero(mask)."
            )
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            return None
        bad = rows[(rows < 0) | (rows >= n)]
        if len(bad):
            raise ValueError(f"Landmark index {bad[0]} is out of range: X has {n} rows.")
        return rows

    def _points(self, problem: KernelProblem) -> Any:
        source, points = problem.source, as_source(self.points)
        if problem.kernel is None:
            raise ValueError(
                "Landmarks cannot be points with a precomputed kernel matrix, whose rows are "
                "unknown. Pass row indices."
            )
        if isinstance(source, StringSource) != isinstance(points, StringSource):
            raise ValueError("The landmarks and the rows must both be numbers, or both strings.")
        if points.shape[1:] != source.shape[1:]:
            raise ValueError(
                f"The landmarks have {points.shape[1]} columns, but X has {source.shape[1]}."
            )
        rows = points.load()
        if isinstance(rows, list):
            return rows
        if not bool(np.isfinite(to_numpy(rows.data if points.sparse else rows)).all()):
            raise ValueError("The landmarks contain NaN or infinity. Remove those points.")
        rows = to_device_of(cast_rows(rows, source.dtype), source.reference)
        if problem.shift is None:
            return rows
        rows = rows.toarray() if points.sparse else rows
        return rows - like(problem.shift, rows, source.dtype)


class CandidateLandmarks(Landmarks):
    """A rule that chooses among candidates: rows drawn with equal probability."""

    candidates: int | None
    """Number of candidates; None: a default that fits a quarter of the memory budget."""
    fewest, per_landmark = 2000, 2
    """Lower limit of that default, and candidates per landmark."""
    among_themselves = False
    """Whether the kernel between candidates is computed, not that between them and all rows."""

    def n_candidates(self, n: int, m: int) -> int:
        """Return the number of candidates for m landmarks among n rows."""
        if self.candidates is not None:
            return min(n, max(m, int(self.candidates)))
        values = get_config().budget // 4 // 8
        fitting = isqrt(values) if self.among_themselves else values // n
        return min(n, max(m, min(max(self.fewest, self.per_landmark * m), fitting)))

    def _draw_candidates(self, problem: KernelProblem, m: int) -> np.ndarray[Any, Any]:
        if self.candidates is not None:
            check_integer(self, "candidates")
        return draw_rows(problem, self.n_candidates(problem.source.shape[0], m))


def row_basis(problem: KernelProblem, rows: Rows, counts: Vector | None = None) -> Basis:
    """Return the basis of these rows."""
    rows = np.asarray(rows, dtype=np.intp)
    return Basis(None if problem.kernel is None else problem.source.take(rows), rows, counts)


def row_weights(problem: KernelProblem) -> Vector:
    """Return the weight of every row: 1 if none were passed."""
    weights = problem.source.weights
    return np.ones(problem.source.shape[0]) if weights is None else weights


def weighted_row_indices(problem: KernelProblem) -> np.ndarray[Any, Any]:
    """Return the rows of positive weight."""
    return np.flatnonzero(row_weights(problem) > 0)


def draw_rows(problem: KernelProblem, size: int) -> np.ndarray[Any, Any]:
    """Return rows of positive weight, drawn with equal probability, in order."""
    rows = weighted_row_indices(problem)
    return rows if size >= len(rows) else np.sort(problem.rng.choice(rows, size, replace=False))


def sample_basis(problem: KernelProblem, sizes: Vector, m: int) -> Basis:
    """Draw m different rows with probabilities proportional to their sizes.

    A row drawn with probability p counts as 1/p rows (Horvitz & Thompson 1952).
    """
    rows, probability = systematic_sample(problem.rng, sizes, m)
    return row_basis(problem, rows, row_weights(problem)[rows] / probability)


def systematic_sample(
    rng: np.random.Generator, sizes: Vector, m: int
) -> tuple[np.ndarray[Any, Any], Vector]:
    """Draw m different rows; return them in order, with their probabilities.

    Systematic sampling of a random order (Madow 1949): a row is drawn with probability
    min(1, c·size), exactly. With equal sizes it is a simple random sample.
    """
    n, probability = len(sizes), inclusion_probabilities(sizes, m)
    order = rng.permutation(n)
    ends = np.cumsum(probability[order])
    positions = np.searchsorted(ends, rng.random() + np.arange(m), side="right").clip(max=n - 1)
    rows = np.sort(order[positions])
    return rows, probability[rows]


def inclusion_probabilities(sizes: Vector, m: int) -> Vector:
    """Return min(1, c·size), with the c for which they sum to m."""
    sizes = np.asarray(sizes, np.float64)
    require_enough_rows(sizes, m)
    certain = np.zeros(len(sizes), bool)
    while True:
        rest = float(sizes[~certain].sum())
        scale = (m - certain.sum()) / rest if rest > 0 else 0.0
        probability = np.where(certain, 1.0, sizes * scale)
        above_one = (probability > 1.0) & ~certain
        if not above_one.any():
            return np.minimum(probability, 1.0)
        certain |= above_one


def require_memory(nbytes: float, what: str) -> None:
    """Raise if an array exceeds the memory budget."""
    other = f"use a smaller basis or {format_parameter('select', 'uniform')}"
    require_budget(nbytes, what, other)


def require_enough_rows(sizes: Vector, m: int) -> None:
    """Raise if fewer than m rows have a positive size."""
    available = int((sizes > 0).sum())
    if available < m:
        raise ValueError(
            f"only {available} rows can be drawn, but {format_parameter('n_basis', m)}. Use a "
            f"smaller basis, or {format_parameter('select', 'uniform')}."
        )
