"""Kernel PCA of the landmarks alone (washizawa §6.1, "RKp")."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Matrix, Vector, eigh
from mercer.certificate import Axes
from mercer.methods.kernel.landmark_fit import SAMPLE_ROWS, LandmarkFit
from mercer.methods.kernel.landmark_method import LandmarkMethod


class Reduced(LandmarkMethod):
    r"""Exact kernel PCA of the points of a basis, as if there were no other rows.

    :math:`\tilde K_y v = \lambda v`, :math:`\alpha = v/\sqrt\lambda`, centred by the mean of the
    basis. The fit is m³; the certificate, about all rows, costs one pass over them. Of weighed
    rows a point counts by its weight over the chance it was drawn with.

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
