"""Searches for the landmarks whose span explains the most variance."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.blas import dger

from mercer.arrays import Matrix, Vector, eigh
from mercer.checks import check_positive, check_whole
from mercer.landmarks.base import (
    CandidateLandmarks,
    Landmarks,
    Rows,
    SelectionCost,
    require_memory,
    row_basis,
)
from mercer.landmarks.cholesky import PartialCholesky, cholesky_bytes, pivoted_cholesky
from mercer.landmarks.columns import KernelColumns
from mercer.landmarks.objective import (
    basis_variance,
    center_features,
    descending_order,
    gains,
    losses,
)
from mercer.landmarks.sampling import Uniform
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# A candidate whose residual is below this share of k(x, x) lies in the span, to rounding.
_IN_SPAN = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
# Of several changes at once, those after the first must keep this share of their direction.
_INDEPENDENT = 0.5
# The share of the landmarks that one step of a backward search removes by default.
_SHARE = 0.1
# A later trial must be better by this share: rounding, which depends on the block size, would
# decide between equals.
_EQUAL = 1e-5


class Forward(CandidateLandmarks):
    r"""Greedy forward search: add the row that increases the explained variance most.

    The criterion is the variance :math:`\sum_{i\le r}\xi_i` of all rows that the r components
    explain. A candidate x adds to the span the direction :math:`f = E_{:,x}/\sqrt{E_{xx}}` with
    :math:`E = K - N_0`; the sum of the r largest roots of a secular equation follows for all
    candidates at once. A landmark costs of the order of p(n + m² + rm) operations for p
    candidates.

    Returns fewer than m landmarks if those span all candidates, to rounding.

    Parameters
    ----------
    step : int
        Landmarks added before all candidates are scored again. A larger step is faster;
        candidates that mostly lie in the span of those just added are skipped.
    candidates : int or None
        Number of candidates, drawn with equal probability. None: 2000, or two for every landmark
        if that is more; fewer if their kernel with all rows, n × p numbers of float64, would take
        more than a quarter of the memory budget.

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
    >>> f"{kpca.certificate_.captured:.3f}"  # ten rows drawn with equal probability: 0.685
    '0.728'
    """

    name = "forward"

    def __init__(self, step: int = 1, candidates: int | None = None) -> None:
        self.step, self.candidates = step, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        return row_basis(problem, self.select_rows(problem, m))

    def select_rows(self, problem: KernelProblem, m: int) -> np.ndarray[Any, Any]:
        """Return the chosen rows, in the order of their choice."""
        check_whole(self, "step")
        candidates = self._draw_candidates(problem, m)
        span = ForwardSpan(problem, candidates)
        while len(span.chosen) < m and span.add_best(min(self.step, m - len(span.chosen))):
            pass
        return candidates[span.chosen]

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        p = self.n_candidates(n, m)
        work = 2.0 * n * p * d + 6.0 * n * p * m + 4.0 * p * m**3 / 3.0
        return SelectionCost(1, work, 8.0 * p * (n + 3 * p + 4 * m))


class Backward(CandidateLandmarks):
    r"""Backward search: remove the rows that decrease the explained variance least.

    The criterion is that of `Forward`. With :math:`G = K_y^{-1}`, removing :math:`y_j` removes the
    direction :math:`K_{xy}g_j/\sqrt{G_{jj}}` from the span; the sum of the r largest eigenvalues
    falls to that of the roots of a secular equation, found for all landmarks at once. Candidates
    that lie in the span of others, to rounding, are removed first by a pivoted Cholesky
    decomposition, whose factor of n × p numbers is held.

    Returns fewer than m landmarks if those span all candidates, to rounding.

    Parameters
    ----------
    step : int or None
        Landmarks removed before all are scored again; those that the span of the rest no longer
        contains are kept. None: a tenth of the rest.
    candidates : int or None
        Number of rows to start from, drawn with equal probability. None: 1000, or two for every
        landmark if that is more; fewer if the factor would take more than a quarter of the memory
        budget.

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
    >>> f"{kpca.certificate_.captured:.3f}"  # ten rows drawn with equal probability: 0.685
    '0.727'
    """

    name = "backward"
    fewest = 1000

    def __init__(self, step: int | None = None, candidates: int | None = None) -> None:
        self.step, self.candidates = step, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        return self.select_among(problem, self._draw_candidates(problem, m), m)

    def select_among(self, problem: KernelProblem, candidates: Rows, m: int) -> Basis:
        """Choose m landmarks among these candidates."""
        if self.step is not None:
            check_whole(self, "step")
        factor = pivoted_cholesky(problem, len(candidates), candidates=candidates)
        span = BackwardSpan(problem, factor)
        while len(span.rows) > m:
            step = max(1, int(_SHARE * len(span.rows))) if self.step is None else int(self.step)
            span.remove_least(min(step, len(span.rows) - m))
        return row_basis(problem, np.sort(span.rows))

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        return self.cost_among(n, d, m, self.n_candidates(n, m))

    def cost_among(self, n: int, d: int, m: int, p: int) -> SelectionCost:
        """Return the cost of choosing among p candidates."""
        steps = 1.0 / (3.0 * _SHARE) if self.step is None else (p - m) / self.step
        work = 2.0 * n * p * d + 3.0 * n * p * p + 15.0 * steps * p**3
        return SelectionCost(1, work, cholesky_bytes(n, p) + 48.0 * p * p)


class ForwardBackward(Landmarks):
    r"""Forward search for more landmarks than needed, then backward search to m.

    Removes landmarks that were good early and that later ones replace. The criterion is that of
    `Forward` and `Backward`.

    Returns fewer than m landmarks if those span all candidates, to rounding.

    Parameters
    ----------
    beyond : float
        Number of additional landmarks, as a share of m.
    step : int
        Landmarks added or removed before all are scored again.
    candidates : int or None
        Number of candidates, as in `Forward`.

    References
    ----------
    Washizawa (2012), §4.1.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(10, select=landmarks.ForwardBackward())
    >>> kpca = KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data)
    >>> f"{kpca.certificate_.captured:.3f}"  # ten rows drawn with equal probability: 0.685
    '0.728'
    """

    name = "forward_backward"

    def __init__(self, beyond: float = 0.5, step: int = 1, candidates: int | None = None) -> None:
        self.beyond, self.step, self.candidates = beyond, step, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_positive(self, "beyond")
        more = min(problem.source.shape[0], self._more(m))
        rows = Forward(self.step, self.candidates).select_rows(problem, more)
        return Backward(self.step).select_among(problem, rows, m)

    def _more(self, m: int) -> int:
        return ceil(m * (1.0 + self.beyond))

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        q = self._more(m)
        forward = Forward(self.step, self.candidates).cost(n, d, q)
        backward = Backward(self.step).cost_among(n, d, m, q)
        return SelectionCost(1, forward.work + backward.work, max(forward.memory, backward.memory))


class Ransac(Landmarks):
    r"""The best of several random draws, by the explained variance :math:`\sum_{i\le r}\xi_i`.

    Each trial takes a pass over the rows, as a fit does. The landmarks are the best of several
    samples, so the number of rows that each represents is unknown.

    Parameters
    ----------
    trials : int
        Number of draws.

    References
    ----------
    Washizawa (2012), §4.1.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(10, select=landmarks.Ransac(trials=5))
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (10, 4)
    """

    name = "ransac"

    def __init__(self, trials: int = 20) -> None:
        self.trials = trials

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_whole(self, "trials")
        best = Uniform().select(problem, m)
        most = basis_variance(problem, best)
        for _ in range(int(self.trials) - 1):
            basis = Uniform().select(problem, m)
            variance = basis_variance(problem, basis)
            if variance > (1.0 + _EQUAL) * most:
                best, most = basis, variance
        return replace(best, counts=None)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        work = self.trials * (2.0 * n * m * d + float(n) * m * m + 12.0 * m**3)
        return SelectionCost(int(self.trials), work, 64.0 * m * m)


class ForwardSpan:
    """A span to which candidates are added.

    Attributes
    ----------
    chosen : list of int
        Positions of the chosen candidates.
    residual : ndarray of shape (n, p)
        E between all rows and the candidates, centered and weighted.
    candidate_residual : ndarray of shape (p, p)
        E between the candidates.
    scatter : ndarray of shape (q, q)
        Scatter matrix of the rows in orthonormal coordinates of the span.
    cross : ndarray of shape (q, p)
        Inner products of these coordinates, over the rows, with the columns of `residual`.
    """

    def __init__(self, problem: KernelProblem, candidates: Rows) -> None:
        n, p = problem.source.shape[0], len(candidates)
        require_memory(8.0 * p * (n + 3 * p), f"the kernel between {n} rows and {p} candidates")
        K = KernelColumns(problem, np.float64).collect(candidates)
        self.r, self.chosen = problem.n_leading, list[int]()
        Ky = K[candidates]
        self.candidate_residual = np.asfortranarray((Ky + Ky.T) / 2.0)
        self.residual = center_features(problem, K)
        self.tolerance = _IN_SPAN[problem.source.dtype] * np.diag(self.candidate_residual)
        self.scatter, self.cross = np.zeros((0, 0)), np.zeros((0, p))

    @property
    def distances(self) -> Vector:
        """Squared distance of each candidate from the span."""
        return np.diag(self.candidate_residual)

    def add_best(self, count: int) -> int:
        """Add the candidates with the largest gains, at most `count`; return how many."""
        scores, before = self.scores(), self.distances.copy()
        start, outside = len(self.chosen), np.flatnonzero(np.isfinite(scores))
        for x in outside[descending_order(scores[outside])]:
            if len(self.chosen) - start == count:
                break
            if self.distances[x] >= _INDEPENDENT * before[x]:
                self.add(int(x))
        return len(self.chosen) - start

    def scores(self) -> Vector:
        """Return the gain of explained variance by each candidate; −∞ for those in the span."""
        values, Q = eigh(self.scatter)
        self.scatter, self.cross = np.diag(values), Q.T @ self.cross
        outside = np.flatnonzero(self.distances > self.tolerance)
        scores, distances = np.full(len(self.distances), -np.inf), self.distances[outside]
        c = np.einsum("ij,ij->j", self.residual, self.residual)[outside] / distances
        scores[outside] = gains(values, self.cross[:, outside] / np.sqrt(distances), c, self.r)
        return scores

    def add(self, x: int) -> None:
        """Add a candidate."""
        root = np.sqrt(self.distances[x])
        f, g = self.residual[:, x] / root, self.candidate_residual[:, x] / root
        b = self.cross[:, x] / root
        dger(-1.0, f, g, a=self.residual, overwrite_a=1)
        dger(-1.0, g, g, a=self.candidate_residual, overwrite_a=1)
        self.cross = np.vstack([self.cross - np.outer(b, g), f @ self.residual])
        self.scatter = np.block([[self.scatter, b[:, None]], [b, f @ f]])
        self.chosen.append(x)


class BackwardSpan:
    """A span from which landmarks are removed.

    Attributes
    ----------
    rows : ndarray of int
        The q remaining landmarks.
    scatter : ndarray of shape (q, q)
        Scatter matrix of all rows in orthonormal coordinates of the span.
    dual : ndarray of shape (q, q)
        T with K_y⁻¹ = TTᵀ: row j, normalized, is the direction that only y_j contributes.
    """

    def __init__(self, problem: KernelProblem, factor: PartialCholesky) -> None:
        self.rows, self.r = np.array(factor.pivots, np.intp), problem.n_leading
        L = factor.G[self.rows]
        self.dual: Matrix = solve_triangular(L, np.eye(len(L)), lower=True).T
        F = center_features(problem, factor.G)
        self.scatter: Matrix = F.T @ F

    def remove_least(self, count: int) -> None:
        """Remove the landmarks with the smallest losses."""
        xi, V = eigh(self.scatter)
        T = self.dual @ V
        u = (T / np.linalg.norm(T, axis=1)[:, None]).T
        removed = _independent(u, descending_order(-losses(xi, u, self.r)), count)
        rest = np.setdiff1d(np.arange(len(xi)), removed)
        Q = qr(u[:, removed])[0][:, len(removed) :]
        self.rows, self.dual, self.scatter = self.rows[rest], T[rest] @ Q, (Q.T * xi) @ Q


def _independent(u: Matrix, order: Any, count: int) -> list[int]:
    """Return the first `count` directions in order, without those mostly in the span of others."""
    chosen: list[int] = []
    outside: Vector = np.ones(u.shape[1])
    Q = np.zeros((u.shape[0], 0))
    for j in order:
        if len(chosen) == count:
            break
        if outside[j] < _INDEPENDENT:
            continue
        q = u[:, j] - Q @ (Q.T @ u[:, j])
        q /= np.linalg.norm(q)
        Q, outside = np.c_[Q, q], outside - (q @ u) ** 2
        chosen.append(int(j))
    return chosen
