"""Matrices of the rows that are formed and decomposed: covariance, dot products, triangle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    column_norms,
    column_signs,
    eigh,
    like,
    numpy_dtype,
    orthonormalize,
    svd,
    to_numpy,
)
from mercer.certificate import Axes, Evidence, lifted_evidence, spectral_evidence
from mercer.data import ArraySource, Block, require_finite_sums
from mercer.linalg import DenseOperator, DotOperator, Moments, TriangularFactor
from mercer.linalg.solvers import Solver, Spectrum
from mercer.methods.base import FLOOR, LOST, Cost, Method, Size, Streaming, solve
from mercer.methods.preparation import (
    column_deviation,
    column_statistics,
    levelled_statistics,
    metric_deviation,
    with_shares,
)
from mercer.problem import Problem
from mercer.projection import LinearProjection
from mercer.threads import serial_blas

# Rows sampled before the first pass: this many at this many places.
_ROWS, _PLACES = 16, 16


def linear_axes(
    problem: Problem,
    mean: Vector,
    deviation: Vector,
    vectors: Array,
    values: Vector,
    evidence: Evidence,
    *,
    total: float,
    rest: float | None = None,
) -> Axes:
    """Return components in the user's units, with scikit-learn's signs.

    `rest` is the variance outside the components, if it is known better than as a difference.
    """
    rest = total - float(values.sum()) if rest is None else rest
    unit, square = np.ldexp(1.0, problem.exponent), problem.unit**2
    scale = np.ones(len(mean))
    if problem.scale:
        with np.errstate(invalid="ignore"):
            scale = deviation / metric_deviation(problem) * unit
        scale = np.where(np.isfinite(scale), scale, 1.0)
    mean = mean if problem.shift is None else mean + problem.shift
    if total > 0 and not 0.0 < total * square < np.inf:
        weights = "" if problem.feature_weight is None else ", and feature_weight,"
        raise ValueError(
            f"The variance of X is too large, or too small, for float64. "
            f"Divide X{weights} by its largest entry first."
        )
    values = np.maximum(values, 0.0)
    projection = LinearProjection(
        mean=mean * unit,
        deviation=scale,
        weights=problem.feature_weight,
        components=vectors * like(column_signs(vectors), vectors, numpy_dtype(vectors)),
        eigenvalues=values * square,
        total_variance=max(total, 0.0) * square,
        rest=max(rest, 0.0) * square,
    )
    evidence = replace(evidence, eigenvalues=values)
    return Axes(projection, evidence if square == 1.0 else evidence.scaled(square))


class SVD(Streaming):
    """Singular vectors of the centered rows, from their triangular factor.

    The data are never squared, so components of any size keep the digits that a full SVD gives
    them. Tall data: one pass of QR (TSQR), then the SVD of a d×d triangle. Wide data: the same
    over blocks of columns, an n×n triangle, and components orthonormalized by QR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> PCA(2, svd_solver="full").fit(load_iris().data).explained_variance_.round(3)
    array([4.228, 0.243])
    """

    name = "svd"
    for_kernels = False

    def cost(self, size: Size) -> Cost:
        side, k = min(size.n, size.d), size.components
        wide = size.d > size.n
        products = 4.0 * size.n * size.d * k if wide else 0.0
        factor = 2.0 * size.n * size.d * side + 20.0 * side**3
        memory = 80.0 * side * side + (24.0 * size.d * k if wide else 0.0)
        return Cost(3 if wide and size.columns else 1, products, factor, memory)

    def fit(self, problem: Problem) -> Axes:
        n, d = problem.source.shape
        if d <= n or not problem.source.by_columns:
            return self.finish(problem, problem.source.fold(self.begin(problem)))
        problem, columns = levelled_statistics(problem)
        mean, deviation = columns.mean, columns.deviation
        dots = DotOperator(problem.source, mean, deviation, problem.divisor, columns.variance)
        fold = dots.columns(np.float64).fold(TriangularFactor(n, dots.reference, center=False))
        U, values, evidence, total, rest = _decompose(problem, fold.factor)
        vectors, _ = orthonormalize(dots.lift(like(U, dots.reference), exact=True))
        evidence = lifted_evidence(evidence, total, n)
        return linear_axes(
            problem, mean, deviation, vectors, values, evidence, total=total, rest=rest
        )

    def begin(self, problem: Problem) -> TriangularFactor:
        source = problem.source
        return TriangularFactor(source.shape[1], source.reference, center=problem.center)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        mean, R = fold.mean, fold.factor
        deviation = np.ones(fold.d)
        if problem.scale or problem.metric is not None:
            deviation = column_deviation(problem, (R**2).sum(axis=0), mean)
            problem, R = with_shares(problem, deviation), R / deviation
        V, values, evidence, total, rest = _decompose(problem, R)
        vectors: Array = like(V, problem.source.reference)
        return linear_axes(
            problem, mean, deviation, vectors, values, evidence, total=total, rest=rest
        )


def _decompose(problem: Problem, R: Matrix) -> tuple[Matrix, Vector, Evidence, float, float]:
    """Return right singular vectors of a triangle, variances, evidence, their total and the rest.

    Raises if NaN or infinity in the rows made the triangle invalid.
    """
    variance = float((R**2).sum()) / problem.divisor
    if not np.isfinite(variance):
        require_finite_sums(problem.source, np.array(variance))
    missing = problem.limit - len(R)
    if missing > 0:  # rows of zero weight
        R = np.pad(R, ((0, missing), (0, 0)))
    _, s, Vt = svd(R)
    values, V = s**2 / problem.divisor, Vt.T
    total = float(values.sum())
    k = problem.choose(values, total)
    assert k is not None  # the spectrum is complete
    residuals = column_norms(R.T @ (R @ V) / problem.divisor - V * values)
    eps = float(np.finfo(np.float64).eps)
    rounding = eps * (sum(problem.source.shape) ** 0.5 + len(s)) * total
    spectrum = Spectrum(values, V, residuals + rounding, complete=True)
    operator = DenseOperator(np.diag(values), rounding=rounding)
    evidence = spectral_evidence(operator, spectrum, k, problem.rng)
    return V[:, :k], values[:k], evidence, variance, float(values[k:].sum())


class Covariance(Streaming):
    r"""Eigenvectors of :math:`C = \frac{1}{W-1}\sum_i w_i (x_i-\mu)(x_i-\mu)^T`, d×d.

    One pass over the rows, n d² operations and d² memory. If products in the precision of the data
    lose some of the components, a second pass finds them: with float64 products for float32 data,
    with a triangular factor for float64 data. Source: marukatat Alg. 1.

    Parameters
    ----------
    solver : str or callable
        How C is decomposed: "dense", "jacobi", "power", "krylov" or a solver.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.methods import Covariance
    >>> PCA(2, svd_solver=Covariance()).fit(load_iris().data).explained_variance_.round(3)
    array([4.228, 0.243])
    """

    name = "covariance"
    for_kernels = False

    def __init__(self, solver: str | Solver = "dense") -> None:
        self.solver = solver

    def cost(self, size: Size) -> Cost:
        d, k = size.d, size.components
        factor = 4 / 3 * d**3 + 2 * d * d * k if 4 * k < d else 4 * d**3
        return Cost(1, float(size.n) * d * d, factor, 40.0 * d * d)

    def fit(self, problem: Problem) -> Axes:
        source, single, double = problem.source, np.dtype(np.float32), np.dtype(np.float64)
        if source.dtype == single and not _seems_deep(problem):
            fold = source.fold(self.begin(problem, single))
            if not _too_coarse(problem, fold):
                axes = self.finish(problem, fold)
                if _depth(axes) >= FLOOR[single]:
                    return axes
        axes = self.finish(problem, source.fold(self.begin(problem)))
        if source.dtype == double and _depth(axes) < FLOOR[double]:
            return SVD().fit(problem)
        return axes

    def begin(self, problem: Problem, products: Any = np.float64) -> Moments:
        source = problem.source
        return Moments(source.shape[1], source.reference, products, center=problem.center)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        scatter, mean = fold.scatter, fold.mean
        require_finite_sums(problem.source, mean, scatter)
        deviation, C = np.ones(fold.d), scatter / problem.divisor
        if problem.scale or problem.metric is not None:
            deviation = column_deviation(problem, np.diag(scatter), mean)
            problem, C = with_shares(problem, deviation), C / np.outer(deviation, deviation)
        error, confidence = fold.error(deviation)
        operator = DenseOperator(C, rounding=error / problem.divisor, confidence=confidence)
        spectrum, k = solve(problem, operator, self.solver)
        vectors = like(to_numpy(spectrum.vectors[:, :k]), problem.source.reference)
        evidence = spectral_evidence(operator, spectrum, k, problem.rng)
        values, total = spectrum.values[:k], operator.trace
        return linear_axes(problem, mean, deviation, vectors, values, evidence, total=total)


def _depth(axes: Axes) -> float:
    """Return the smallest variance as a share of the largest; 0 where there is no variance."""
    values = axes.projection.eigenvalues
    if not len(values):
        return 1.0
    return float(values[-1] / values[0]) if values[0] > 0 else 0.0


def _too_coarse(problem: Problem, fold: Moments) -> bool:
    """Return whether a column varies by so little that these products may miss it."""
    variance = np.diag(fold.scatter) / problem.divisor
    eps = float(np.finfo(fold.products).eps)
    return bool(np.any((variance != 0.0) & (variance <= (8 * eps * fold.mean) ** 2)))


def _seems_deep(problem: Problem) -> bool:
    """Guess from a few rows, to save a pass, whether float32 products will lose a component."""
    source, n, k = problem.source, problem.source.shape[0], problem.n_components
    if k is None or not 0 < k < _ROWS * _PLACES // 2 or n < 16 * _ROWS * _PLACES:
        return False
    starts = np.linspace(0, n - _ROWS, _PLACES).astype(int)
    blocks = [Block(0, source.read(i, i + _ROWS), None).dense(np.float64) for i in starts]
    rows = np.concatenate([to_numpy(block) for block in blocks])
    rows -= rows.mean(axis=0) if problem.center else 0.0
    with serial_blas(), np.errstate(all="ignore"):
        rows /= rows.std(axis=0) if problem.scale else 1.0
        rows /= metric_deviation(problem)
        dots = np.nan_to_num(rows @ rows.T)
    values, _ = eigh(dots, k)
    return bool(values[-1] < 1.5 * FLOOR[np.dtype(np.float32)] * values[0])


class Dot(Method):
    r"""Eigenvectors u of the n×n matrix of centered dot products, lifted to components.

    .. math:: v = (X - 1\mu^T)^T u / \sqrt{\lambda}

    n² d operations and n² memory, for few rows with many columns. A Rayleigh–Ritz step makes the
    lifted components orthonormal and gives the small eigenvalues the digits of an SVD. Source:
    marukatat Alg. 2.

    Parameters
    ----------
    solver : str or callable
        How the matrix is decomposed: "dense", "jacobi", "power", "krylov" or a solver.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA
    >>> X = np.random.default_rng(0).normal(size=(10, 5000))
    >>> PCA(3, svd_solver="dot").fit(X).components_.shape
    (3, 5000)
    """

    name = "dot"
    for_kernels = False

    def __init__(self, solver: str | Solver = "dense") -> None:
        self.solver = solver

    def cost(self, size: Size) -> Cost:
        n, k = size.n, size.components
        factor = 4 / 3 * n**3 + 2 * n * n * k if 4 * k < n else 4 * n**3
        products = float(n) * n * size.d + 4.0 * n * size.d * k
        lifted = min(n, k + 8 + k // 8) + 2 * k
        memory = 48.0 * n * n + 1.0 * size.itemsize * size.d * lifted
        return Cost(3, products, factor, memory)

    def fit(self, problem: Problem, products: Any = None) -> Axes:
        """Find the components; `products` is the precision of products, by default the rows'."""
        source = problem.source
        products = np.dtype(products or source.dtype)
        # The deviations must tell a column that varies little from a constant one.
        columns = column_statistics(problem, np.float64 if problem.scale else products)
        mean, deviation, variance = columns.mean, columns.deviation, columns.variance
        problem = with_shares(problem, deviation)
        far = (mean / deviation) ** 2
        # If means are no larger than deviations, centering the dot products is enough.
        base = mean if far.sum() > variance or not problem.center else np.zeros_like(mean)
        dots = DotOperator(source, base, deviation, problem.divisor, variance)
        moments = dots.moments(products)
        if variance == 0.0:
            return SVD().fit(problem)
        w = np.ones(source.shape[0]) if source.weights is None else source.weights
        unit = np.sqrt(w / w.sum())[:, None]
        operator = _dot_matrix(problem, moments, unit[:, 0])
        del moments
        spectrum, k = solve(problem, operator, self.solver)
        depth = spectrum.depth(k)
        if products == np.float64 and depth < FLOOR[products]:
            return SVD().fit(problem)
        if products == np.float32 and depth < LOST:
            return self.fit(problem, np.float64)
        evidence, total = spectral_evidence(operator, spectrum, k, problem.rng), operator.trace
        values, U = spectrum.pairs
        U = U[:, : _useful(values, k)]
        if problem.center:  # rounding of the matrix leaves small eigenvectors a mean
            u = like(unit, U)
            U = U - u @ (u.T @ U)
        U = cast(U, products)
        del operator, spectrum  # two n×n matrices, before d×k ones are allocated
        values, vectors = lift_eigenvectors(dots, values, U, k, exact=True)
        evidence = lifted_evidence(evidence, total, source.shape[0], products)
        return linear_axes(problem, mean, deviation, vectors, values, evidence, total=total)


