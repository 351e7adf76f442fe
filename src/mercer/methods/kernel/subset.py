"""Subset kernel PCA, and the base class of landmark methods (Washizawa 2009)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg.lapack

from mercer.arrays import eigh, like, namespace, to_numpy
from mercer.certificate import Axes
from mercer.checks import is_real
from mercer.data import PastRows, require_finite_sums
from mercer.landmarks import Given, Landmarks, as_landmarks
from mercer.linalg import Gram
from mercer.linalg.span import Basis, KernelMoments, Span
from mercer.messages import ParameterError, counted, format_parameter
from mercer.methods.base import Cost, Method, Size, Streaming
from mercer.methods.kernel.landmark_fit import (
    LandmarkFit,
    fit_landmarks,
)
from mercer.methods.kernel.products import stack_points
from mercer.methods.preparation import move_rows, require_finite_vectors
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

# Points of a basis whose size is not set: at least this many, and this many per component.
_LEAST, _EACH = 1000, 4
_CENTROIDS = ("span", "rows", "basis")


class OnBasis(Method):
    """A method whose components lie in the span of some points, the basis."""

    for_rows = False
    approximates = True

    def __init__(self, n_basis: int | float | None = None, select: Any = "uniform") -> None:
        self.n_basis, self.select = n_basis, select

    @property
    def rule(self) -> Landmarks:
        """The landmark rule."""
        return as_landmarks(self.select)

    def cost(self, size: Size) -> Cost:
        m, rule = self.points(size.n, size.k), self.rule
        squared = float(size.n) * m * m * 8 / size.itemsize  # float64 products
        products = 2.0 * size.n * m * size.d + squared
        selection = rule.cost(size.n, size.d, m)
        products += selection.work
        memory = 64.0 * m * m + 2.0 * 2**25 + selection.memory
        extra = float(selection.extra_passes)
        # Rules that pass over the rows check them first.
        passes = 1 + size.first_pass + selection.passes + bool(selection.passes)
        return Cost(passes, products, 12.0 * m**3, memory, extra_passes=extra)

    def points(self, n: int, k: int | None) -> int:
        """Return the number of points, for n rows and k components."""
        m, rule = self.n_basis, self.rule
        if m is None and isinstance(rule, Given):
            return len(rule)
        if m is None:
            return min(n, max(_LEAST, _EACH * (k or 0)))
        return basis_size(m, None if isinstance(rule, Given) else n)

    def label(self, size: Size) -> str:
        return f"{self.name} ({counted(self.points(size.n, size.k), 'point')})"

    @property
    def remedy(self) -> str:
        automatic = format_parameter("method", "auto")
        return f"Increase {format_parameter('n_basis')}, or use {automatic}."

    def check_size(self, n: int, k: int) -> None:
        require_points(k, self.points(n, k))

    def basis(self, problem: KernelProblem) -> Basis:
        """Choose the points."""
        wanted, rule = problem.n_leading, self.rule
        # Rows of zero weight are not drawn, but may be among the points that a user passes.
        n, weights = problem.source.shape[0], problem.source.weights
        if weights is not None and not isinstance(rule, Given):
            n = int((weights > 0).sum())
        m = self.points(n, wanted)
        require_points(wanted, m)
        rule.check(problem)
        if rule.cost(n, 1, m).passes:  # rules compute with the rows before the fit checks them
            require_finite_vectors(problem)
        basis = rule.select(problem, m)
        points = basis.points
        if not isinstance(points, list) and points is not None:
            finite = points.data if hasattr(points, "tocsr") else points
            require_finite_sums(problem.source, finite)
        return basis


class LandmarkMethod(OnBasis):
    """A method that solves for the components after one pass over the rows."""

    def fit(self, problem: Problem) -> Axes:
        assert isinstance(problem, KernelProblem)
        problem = move_rows(problem) if problem.sees_offset else problem
        return self.solve(fit_landmarks(problem, self.basis(problem)))

    @abstractmethod
    def solve(self, fit: LandmarkFit) -> Axes:
        """Return the components, given the sums of that pass."""


def basis_size(m: Any, n: int | None) -> int:
    """Return the size of a basis of n rows, or of points that the user passed."""
    real = isinstance(m, Real) and not isinstance(m, bool)
    if real and 0 < m < 1 and n is not None:
        return max(1, round(float(m) * n))
    whole = real and math.isfinite(m) and m == int(m) >= 1
    if not whole or (m == 1 and not isinstance(m, Integral)):  # 1.0: one point, or all rows?
        problem = "must be an integer of at least 1, or a share of the rows between 0 and 1."
        raise ParameterError("n_basis", m, problem)
    if n is not None and m > n:
        exact = format_parameter("method", "exact")
        problem = f"is more than the {n} rows to choose from. To use all rows, set {exact}."
        raise ParameterError("n_basis", m, problem)
    return int(m)


def require_points(wanted: int | None, m: int) -> None:
    """Raise if the basis has fewer points than components."""
    if wanted is not None and wanted > m:
        raise ParameterError(
            "n_components",
            wanted,
            f"is too many for {format_parameter('n_basis', m)}. Use a basis of at least {wanted} "
            f"points; a few times as many is better.",
        )


class Subset(LandmarkMethod, Streaming):
    r"""The best components in the span of landmarks, for all rows.

    Minimizes :math:`\frac1n\sum_i\|\Phi(x_i)-P\Phi(x_i)\|^2` over projectors P of rank r into
    the span of Φ(Y): :math:`K_{xy}^THK_{xy}z = \kappa K_yz`, :math:`z^TK_yz = 1`, and
    :math:`y(x) = Z^T(h_x - \bar h)`. Optimal for any landmarks, whether they are rows or not. One
    pass over the rows, nm(d + m) operations, m² memory; rows can come in batches.

    Parameters
    ----------
    n_basis : int, float or None
        Number of landmarks; below 1, their share of the rows. None: the number of points passed as
        `select`, or 1000, or four per component.
    select : str, Landmarks, points or indices of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.
    centroid : {"span", "rows", "basis"}
        What is subtracted in feature space: the projection of the mean of the rows on the span; the
        mean itself, with the same components, and distances that cost a kernel value with every
        row; or the mean of the landmarks, which needs no rows and is farther from their mean.
    rank : int or None
        Replace :math:`K_{xy}^THK_{xy}` by its incomplete Cholesky decomposition GGᵀ of this rank,
        and solve for the eigenvectors of :math:`G^TK_y^\dagger G` (washizawa (45), corrected).

    References
    ----------
    Y. Washizawa, Subset kernel principal component analysis, MLSP (2009); Subset basis
    approximation of kernel principal component analysis, in Principal Component Analysis
    (InTech, 2012), §3.

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
        self.n_basis, self.select, self.centroid, self.rank = n_basis, select, centroid, rank

    def cost(self, size: Size) -> Cost:
        cost = super().cost(size)
        if self.centroid != "rows":
            return cost
        pairs = float(size.n) * size.n * size.d
        memory = cost.memory + 8.0 * size.n * (size.components + 2)
        return cost._replace(passes=cost.passes + 2, products=cost.products + pairs, memory=memory)

    @property
    def keeps_rows(self) -> bool:
        return self.centroid == "rows"

    def begin(self, problem: Problem) -> KernelMoments:
        assert isinstance(problem, KernelProblem)
        if self.centroid == "rows":
            raise ValueError("centroid='rows' needs all rows, but batches are not stored.")
        # In float64: no sample of rows that are still to come can tell what float32 costs.
        span = Span(problem.kernel, self.basis(problem), problem.source, np.float64)
        return KernelMoments(span, PastRows(problem.source, 0, 0.0), center=problem.center)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        assert isinstance(problem, KernelProblem)
        require_points(problem.n_leading, fold.span.size)  # n_components may have changed
        return self.solve(LandmarkFit(problem, fold.span, fold))

    def solve(self, fit: LandmarkFit) -> Axes:
        if self.centroid not in _CENTROIDS:
            raise ValueError(f"centroid={self.centroid!r} is not one of {', '.join(_CENTROIDS)}.")
        if self.centroid == "basis" and self.rank is not None:
            raise ValueError(
                f"rank={self.rank!r} and centroid='basis' cannot be combined: rank decomposes "
                f"the scatter about the mean of the rows. Omit one of them."
            )
        if self.centroid == "basis" and fit.problem.center and fit.span.size:
            return _about_basis_mean(fit)
        axes = fit.best_axes() if self.rank is None else _of_rank(fit, self.rank)
        if self.centroid == "span" or not fit.problem.center:
            return axes
        projection = axes.projection
        assert isinstance(projection, KernelProjection)
        return replace(axes, projection=_about_row_mean(fit, projection))


