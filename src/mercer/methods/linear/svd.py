"""The singular value decomposition of the centred rows, however many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, like, orthonormalize, svd
from mercer.certificate import Certificate
from mercer.linalg import Dense, Dots, Triangle
from mercer.linalg.solvers import Spectrum
from mercer.linalg.solvers.spectrum import lengths
from mercer.methods.base import Cost, Size, Streaming, certify, lifted_certificate
from mercer.problem import Problem
from mercer.projection import Projection


class SVD(Streaming):
    """Singular vectors of the centred rows, by way of their triangular factor.

    The data are never squared, so axes of any size keep the digits that a full SVD gives
    them. Tall data: one pass of QR (TSQR), then the SVD of a d×d triangle. Wide data: the
    same over blocks of columns, an n×n triangle, and the axes orthonormalised by QR.

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
        side, k = size.side, size.axes
        passes, lift = (1, 0.0) if size.d <= size.n else (3, 4.0 * size.n * size.d * k)
        factor = 2.0 * size.n * size.d * side + 20.0 * side**3
        memory = 80.0 * side * side + (24.0 * size.d * k if lift else 0.0)
        return Cost(passes, lift, factor, memory)

    def fit(self, problem: Problem) -> Projection:
        n, d = problem.source.shape
        if d <= n or not problem.source.by_columns:
            return self.finish(problem, problem.source.fold(self.begin(problem)))
        problem = problem.levelled()
        mean, deviation, variance = problem.standard
        gram = Dots(problem.source, mean, deviation, problem.divisor, variance)
        columns = gram.columns(np.float64)
        assert columns is not None
        fold = columns.fold(Triangle(n, gram.reference, center=False))
        R = self._finite(problem, fold.factor)
        U, values, rest, certificate = _decomposed(problem, R)
        axes, _ = orthonormalize(gram.lift(like(U, gram.reference), exact=True))
        total = float((R**2).sum()) / problem.divisor
        certificate = lifted_certificate(certificate, total, n)
        return problem.projection(mean, deviation, axes, values, total, certificate, rest)

    def begin(self, problem: Problem) -> Triangle:
        source = problem.source
        return Triangle(source.shape[1], source.reference, center=problem.center)

    def finish(self, problem: Problem, fold: Any) -> Projection:
        problem.require_finite(fold.mean, fold.factor)
        with np.errstate(over="ignore"):
            squares = (fold.factor**2).sum(axis=0)
        deviation = problem.deviation(squares, fold.mean)
        R = self._finite(problem, fold.factor / deviation)
        V, values, rest, certificate = _decomposed(problem, R)
        axes: Array = like(V, problem.source.reference)
        total = float((R**2).sum()) / problem.divisor
        return problem.projection(fold.mean, deviation, axes, values, total, certificate, rest)

    def _finite(self, problem: Problem, R: Matrix) -> Matrix:
        """Return the triangle; refuse one that NaN or infinity in the rows has spoilt."""
        with np.errstate(over="ignore"):
            total = float((R**2).sum()) / problem.divisor
        if not np.isfinite(total):
            problem.require_finite(np.array(total))
        return R


def _decomposed(problem: Problem, R: Matrix) -> tuple[Matrix, Vector, float, Certificate]:
    """Return right singular vectors of a triangle, variances, what is left, a certificate."""
    missing = problem.limit - len(R)
    if missing > 0:  # fewer rows count than there are
        R = np.pad(R, ((0, missing), (0, 0)))
    _, s, Vt = svd(R)
    values = s**2 / problem.divisor
    total = float(values.sum())
    k = problem.choose(values, total)
    assert k is not None  # the whole spectrum is there
    V = Vt.T
    residuals = lengths(R.T @ (R @ V) / problem.divisor - V * values)
    eps = float(np.finfo(np.float64).eps)
    rounding = eps * (sum(problem.source.shape) ** 0.5 + len(s)) * total
    spectrum = Spectrum(values, V, residuals + rounding, complete=True)
    operator = Dense(np.diag(values), rounding=rounding)
    certificate = certify(operator, spectrum, k, problem.rng)
    return V[:, :k], values[:k], float(values[k:].sum()), certificate
