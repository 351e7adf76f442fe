"""Greedy kernel PCA (Franc & Hlaváč 2003; aguilera §VII)."""

from __future__ import annotations

from mercer.certificate import Axes
from mercer.landmarks import Landmarks, PivotedCholesky
from mercer.methods.kernel.landmark_fit import LandmarkFit
from mercer.methods.kernel.landmark_method import LandmarkMethod
from mercer.methods.kernel.products import best_axes


class Greedy(LandmarkMethod):
    r"""The best axes in the span of rows that are added one by one: the worst represented next.

    The row next added is the one farthest from the span of those before,
    :math:`\arg\max_i \|\Phi(x_i) - P\Phi(x_i)\|^2`, until there are enough or what is left is
    small. Those are the pivots of the incomplete Cholesky decomposition.

    Parameters
    ----------
    n_basis : int, float or None
        Rows to add; below 1, their share of all. None: 1000, or four for every axis.
    tol : float
        Stop at fewer, when the mean squared distance to the span is this share of that to zero.

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

    def __init__(self, n_basis: int | float | None = None, tol: float = 0.0) -> None:
        self.n_basis, self.tol = n_basis, tol

    @property
    def rule(self) -> Landmarks:
        return PivotedCholesky(self.tol)

    def solve(self, fit: LandmarkFit) -> Axes:
        return best_axes(fit)