class Improved(LandmarkMethod):
    r"""The eigenproblem of `Subset`, with scores :math:`\kappa^{-1/2}Z^T(h_x - \bar h)`.

    All scores have the same variance, which is useful before a classifier; reconstructions are not
    near the rows. The certificate is about the span of the components, that of `Subset`. Known as
    improved kernel PCA (Xu et al. 2007; Washizawa 2012, §5.1).

    Parameters
    ----------
    n_basis, select
        The landmarks, as in `Subset`.

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
        values, components = fit.best
        evidence = fit.evidence(values, components)
        scale = 1.0 / np.sqrt(values * fit.divisor)
        projection = fit.projection(values, components * scale)
        note = "Scores have unit length: the certificate refers to the span of the components."
        return Axes(replace(projection, overlaps=np.diag(scale**2)), evidence.annotated(note))


def _of_rank(fit: LandmarkFit, rank: int) -> Axes:
    """Return components of the incomplete Cholesky decomposition of the covariance."""
    m = fit.span.size
    if not (is_real(rank) and rank == int(rank) and 1 <= rank <= m):
        raise ValueError(f"rank={rank!r} must be an integer from 1 to {m}, the basis size.")
    L, pivots, count, _ = scipy.linalg.lapack.dpstrf(fit.covariance, lower=1)
    G = np.zeros((m, min(int(rank), int(count))))
    G[pivots - 1] = np.tril(L)[:, : G.shape[1]]
    wanted = fit.problem.n_leading
    if wanted is not None and wanted > rank:
        raise ValueError(f"n_components={wanted} must be at most rank={rank}.")
    coef = fit.span.inverse @ G
    values, W = eigh(G.T @ coef)
    large = values > 1e-12 * np.max(values, initial=0.0)
    values, components = values[large], coef @ W[:, large] / np.sqrt(values[large])
    k = fit.choose(values)
    return fit.axes(values[:k], components[:, :k])


def _about_basis_mean(fit: LandmarkFit) -> Axes:
    """Center at the mean of the landmarks: the scatter about it, K_xy − 1(1ᵀK_y)/m."""
    K, T = fit.span.matrix, fit.span.whitener
    difference = fit.mean - K.mean(axis=0)
    C = fit.covariance + fit.moments.weight / fit.divisor * np.outer(difference, difference)
    with serial_blas():
        xi, W = eigh(T.T @ C @ T)
    k = fit.choose(xi)
    values, components = np.maximum(xi[:k], 0.0), T @ W[:, :k]
    axes = fit.axes(values, components, np.full(len(K), 1.0 / len(K)))
    note = "Variances are about the mean of the basis, shares about the mean of the rows."
    return replace(axes, evidence=axes.evidence.annotated(note))


def _about_row_mean(fit: LandmarkFit, projection: KernelProjection) -> KernelProjection:
    """Center at the mean of the rows itself, with all rows kept for distances from it."""
    problem = fit.problem
    gram = Gram(problem.kernel, problem.source, dtype=fit.span.dtype)
    weights = to_numpy(gram.roots)[:, 0] ** 2 / problem.source.count
    if problem.kernel is None:
        return replace(projection, mean_coef=weights, mean_sq=gram.mean_square)
    n, k = problem.source.shape[0], projection.components.shape[1]
    zeros = like(np.zeros((n, k)), projection.components)
    return replace(
        projection,
        basis=stack_points(projection.basis, problem.source.load()),
        components=namespace(zeros).concat([projection.components, zeros]),
        mean=np.concatenate([projection.mean, gram.means]),
        mean_coef=np.concatenate([0.0 * projection.mean, weights]),
        mean_sq=gram.mean_square,
    )
