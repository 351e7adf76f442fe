"""The dot-product matrix of few rows with many columns (marukatat Alg. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    eigh,
    like,
    numpy_dtype,
    orthonormalize,
)
from mercer.certificate import Axes, lifted_evidence, spectral_evidence
from mercer.data import ArraySource
from mercer.linalg import DenseOperator, DotOperator, Moments
from mercer.linalg.solvers import Solver
from mercer.methods.base import FLOOR, LOST, Cost, Method, Size
from mercer.methods.linear.base import linear_axes
from mercer.methods.linear.svd import SVD
from mercer.methods.preparation import column_statistics
from mercer.methods.solving import find_solver, solve
from mercer.problem import Problem


class Dot(Method):
    r"""Eigenvectors u of the n×n matrix of centered dot products, lifted to components.

    .. math:: v = (X - 1\mu^T)^T u / \sqrt{\lambda}

    n² d operations and n² memory. A Rayleigh–Ritz step makes the lifted components orthonormal and
    gives the small eigenvalues the digits of an SVD.

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

    def fit(self, problem: Problem) -> Axes:
        return self._fit(problem, problem.source.dtype)

    def _fit(self, problem: Problem, products: np.dtype[Any]) -> Axes:
        # The deviations must tell a column that varies little from a constant one.
        columns = column_statistics(problem, np.float64 if problem.scale else products)
        mean, deviation, variance = columns.mean, columns.deviation, columns.variance
        far = (mean / deviation) ** 2
        # If means are no larger than deviations, centering the dot products is enough.
        base = mean if far.sum() > variance or not problem.center else np.zeros_like(mean)
        dots = DotOperator(problem.source, base, deviation, problem.divisor, variance)
        operator = _dot_matrix(problem, dots, products)
        if variance == 0.0:
            return SVD().fit(problem)
        spectrum, k = solve(problem, operator, find_solver(self.solver))
        depth = spectrum.depth(k)
        if products == np.float64 and depth < FLOOR[products]:
            return SVD().fit(problem)
        if products == np.float32 and depth < LOST:
            return self._fit(problem, np.dtype(np.float64))
        evidence, total = spectral_evidence(operator, spectrum, k, problem.rng), operator.trace
        values, U = spectrum.pairs
        U = U[:, : _useful(values, k)]
        if problem.center:  # rounding of the matrix leaves small eigenvectors a mean
            u = like(_unit(problem.source.weights, problem.source.shape[0]), U)
            U = U - u @ (u.T @ U)
        U = cast(U, products)
        del operator, spectrum  # two n×n matrices, before d×k ones are allocated
        values, vectors = lift_eigenvectors(dots, values, U, k, exact=True)
        evidence = lifted_evidence(evidence, total, problem.source.shape[0], products)
        return linear_axes(problem, mean, deviation, vectors, values, evidence, total=total)


def _dot_matrix(problem: Problem, dots: DotOperator, products: np.dtype[Any]) -> DenseOperator:
    """Return the dot-product matrix, centered again to remove the rounding of the means."""
    moments = dots.moments(products)
    error, confidence = moments.error(np.ones(moments.d))
    G = moments.scatter
    if isinstance(G, np.ndarray) and not G.flags.writeable:  # a view of another library's array
        G = G.copy()
    G /= problem.divisor
    if problem.center:
        _center(G, problem.source.weights)
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


def _center(G: Matrix, weights: Vector | None) -> None:
    """Replace G by HGH in place."""
    u = _unit(weights, G.shape[0])[:, 0]
    Gu = G @ u
    both = np.outer(u, Gu - (u @ Gu / 2) * u)
    G -= both
    G -= both.T


def _unit(weights: Vector | None, n: int) -> Matrix:
    """Return the unit vector along √w, which centering projects out."""
    w = np.ones(n) if weights is None else weights
    return np.asarray(np.sqrt(w / w.sum())[:, None])
