"""Subset kernel PCA: axes in the span of a basis, all rows in the criterion (Washizawa 2009)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg.lapack

from mercer.arrays import eigh, like, namespace, to_numpy
from mercer.checks import is_real
from mercer.landmarks.objective import axes_asked
from mercer.linalg import Gram
from mercer.linalg.span import KernelMoments, Span
from mercer.methods.base import Cost, Size, Streaming
from mercer.methods.kernel.basis import OnBasis, ready, require_room
from mercer.methods.kernel.expansion import joined
from mercer.methods.kernel.landmark_fit import DRAWN, Spanned, spanned, with_notes
from mercer.methods.kernel.products import best
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

_CENTROIDS = ("span", "rows", "basis")


class Subset(OnBasis, Streaming):
    r"""The best axes in the span of a basis, for all rows.

    Minimises :math:`\frac1n\sum_i\|\Phi(x_i)-P\Phi(x_i)\|^2` over projectors P of rank r into
    the span of Φ(Y): :math:`K_{xy}^THK_{xy}z = \kappa K_yz`, :math:`z^TK_yz = 1`, and
    :math:`y(x) = Z^T(h_x - \bar h)`. Optimal for any basis, of rows or not. One pass over the
    rows, nm(d + m) operations, m² memory; rows can come in batches.

    Parameters
    ----------
    n_basis : int, float or None
        Points of the basis; below 1, their share of the rows. None: as many as are given, or
        1000, or four for every axis.
    select : str, Landmarks, points or numbers of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.
    centroid : {"span", "rows", "basis"}
        What is subtracted in feature space: the projection of the rows' mean on the span; the
        mean itself, with the same axes, and distances that cost a kernel to every row; or the
        mean of the basis, which needs no rows and is farther from their mean.
    rank : int or None
        Replace :math:`K_{xy}^THK_{xy}` by its incomplete Cholesky decomposition GGᵀ of this rank,
        and solve for the eigenvectors of :math:`G^TK_y^\dagger G` (washizawa (45), corrected).

    References
    ----------
    Y. Washizawa, Subset kernel principal component analysis, MLSP (2009); Subset basis
    approximation of kernel principal component analysis, in Principal
    Component Analysis (InTech, 2012), §3.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Subset
    >>> X = load_digits().data
    >>> kpca = KernelPCA(5, kernel="rbf", gamma=0.001, method=Subset(200), random_state=0).fit(X)
    >>> kpca.X_fit_.shape
    (200, 64)
    >>> bool(0.01 < kpca.certificate_.gap_estimate < 0.1)
    True
    """

    name = "subset"

    def __init__(
        self,
        n_basis: int | float | None = None,
        select: Any = "uniform",
        centroid: str = "span",
        rank: int | None = None,
    ) -> None:
        super().__init__(n_basis, select)
        self.centroid, self.rank = centroid, rank

    def cost(self, size: Size) -> Cost:
        cost = super().cost(size)
        if self.centroid != "rows":
            return cost
        pairs = float(size.n) * size.n * size.d
        held = 8.0 * size.n * (size.axes + 2)
        return Cost(cost.passes + 1, cost.products + pairs, cost.factor, cost.memory + held)

    @property
    def keeps_rows(self) -> bool:
        return self.centroid == "rows"

    def fit(self, problem: Problem) -> KernelProjection:
        problem = ready(problem)
        found = spanned(problem, self.basis(problem))
        return self._solved(found, rows=DRAWN)

    def begin(self, problem: Problem) -> KernelMoments:
        assert isinstance(problem, KernelProblem)
        if self.centroid == "rows":
            raise ValueError("centroid='rows' keeps all rows, and batches are gone once seen.")
        # In float64: no sample of rows that are still to come can tell what float32 costs.
        span = Span(problem.kernel, self.basis(problem), problem.source, np.float64)
        return KernelMoments(span, problem.source, center=problem.center)

    def finish(self, problem: Problem, fold: Any) -> KernelProjection:
        assert isinstance(problem, KernelProblem)
        require_room(axes_asked(problem), fold.span.size)  # n_components may have changed
        return self._solved(Spanned(problem, fold.span, fold), rows=0)

    def _solved(self, found: Spanned, rows: int) -> KernelProjection:
        if self.centroid not in _CENTROIDS:
            raise ValueError(f"centroid={self.centroid!r} is not one of {', '.join(_CENTROIDS)}.")
        if self.centroid == "basis" and self.rank is not None:
            raise ValueError(
                f"rank={self.rank!r} and centroid='basis': the decomposition is of the scatter "
                f"about the rows' mean. Leave one of them out."
            )
        if self.centroid == "basis" and found.problem.center and found.span.size:
            return _about_the_basis(found, rows)
        projection = best(found, rows) if self.rank is None else _of_rank(found, self.rank, rows)
        return projection if self.centroid == "span" else _about_the_rows(found, projection)


def _of_rank(found: Spanned, rank: int, rows: int) -> KernelProjection:
    """Return axes of the covariance's incomplete Cholesky decomposition."""
    m = found.span.size
    if not (is_real(rank) and rank == int(rank) and 1 <= rank <= m):
        raise ValueError(f"rank={rank!r} must be a whole number from 1 to the {m} points.")
    L, pivots, there, _ = scipy.linalg.lapack.dpstrf(found.covariance, lower=1)
    G = np.zeros((m, min(int(rank), int(there))))
    G[pivots - 1] = np.tril(L)[:, : G.shape[1]]
    wanted = axes_asked(found.problem)
    if wanted is not None and wanted > rank:
        raise ValueError(f"n_components={wanted} does not fit rank={rank}.")
    near = found.span.inverse @ G
    values, W = eigh(G.T @ near)
    large = values > 1e-12 * np.max(values, initial=0.0)
    values, axes = values[large], near @ W[:, large] / np.sqrt(values[large])
    k = found.chosen(values)
    certificate = found.certificate(values[:k], axes[:, :k], found.sample(k, rows))
    return found.projection(values[:k], axes[:, :k], certificate)


