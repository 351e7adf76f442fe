"""Kernel PCA of the landmarks alone, and its extension to all rows, the Nyström method."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, eigh
from mercer.certificate import Axes
from mercer.methods.kernel.expansion import OnRows, expand_over_rows
from mercer.methods.kernel.landmark_fit import SAMPLE_ROWS, LandmarkFit
from mercer.methods.kernel.landmark_method import LandmarkMethod


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
    n_basis : int, float or None
        Number of landmarks; below 1, their share of the rows. None: the number of points passed as
        `select`, or 1000, or four per component.
    select : str, Landmarks, points or indices of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.
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
        super().__init__(n_basis, select)
        self.weigh, self.on = weigh, on

    def solve(self, fit: LandmarkFit) -> Axes:
        counts, divisor = self._counts(fit), fit.divisor
        mean_coef = counts / counts.sum() * fit.problem.center
        values, components = weighted_components(fit.span.matrix, counts, mean_coef, divisor)
        k = fit.choose(values)
        values, components = values[:k], components[:, :k]
        if self.on == "basis":
            return fit.axes(values, components, fit.sample(k, SAMPLE_ROWS), mean_coef)
        # α of every row: û/√λ̂, and û is the scores of the rows over √λ̂.
        return expand_over_rows(fit, values, components / (values * divisor), mean_coef)

    def _counts(self, fit: LandmarkFit) -> Vector:
        m, basis, weight = fit.span.size, fit.span.basis, fit.moments.weight
        if basis.counts is not None and self.weigh:
            return basis.counts
        if basis.sizes is not None and self.weigh:
            return np.asarray(basis.sizes * (weight / basis.sizes.sum()))
        return np.full(m, weight / max(m, 1))


class Reduced(LandmarkMethod):
    r"""Exact kernel PCA of the points of a basis, as if there were no other rows.

    :math:`\tilde K_y v = \lambda v`, :math:`\alpha = v/\sqrt\lambda`, centered at the mean of the
    basis. The fit costs m³; the certificate, about all rows, costs one pass over them. If rows have
    weights, a point counts by its weight over the probability with which it was drawn.

    Parameters
    ----------
    n_basis : int, float or None
        Number of landmarks; below 1, their share of the rows. None: the number of points passed as
        `select`, or 1000, or four per component.
    select : str, Landmarks, points or indices of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.

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
        mean_coef = counts / counts.sum() * fit.problem.center
        values, components = weighted_components(fit.span.matrix, counts, mean_coef, divisor)
        k = fit.choose(values)
        sample = fit.sample(k, SAMPLE_ROWS)
        return fit.axes(values[:k], components[:, :k], sample, mean_coef)


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
