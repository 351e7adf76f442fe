"""Sparse kernel PCA: a noise model whose weights are mostly zero (Tipping 2001)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from mercer.arrays import Matrix, Vector, is_finite, like
from mercer.certificate import Axes
from mercer.checks import check_nonnegative, check_positive, check_whole, require
from mercer.config import get_config
from mercer.data import as_source
from mercer.landmarks import Given
from mercer.landmarks.base import taken
from mercer.linalg import Moments
from mercer.linalg.span import Basis, Span
from mercer.messages import warn
from mercer.methods.base import ConvergenceWarning, Cost, Size, largest
from mercer.methods.kernel.landmark_fit import SAMPLE_ROWS, LandmarkFit, fit_landmarks
from mercer.methods.kernel.landmark_method import (
    OnBasis,
    basis_size,
    prepare,
    require_points,
    weighted_rows,
)
from mercer.methods.kernel.reduced import weighted_components
from mercer.methods.literature.noise_model import UPDATES, Fit, NoiseModel, model_of
from mercer.methods.literature.noise_search import highest, sought
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

# Points of a basis of no given size: so many, or a quarter of the rows; more for many axes.
_USUAL, _EACH = 100, 4
# The most candidates where the user does not say: a step takes the cube of their number.
_MOST = 2000
# Matrices of candidates by candidates that a step holds, and steps to reckon with.
_HELD, _STEPS = 20, 40
# Bytes that blocks of rows take beside them.
_BLOCKS = 2**26
# Points nearer to each other, or to the mean, than this share of their squared length are one.
_SAME = 1e-13
# A number of points that is off by more than this share is warned of.
_FAR = 0.1
# Where no step raises the likelihood its conditions hold to this, or it has not been found.
_ROUNDED = 1e-5


@dataclass(frozen=True)
class SparseProjection(KernelProjection):
    """The map, and the noise model that it comes from.

    Attributes
    ----------
    weights : ndarray of shape (m,)
        What each point of the basis counts in the model's covariance.
    noise : float
        σ².
    likelihood : float
        The log-likelihood of what of the rows lies in the candidates' span.
    """

    weights: Vector = field(default_factory=lambda: np.zeros(0))
    noise: float = 0.0
    likelihood: float = 0.0


class Sparse(OnBasis):
    r"""Principal axes of a noise model of the rows, in which few rows have a weight.

    In feature space the rows' covariance is modelled as
    :math:`C = \sigma^2I + \sum_iw_i\varphi_i\varphi_i^T`, with the noise σ² fixed and weights
    w ≥ 0 of the largest likelihood. Most of them are zero, the more the larger σ². The axes are
    those of C: eigenvectors of :math:`W^{1/2}KW^{1/2}` over the points that are left, which are
    all that new rows are compared to.

    Points and rows are centred alike: by the rows' mean, which is all rows', so that the points
    that are left are centred by its projection on their span. `explained_variance_` is the rows'
    variance along each axis, not the model's.

    A step towards the largest likelihood is Newton's within w ≥ 0, or Fisher's scoring, and takes
    the cube of the number of candidates; a step that lowers the likelihood is not taken, but the
    fast step of the source, or its EM step. Candidates are all rows up to 2000, or a pool of them.

    The likelihood may have several maxima, and rounding can decide which of them a search finds:
    of all methods, this one may return other points for another block size.

    Parameters
    ----------
    n_basis : int, float or None
        Points to be left, or, below 1, their share of the rows: σ² is searched for. Where no σ²
        leaves as many, the nearest number is, which a note in the certificate says, and a warning
        where it is far off. None, where σ² is too: 100, or a quarter of the rows if that is less,
        or four for every axis if that is more.
    sigma2 : float or None
        Variance of the noise in every direction; in the units of `explained_variance_`.
    select : str, Landmarks, points or numbers of rows
        How candidates are chosen where they are not all rows; or the candidates themselves.
    pool : int or None
        Number of candidates. None: all rows, 2000 at most, and what half the memory holds.
    update : {"newton", "fast", "em"}
        "fast" and "em" take the source's steps alone: they come to the same weights, slowly.
    max_iter : int
        The most steps for one σ².
    tol : float
        How far from 1 may be :math:`\varphi_i^TC^{-1}SC^{-1}\varphi_i/
        (N\varphi_i^TC^{-1}\varphi_i)`, of points that are left; and above 1, of others.

    References
    ----------
    M. E. Tipping, Sparse kernel principal component analysis, NIPS 13 (2001). Washizawa (2012),
    §5.2.

    Notes
    -----
    The more noise the fewer points are left, but for one more or less here and there: the
    likelihood may have several maxima. Of rows that are all as far from each other, to a kernel
    that is too narrow, either all are left or hardly any. Where the kernel's space has so few
    dimensions r that r(r + 1)/2 is below the number of rows, weights of the largest likelihood
    are many, and little noise leaves nearly all points.

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

    def __init__(
        self,
        n_basis: int | float | None = None,
        sigma2: float | None = None,
        select: Any = "uniform",
        pool: int | None = None,
        update: str = "newton",
        max_iter: int = 200,
        tol: float = 1e-4,
    ) -> None:
        super().__init__(n_basis, select)
        self.sigma2, self.pool, self.update = sigma2, pool, update
        self.max_iter, self.tol = max_iter, tol

    def cost(self, size: Size) -> Cost:
        n, d, rule = size.n, size.d, self.rule
        p, m = self.candidates(n, size.k), self.points(n, size.k)
        products = 2.0 * n * (p + m) * d + 3.0 * n * p * p + float(n) * m * m
        products += _STEPS * 4.0 * p**3
        memory = 8.0 * _HELD * p * p + _BLOCKS
        if p < n:
            products, memory = products + rule.work(n, d, p), memory + rule.memory(n, d, p)
        return Cost(2, products, _STEPS * float(p) ** 3, memory)

    def shrink(self, size: Size, room: float) -> Self | None:
        if self.pool is None:
            return super().shrink(size, room)
        pool = largest(
            lambda pool: self.with_params(pool=pool).cost(size).memory <= room,
            self.points(size.n, size.k),
            self.candidates(size.n, size.k),
        )
        return None if pool is None else self.with_params(pool=pool)

    def suggestion(self, size: Size, room: float) -> str | None:
        found = self.shrink(size, room)
        if self.pool is None or found is None:
            return super().suggestion(size, room)
        return f"method={found!r} fits"

    @property
    def remedy(self) -> str:
        if self.sigma2 is None:
            return super().remedy
        return 'A smaller sigma2 comes nearer; method="auto" finds the way.'

    def points(self, n: int, k: int | None) -> int:
        if self.n_basis is not None:
            return basis_size(self.n_basis, n)
        p = self.candidates(n, k)
        return p if self.sigma2 is not None else min(p, _usual(n, k))

    def candidates(self, n: int, k: int | None) -> int:
        """Return how many candidates there are, of n rows and for k axes."""
        if isinstance(self.rule, Given):
            return len(self.rule)
        if self.pool is not None:
            check_whole(self, "pool")
            return min(n, int(self.pool))
        least = _usual(n, k) if self.n_basis is None else basis_size(self.n_basis, n)
        room = math.isqrt(max(0, get_config().budget - _BLOCKS) // (2 * 8 * _HELD))
        return min(n, max(least, min(_MOST, room)))

    def fit(self, problem: Problem) -> Axes:
        self._check()
        problem = prepare(problem)
        basis = self.basis(problem)
        with serial_blas():
            model, among = modelled(problem, basis)
            fit = None if model is None else self._fitted(problem, model)
        if fit is None:  # no row differs from the mean
            only = fit_landmarks(problem, _part(problem, basis, [0]))
            return _sparse_axes(only, np.ones(1), fit, ())
        landmarks = fit_landmarks(problem, _part(problem, basis, among[fit.kept]))
        notes = self._notes(problem, basis, fit)
        return _sparse_axes(landmarks, fit.weights[fit.kept], fit, notes)

    def basis(self, problem: KernelProblem) -> Basis:
        """Choose the candidates."""
        n, weights, rule = weighted_rows(problem), problem.source.weights, self.rule
        wanted = problem.n_components
        if isinstance(rule, Given):
            basis = rule.select(problem)
            require_points(problem.n_leading, len(basis))
            return basis
        p, m = self.candidates(n, wanted), self.points(n, wanted)
        require(self, "pool", m <= p, f"at least the {m} points to be left")
        require_points(problem.n_leading, m)
        if p == n:
            return taken(problem, np.arange(n) if weights is None else np.flatnonzero(weights > 0))
        rule.check(problem)
        return rule.select(problem, p)

    def _check(self) -> None:
        """Refuse parameters that have no meaning."""
        if self.sigma2 is not None:
            check_positive(self, "sigma2")
            left_out = self.n_basis is None
            require(self, "sigma2", left_out, f"left out, or n_basis={self.n_basis}: each sets it")
        if self.pool is not None:
            one = not isinstance(self.rule, Given)
            require(self, "pool", one, "left out where the candidates themselves are given")
        check_whole(self, "max_iter")
        check_nonnegative(self, "tol")
        require(self, "update", self.update in UPDATES, f"one of {', '.join(UPDATES)}")

    def _fitted(self, problem: KernelProblem, model: NoiseModel) -> Fit:
        """Find the weights, of the noise that is given or of that which leaves enough points."""
        how: dict[str, Any] = {
            "update": self.update,
            "max_iter": int(self.max_iter),
            "tol": float(self.tol),
        }
        if self.sigma2 is None:
            k = problem.n_components
            return sought(model, self.points(weighted_rows(problem), k), **how)
        most = float(model.variances.max()) * model.unit
        if self.sigma2 >= most:
            raise ValueError(
                f"Sparse: sigma2={self.sigma2!r} leaves no point: the rows' mean square along "
                f"none of them is above {most:.4g}. Take less, or give n_basis instead."
            )
        fit = highest(model.of(float(self.sigma2) / model.unit), **how)
        left, wanted = len(fit.kept), problem.n_leading
        if wanted is not None and wanted > left:
            raise ValueError(
                f"Sparse: sigma2={self.sigma2!r} leaves {left} points, and {wanted} "
                f"components do not fit their span. Take less, or give n_basis instead."
            )
        return fit

    def _notes(self, problem: KernelProblem, basis: Basis, fit: Fit) -> tuple[str, ...]:
        n, p, m = problem.source.shape[0], len(basis), len(fit.kept)
        those = "all rows" if p == n else f"{p} candidates of {n} rows"
        if isinstance(self.rule, Given):
            those = f"the {p} candidates given"
        elif p < n:
            those += f", chosen by {self.rule.name},"
        notes = [
            f"Of {those} {m} have a weight at the noise variance {fit.noise:.4g}, by maximum "
            f"likelihood: {fit.likelihood:.10g} in the candidates' span."
        ]
        wanted = None if self.n_basis is None else basis_size(self.n_basis, weighted_rows(problem))
        if wanted is not None and wanted != m:
            said = f"No noise was found that leaves n_basis={wanted} points: {m} is the nearest."
            notes.append(said)
            if abs(m - wanted) > max(1.0, _FAR * wanted):
                warn(f"Sparse: {said} A wider kernel, or method='subset', may do.")
        if fit.violation > max(float(self.tol), _ROUNDED):
            off = f"the conditions of a maximum are off by {fit.violation:.1e}"
            notes.append(f"The likelihood is not the largest yet: {off}.")
            warn(
                f"Sparse stopped before the likelihood was largest: {off}. Take more steps than "
                f"max_iter={self.max_iter}, or a larger tol than {self.tol}.",
                ConvergenceWarning,
            )
        return tuple(notes)


def _usual(n: int, k: int | None) -> int:
    return max(1, min(_USUAL, n // 4), _EACH * (k or 0))


def modelled(problem: KernelProblem, basis: Basis) -> tuple[NoiseModel | None, Any]:
    """Return the model of the rows by these candidates, and which of them are its points.

    Those that are the mean, or stand there twice, are not. The noise is yet to be set. No model
    where the rows are all the same.
    """
    source, span = problem.source, Span(problem.kernel, basis, problem.source)
    white = like(span.whitener, source.reference)
    rank = span.rank
    # Coordinates are summed, not kernels: a direction's digits are lost when it is divided later.
    seen = (
        span.features(source, np.float64)
        .map(lambda block: block.rows @ white, rank, np.float64)
        .fold(Moments(rank, source.reference, np.float64, center=problem.center))
    )
    if not is_finite(seen.scatter):
        raise ValueError(
            f"{problem.kernel!r} gives NaN or infinity between rows. Scale the rows, or change the "
            f"kernel's parameters."
        )
    points = span.matrix @ span.whitener - seen.mean * problem.center
    among = _different(points, np.abs(np.diag(span.matrix)))
    if not len(among):
        return None, among
    return model_of(points[among], np.asarray(seen.scatter), seen.weight), among


def _different(points: Matrix, own: Vector) -> Any:
    """Return which points are neither zero nor the same as one before."""
    squares = np.einsum("ij,ij->i", points, points)
    apart = squares + squares[:, None] - 2.0 * (points @ points.T)
    first = np.argmax(apart <= _SAME * np.maximum(own, own[:, None]), axis=1)
    return np.flatnonzero((first == np.arange(len(points))) & (squares > _SAME * own))


def _part(problem: KernelProblem, basis: Basis, those: Any) -> Basis:
    """Return some points of a basis."""
    if basis.at is not None:
        return taken(problem, basis.at[those])
    return Basis(as_source(basis.points).take(those))


def _sparse_axes(
    found: LandmarkFit, weights: Vector, fit: Fit | None, notes: tuple[str, ...]
) -> Axes:
    """Return the components of weighted points, about the mean's projection on their span."""
    mean_coef = found.mean_coef * found.problem.center
    _, components = weighted_components(found.span.matrix, weights, mean_coef, 1.0)
    values = np.einsum("ij,ij->j", components, found.covariance @ components)
    k = found.choose(values)
    values, components = values[:k], components[:, :k]
    evidence = found.evidence(values, components, found.sample(k, SAMPLE_ROWS)).annotated(*notes)
    plain = found.projection(values, components)
    projection = SparseProjection(
        **{part.name: getattr(plain, part.name) for part in fields(plain)},
        weights=weights,
        noise=0.0 if fit is None else fit.noise,
        likelihood=0.0 if fit is None else fit.likelihood,
    )
    return Axes(projection, evidence)
