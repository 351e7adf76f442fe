"""Searches for the landmarks whose span explains the most variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.blas import dger

from mercer.arrays import eigh
from mercer.checks import check_integer, check_positive
from mercer.landmarks.base import (
    CandidateLandmarks,
    Landmarks,
    Rows,
    SelectionCost,
    Uniform,
    require_memory,
    row_basis,
)
from mercer.landmarks.cholesky import cholesky_bytes, pivoted_cholesky
from mercer.landmarks.columns import KernelColumns
from mercer.landmarks.objective import (
    basis_variance,
    center_features,
    descending_order,
    gains,
    losses,
)
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


@dataclass(eq=False, repr=False)
class Forward(CandidateLandmarks):
    r"""Greedy forward search: add the row that increases the explained variance most.

    The criterion is the variance :math:`\sum_{i\le r}\xi_i` of all rows that the r components
    explain. A candidate x adds to the span the direction :math:`f = E_{:,x}/\sqrt{E_{xx}}` with
    :math:`E = K - N_0`; the sum of the r largest roots of a secular equation follows for all
    candidates at once. With p candidates, a landmark takes about p(n + m² + rm) operations.

    Returns fewer than m landmarks if those span all candidates, to rounding.

    Source: Washizawa (2012), §4.1.1, Algorithm 1, which refits for every candidate.

    Parameters
    ----------
    step : int
        Landmarks added before all candidates are scored again. A larger step is faster;
        candidates that mostly lie in the span of those just added are skipped.
    candidates : int or None
        Number of candidates, drawn with equal probability. None: 2000, or two for every landmark
        if that is more; fewer if their kernel with all rows, n × p numbers of float64, would take
        more than a quarter of the memory budget.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(10, select=landmarks.Forward())
    >>> kpca = KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data)
    >>> f"{kpca.certificate_.captured:.3f}"  # ten rows drawn with equal probability: 0.698
    '0.729'
    """

    step: int = 1
    candidates: int | None = None

    name = "forward"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        return row_basis(problem, self._add(problem, m))

    def _add(self, problem: KernelProblem, m: int) -> Rows:
        check_integer(self, "step")
        return forward_search(problem, self._draw_candidates(problem, m), m, int(self.step))

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        p = self.n_candidates(n, m)
        work = 2.0 * n * p * d + 6.0 * n * p * m + 4.0 * p * m**3 / 3.0
        return SelectionCost(1, work, 8.0 * p * (n + 3 * p + 4 * m))


@dataclass(eq=False, repr=False)
class Backward(CandidateLandmarks):
    r"""Backward search: remove the rows that decrease the explained variance least.

    The criterion is that of `Forward`. With :math:`G = K_y^{-1}`, removing :math:`y_j` removes the
    direction :math:`K_{xy}g_j/\sqrt{G_{jj}}` from the span. Candidates that lie in the span of
    others, to rounding, are removed first by a pivoted Cholesky decomposition, which needs memory
    for n × p numbers.

    Returns fewer than m landmarks if those span all candidates, to rounding.

    Source: Washizawa (2012), §4.1.2.

    Parameters
    ----------
    step : int or None
        Landmarks removed before all are scored again; those that the span of the rest no longer
        contains are kept. None: a tenth of the rest.
    candidates : int or None
        Number of rows to start from, as in `Forward`, but by default 1000.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(10, select=landmarks.Backward())
    >>> kpca = KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data)
    >>> f"{kpca.certificate_.captured:.3f}"
    '0.729'
    """

    step: int | None = None
    candidates: int | None = None

    name = "backward"
    fewest = 1000

    def select(self, problem: KernelProblem, m: int) -> Basis:
        if self.step is not None:
            check_integer(self, "step")
        candidates, step = self._draw_candidates(problem, m), self.step and int(self.step)
        return row_basis(problem, backward_search(problem, candidates, m, step))

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        p = self.n_candidates(n, m)
        steps = 1.0 / (3.0 * _SHARE) if self.step is None else (p - m) / self.step
        work = 2.0 * n * p * d + 3.0 * n * p * p + 15.0 * steps * p**3
        return SelectionCost(1, work, cholesky_bytes(n, p) + 48.0 * p * p, extra_passes=p)


class ForwardBackward(Forward):
    r"""Forward search for more landmarks than needed, then backward search to m.

    Removes landmarks that were good early and that later ones replace. The criterion is that of
    `Forward` and `Backward`.

    Source: Washizawa (2012), §4.1.2.

    Parameters
    ----------
    beyond : float
        Number of additional landmarks, as a share of m.
    step, candidates
        As in `Forward`; as many landmarks are removed at a time as are added.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(10, select=landmarks.ForwardBackward())
    >>> kpca = KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data)
    >>> f"{kpca.certificate_.captured:.3f}"
    '0.729'
    """

    name = "forward_backward"

    def __init__(self, beyond: float = 0.5, step: int = 1, candidates: int | None = None) -> None:
        self.beyond, self.step, self.candidates = beyond, step, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_positive(self, "beyond")
        rows = self._add(problem, min(problem.source.shape[0], self._more(m)))
        return row_basis(problem, backward_search(problem, rows, m, int(self.step)))

    def _more(self, m: int) -> int:
        return ceil(m * (1.0 + self.beyond))

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        more = self._more(m)
        forward, backward = super().cost(n, d, more), Backward(self.step, more).cost(n, d, m)
        work, memory = forward.work + backward.work, max(forward.memory, backward.memory)
        return SelectionCost(2, work, memory, extra_passes=more)


@dataclass(eq=False, repr=False)
class Ransac(Landmarks):
    r"""The best of several random draws, by the explained variance :math:`\sum_{i\le r}\xi_i`.

    Each trial takes a pass over the rows, as a fit does. The landmarks are the best of several
    samples, so the number of rows that each represents is unknown.

    Source: Washizawa (2012), §4.1.3.

    Parameters
    ----------
    trials : int
        Number of draws.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(10, select=landmarks.Ransac(trials=5))
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (10, 4)
    """

    trials: int = 20

    name = "ransac"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_integer(self, "trials")
        best, most = None, 0.0
        for _ in range(int(self.trials)):
            basis = Uniform().select(problem, m)
            variance = basis_variance(problem, basis)
            if best is None or variance > (1.0 + _EQUAL) * most:
                best, most = basis, variance
        assert best is not None
        return replace(best, counts=None)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        work = self.trials * (2.0 * n * m * d + float(n) * m * m + 12.0 * m**3)
        return SelectionCost(int(self.trials), work, 64.0 * m * m)


def forward_search(problem: KernelProblem, candidates: Rows, m: int, step: int) -> Rows:
    """Return at most m of the candidates, in the order in which they were added to the span.

    `residual` is E = K − N₀ between all rows and the candidates, centered and weighted, and
    `between` E between the candidates. In orthonormal coordinates of the span the rows have the
    scatter matrix `scatter`, and inner products `cross` with the columns of `residual`.
    """
    n, p, r = problem.source.shape[0], len(candidates), problem.n_leading
    require_memory(8.0 * p * (n + 3 * p), f"the kernel between {n} rows and {p} candidates")
    K = KernelColumns(problem, np.float64).collect(candidates)
    # Both are column-major, so that BLAS updates them in place.
    between = np.asfortranarray((K[candidates] + K[candidates].T) / 2.0)
    residual = center_features(problem, K)
    distances = np.diag(between)  # a view: squared distances of the candidates from the span
    tolerance = _IN_SPAN[problem.source.dtype] * distances
    scatter, cross, chosen, size = np.zeros((0, 0)), np.zeros((0, p)), list[int](), -1
    while size < len(chosen) < m:
        size, before = len(chosen), distances.copy()
        xi, Q = eigh(scatter)
        scatter, cross = np.diag(xi), Q.T @ cross
        outside = np.flatnonzero(before > tolerance)
        c = np.einsum("ij,ij->j", residual, residual)[outside] / before[outside]
        scores = gains(xi, cross[:, outside] / np.sqrt(before[outside]), c, r)
        outside, scores = outside[np.isfinite(scores)], scores[np.isfinite(scores)]
        for x in outside[descending_order(scores)]:
            if len(chosen) == min(m, size + step):
                break
            if distances[x] < _INDEPENDENT * before[x]:
                continue
            root = np.sqrt(distances[x])
            f, g, b = residual[:, x] / root, between[:, x] / root, cross[:, x] / root
            dger(-1.0, f, g, a=residual, overwrite_a=1)
            dger(-1.0, g, g, a=between, overwrite_a=1)
            cross = np.vstack([cross - np.outer(b, g), f @ residual])
            scatter = np.block([[scatter, b[:, None]], [b, f @ f]])
            chosen.append(int(x))
    return candidates[chosen]


def backward_search(problem: KernelProblem, candidates: Rows, m: int, step: int | None) -> Rows:
    """Return at most m of the candidates, in order: the others are removed from their span.

    `scatter` is the scatter matrix of all rows in orthonormal coordinates of the span, and `dual`
    T with K_y⁻¹ = TTᵀ: row j, normalized, is the direction that only y_j contributes.
    """
    factor, r = pivoted_cholesky(problem, len(candidates), candidates=candidates), problem.n_leading
    rows = np.array(factor.pivots, np.intp)
    dual = solve_triangular(factor.G[rows], np.eye(len(rows)), lower=True).T
    F = center_features(problem, factor.G)
    scatter = F.T @ F
    while len(rows) > m:
        count = min(max(1, int(_SHARE * len(rows))) if step is None else step, len(rows) - m)
        xi, V = eigh(scatter)
        T = dual @ V
        u = (T / np.linalg.norm(T, axis=1)[:, None]).T
        removed, outside = list[int](), np.ones(len(rows))
        Q = np.zeros((len(rows), 0))
        for j in descending_order(-losses(xi, u, r)):
            if len(removed) == count:
                break
            if outside[j] < _INDEPENDENT:
                continue
            q = u[:, j] - Q @ (Q.T @ u[:, j])
            q /= np.linalg.norm(q)
            Q, outside = np.c_[Q, q], outside - (q @ u) ** 2
            removed.append(int(j))
        rest = np.setdiff1d(np.arange(len(xi)), removed)
        Q = qr(u[:, removed])[0][:, len(removed) :]  # fewer than asked for, if dependent
        rows, dual, scatter = rows[rest], T[rest] @ Q, (Q.T * xi) @ Q
    return np.sort(rows)