def _dot_matrix(problem: Problem, moments: Moments, u: Vector) -> DenseOperator:
    """Return the dot-product matrix, centered again: u, along √w, is projected out."""
    error, confidence = moments.error(np.ones(moments.d))
    G = moments.scatter
    if isinstance(G, np.ndarray) and not G.flags.writeable:  # a view of another library's array
        G = G.copy()
    G /= problem.divisor
    if problem.center:  # HGH in place
        Gu = G @ u
        both = np.outer(u, Gu - (u @ Gu / 2) * u)
        G -= both
        G -= both.T
    return DenseOperator(G, rounding=error / problem.divisor, confidence=confidence)


def lift_eigenvectors(
    dots: DotOperator, values: Vector, U: Array, k: int, *, exact: bool
) -> tuple[Vector, Array]:
    """Return the variances and orthonormal components of eigenvectors U of the dot matrix.

    In the precision of U. A few vectors beyond the k wanted are lifted too, if there are any: they
    hold what rounding took from the k-th.
    """
    import scipy.linalg

    if k == 0:
        return np.zeros(0), like(np.zeros((dots.source.shape[1], 0)), dots.reference)
    useful, dtype = _useful(values[: U.shape[1]], k), numpy_dtype(U)
    lengths = np.sqrt(values[:useful] * dots.divisor)
    # Orthonormal up to rounding: the Cholesky factor that makes them so is near the identity.
    U = like(U[:, :useful], dots.reference) / like(lengths, dots.reference, dtype)
    W = dots.lift(U, exact=exact)
    rows = ArraySource(W)
    with progress.quiet():
        fold = rows.fold(Moments(useful, W, dtype, center=False))
    try:
        L = np.linalg.cholesky(fold.scatter)
    except np.linalg.LinAlgError:  # linearly dependent up to rounding
        Q, R = orthonormalize(W)
        theta, S = eigh((R * lengths**2) @ R.T, k)
        return theta / dots.divisor, Q @ like(S, W, dtype)
    theta, S = eigh((L.T * lengths**2) @ L, k)
    S = like(scipy.linalg.solve_triangular(L, S, lower=True, trans="T"), W, dtype)
    with progress.quiet():
        rows.map(lambda block: (S.T @ block.rows.T).T, k).collect(out=W[:, :k])
    return theta / dots.divisor, W[:, :k]


def _useful(values: Vector, k: int) -> int:
    """Return how many of the eigenvectors to lift."""
    close = int((values > 0.75 * values[k - 1]).sum())
    return max(k, min(close, k + 8 + k // 8))
