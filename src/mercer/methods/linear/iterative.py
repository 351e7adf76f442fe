"""Components from products with the data alone: no matrix is formed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Array, Vector, cast, like, orthonormalize, svd
from mercer.certificate import Axes, Evidence, lifted_evidence, spectral_evidence
from mercer.config import get_config
from mercer.linalg import Centering, CovarianceOperator, DotOperator, Operator, TriangularFactor
from mercer.linalg.solvers import Randomized, Solver
from mercer.linalg.solvers.spectrum import with_score_variances
from mercer.methods.base import FLOOR, Cost, Method, Size, find_solver, solve
from mercer.methods.linear.direct import SVD, lift_eigenvectors, linear_axes
from mercer.methods.preparation import ColumnStatistics, levelled_statistics
from mercer.problem import Problem

# Eigenvalues below this share of the largest are invisible to a squared matrix.
INVISIBLE = 1e-12
_LOST_DIGITS = (
    "Sparse rows are centered after the product, and a large mean costs accuracy. "
    'svd_solver="covariance_eigh" avoids this.'
)


class Iterative(Method):
    """An iterative eigensolver on the covariance, or the dot products, never formed.

    For few components of large or sparse data. Every product with the matrix is a pass over the
    rows; the mean is subtracted inside the product, so sparse rows stay sparse.

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
        N, k = min(size.n, size.d), size.components
        width = min(N, 16, k + 8)
        # Vectors for a slowly decaying spectrum; fewer suffice where a gap is good enough.
        basis = min(N, 4 * k + 10 * width if size.gap is None else k + 5 * width)
        entries = size.n * size.d if size.nnz is None else size.nnz
        work = 4.0 * entries * basis
        orthogonal = 4.0 * N * basis**2
        if size.k is None:  # the number is doubled, with a decomposition each time
            work, orthogonal = 2 * work, 8 * orthogonal
        memory = 16.0 * N * basis + 24.0 * size.d * width
        memory += 16.0 * size.nnz if size.nnz is not None else 0.0
        sparse, dense = (0.0, work) if size.nnz is None else (work, 0.0)
        # The statistics of the columns, and the products; those of wide rows read them twice.
        products, wide = -(-basis // width) + (size.itemsize == 4), size.n < size.d and size.columns
        passes = 1 + products * (1 + wide) + wide
        if isinstance(self.solver, Randomized):
            passes = 3 + self.solver.steps(k, N) * self.solver.products
        # The compression is decomposed, with its vectors, at every check from the k-th vector on.
        factor = 4.0 * basis**3 + (basis**4 - k**4) / (width * Operator.check_interval)
        return Cost(passes, dense + orthogonal, factor, memory, sparse)

    def fit(self, problem: Problem) -> Axes:
        problem, columns = levelled_statistics(problem)
        mean, deviation, variance = columns.mean, columns.deviation, columns.variance
        if variance == 0.0:
            return SVD().fit(problem)
        source, divisor = problem.source, problem.divisor
        n, d = source.shape
        solver = find_solver(self.solver)
        # Vectors that have not converged are best where their Rayleigh quotients are variances.
        small = n < d and source.by_columns and not isinstance(solver, Randomized)
        kind = DotOperator if small else CovarianceOperator
        operator = kind(source, mean, deviation, divisor, variance)
        spectrum, k = solve(problem, operator, solver)
        evidence = spectral_evidence(operator, spectrum, k, problem.rng)
        if source.sparse and operator.rounding > 1e-8 * variance:
            evidence = evidence.annotated(_LOST_DIGITS)
        values, vectors = spectrum.values[:k], spectrum.vectors[:, :k]
        if isinstance(operator, DotOperator):
            evidence = lifted_evidence(evidence, variance, n)
            if spectrum.depth(k) < FLOOR[np.dtype(np.float64)]:
                vectors, _ = orthonormalize(operator.lift(cast(vectors, np.float64)))
            else:
                values, U = with_score_variances(spectrum, k).pairs
                U = cast(U, np.float64)
                values, vectors = lift_eigenvectors(operator, values, U, k, exact=False)
        return refined_axes(problem, columns, spectrum.depth(k), evidence, values, vectors)


def refined_axes(
    problem: Problem,
    columns: ColumnStatistics,
    depth: float,
    evidence: Evidence,
    values: Vector,
    vectors: Array,
) -> Axes:
    """Return components from products; `depth` is their smallest variance over the largest.

    If products squared away their digits, they come from an SVD of the rows or of their scores.
    """
    if depth < INVISIBLE:
        if SVD().cost(Size(*problem.source.shape, len(values))).memory <= get_config().budget:
            return SVD().fit(problem)
        evidence = replace(evidence, converged=False)
    if depth < FLOOR[np.dtype(np.float64)]:
        values, vectors = refine_by_scores(problem, columns, vectors)
    mean, deviation = columns.mean, columns.deviation
    return linear_axes(problem, mean, deviation, vectors, values, evidence, total=columns.variance)


def refine_by_scores(
    problem: Problem, columns: ColumnStatistics, vectors: Array
) -> tuple[Vector, Array]:
    """Return variances and components from a QR decomposition of the scores."""
    V = cast(vectors, np.float64)
    V = V / like(columns.deviation, V)[:, None]
    centering = Centering(columns.mean, np.float64, V)
    extra = 0 if problem.source.sparse else 8 * problem.source.shape[1]
    scores = problem.source.map(
        lambda block: centering.times(centering(block.rows), V), int(V.shape[1]), np.float64, extra
    )
    fold = scores.fold(TriangularFactor(scores.shape[1], V, center=problem.center))
    _, s, Vt = svd(fold.factor)
    return s**2 / problem.divisor, cast(vectors, np.float64) @ like(Vt.T, V)
