"""Backward search: from many rows to those that matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from mercer.arrays import Matrix, Vector, eigh
from mercer.checks import check_whole
from mercer.config import get_config
from mercer.landmarks.base import Landmarks, pool, taken
from mercer.landmarks.columns import Rows
from mercer.landmarks.factor import footprint
from mercer.landmarks.objective import centred, descending, losses
from mercer.landmarks.pivoted_cholesky import pivoted_cholesky
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# Of several removed at once, those go of whose direction so much is still in the span.
_STILL = 0.5
# Candidates where the user does not say: so many, or so many for every point.
_LEAST, _EACH = 1000, 2
# The share that is removed at a time.
_SHARE = 0.1


class Backward(Landmarks):
    r"""Backward search: from many rows, those go that the captured variance misses least.

    The criterion is that of `Forward`. With :math:`G = K_y^{-1}` the removal of :math:`y_j`
    takes the direction :math:`K_{xy}g_j/\sqrt{G_{jj}}` out of the span, and the sum of the r
    largest eigenvalues falls to that of the roots of a secular equation, found for all points at
    once. Rows that others span, to rounding, go first: by a pivoted Cholesky decomposition, whose
    factor of n × p numbers is held.

    Fewer than m points are returned where those already hold all candidates, to rounding.

    Parameters
    ----------
    step : int or None
        Points that are removed before all are weighed again; those that the others removed
        stood in for stay. None: a tenth of what is left.
    candidates : int or None
        Rows to start from, drawn with equal chances. None: 1000, or two for every point if that
        is more; fewer where the factor would fill more than a quarter of the memory budget.

    References
    ----------
    Washizawa (2012), §4.1.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(10, select=landmarks.Backward())
    >>> kpca = KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data)
    >>> f"{kpca.certificate_.captured:.3f}"  # 0.685 by ten rows drawn with equal chances
    '0.728'
    """

    name = "backward"

    def __init__(self, step: int | None = None, candidates: int | None = None) -> None:
        self.step, self.candidates = step, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        for name in ("step", "candidates"):
            if getattr(self, name) is not None:
                check_whole(self, name)
        among = pool(problem, self.size(problem.source.shape[0], m))
        return taken(problem, reduced(problem, among, m, self.step))

    def size(self, n: int, m: int) -> int:
        """Return how many candidates there are."""
        if self.candidates is not None:
            return min(n, max(m, int(self.candidates)))
        room = get_config().budget // 4 // (8 * n)
        return min(n, max(m, min(max(_LEAST, _EACH * m), room)))

    @property
    def passes(self) -> int:
        return 1

    def work(self, n: int, d: int, m: int) -> float:
        p = self.size(n, m)
        rounds = 1.0 / (3.0 * _SHARE) if self.step is None else (p - m) / self.step
        return 2.0 * n * p * d + 3.0 * n * p * p + 15.0 * rounds * p**3

    def memory(self, n: int, d: int, m: int) -> float:
        p = self.size(n, m)
        return footprint(n, p) + 48.0 * p * p


def reduced(problem: KernelProblem, among: Rows, m: int, step: int | None) -> np.ndarray[Any, Any]:
    """Return m of the rows named, the others removed by what they matter."""
    rows, G, _ = pivoted_cholesky(problem, len(among), among=among)
    span = Shrinking(problem, G, rows)
    while len(span.rows) > m:
        many = max(1, int(_SHARE * len(span.rows))) if step is None else int(step)
        span.shrink(min(many, len(span.rows) - m))
    return np.sort(span.rows)


class Shrinking:
    """A span that loses one point after the other.

    Attributes
    ----------
    rows : ndarray of int
        The points that are left, q of them.
    scatter : ndarray of shape (q, q)
        Scatter of all rows, in orthonormal coordinates of the span.
    dual : ndarray of shape (q, q)
        T with K_y⁻¹ = TTᵀ: row j, at unit length, is the direction that only y_j gives.
    """

    def __init__(self, problem: KernelProblem, G: Matrix, rows: np.ndarray[Any, Any]) -> None:
        self.rows, self.r = rows, problem.n_leading
        L = G[rows]
        self.dual: Matrix = solve_triangular(L, np.eye(len(L)), lower=True).T
        F = centred(problem, G)
        self.scatter: Matrix = F.T @ F

    def shrink(self, many: int) -> None:
        """Take out the points that are missed least."""
        xi, V = eigh(self.scatter)
        T = self.dual @ V
        u = (T / np.linalg.norm(T, axis=1)[:, None]).T
        gone = _apart(u, descending(-losses(xi, u, self.r)), many)
        stay = np.setdiff1d(np.arange(len(xi)), gone)
        Q = qr(u[:, gone])[0][:, len(gone) :]
        self.rows, self.dual, self.scatter = self.rows[stay], T[stay] @ Q, (Q.T * xi) @ Q


def _apart(u: Matrix, order: Any, many: int) -> list[int]:
    """Return the first of the directions in order, less those that the ones before mostly hold."""
    gone: list[int] = []
    left: Vector = np.ones(u.shape[1])
    axes = np.zeros((u.shape[0], 0))
    for j in order:
        if len(gone) == many:
            break
        if left[j] < _STILL:
            continue
        axis = u[:, j] - axes @ (axes.T @ u[:, j])
        axis /= np.linalg.norm(axis)
        axes, left = np.c_[axes, axis], left - (axis @ u) ** 2
        gone.append(int(j))
    return gone
