"""Low-rank approximations of the kernel matrix: Nyström, and incomplete Cholesky."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, eigh
from mercer.certificate import Axes
from mercer.checks import require
from mercer.landmarks import Landmarks, PivotedCholesky
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.methods.base import Cost, Size
from mercer.methods.kernel.landmark_fit import AFFORDABLE, LandmarkFit
from mercer.methods.kernel.products import expand_over_rows
from mercer.methods.kernel.subset import LandmarkMethod


class OnRows(LandmarkMethod):
    """A method on landmarks whose components may be combinations of all rows."""

    on: str

    @property
    def keeps_rows(self) -> bool:
        return self.on == "rows"

    def cost(self, size: Size) -> Cost:
        require(self, "on", self.on in ("rows", "basis"), "'rows' or 'basis'")
        cost = super().cost(size)
        if not self.keeps_rows:
            return cost
        pairs = float(size.n) * size.n * size.d
        products, passes = cost.products, cost.passes + 1
        memory = cost.memory + 8.0 * size.n * (size.d + 4 * size.components)
        if pairs <= AFFORDABLE:  # for the certificate
            products, passes = products + 2 * pairs, passes + 3
            memory += 2 * 8.0 * size.n * upper_block_rows(size.n, 8, on_device=size.on_device)
        return cost._replace(passes=passes, products=products, memory=memory)


class Nystrom(OnRows):
    r"""Eigenvectors of the landmarks, extended to all rows (Williams & Seeger 2000).

    From eigenpairs (λ, u) of the q×q matrix :math:`\Omega^{1/2}\tilde K_y\Omega^{1/2}`, centered
    at the mean of the landmarks, :math:`\hat\lambda = \lambda` and
    :math:`\hat u = \tilde K_{xy}\Omega^{1/2}u/\lambda`, where Ω counts the rows that each point
    represents: one over the probability with which it was drawn, or the rows of its cluster. For
    equal chances that is n/q, the printed form :math:`\hat\lambda = (n/q)\lambda_q`,
    :math:`\hat u = \sqrt{q/n}\,K_{xy}u_q/\lambda_q`.

    Parameters
    ----------
    n_basis, select
        The landmarks, as in `Subset`.
    weigh : bool
        Weight points by the chances with which they were drawn, or by their clusters. False: n/q
        for all, as printed, which is wrong for chances that differ.
    on : {"rows", "basis"}
        What new rows are compared with: all rows, as in the sources; or the landmarks alone.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Nystrom
    >>> X = load_digits().data
    >>> kpca = KernelPCA(5, kernel="rbf", gamma=0.001, method=Nystrom(200)).fit(X)
    >>> kpca.X_fit_.shape
    (1797, 64)
    """

    name = "nystrom"

    def __init__(
        self,
        n_basis: int | float | None = None,
        select: Any = "uniform",
        weigh: bool = True,
        on: str = "rows",
    ) -> None:
        self.n_basis, self.select, self.weigh, self.on = n_basis, select, weigh, on

    def solve(self, fit: LandmarkFit) -> Axes:
        basis, weight, m = fit.span.basis, fit.moments.weight, fit.span.size
        if basis.counts is not None and self.weigh:
            counts = basis.counts
        elif basis.sizes is not None and self.weigh:
            counts = np.asarray(basis.sizes * (weight / basis.sizes.sum()))
        else:
            counts = np.full(m, weight / max(m, 1))
        values, components, mean_coef = _chosen_components(fit, counts, fit.divisor)
        if self.on == "basis":
            return fit.axes(values, components, mean_coef)
        # α of every row: û/√λ̂, and û is the scores of the rows over √λ̂.
        return expand_over_rows(fit, values, components / (values * fit.divisor), mean_coef)


class Reduced(LandmarkMethod):
    r"""Exact kernel PCA of the points of a basis, as if there were no other rows.

    :math:`\tilde K_y v = \lambda v`, :math:`\alpha = v/\sqrt\lambda`, centered at the mean of the
    basis. The fit costs m³; the certificate, about all rows, costs one pass over them. If rows have
    weights, a point counts by its weight over the probability with which it was drawn.

    Parameters
    ----------
    n_basis, select
        The landmarks, as in `Subset`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Reduced
    >>> X = load_digits().data
    >>> KernelPCA(5, kernel="rbf", gamma=0.001, method=Reduced(200)).fit_transform(X).shape
    (1797, 5)
    """

    name = "reduced"

    def solve(self, fit: LandmarkFit) -> Axes:
        counts, m, divisor = fit.span.basis.counts, fit.span.size, fit.divisor
        if fit.problem.source.weights is None or counts is None:
            counts, divisor = np.ones(m), m - 1.0
        return fit.axes(*_chosen_components(fit, counts, divisor))


class Cholesky(OnRows):
    r"""Eigenvectors of :math:`GG^T \approx K`, the incomplete Cholesky decomposition.

    With G over m pivots, eigenpairs (λ, w) of :math:`G^THG` give the eigenvectors
    :math:`v = HGw/\sqrt\lambda` over all rows. If new rows are compared with the pivots alone, the
    scores are those of `Subset` on the pivots, at m kernel values per row instead of n.

    Parameters
    ----------
    n_basis : int, float or None
        Number of pivots; below 1, their share of the rows. None: 1000, or four per component.
    tol : float
        Stop at fewer if what lies outside their span, tr(K − GGᵀ), is this share of tr K.
    on : {"basis", "rows"}
        What new rows are compared with: the pivots; or all rows, as in the source.

    References
    ----------
    F. Bach & M. Jordan, Kernel independent component analysis, JMLR 3 (2002). Washizawa (2012),
    §5.5.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Cholesky
    >>> X = load_digits().data
    >>> KernelPCA(5, kernel="rbf", gamma=0.001, method=Cholesky(100)).fit(X).X_fit_.shape
    (100, 64)
    """

    name = "cholesky"

    def __init__(
        self, n_basis: int | float | None = None, tol: float = 0.0, on: str = "basis"
    ) -> None:
        self.n_basis, self.tol, self.on = n_basis, tol, on

    @property
    def rule(self) -> Landmarks:
        return PivotedCholesky(self.tol)

    def solve(self, fit: LandmarkFit) -> Axes:
        if self.on == "basis":
            return fit.best_axes()
        values, components = fit.best
        # v = HGw/√λ is H K_xy z/√λ, with z of the pivots.
        return expand_over_rows(fit, values, components / (values * fit.divisor), fit.mean_coef)


class Greedy(Cholesky):
    r"""The best components in the span of rows that are added one by one, the farthest next.

    The farthest row, :math:`\arg\max_i \|\Phi(x_i) - P\Phi(x_i)\|^2`, is the next pivot of the
    incomplete Cholesky decomposition: the components are those of `Cholesky(on="basis")`.

    Parameters
    ----------
    n_basis : int, float or None
        Number of rows to add; below 1, their share of all. None: 1000, or four per component.
    tol : float
        Stop at fewer if the mean squared distance to the span is this share of that to zero.

    References
    ----------
    V. Franc & V. Hlaváč, Greedy algorithm for a training set reduction in the kernel methods,
    CAIP (2003).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Greedy
    >>> X = load_digits().data
    >>> len(KernelPCA(5, kernel="rbf", gamma=1e-4, method=Greedy(500, tol=0.1)).fit(X).X_fit_) < 500
    True
    """

    name = "greedy"
    on = "basis"

    def __init__(self, n_basis: int | float | None = None, tol: float = 0.0) -> None:
        self.n_basis, self.tol = n_basis, tol


def _chosen_components(
    fit: LandmarkFit, counts: Vector, divisor: float
) -> tuple[Vector, Matrix, Vector]:
    """Return variances and components of weighted landmarks, and the coefficients of their mean."""
    mean_coef = counts / counts.sum() * fit.problem.center
    values, components = weighted_components(fit.span.matrix, counts, mean_coef, divisor)
    k = fit.choose(values)
    return values[:k], components[:, :k], mean_coef


def weighted_components(
    K: Matrix, counts: Vector, mean_coef: Vector, divisor: float
) -> tuple[Vector, Matrix]:
    """Return variances and components of weighted points, about a weighted mean of them."""
    mean = K @ mean_coef
    centered = K - mean - mean[:, None] + float(mean_coef @ mean)
    root = np.sqrt(counts)
    values, V = eigh(root[:, None] * centered * root)
    rounding = float(np.finfo(np.float64).eps) * len(K) * float(counts @ np.abs(np.diag(K)))
    large = values > max(1e-12 * float(np.max(values, initial=0.0)), rounding)
    values, V = values[large], V[:, large]
    coef = root[:, None] * V / np.sqrt(values)
    # Components are combinations of differences from the mean.
    return values / max(divisor, 1.0), coef - np.outer(mean_coef, coef.sum(axis=0))
