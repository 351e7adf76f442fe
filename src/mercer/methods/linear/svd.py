"""The singular value decomposition of the centered rows, however many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, like, orthonormalize, svd
from mercer.certificate import Axes, Evidence, lifted_evidence, spectral_evidence
from mercer.linalg import DenseOperator, DotOperator, TriangularFactor
from mercer.linalg.solvers import Spectrum
from mercer.linalg.solvers.spectrum import column_norms
from mercer.methods.base import Cost, Size, Streaming
from mercer.methods.linear.base import linear_axes
from mercer.methods.preparation import (
    column_deviation,
    levelled_statistics,
    require_finite_sums,
)
from mercer.problem import Problem


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
        side, k = size.side, size.components
        passes, lift = (1, 0.0) if size.d <= size.n else (3, 4.0 * size.n * size.d * k)
        factor = 2.0 * size.n * size.d * side + 20.0 * side**3
        memory = 80.0 * side * side + (24.0 * size.d * k if lift else 0.0)
        return Cost(passes, lift, factor, memory)

    def fit(self, problem: Problem) -> Axes:
        n, d = problem.source.shape
        if d <= n or not problem.source.by_columns:
            return self.finish(problem, problem.source.fold(self.begin(problem)))
        problem, columns = levelled_statistics(problem)
        mean, deviation = columns.mean, columns.deviation
        dots = DotOperator(problem.source, mean, deviation, problem.divisor, columns.variance)
        standardized = dots.columns(np.float64)
        assert standardized is not None
        fold = standardized.fold(TriangularFactor(n, dots.reference, center=False))
        R = _finite(problem, fold.factor)
        U, values, rest, evidence = _decompose(problem, R)
        vectors, _ = orthonormalize(dots.lift(like(U, dots.reference), exact=True))
        total = float((R**2).sum()) / problem.divisor
        evidence = lifted_evidence(evidence, total, n)
        return linear_axes(
            problem, mean, deviation, vectors, values, evidence, total=total, rest=rest
        )

    def begin(self, problem: Problem) -> TriangularFactor:
        source = problem.source
        return TriangularFactor(source.shape[1], source.reference, center=problem.center)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        require_finite_sums(problem.source, fold.mean, fold.factor)
        with np.errstate(over="ignore"):
            squares = (fold.factor**2).sum(axis=0)
        deviation = column_deviation(problem, squares, fold.mean)
        R = _finite(problem, fold.factor / deviation)
        V, values, rest, evidence = _decompose(problem, R)
        vectors: Array = like(V, problem.source.reference)
        total = float((R**2).sum()) / problem.divisor
        return linear_axes(
            problem, fold.mean, deviation, vectors, values, evidence, total=total, rest=rest
        )


def _finite(problem: Problem, R: Matrix) -> Matrix:
    """Return the triangle; refuse one that NaN or infinity in the rows has spoilt."""
    with np.errstate(over="ignore"):
        total = float((R**2).sum()) / problem.divisor
    if not np.isfinite(total):
        require_finite_sums(problem.source, np.array(total))
    return R


def _decompose(problem: Problem, R: Matrix) -> tuple[Matrix, Vector, float, Evidence]:
    """Return right singular vectors of a triangle, variances, the remaining one, and evidence."""
    missing = problem.limit - len(R)
    if missing > 0:  # rows of zero weight
        R = np.pad(R, ((0, missing), (0, 0)))
    _, s, Vt = svd(R)
    values = s**2 / problem.divisor
    total = float(values.sum())
    k = problem.choose(values, total)
    assert k is not None  # the spectrum is complete
    V = Vt.T
    residuals = column_norms(R.T @ (R @ V) / problem.divisor - V * values)
    eps = float(np.finfo(np.float64).eps)
    rounding = eps * (sum(problem.source.shape) ** 0.5 + len(s)) * total
    spectrum = Spectrum(values, V, residuals + rounding, complete=True)
    operator = DenseOperator(np.diag(values), rounding=rounding)
    evidence = spectral_evidence(operator, spectrum, k, problem.rng)
    return V[:, :k], values[:k], float(values[k:].sum()), evidence
