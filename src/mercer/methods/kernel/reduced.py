"""Kernel PCA of the basis alone (washizawa §6.1, "RKp")."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Matrix, Vector, eigh
from mercer.methods.kernel.basis import OnBasis, ready
from mercer.methods.kernel.landmark_fit import DRAWN, spanned
from mercer.problem import Problem
from mercer.projection import KernelProjection


class Reduced(OnBasis):
    r"""Exact kernel PCA of the points of a basis, as if there were no other rows.

    :math:`\tilde K_y v = \lambda v`, :math:`\alpha = v/\sqrt\lambda`, centred by the mean of the
    basis. The fit is m³; the certificate, about all rows, costs one pass over them. Of weighed
    rows a point counts by its weight over the chance it was drawn with.

    Parameters
    ----------
    n_basis : int, float or None
        Points of the basis; below 1, their share of the rows. None: as many as are given, or
        1000, or four for every axis.
    select : str, Landmarks, points or numbers of rows
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

    def fit(self, problem: Problem) -> KernelProjection:
        problem = ready(problem)
        found = spanned(problem, self.basis(problem))
        counts, m = found.span.basis.counts, found.span.size
        divisor = problem.divisor
        if problem.source.weights is None or counts is None:
            counts, divisor = np.ones(m), m - 1.0
        shares = counts / counts.sum() * problem.center
        values, axes = weighed_axes(found.span.matrix, counts, shares, divisor)
        k = found.chosen(values)
        values, axes = values[:k], axes[:, :k]
        certificate = found.certificate(values, axes, found.sample(k, DRAWN))
        return found.projection(values, axes, certificate, shares=shares)


def weighed_axes(
    K: Matrix, counts: Vector, shares: Vector, divisor: float
) -> tuple[Vector, Matrix]:
    """Return variances and axes of points that count so often, about the mean by these shares."""
    less = K @ shares
    centred = K - less - less[:, None] + float(shares @ less)
    root = np.sqrt(counts)
    values, V = eigh(root[:, None] * centred * root)
    rounding = float(np.finfo(np.float64).eps) * len(K) * float(counts @ np.abs(np.diag(K)))
    there = values > max(1e-12 * float(np.max(values, initial=0.0)), rounding)
    values, V = values[there], V[:, there]
    axes = root[:, None] * V / np.sqrt(values)
    # Axes are differences from the mean: what they weigh in all is taken off it.
    return values / max(divisor, 1.0), axes - np.outer(shares, axes.sum(axis=0))
