"""A basis that the user has chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Vector, cast, is_foreign, like, namespace, to_numpy
from mercer.data import StringSource, as_source
from mercer.landmarks.base import Landmarks, taken
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem


class Given(Landmarks):
    """The points themselves, or the numbers of rows.

    Parameters
    ----------
    points : array-like of shape (m, d), list of str, or array-like of int of shape (m,)
        Points, which need not be rows; or which rows to take.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(select=landmarks.Given(range(0, 150, 5)))
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
        at = self._rows(problem.source.shape[0])
        if at is None:
            basis = Basis(self._points(problem))
        else:
            basis = taken(problem, at, _counts(problem, at))
        if m is not None and len(basis) != m:
            raise ValueError(f"n_basis={m}, and {len(basis)} points were given. Leave n_basis out.")
        return basis

    def _rows(self, n: int) -> Any:
        """Return which rows are named; None where the points themselves are given."""
        if isinstance(self.points, list) and any(isinstance(x, str) for x in self.points):
            return None
        if is_foreign(self.points) or hasattr(self.points, "tocsr"):
            return None
        at = np.asarray(self.points)
        if at.ndim == 1 and at.dtype.kind == "b":
            raise ValueError(
                "landmarks are numbers of rows or points, and a mask of True and False was given. "
                "np.flatnonzero(mask) names its rows."
            )
        if at.ndim != 1 or at.dtype.kind not in "iu":
            return None
        bad = at[(at < 0) | (at >= n)]
        if len(bad):
            raise ValueError(f"row {bad[0]} was given as a landmark, and X has {n} rows.")
        return at

    def _points(self, problem: KernelProblem) -> Any:
        source, points = problem.source, as_source(self.points)
        if problem.kernel is None:
            raise ValueError(
                "rows of a precomputed kernel matrix have no points beside them: give the "
                "numbers of rows."
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
            raise ValueError("the landmarks given hold NaN or infinity. Leave such points out.")
        moved = cast(rows, source.dtype)
        if namespace(moved) is not namespace(source.reference):
            moved = like(to_numpy(rows), source.reference, source.dtype)
        return moved if problem.shift is None else moved - like(problem.shift, moved, source.dtype)


def _counts(problem: KernelProblem, at: Any) -> Vector | None:
    """Return how many rows each stands for: all of them, shared out by the weights."""
    weights = problem.source.weights
    if weights is None or not weights[at].sum() > 0:
        return None
    return np.asarray(weights[at] * (weights.sum() / weights[at].sum()))
