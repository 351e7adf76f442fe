"""Kernel PCA by an incomplete Cholesky decomposition (washizawa §5.5, "ICD")."""

from __future__ import annotations

from mercer.certificate import Axes
from mercer.landmarks import Landmarks, PivotedCholesky
from mercer.methods.kernel.expansion import OnRows, expand_over_rows
from mercer.methods.kernel.landmark_fit import LandmarkFit
from mercer.methods.kernel.products import best_axes


class Cholesky(OnRows):
    r"""Eigenvectors of :math:`GG^T \approx K`, the incomplete Cholesky decomposition.

    With G over m pivots, eigenpairs (λ, w) of :math:`G^THG` give the eigenvectors
    :math:`v = HGw/\sqrt\lambda` over all rows. Compared to its pivots alone, a new row has the
    scores of `Subset` on those pivots, at m kernels a row where all rows would cost n.

    Parameters
    ----------
    n_basis : int, float or None
        Number of pivots; below 1, their share of the rows. None: 1000, or four for every axis.
    tol : float
        Stop at fewer, when what lies beyond them, tr(K − GGᵀ), is this share of tr K.
    on : {"basis", "rows"}
        What new rows are compared to: the pivots; or all rows, as in the source.

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
            return best_axes(fit)
        values, components = fit.pairs
        k = fit.choose(values)
        values, components = values[:k], components[:, :k]
        # v = HGw/√λ is H K_xy z/√λ, with z of the pivots.
        return expand_over_rows(fit, values, components / (values * fit.divisor), fit.mean_coef)
