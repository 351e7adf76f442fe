"""A basis that the user passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import cast, is_foreign, like, namespace, to_numpy
from mercer.data import StringSource, as_source
from mercer.landmarks.base import Landmarks, row_basis
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem


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
            raise ValueError(f"n_basis={m}, but {len(basis)} points were given. Leave n_basis out.")
        return basis

    def _rows(self, n: int) -> Any:
        """Return the indices of rows; None if the points themselves are passed."""
        if isinstance(self.points, list) and any(isinstance(x, str) for x in self.points):
            return None
        if is_foreign(self.points) or hasattr(self.points, "tocsr"):
            return None
        rows = np.asarray(self.points)
        if rows.ndim == 1 and rows.dtype.kind == "b":
            raise ValueError(
                "landmarks must be indices of rows or points, and a boolean mask was given. Pass "
                "np.flatnonzero(mask)."
            )
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            return None
        bad = rows[(rows < 0) | (rows >= n)]
        if len(bad):
            raise ValueError(f"row {bad[0]} was given as a landmark, and X has {n} rows.")
        return rows

    def _points(self, problem: KernelProblem) -> Any:
        source, points = problem.source, as_source(self.points)
        if problem.kernel is None:
            raise ValueError(
                "the rows of a precomputed kernel matrix are unknown, so points cannot be compared "
                "with them. Pass indices of rows."
            )
        if isinstance(source, StringSource) != isinstance(points, StringSource):
            raise ValueError("the landmarks given and the rows must both be numbers, or strings.")
        if points.shape[1:] != source.shape[1:]:
            raise ValueError(
                f"the landmarks given have {points.shape[1]} columns, and X has {source.shape[1]}."
            )
        rows = points.whole()
        if isinstance(rows, list) or hasattr(rows, "tocsr"):
            return rows
        if not bool(np.isfinite(to_numpy(rows)).all()):
            raise ValueError("the landmarks given contain NaN or infinity. Remove those points.")
        rows = cast(rows, source.dtype)
        if namespace(rows) is not namespace(source.reference):
            rows = like(to_numpy(rows), source.reference, source.dtype)
        return rows if problem.shift is None else rows - like(problem.shift, rows, source.dtype)