def _about_the_basis(found: Spanned, rows: int) -> KernelProjection:
    """Centre by the mean of the basis: scatter about it, K_xy − 1(1ᵀK_y)/m."""
    K, T = found.span.matrix, found.span.white
    mean = K.mean(axis=0)
    apart = found.seen.mean - mean
    C = found.covariance + found.seen.weight / found.divisor * np.outer(apart, apart)
    with serial_blas():
        xi, W = eigh(T.T @ C @ T)
    k = found.chosen(xi)
    values, axes = np.maximum(xi[:k], 0.0), T @ W[:, :k]
    certificate = with_notes(
        found.certificate(values, axes, found.sample(k, rows)),
        "Centred by the mean of the basis: variances are about it, shares about the rows' mean.",
    )
    return found.projection(values, axes, certificate, shares=np.full(len(K), 1.0 / len(K)))


def _about_the_rows(found: Spanned, projection: KernelProjection) -> KernelProjection:
    """Centre by the rows' mean itself: the same axes, and all rows kept for distances from it."""
    problem = found.problem
    if not problem.center:
        return projection
    gram = Gram(problem.kernel, problem.source, dtype=found.span.dtype)
    weights = to_numpy(gram.roots)[:, 0] ** 2 / problem.source.count
    if problem.kernel is None:
        return replace(projection, shares=weights, height=gram.height)
    n, k = problem.source.shape[0], projection.components.shape[1]
    none = like(np.zeros((n, k)), projection.components)
    xp = namespace(none)
    return replace(
        projection,
        basis=joined(projection.basis, problem.source.whole()),
        components=xp.concat([projection.components, none]),
        mean=np.concatenate([projection.mean, gram.means]),
        shares=np.concatenate([0.0 * projection.mean, weights]),
        height=gram.height,
    )
