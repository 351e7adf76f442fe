"""Pivots of the incomplete Cholesky decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.checks import is_real, require
from mercer.landmarks.base import Landmarks, taken
from mercer.landmarks.columns import Rows
from mercer.landmarks.factor import AHEAD, Factor, footprint
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# Columns that are made in the first pass.
_FIRST = 16


class PivotedCholesky(Landmarks):
    r"""Pivots of the incomplete Cholesky decomposition :math:`K \approx GG^T`.

    The next point is the row worst represented by the span so far, the one with the largest
    :math:`k(x,x) - \sum_j G_{xj}^2`; of equals, the first. The choice has no randomness. It
    takes nm(d + m) operations and holds G, n × m.

    Fewer than m points are returned where those already hold all rows, to rounding or to `tol`.

    Parameters
    ----------
    tol : float
        Stop when what lies beyond the span, tr(K − GGᵀ), is this share of tr K.

    References
    ----------
    S. Fine & K. Scheinberg, Efficient SVM training using low-rank kernel representations, JMLR 2
    (2001). V. Franc & V. Hlaváč, Greedy algorithm for a training set reduction in the kernel
    methods, CAIP (2003). Washizawa (2012), §5.5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.PivotedCholesky())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "pivoted_cholesky"

    def __init__(self, tol: float = 0.0) -> None:
        self.tol = tol

    def select(self, problem: KernelProblem, m: int) -> Basis:
        known = is_real(self.tol) and 0 <= self.tol < 1
        require(self, "tol", known, "a share of the trace, 0 or more and below 1")
        pivots, _, _ = pivoted_cholesky(problem, m, tol=float(self.tol))
        return taken(problem, pivots)

    @property
    def passes(self) -> int:
        return 1

    def work(self, n: int, d: int, m: int) -> float:
        return 2.0 * n * m * d + 2.0 * n * m * m

    def memory(self, n: int, d: int, m: int) -> float:
        return footprint(n, m)


def pivoted_cholesky(
    problem: KernelProblem, m: int, *, tol: float = 0.0, among: Rows = None
) -> tuple[np.ndarray[Any, Any], Matrix, Vector]:
    """Return pivots, G of shape (n, number of pivots), and the diagonal of K − GGᵀ.

    Pivots are rows of a weight above zero, and of those in `among` where it is given.

    Columns of the rows that are now worst represented are made in one pass. They become pivots
    as long as no other row is worse: the pivots are those of one pass for each.
    """
    factor = Factor(problem, m, among)
    count = problem.source.weights
    own = factor.columns.own
    least = tol * float(own.sum() if count is None else count @ own)
    ahead = _FIRST
    while factor.room:
        beyond = factor.beyond
        likely = np.argsort(-beyond, kind="stable")[: min(ahead, factor.room)]
        likely = likely[beyond[likely] > 0]
        if not len(likely):
            break
        used = _follow(factor, likely, factor.residual(likely), least)
        if used == 0:
            break
        ahead = min(AHEAD, max(_FIRST, 2 * used))
    return np.array(factor.at, np.intp), factor.G[:, : factor.size], factor.left


def _follow(factor: Factor, likely: Any, columns: Matrix, least: float) -> int:
    """Append pivots as long as the worst row is a likely one; return how many."""
    start, count = factor.size, factor.columns.source.weights
    place = {int(row): i for i, row in enumerate(likely)}
    while factor.room:
        left = float(factor.left.sum() if count is None else count @ factor.left)
        beyond = factor.beyond
        worst = int(np.argmax(beyond))
        if left <= least or beyond[worst] <= 0 or worst not in place:
            break
        before = factor.G[:, start : factor.size]
        column = columns[:, place[worst]] - before @ before[worst]
        root = np.sqrt(factor.left[worst])
        column /= root
        column[worst] = root
        factor.append([worst], column[:, None])
    return factor.size - start
