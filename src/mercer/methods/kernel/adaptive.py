"""Components certified within a gap of the optimum, at the lowest cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import eigh
from mercer.certificate import Axes, Evidence
from mercer.config import get_config
from mercer.landmarks.base import row_basis
from mercer.methods.base import Cost, Method, Size
from mercer.methods.kernel.exact import Exact
from mercer.methods.kernel.landmark_fit import SAMPLE_ROWS, LandmarkFit, fit_landmarks
from mercer.methods.kernel.products import EXTRA, judge_by_products
from mercer.methods.kernel.subset import Subset, basis_size, require_points
from mercer.methods.preparation import move_rows, require_finite_vectors
from mercer.problem import KernelProblem, Problem

# The first basis: at least this many points, and this many per component.
_FIRST, _EACH = 250, 4
# The largest growth of a basis at a time: predictions reach no further.
_GROWTH = 4.0
NEEDED = "The requested gap needs"
"""Start of the note that says what the gap would take."""


class Adaptive(Method):
    r"""Components certified within the gap: a growing basis, then products if needed.

    `Subset` on a random basis, which grows until its bounds certify the gap, or as long as that is
    predicted to cost less than one product with the kernel matrix; then such products. The
    components are those of the basis if they are good enough by then, otherwise combinations of all
    rows. Without a `gap`, as close to the optimum as products come.

    Parameters
    ----------
    n_basis : int, float or None
        Size of the first basis; below 1, a share of the rows. None: 250, or four per component.
    store : {"float64", "float32", "none"} or None
        How the kernel matrix is stored, as in `Exact`; None: no products are computed with it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Adaptive
    >>> X = load_digits().data
    >>> kpca = KernelPCA(5, kernel="rbf", gamma=1e-4, gap=0.01, method=Adaptive(), random_state=0)
    >>> kpca.fit(X).certificate_.gap <= 0.01
    True
    """

    name = "adaptive"
    for_rows = False
    pairwise = True

    def __init__(self, n_basis: int | float | None = None, store: str | None = "float32") -> None:
        self.n_basis, self.store = n_basis, store

    @property
    def keeps_rows(self) -> bool:
        return self.store is not None

    def cost(self, size: Size) -> Cost:
        first = Subset(self._first(size.n, size.k)).cost(replace(size, gap=None))
        if self.store is None:
            return first._replace(extra_passes=self._most_growths(size))
        return first._replace(
            products=first.products + self._product_cost(size),
            memory=max(first.memory, Exact("krylov", self.store).cost(size).memory),
            extra_passes=math.inf,
        )

    def _most_growths(self, size: Size) -> int:
        """Return how often the basis can grow, by half of its points at least."""
        m, growths = self._first(size.n, size.k), 0
        while m < size.n:
            m, growths = max(m + 1, int(1.5 * m)), growths + 1
        return growths

    def fit(self, problem: Problem) -> Axes:
        assert isinstance(problem, KernelProblem)
        problem = move_rows(problem)
        require_finite_vectors(problem)
        gap, order = problem.gap or 0.0, _order(problem)
        m: int | None = self._first(len(order), problem.n_components)
        while m is not None:
            fit = fit_landmarks(problem, row_basis(problem, order[:m]))
            axes, sample = fit.best_axes(SAMPLE_ROWS, gap)
            m = self._next(fit, gap, axes.evidence, len(order))
        if axes.evidence.gap <= gap:
            return axes
        if self.store is not None and fit.bounded:
            return judge_by_products(fit, axes, self.store, sample)
        n, k = len(order), len(axes.evidence.eigenvalues)
        points = f"a basis of about {min(n, _predicted_size(fit, k, gap)):.2g} points"
        note = f"{NEEDED} {points}, or products with the kernel matrix of {n} rows."
        return replace(axes, evidence=axes.evidence.annotated(note))

    def _first(self, n: int, k: int | None) -> int:
        if self.n_basis is None:
            return min(n, max(_FIRST, _EACH * min(k or 0, n)))
        m = basis_size(self.n_basis, n)
        require_points(k if k is not None and k < n else None, m)
        return m

    def _next(self, fit: LandmarkFit, gap: float, evidence: Evidence, n: int) -> int | None:
        """Return the size of the next basis, of n points; None if it need not or cannot grow."""
        m, k, shape = fit.span.size, len(evidence.eigenvalues), fit.problem.source.shape
        size = Size(shape[0], shape[1] if len(shape) > 1 else 1, k, kernel=True)
        if evidence.gap <= gap or m >= n:
            return None
        wanted, most = _predicted_size(fit, k, gap), self._product_cost(size)
        if _operations(min(wanted, n), size) <= most and (wanted < n / 2 or self.store is None):
            return int(min(n, max(m + 1.0, 1.5 * m, min(wanted, _GROWTH * m))))
        # As large as a tenth of the cost of products allows: one may then suffice.
        close = evidence.gap_estimate <= gap / 2
        points = float(m)
        while not close and points < n / 4 and _operations(1.1 * points, size) <= most / 10:
            points *= 1.1
        return int(points) if points >= 1.5 * m else None

    def _product_cost(self, size: Size) -> float:
        """Return the operations of a walk over all pairs and a few products."""
        if self.store is None:
            return math.inf
        vectors = 3.0 * (size.components + EXTRA)
        pairs = float(size.n) * size.n
        return pairs * size.d * (3 if self.store == "none" else 1) + 2.0 * pairs * vectors


def _operations(m: float, size: Size) -> float:
    """Return the operations of a basis of m points; infinite if it does not fit in memory."""
    cost = Subset(int(min(m, size.n))).cost(size)
    if cost.memory > get_config().budget:
        return math.inf
    return cost.products + 4 * cost.factor  # LAPACK's take about four times as long


def _order(problem: KernelProblem) -> Any:
    """Return the rows in random order, heavier rows earlier (Efraimidis & Spirakis 2006)."""
    n, weights = problem.source.shape[0], problem.source.weights
    if weights is None:
        return problem.rng.permutation(n)
    with np.errstate(divide="ignore"):
        keys = problem.rng.exponential(size=n) / weights
    return np.argsort(keys)[: int((weights > 0).sum())]


def _predicted_size(fit: LandmarkFit, k: int, gap: float) -> float:
    """Predict the size of the basis that the bound needs, from the residual of half of this one."""
    m, moments = fit.span.size, fit.moments
    half, share = m // 2, moments.weight / fit.divisor
    values, U = eigh(fit.span.matrix[:half, :half])
    large = values > 1e-10 * np.max(values, initial=0.0)
    T = U[:, large] / np.sqrt(values[large])
    mean_sq = share * float(((T.T @ moments.mean[:half]) ** 2).sum())
    variance = float(np.einsum("ij,ij->", T, fit.covariance[:half, :half] @ T))
    outside = fit.diag_total - variance - mean_sq
    allowed = gap / (1.0 - gap) * float(fit.pairs[0][:k].sum())
    if fit.outside <= 0.0 or allowed <= 0.0 or not fit.span.rank:
        return math.inf
    slope = math.log2(max(outside / fit.outside, 1.0 + 1e-9))
    with np.errstate(over="ignore"):
        points = float(m * np.power(fit.outside / allowed, 1.0 / slope))
    return max(m + 1.0, points)
