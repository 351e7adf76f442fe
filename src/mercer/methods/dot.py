"""The dot-product matrix of few rows with many columns (marukatat Alg. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, eigh, like, numpy_dtype
from mercer.eigen import Solver
from mercer.folds import Moments
from mercer.methods.base import FLOOR, LOST, Cost, Method, Size, certify, find_solver, solve
from mercer.methods.svd import SVD
from mercer.operators import Dense, Gram
from mercer.problem import Problem
from mercer.projection import Projection
from mercer.sources import ArraySource


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
        mean, deviation, variance = problem.treatment(products)
        gram = Gram(problem.source, mean, deviation, problem.divisor, variance)
        dots = gram.moments(products)
        G = dots.scatter / problem.divisor
        if problem.center:
            G = _centred(G, problem.source.weights)
        if problem.is_constant(mean, deviation, float(np.trace(G))):
            return SVD().fit(problem)
        share, confidence = dots.rounding
        operator = Dense(G, rounding=share * float(np.trace(G)), confidence=confidence)
        spectrum, k = solve(problem, operator, find_solver(self.solver))
        depth = spectrum.depth(k)
        if products == np.float64 and depth < FLOOR[products]:
            return SVD().fit(problem)
        if products == np.float32 and depth < LOST:
            return self._fit(problem, np.dtype(np.float64))
        values, axes = lifted(gram, *spectrum.pairs, k, products, exact=True)
        certificate = certify(operator, spectrum, k, problem.rng)
        return problem.projection(mean, deviation, axes, values, operator.trace, certificate)


def lifted(
    gram: Gram, values: Vector, U: Array, k: int, dtype: Any, *, exact: bool
) -> tuple[Vector, Array]:
    """Return the variances and orthonormal axes that eigenvectors U of the dot matrix stand for.

    A few vectors beyond the k wanted join in where there are any: what rounding took from the
    k-th is in them.
    """
    if k == 0:
        return np.zeros(0), like(np.zeros((gram.source.shape[1], 0)), gram.reference)
    close = int((values[: U.shape[1]] > 0.75 * values[k - 1]).sum())
    useful = max(k, min(close, k + 8 + k // 8))
    W = gram.lift(cast(like(U[:, :useful], gram.reference), dtype), exact=exact)
    rows = ArraySource(W)
    moments = rows.fold(Moments(useful, W, dtype, center=False))
    theta, S = eigh(moments.scatter, k)
    S = like(S / np.sqrt(theta), W, numpy_dtype(W))
    return theta / gram.divisor, rows.map(lambda block: block.rows @ S, k).collect()


def _centred(G: Matrix, weights: Vector | None) -> Matrix:
    """Return HGH: what the rounding of the columns' means to the data's precision left over."""
    w = np.ones(G.shape[0]) if weights is None else weights
    u = np.sqrt(w / w.sum())
    Gu = G @ u
    G -= np.outer(u, Gu - (u @ Gu) * u)
    G -= np.outer(Gu, u)
    return G
