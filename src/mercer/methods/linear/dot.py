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
from mercer.data import ArraySource
from mercer.linalg import Dense, Dots, Moments
from mercer.linalg.solvers import Solver
from mercer.methods.base import (
    FLOOR,
    LOST,
    Cost,
    Method,
    Size,
    certify,
    find_solver,
    lifted_certificate,
    solve,
)
from mercer.methods.linear.svd import SVD
from mercer.problem import Problem
from mercer.projection import Projection


class Dot(Method):
    r"""Eigenvectors u of the n×n matrix of centred dot products, lifted to axes.

    .. math:: v = (X - 1\mu^T)^T u / \sqrt{\lambda}

    n² d operations and n² memory. The lifted axes are made orthonormal by a Rayleigh–Ritz
    step among themselves, which also gives the small eigenvalues the digits of an SVD.

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
        n, k = size.n, size.axes
        factor = 4 / 3 * n**3 + 2 * n * n * k if 4 * k < n else 4 * n**3
        products = float(n) * n * size.d + 4.0 * n * size.d * k
        lifted = min(n, k + 8 + k // 8) + 2 * k
        memory = 48.0 * n * n + 1.0 * size.itemsize * size.d * lifted
        return Cost(3, products, factor, memory)

    def fit(self, problem: Problem) -> Projection:
        return self._fit(problem, problem.source.dtype)

    def _fit(self, problem: Problem, products: np.dtype[Any]) -> Projection:
        # What columns are divided by must tell a coarse one from a constant one.
        mean, deviation, variance = problem.treatment(np.float64 if problem.scale else products)
        far = (mean / deviation) ** 2
        # Where means are no larger than deviations, to take them off the dots is enough.
        base = mean if far.sum() > variance or not problem.center else np.zeros_like(mean)
        gram = Dots(problem.source, base, deviation, problem.divisor, variance)
        operator = _dots(problem, gram, products)
        if variance == 0.0:
            return SVD().fit(problem)
        spectrum, k = solve(problem, operator, find_solver(self.solver))
        depth = spectrum.depth(k)
        if products == np.float64 and depth < FLOOR[products]:
            return SVD().fit(problem)
        if products == np.float32 and depth < LOST:
            return self._fit(problem, np.dtype(np.float64))
        certificate, total = certify(operator, spectrum, k, problem.rng), operator.trace
        values, U = spectrum.pairs
        U = U[:, : _useful(values, k)]
        if problem.center:  # rounding of the matrix has left small eigenvectors a mean
            u = like(_unit(problem.source.weights, problem.source.shape[0]), U)
            U = U - u @ (u.T @ U)
        U = cast(U, products)
        del operator, spectrum  # n×n each, where d×k are about to come
        values, axes = lifted(gram, values, U, k, exact=True)
        certificate = lifted_certificate(certificate, total, problem.source.shape[0], products)
        return problem.projection(mean, deviation, axes, values, total, certificate)


def _dots(problem: Problem, gram: Dots, products: np.dtype[Any]) -> Dense:
    """Return the dot matrix, what rounding of the columns' means left over taken off."""
    dots = gram.moments(products)
    error, confidence = dots.error(np.ones(dots.d))
    G = dots.scatter
    if isinstance(G, np.ndarray) and not G.flags.writeable:  # as other libraries hand theirs out
        G = G.copy()
    G /= problem.divisor
    if problem.center:
        _centre(G, problem.source.weights)
    return Dense(G, rounding=error / problem.divisor, confidence=confidence)


def lifted(gram: Dots, values: Vector, U: Array, k: int, *, exact: bool) -> tuple[Vector, Array]:
    """Return the variances and orthonormal axes that eigenvectors U of the dot matrix stand for.

    In U's precision. A few vectors beyond the k wanted join in where there are any: what
    rounding took from the k-th is in them.
    """
    import scipy.linalg

    if k == 0:
        return np.zeros(0), like(np.zeros((gram.source.shape[1], 0)), gram.reference)
    useful, kind = _useful(values[: U.shape[1]], k), numpy_dtype(U)
    lengths = np.sqrt(values[:useful] * gram.divisor)
    # Of unit length and orthogonal, but for rounding: what makes them so is near the identity.
    U = like(U[:, :useful], gram.reference) / like(lengths, gram.reference, kind)
    W = gram.lift(U, exact=exact)
    rows = ArraySource(W)
    with progress.quiet():
        fold = rows.fold(Moments(useful, W, kind, center=False))
    try:
        L = np.linalg.cholesky(fold.scatter)
    except np.linalg.LinAlgError:  # some depend on others, to rounding
        Q, R = orthonormalize(W)
        theta, S = eigh((R * lengths**2) @ R.T, k)
        return theta / gram.divisor, Q @ like(S, W, kind)
    theta, S = eigh((L.T * lengths**2) @ L, k)
    S = like(scipy.linalg.solve_triangular(L, S, lower=True, trans="T"), W, kind)
    with progress.quiet():
        rows.map(lambda block: (S.T @ block.rows.T).T, k).collect(out=W[:, :k])
    return theta / gram.divisor, W[:, :k]


def _useful(values: Vector, k: int) -> int:
    """Return how many of the eigenvectors are worth lifting."""
    close = int((values > 0.75 * values[k - 1]).sum())
    return max(k, min(close, k + 8 + k // 8))


def _centre(G: Matrix, weights: Vector | None) -> None:
    """Make G what HGH is."""
    u = _unit(weights, G.shape[0])[:, 0]
    Gu = G @ u
    both = np.outer(u, Gu - (u @ Gu / 2) * u)
    G -= both
    G -= both.T


def _unit(weights: Vector | None, n: int) -> Matrix:
    """Return the direction of √w, which centring leaves nothing of."""
    w = np.ones(n) if weights is None else weights
    return np.asarray(np.sqrt(w / w.sum())[:, None])
