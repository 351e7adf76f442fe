"""Improved kernel PCA (Xu et al. 2007; washizawa §5.1, "IKp")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.methods.kernel.basis import OnBasis, ready
from mercer.methods.kernel.landmark_fit import DRAWN, spanned, with_notes
from mercer.problem import Problem
from mercer.projection import KernelProjection


class Improved(OnBasis):
    r"""The eigenproblem of `Subset`, with scores :math:`\kappa^{-1/2}Z^T(h_x - \bar h)`.

    Every score has the same variance: useful before a classifier. The operator
    :math:`TZ\,\mathrm{diag}(1/\kappa)Z^TT^*` is no projector, so what it makes of rows is not
    near them; the span of its axes, which the certificate is about, is `Subset`'s.

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
    >>> from mercer.methods import Improved
    >>> X = load_digits().data
    >>> scores = KernelPCA(3, kernel="rbf", gamma=0.001, method=Improved(200)).fit_transform(X)
    >>> (scores**2).sum(axis=0).round(6)
    array([1., 1., 1.])
    """

    name = "improved"

    def fit(self, problem: Problem) -> KernelProjection:
        problem = ready(problem)
        found = spanned(problem, self.basis(problem))
        xi, Z = found.pairs
        k = found.chosen(xi)
        values, axes = xi[:k], Z[:, :k]
        certificate = with_notes(
            found.certificate(values, axes, found.sample(k, DRAWN)),
            "Scores have unit length: the certificate is about the span of the components.",
        )
        scale = 1.0 / np.sqrt(values * found.divisor)
        projection = found.projection(values, axes * scale, certificate)
        return replace(projection, overlaps=np.diag(scale**2))
