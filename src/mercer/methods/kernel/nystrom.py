"""The Nyström method (Williams & Seeger 2000; marukatat §5.3, washizawa §5.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Vector
from mercer.methods.kernel.basis import ready
from mercer.methods.kernel.expansion import OverRows, over_rows
from mercer.methods.kernel.landmark_fit import DRAWN, Spanned, spanned
from mercer.methods.kernel.reduced import weighed_axes
from mercer.problem import Problem
from mercer.projection import KernelProjection


class Nystrom(OverRows):
    r"""Eigenvectors of the basis, extended to all rows.

    From eigenpairs (λ, u) of the q×q matrix :math:`\Omega^{1/2}\tilde K_y\Omega^{1/2}`, centred
    with the mean of the basis, :math:`\hat\lambda = \lambda` and
    :math:`\hat u = \tilde K_{xy}\Omega^{1/2}u/\lambda`, where Ω counts how many rows each point
    stands for: one over the probability it was drawn with, or the rows of its cluster. Drawn with
    equal chances that is n/q, the printed form :math:`\hat\lambda = (n/q)\lambda_q`,
    :math:`\hat u = \sqrt{q/n}\,K_{xy}u_q/\lambda_q`.

    Parameters
    ----------
    n_basis : int, float or None
        Points of the basis; below 1, their share of the rows. None: as many as are given, or
        1000, or four for every axis.
    select : str, Landmarks, points or numbers of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.
    weigh : bool
        Count points by the chances they were drawn with, or by their clusters. False: n/q for
        all, as printed, which is wrong for chances that differ.
    on : {"rows", "basis"}
        What new rows are compared to: all rows, as in the sources; or the basis alone.

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

    def fit(self, problem: Problem) -> KernelProjection:
        self.require_form()
        problem = ready(problem)
        found = spanned(problem, self.basis(problem))
        counts = self._counts(found)
        shares = counts / counts.sum() * problem.center
        values, axes = weighed_axes(found.span.matrix, counts, shares, problem.divisor)
        k = found.chosen(values)
        values, axes = values[:k], axes[:, :k]
        if self.on == "basis":
            certificate = found.certificate(values, axes, found.sample(k, DRAWN))
            return found.projection(values, axes, certificate, shares=shares)
        # α of every row: û/√λ̂, and û is the basis's scores over √λ̂.
        return over_rows(found, values, axes / (values * problem.divisor), shares)

    def _counts(self, found: Spanned) -> Vector:
        m, basis, weight = found.span.size, found.span.basis, found.seen.weight
        if basis.counts is not None and self.weigh:
            return basis.counts
        if basis.sizes is not None and self.weigh:
            return np.asarray(basis.sizes * (weight / basis.sizes.sum()))
        return np.full(m, weight / max(m, 1))
