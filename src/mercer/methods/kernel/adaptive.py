"""Components certified within a gap of the optimum, at the lowest cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import eigh, on_accelerator
from mercer.certificate import Axes, Evidence
from mercer.certificate.partition import block_work, largest_block, refine, rows_needed
from mercer.config import get_config
from mercer.landmarks.base import row_basis
from mercer.methods.base import Cost, Method, Size
from mercer.methods.kernel.exact import Exact
from mercer.methods.kernel.landmark_fit import LandmarkFit, fit_landmarks
from mercer.methods.kernel.subset import Subset, basis_size, require_points
from mercer.methods.preparation import move_rows, require_finite_vectors
from mercer.problem import KernelProblem, Problem

# The first basis: at least this many points, and this many per component.
_FIRST, _EACH = 250, 4
# The largest growth of a basis at a time: predictions reach no further. A basis that only serves
# them may cost one part in so many of kernel PCA of all rows.
_GROWTH, _EXPLORING = 4.0, 10.0
# What a gap usually takes: points, and rows of a block for each component over the gap.
_USUAL, _USUAL_ROWS, _SMALLEST = 1500, 5.0, 1e-3
# The share of the gap that a prediction may use: at first, and once blocks were seen.
_MARGIN, _CLOSER = 0.8, 0.95
# Rates at which the loss of a basis falls with its size, if they cannot be measured.
_SLOWEST, _FASTEST = 0.5, 4.0
# Operations of products in the time of one of LAPACK's, and of a basis besides its operations: on
# the host, and on a device, where both wait.
_LAPACK, _START = (4.0, 400.0), (0.0, 5e12)
NEEDED = "The requested gap needs"
"""Start of the note that says what the gap would take."""


class Adaptive(Method):
    r"""Components certified within the gap: of a basis if that is cheaper, else of all rows.

    A larger basis raises the variance that `Subset` explains, and larger blocks of rows lower the
    bound on what any components can explain. From the loss of a small random basis and of its
    parts, sizes of both are predicted that certify the gap at the lowest cost, and corrected if
    they do not. Where kernel PCA of all rows costs less, that is the answer.

    Parameters
    ----------
    n_basis : int, float or None
        Size of the first basis; below 1, a share of the rows. None: 250, or four per component.
    store : {"float64", "float32", "none"} or None
        How the kernel matrix of all rows is stored, as in `Exact`; None: it is never computed.

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
            return first._replace(extra_passes=math.inf)
        exact = Exact("krylov", self.store).cost(size)
        k, gap = size.components, size.gap or _SMALLEST
        basis = Subset(min(size.n, _USUAL)).cost(replace(size, gap=None)).products
        usual = basis + block_work(size.n, size.d, k, min(size.n, _USUAL_ROWS * k / gap))
        # A first look tells whether all rows are cheaper: until then, half of that is expected.
        products = first.products + _START[size.on_device] + min(usual, exact.products / 2)
        memory = max(first.memory, exact.memory)
        return first._replace(products=products, memory=memory, extra_passes=math.inf)

    def fit(self, problem: Problem) -> Axes:
        assert isinstance(problem, KernelProblem)
        problem = move_rows(problem)
        require_finite_vectors(problem)
        gap, order, size = problem.gap or 0.0, _order(problem), self._size(problem)
        fit = fit_landmarks(problem, row_basis(problem, order[: self._first(len(order), size.k)]))
        axes, tried = fit.best_axes(), None
        while axes.evidence.gap > gap and fit.bounded:
            step = _next_step(fit, axes.evidence, gap, size)
            farther = min(int(_GROWTH * fit.span.size), len(order))
            if step is None or step.points > farther:  # predict again from a larger basis
                step = Step(farther, 0, _EXPLORING * _operations(farther, size))
            if step == tried or step.work > self._most_work(size):
                break
            if step.points > fit.span.size:
                fit = fit_landmarks(problem, row_basis(problem, order[: step.points]))
            axes, tried = _bounded(problem, fit, axes.evidence, step.rows), step
        else:
            return axes
        if self.store is not None:
            return Exact("krylov", self.store).fit(problem)
        needed = "more memory" if step is None else f"a basis of about {step.points:.2g} points"
        return replace(axes, evidence=axes.evidence.annotated(f"{NEEDED} {needed}."))

    def _first(self, n: int, k: int | None) -> int:
        if self.n_basis is None:
            return min(n, max(_FIRST, _EACH * min(k or 0, n)))
        m = basis_size(self.n_basis, n)
        require_points(k if k is not None and k < n else None, m)
        return m

    def _size(self, problem: KernelProblem) -> Size:
        n, *d = problem.source.shape
        k, itemsize = problem.n_components, problem.source.dtype.itemsize
        there = on_accelerator(problem.source.reference)
        return Size(n, d[0] if d else 1, k, itemsize=itemsize, kernel=True, on_device=there)

    def _most_work(self, size: Size) -> float:
        """Return the operations of kernel PCA of all rows."""
        if self.store is None:
            return math.inf
        cost = Exact("krylov", self.store).cost(size)
        return cost.products + _LAPACK[size.on_device] * cost.factor


