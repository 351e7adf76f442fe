"""Kernel PCA on the pivots of an incomplete Cholesky decomposition."""

from __future__ import annotations

from mercer.certificate import Axes
from mercer.landmarks import Landmarks, PivotedCholesky
from mercer.methods.kernel.expansion import OnRows, expand_over_rows
from mercer.methods.kernel.landmark_fit import LandmarkFit
from mercer.methods.kernel.products import best_axes


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
            return best_axes(fit)
        values, components = fit.best
        # v = HGw/√λ is H K_xy z/√λ, with z of the pivots.
        return expand_over_rows(fit, values, components / (values * fit.divisor), fit.mean_coef)


class Greedy(Cholesky):
    r"""The best components in the span of rows that are added one by one, the farthest next.

    The next row is the one farthest from the span of those before,
    :math:`\arg\max_i \|\Phi(x_i) - P\Phi(x_i)\|^2`. These are the pivots of the incomplete Cholesky
    decomposition, and the components are those of `Cholesky(on="basis")`.

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
