"""Axes from products with the data alone: no matrix is formed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Array, Vector, cast, like, orthonormalize, svd
from mercer.config import get_config
from mercer.linalg import Centre, Covariance, Dots, Operator, Triangle
from mercer.linalg.solvers import Randomized, Solver
from mercer.linalg.solvers.spectrum import settled
from mercer.methods.base import (
    FLOOR,
    Cost,
    Method,
    Size,
    certify,
    find_solver,
    lifted_certificate,
    solve,
)
from mercer.methods.linear.dot import lifted
from mercer.methods.linear.svd import SVD
from mercer.problem import Problem
from mercer.projection import Projection

# Below this share of the largest eigenvalue products see nothing but their own rounding.
BLIND = 1e-12
_LATE = (
    "Sparse rows are centred after the product, and their mean is large: digits are lost. "
    'svd_solver="covariance_eigh" keeps them.'
)


class Iterative(Method):
    """Axes by an iterative eigensolver on the covariance, or the dot products, never formed.

    For few axes of large or sparse data. Every product with the matrix is a pass over the
    rows; the mean is removed inside the product, so sparse rows stay sparse.

    Parameters
    ----------
    solver : str or callable
        "krylov", "arpack", "randomized", "power" or a solver.

    Examples
    --------
    >>> import scipy.sparse
    >>> from mercer import PCA
    >>> X = scipy.sparse.random_array((500, 2000), density=0.01, rng=0)
    >>> PCA(5, svd_solver="krylov", random_state=0).fit(X).components_.shape
    (5, 2000)
    """

    name = "iterative"
    for_kernels = False

    def __init__(self, solver: str | Solver = "krylov") -> None:
        self.solver = solver

    def cost(self, size: Size) -> Cost:
        N, k = size.side, size.axes
        width = min(N, 16, k + 8)
        # Vectors that a slowly falling spectrum takes; fewer do where a gap is good enough.
        basis = min(N, 4 * k + 10 * width if size.gap is None else k + 5 * width)
        entries = size.n * size.d if size.nnz is None else size.nnz
        work = 4.0 * entries * basis
        orthogonal = 4.0 * N * basis**2
        if size.k is None:  # found by doubling, and decomposed every time
            work, orthogonal = 2 * work, 8 * orthogonal
        memory = 16.0 * N * basis + 24.0 * size.d * width
        memory += 16.0 * size.nnz if size.nnz is not None else 0.0
        sparse, dense = (0.0, work) if size.nnz is None else (work, 0.0)
        passes = -(-basis // width) + 1
        # The compression is decomposed, with its vectors, at every look from the k-th vector on.
        factor = 4.0 * basis**3 + (basis**4 - k**4) / (width * Operator.look)
        return Cost(passes, dense + orthogonal, factor, memory, sparse)

    def fit(self, problem: Problem) -> Projection:
        problem = problem.levelled()
        mean, deviation, variance = problem.standard
        if variance == 0.0:
            return SVD().fit(problem)
        source, divisor = problem.source, problem.divisor
        n, d = source.shape
        solver = find_solver(self.solver)
        # Vectors that have not converged are best where their Rayleigh quotients are variances.
        small = n < d and source.by_columns and not isinstance(solver, Randomized)
        operator = (Dots if small else Covariance)(source, mean, deviation, divisor, variance)
        spectrum, k = solve(problem, operator, solver)
        certificate = certify(operator, spectrum, k, problem.rng)
        if source.sparse and operator.rounding > 1e-8 * variance:
            certificate = replace(certificate, notes=(_LATE,))
        values, axes = spectrum.values[:k], spectrum.vectors[:, :k]
        deep = k > 0 and spectrum.depth(k) < FLOOR[np.dtype(np.float64)]
        if deep and spectrum.depth(k) < BLIND:
            if SVD().cost(Size(n, d, k)).memory <= get_config().budget:
                return SVD().fit(problem)
            certificate = replace(certificate, converged=False)
        if isinstance(operator, Dots):
            certificate = lifted_certificate(certificate, variance, n)
        if isinstance(operator, Dots) and not deep:
            values, U = settled(spectrum, k).pairs
            values, axes = lifted(operator, values, cast(U, np.float64), k, exact=False)
        elif isinstance(operator, Dots):
            axes, _ = orthonormalize(operator.lift(cast(axes, np.float64)))
        if deep:
            values, axes = from_scores(problem, axes)
        return problem.projection(mean, deviation, axes, values, variance, certificate)


def from_scores(problem: Problem, axes: Array) -> tuple[Vector, Array]:
    """Decompose the scores by QR: variances as small as an SVD of the scores tells them."""
    mean, deviation, _ = problem.standard
    V = cast(axes, np.float64)
    V = V / like(deviation, V)[:, None]
    centre = Centre(mean, np.float64, V)
    extra = 0 if problem.source.sparse else 8 * problem.source.shape[1]
    scores = problem.source.map(
        lambda block: centre.times(centre(block.rows), V), int(V.shape[1]), np.float64, extra
    )
    fold = scores.fold(Triangle(scores.shape[1], V, center=problem.center))
    _, s, Vt = svd(fold.factor)
    return s**2 / problem.divisor, cast(axes, np.float64) @ like(Vt.T, V)