def _bounded(problem: KernelProblem, fit: LandmarkFit, known: Evidence, rows: int) -> Axes:
    """Return the best components with the bounds of blocks, and those that are known."""
    axes = fit.best_axes()
    return refine(problem, replace(axes, evidence=axes.evidence.bounded_by(known)), rows)


class Step(NamedTuple):
    """Sizes of a basis and of blocks that should certify the gap, and their operations.

    Without rows, the bound of the span should suffice.
    """

    points: int
    rows: int
    work: float


def _next_step(fit: LandmarkFit, evidence: Evidence, gap: float, size: Size) -> Step | None:
    """Return the cheapest step that should certify the gap; None if none fits in memory."""
    m, n, k = fit.span.size, size.n, len(evidence.eigenvalues)
    optimum, rate = _predicted_optimum(fit, k)
    margin = _MARGIN
    if evidence.likely is not None:
        optimum, margin = evidence.likely, _CLOSER
    loss = max(optimum - float(evidence.explained), 1e-12 * optimum)
    best, most = _span_step(fit, k, _MARGIN * gap, size), min(n, largest_block(fit.problem.source))
    points = float(m)
    while points <= n:
        explained = optimum - loss * (m / points) ** rate
        grown = replace(evidence, explained=evidence.explained.like(explained), likely=optimum)
        rows = rows_needed(grown, margin * gap, n)
        if rows <= most:
            work = block_work(n, size.d, k, rows)
            work += _operations(points, size) if points > m else 0.0
            if best is None or work < best.work:
                best = Step(int(points), math.ceil(rows), work)
        points = points * 1.1 if points < n else math.inf
    return best


def _span_step(fit: LandmarkFit, k: int, gap: float, size: Size) -> Step | None:
    """Return the step to a basis whose span should certify the gap by what it leaves out."""
    m, allowed = fit.span.size, gap / (1.0 - gap) * float(fit.pairs[0][:k].sum())
    half = _outside_part(fit, m // 2)
    if not (fit.outside > 0.0 < allowed and half > fit.outside):
        return None
    with np.errstate(over="ignore"):
        points = m * float(np.power(fit.outside / allowed, 1.0 / math.log2(half / fit.outside)))
    points = max(points, m + 1.0)
    work = _operations(points, size) if points <= size.n else math.inf
    return Step(math.ceil(points), 0, work) if math.isfinite(work) else None


def _outside_part(fit: LandmarkFit, m: int) -> float:
    """Return the energy of the rows outside the span of the first m points."""
    values, U = eigh(fit.span.matrix[:m, :m])
    large = values > 1e-10 * np.max(values, initial=0.0)
    T = U[:, large] / np.sqrt(values[large])
    share = fit.moments.weight / fit.divisor
    mean_sq = share * float(((T.T @ fit.mean[:m]) ** 2).sum())
    inside = float(np.einsum("ij,ij->", T, fit.covariance[:m, :m] @ T))
    return float(fit.diag_total) - inside - mean_sq


def _predicted_optimum(fit: LandmarkFit, k: int) -> tuple[float, float]:
    """Extrapolate the variance that k components explain in the span of ever more points.

    Also return the rate at which what is missing falls, from a half and a quarter of the points.
    """
    whole = float(fit.pairs[0][:k].sum())
    half, quarter = (_explained_by_part(fit, fit.span.size // part, k) for part in (2, 4))
    gain, before = max(whole - half, 1e-12 * whole), half - quarter
    rate = min(_FASTEST, max(_SLOWEST, 0.9 * math.log2(max(before, gain) / gain)))
    return whole + gain / (2.0**rate - 1.0), rate


def _explained_by_part(fit: LandmarkFit, m: int, k: int) -> float:
    """Return the variance that k components in the span of the first m points explain."""
    values, U = eigh(fit.span.matrix[:m, :m])
    large = values > 1e-10 * np.max(values, initial=0.0)
    T = U[:, large] / np.sqrt(values[large])
    return float(eigh(T.T @ fit.covariance[:m, :m] @ T)[0][:k].sum())


def _operations(m: float, size: Size) -> float:
    """Return the operations of a basis of m points; infinite if it does not fit in memory."""
    cost = Subset(int(min(m, size.n))).cost(size)
    if cost.memory > get_config().budget:
        return math.inf
    return cost.products + _LAPACK[size.on_device] * cost.factor + _START[size.on_device]


def _order(problem: KernelProblem) -> Any:
    """Return the rows in random order, heavier rows earlier (Efraimidis & Spirakis 2006)."""
    n, weights = problem.source.shape[0], problem.source.weights
    if weights is None:
        return problem.rng.permutation(n)
    with np.errstate(divide="ignore"):
        keys = problem.rng.exponential(size=n) / weights
    return np.argsort(keys)[: int((weights > 0).sum())]
