"""Greedy forward search."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dger

from mercer.arrays import Vector, eigh
from mercer.checks import check_whole
from mercer.config import get_config
from mercer.landmarks.base import Landmarks, pool, require_memory, taken
from mercer.landmarks.columns import Columns, Rows
from mercer.landmarks.objective import centred, descending, gains
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# A candidate of which less than this share lies beyond the span is in it, but for rounding.
_WITHIN = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
# Of several added at once, those stay of which so much is left by the ones before.
_STILL = 0.5
# Candidates where the user does not say: so many, or so many for every point.
_LEAST, _EACH = 2000, 2


class Forward(Landmarks):
    r"""Greedy forward search: each time the row that adds most to what the axes hold.

    The criterion is the captured variance :math:`\sum_{i\le r}\xi_i` of the r axes asked for,
    for all rows. A candidate x adds to the span the direction :math:`f = E_{:,x}/\sqrt{E_{xx}}`
    with :math:`E = K - N_0`: the sum of the r largest roots of a secular equation, found for all
    candidates at once. A point costs of the order of p(n + m² + rm) operations, p the number of
    candidates.

    Fewer than m points are returned where those already hold all candidates, to rounding.

    Parameters
    ----------
    step : int
        Points that are added before all are weighed again. More is faster; those that the
        points just added mostly hold are left out.
    candidates : int or None
        Rows that points are chosen from, drawn with equal chances. None: 2000, or two for every
        point if that is more; fewer where their kernel to all rows, n × p numbers of float64,
        would fill more than a quarter of the memory budget.

    References
    ----------
    Washizawa (2012), §4.1.1, Algorithm 1, which refits for every candidate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(10, select=landmarks.Forward())
    >>> kpca = KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data)
    >>> f"{kpca.certificate_.captured:.3f}"  # 0.685 by ten rows drawn with equal chances
    '0.728'
    """

    name = "forward"

    def __init__(self, step: int = 1, candidates: int | None = None) -> None:
        self.step, self.candidates = step, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        return taken(problem, self.rows(problem, m))

    def rows(self, problem: KernelProblem, m: int) -> np.ndarray[Any, Any]:
        """Return which rows are chosen, in the order of their choice."""
        check_whole(self, "step")
        if self.candidates is not None:
            check_whole(self, "candidates")
        among = pool(problem, self.size(problem.source.shape[0], m))
        search = Growing(problem, among, problem.n_leading)
        while len(search.chosen) < m and search.grow(min(self.step, m - len(search.chosen))):
            pass
        return among[search.chosen]

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
        return 2.0 * n * p * d + 6.0 * n * p * m + 4.0 * p * m**3 / 3.0

    def memory(self, n: int, d: int, m: int) -> float:
        p = self.size(n, m)
        return 8.0 * p * (n + 3 * p + 4 * m)


class Growing:
    """A span that takes in one candidate after the other.

    Attributes
    ----------
    chosen : list of int
        Which of the candidates are in it.
    far : ndarray of shape (n, p)
        E between all rows and the candidates, centred and weighed.
    near : ndarray of shape (p, p)
        E between the candidates.
    scatter : ndarray of shape (q, q)
        Scatter of the rows in orthonormal coordinates of the span.
    along : ndarray of shape (q, p)
        Products of the coordinates' directions with the columns of `far`.
    """

    def __init__(self, problem: KernelProblem, among: Rows, r: int | None) -> None:
        n, p = problem.source.shape[0], len(among)
        require_memory(8.0 * p * (n + 3 * p), f"the kernel between {n} rows and {p} candidates")
        K = Columns(problem, np.float64).collect(among)
        self.r, self.chosen = r, list[int]()
        near = K[among]
        self.near = np.asfortranarray((near + near.T) / 2.0)
        self.far = centred(problem, K)
        self.within = _WITHIN[problem.source.dtype] * np.diag(self.near)
        self.scatter, self.along = np.zeros((0, 0)), np.zeros((0, p))

    @property
    def left(self) -> Vector:
        """What of each candidate lies beyond the span."""
        return np.diag(self.near)

    def grow(self, many: int) -> int:
        """Take in the candidates that add most; return how many."""
        scores, before = self.scores(), self.left.copy()
        start, outside = len(self.chosen), np.flatnonzero(np.isfinite(scores))
        for x in outside[descending(scores[outside])]:
            if len(self.chosen) - start == many:
                break
            if self.left[x] >= _STILL * before[x]:
                self.add(int(x))
        return len(self.chosen) - start

    def scores(self) -> Vector:
        """Return what each candidate would add to the criterion; −∞ of those in the span."""
        values, Q = eigh(self.scatter)
        self.scatter, self.along = np.diag(values), Q.T @ self.along
        outside = np.flatnonzero(self.left > self.within)
        scores, left = np.full(len(self.left), -np.inf), self.left[outside]
        c = np.einsum("ij,ij->j", self.far, self.far)[outside] / left
        scores[outside] = gains(values, self.along[:, outside] / np.sqrt(left), c, self.r)
        return scores

    def add(self, x: int) -> None:
        """Take in a candidate."""
        root = np.sqrt(self.left[x])
        f, f_near, b = self.far[:, x] / root, self.near[:, x] / root, self.along[:, x] / root
        dger(-1.0, f, f_near, a=self.far, overwrite_a=1)
        dger(-1.0, f_near, f_near, a=self.near, overwrite_a=1)
        self.along = np.vstack([self.along - np.outer(b, f_near), f @ self.far])
        self.scatter = np.block([[self.scatter, b[:, None]], [b, f @ f]])
        self.chosen.append(x)
