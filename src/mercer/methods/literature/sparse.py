"""Sparse kernel PCA: a noise model whose weights are mostly zero (Tipping 2001)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from mercer.arrays import Vector, like
from mercer.certificate import Axes
from mercer.checks import check_integer, check_nonnegative, check_positive, require
from mercer.config import get_config
from mercer.data import as_source
from mercer.landmarks import Given
from mercer.landmarks.base import row_basis, weighted_row_indices
from mercer.linalg import Moments
from mercer.linalg.span import Basis, Span
from mercer.messages import warn
from mercer.methods.base import ConvergenceWarning, Cost, Size
from mercer.methods.kernel.landmark_fit import fit_landmarks, require_finite_kernel
from mercer.methods.kernel.low_rank import weighted_components
from mercer.methods.kernel.subset import OnBasis, basis_size, require_points
from mercer.methods.literature.noise_model import (
    UPDATES,
    NoiseFit,
    NoiseModel,
    most_likely,
    search_noise,
)
from mercer.methods.preparation import move_rows
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

# Default number of points: this many, or a quarter of the rows; or this many per component.
_POINTS, _POINTS_PER_COMPONENT = 100, 4
# Default limit of the candidates: a step costs the cube of their number.
_CANDIDATES = 2000
# Candidates × candidates matrices in memory during a step, and steps that a plan assumes.
_MATRICES, _STEPS = 20, 40
# Bytes for blocks of rows.
_BLOCKS = 2**26
# Points closer to each other, or to the mean, than this share of their squared norm are the same.
_SAME = 1e-13
# A number of points that is off by more than this share causes a warning.
_FAR = 0.1
# If no step raises the likelihood, its conditions hold to this, or the maximum was not found.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class SparseProjection(KernelProjection):
    """The map, and its noise model: weights of the points, σ², and the log-likelihood."""

    weights: Vector = field(default_factory=lambda: np.zeros(0))
    noise: float = 0.0
    likelihood: float = 0.0


@dataclass(eq=False, repr=False)
class Sparse(OnBasis):
    r"""Principal components of a noise model in which few rows have positive weight.

    The covariance of the rows in feature space is modeled as
    :math:`C = \sigma^2I + \sum_iw_i\varphi_i\varphi_i^T`, with fixed noise σ² and the weights
    w ≥ 0 of largest likelihood. Most of them are zero, and more of them the larger σ² is. The
    components are those of C: eigenvectors of :math:`W^{1/2}KW^{1/2}` over the points of positive
    weight, with which alone new rows are compared. Rows are centered by their mean, the points by
    its projection on their span. `explained_variance_` is the variance of the rows, not of the
    model.

    A step toward the largest likelihood costs the cube of the number of candidates: a damped
    Newton step within w ≥ 0, or the fast step of the paper or its EM step if that would lower the
    likelihood. There may be several maxima, and rounding can decide which of them is
    found: unlike other methods, this one may return other points for another block size. If all
    rows are equally far from each other (a kernel that is too narrow), or if the feature space has
    few dimensions, no noise leaves a moderate number of points.

    Parameters
    ----------
    n_basis : int, float or None
        Number of points of positive weight or, below 1, their share of the rows; σ² is searched
        for. If none gives this number, the nearest is taken, with a note in the certificate. None,
        without σ²: 100, at most a quarter of the rows, at least four per component.
    sigma2 : float or None
        Variance of the noise in every direction, in the units of `explained_variance_`.
    select : str, Landmarks, points or indices of rows
        How candidates are chosen if they are not all rows; or the candidates themselves.
    pool : int or None
        Number of candidates. None: all rows, at most 2000, within half of the memory.
    update : {"newton", "fast", "em"}
        "fast" and "em" take only the steps of the paper: they reach the same weights, slowly.
    max_iter : int
        Maximum number of steps for one σ².
    tol : float
        Tolerance of :math:`\varphi_i^TC^{-1}SC^{-1}\varphi_i/(N\varphi_i^TC^{-1}\varphi_i)`, which
        is 1 at the maximum for points of positive weight, and at most 1 for others.

    References
    ----------
    M. E. Tipping, Sparse kernel principal component analysis, NIPS 13 (2001). Washizawa (2012),
    §5.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Sparse
    >>> X = load_iris().data
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.3, method=Sparse(20)).fit(X)
    >>> kpca.X_fit_.shape
    (20, 4)
    >>> few = KernelPCA(2, kernel="rbf", gamma=0.3, method=Sparse(sigma2=0.1)).fit(X)
    >>> len(few.projection_.weights)
    3
    """

    name = "sparse"

    n_basis: int | float | None = None
    sigma2: float | None = None
    select: Any = "uniform"
    pool: int | None = None
    update: str = "newton"
    max_iter: int = 200
    tol: float = 1e-4

    def cost(self, size: Size) -> Cost:
        n, d, rule = size.n, size.d, self.rule
        p, m = self.candidates(n, size.k), self.points(n, size.k)
        products = 2.0 * n * (p + m) * d + 3.0 * n * p * p + float(n) * m * m
        products += _STEPS * 4.0 * p**3
        memory = 8.0 * _MATRICES * p * p + _BLOCKS
        if p < n:
            selection = rule.cost(n, d, p)
            products, memory = products + selection.work, memory + selection.memory
        return Cost(2 + size.first_pass, products, _STEPS * float(p) ** 3, memory)

    @property
    def remedy(self) -> str:
        if self.sigma2 is None:
            return super().remedy
        return 'Decrease sigma2, or use method="auto".'

    def points(self, n: int, k: int | None) -> int:
        if self.n_basis is not None:
            return basis_size(self.n_basis, n)
        p = self.candidates(n, k)
        return p if self.sigma2 is not None else min(p, _default_points(n, k))

    def candidates(self, n: int, k: int | None) -> int:
        """Return the number of candidates, for n rows and k components."""
        if isinstance(self.rule, Given):
            return len(self.rule)
        if self.pool is not None:
            check_integer(self, "pool")
            return min(n, int(self.pool))
        least = _default_points(n, k) if self.n_basis is None else basis_size(self.n_basis, n)
        room = math.isqrt(max(0, get_config().budget - _BLOCKS) // (2 * 8 * _MATRICES))
        return min(n, max(least, min(_CANDIDATES, room)))

    def fit(self, problem: Problem) -> Axes:
        assert isinstance(problem, KernelProblem)
        self._check()
        problem = move_rows(problem)
        basis = self.basis(problem)
        with serial_blas():
            model, distinct = noise_model(problem, basis)
            fit = None if model is None else self._most_likely(problem, model)
        notes: tuple[str, ...] = ()
        points, weights = np.zeros(1, int), np.ones(1)  # if no row differs from the mean
        if fit is not None:
            points, weights = distinct[fit.support], fit.weights[fit.support]
            notes = self._notes(problem, basis, fit)
        if basis.at is not None:
            landmarks = row_basis(problem, basis.at[points])
        else:
            landmarks = Basis(as_source(basis.points).take(points))
        # The components of the weighted points, about the projection of the mean.
        span_fit = fit_landmarks(problem, landmarks)
        mean_coef = span_fit.mean_coef * problem.center
        _, components = weighted_components(span_fit.span.matrix, weights, mean_coef, 1.0)
        values = np.einsum("ij,ij->j", components, span_fit.covariance @ components)
        k = span_fit.choose(values)
        axes = span_fit.axes(values[:k], components[:, :k])
        projection = SparseProjection(
            **{part.name: getattr(axes.projection, part.name) for part in fields(axes.projection)},
            weights=weights,
            noise=0.0 if fit is None else fit.noise,
            likelihood=0.0 if fit is None else fit.likelihood,
        )
        return Axes(projection, axes.evidence.annotated(*notes))

    def basis(self, problem: KernelProblem) -> Basis:
        """Choose the candidates."""
        at, given = weighted_row_indices(problem), isinstance(self.rule, Given)
        n, wanted = len(at), problem.n_components
        p, m = self.candidates(n, wanted), self.points(n, wanted)
        require(self, "pool", given or m <= p, f"at least n_basis, {m} points")
        require_points(problem.n_leading, p if given else m)
        if p == n and not given:
            return row_basis(problem, at)
        self.rule.check(problem)
        return self.rule.select(problem, p)

    def _check(self) -> None:
        """Raise if parameters are invalid."""
        if self.sigma2 is not None:
            check_positive(self, "sigma2")
            left_out = self.n_basis is None
            require(self, "sigma2", left_out, f"omitted if n_basis={self.n_basis} is set")
        if self.pool is not None:
            one = not isinstance(self.rule, Given)
            require(self, "pool", one, "omitted if the candidates are passed")
        check_integer(self, "max_iter")
        check_nonnegative(self, "tol")
        require(self, "update", self.update in UPDATES, f"one of {', '.join(UPDATES)}")

    def _most_likely(self, problem: KernelProblem, model: NoiseModel) -> NoiseFit:
        """Find the weights for the given noise, or for the noise that leaves n_basis points."""
        options: dict[str, Any] = {"update": self.update, "tol": float(self.tol)}
        options["max_iter"] = int(self.max_iter)
        if self.sigma2 is None:
            n_points = self.points(len(weighted_row_indices(problem)), problem.n_components)
            return search_noise(model, n_points, **options)
        most = float(model.variances.max()) * model.unit
        if self.sigma2 >= most:
            raise ValueError(
                f"Sparse: sigma2={self.sigma2!r} leaves no point: the mean square of the rows "
                f"along a point is at most {most:.4g}. Use a smaller sigma2, or n_basis instead."
            )
        fit = most_likely(model.with_noise(float(self.sigma2) / model.unit), **options)
        left, wanted = len(fit.support), problem.n_leading
        if wanted is not None and wanted > left:
            raise ValueError(
                f"Sparse: sigma2={self.sigma2!r} leaves {left} points, too few for {wanted} "
                f"components. Use a smaller sigma2, or n_basis instead."
            )
        return fit

    def _notes(self, problem: KernelProblem, basis: Basis, fit: NoiseFit) -> tuple[str, ...]:
        """Describe the result; warn if it is far from what was asked for."""
        n, p, m = problem.source.shape[0], len(basis), len(fit.support)
        candidates = "all rows" if p == n else f"{p} candidates of {n} rows"
        if p < n and not isinstance(self.rule, Given):
            candidates += f", chosen by {self.rule.name},"
        notes = [
            f"Of {candidates} {m} have positive weight at noise variance {fit.noise:.4g}; maximum "
            f"log-likelihood {fit.likelihood:.10g} in the span of the candidates."
        ]
        wanted = m
        if self.n_basis is not None:
            wanted = basis_size(self.n_basis, len(weighted_row_indices(problem)))
        if wanted != m:
            note = f"No noise variance leaves exactly n_basis={wanted} points; {m} is nearest."
            notes.append(note)
            if abs(m - wanted) > max(1.0, _FAR * wanted):
                warn(f"Sparse: {note} Try a wider kernel, or method='subset'.")
        if fit.violation > max(float(self.tol), _ROUNDING):
            off = f"the optimality conditions are violated by {fit.violation:.1e}"
            notes.append(f"The likelihood is not at its maximum: {off}.")
            warn(
                f"Sparse did not reach the maximum likelihood: {off}. Increase "
                f"max_iter={self.max_iter}, or tol={self.tol}.",
                ConvergenceWarning,
            )
        return tuple(notes)


def _default_points(n: int, k: int | None) -> int:
    return max(1, min(_POINTS, n // 4), _POINTS_PER_COMPONENT * (k or 0))


def noise_model(
    problem: KernelProblem, basis: Basis
) -> tuple[NoiseModel | None, np.ndarray[Any, Any]]:
    """Return the model of the rows, its noise not yet set, and which candidates are its points.

    Candidates at the mean and duplicates are left out. None if all rows are the same.
    """
    source, span = problem.source, Span(problem.kernel, basis, problem.source)
    whitener, rank = like(span.whitener, source.reference), span.rank
    # Moments of coordinates, not of kernel values: whitening these later would lose digits.
    moments = (
        span.features(source, np.float64)
        .map(lambda block: block.rows @ whitener, rank, np.float64)
        .fold(Moments(rank, source.reference, np.float64, center=problem.center))
    )
    require_finite_kernel(problem, moments.scatter)
    points = span.matrix @ span.whitener - moments.mean * problem.center
    scale = np.abs(np.diag(span.matrix))
    squares = np.einsum("ij,ij->i", points, points)
    distances = squares + squares[:, None] - 2.0 * (points @ points.T)
    first = np.argmax(distances <= _SAME * np.maximum(scale, scale[:, None]), axis=1)
    distinct = np.flatnonzero((first == np.arange(len(points))) & (squares > _SAME * scale))
    if not len(distinct):
        return None, distinct
    scatter = np.asarray(moments.scatter)
    return NoiseModel.of_scatter(points[distinct], scatter, moments.weight), distinct
