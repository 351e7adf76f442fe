"""Improved kernel PCA (Xu et al. 2007; washizawa §5.1, "IKp")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.certificate import Axes
from mercer.methods.kernel.landmark_fit import SAMPLE_ROWS, LandmarkFit
from mercer.methods.kernel.landmark_method import LandmarkMethod


class Improved(LandmarkMethod):
    r"""The eigenproblem of `Subset`, with scores :math:`\kappa^{-1/2}Z^T(h_x - \bar h)`.

    Every score has the same variance: useful before a classifier. The operator
    :math:`TZ\,\mathrm{diag}(1/\kappa)Z^TT^*` is no projector, so what it makes of rows is not
    near them; the span of its axes, which the certificate is about, is `Subset`'s.

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
    >>> from mercer.methods import Improved
    >>> X = load_digits().data
    >>> scores = KernelPCA(3, kernel="rbf", gamma=0.001, method=Improved(200)).fit_transform(X)
    >>> (scores**2).sum(axis=0).round(6)
    array([1., 1., 1.])
    """

    name = "improved"

    def solve(self, fit: LandmarkFit) -> Axes:
        values, components = fit.pairs
        k = fit.choose(values)
        values, components = values[:k], components[:, :k]
        evidence = fit.evidence(values, components, fit.sample(k, SAMPLE_ROWS)).annotated(
            "Scores have unit length: the certificate is about the span of the components."
        )
        scale = 1.0 / np.sqrt(values * fit.divisor)
        projection = fit.projection(values, components * scale)
        return Axes(replace(projection, overlaps=np.diag(scale**2)), evidence)
