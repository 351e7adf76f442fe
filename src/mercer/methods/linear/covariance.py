"""The covariance matrix, formed and decomposed (marukatat Alg. 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import eigh, like, to_numpy
from mercer.certificate import Axes, spectral_evidence
from mercer.data import Block
from mercer.linalg import DenseOperator, Moments
from mercer.linalg.solvers import Solver
from mercer.methods.base import FLOOR, Cost, Size, Streaming
from mercer.methods.linear.base import linear_axes
from mercer.methods.linear.svd import SVD
from mercer.methods.preparation import column_deviation, require_finite_sums
from mercer.methods.solving import find_solver, solve
from mercer.problem import Problem
from mercer.threads import serial_blas

# Rows sampled before the first pass: this many at this many places.
_ROWS, _PLACES = 16, 16


class Covariance(Streaming):
    r"""Eigenvectors of :math:`C = \frac{1}{W-1}\sum_i w_i (x_i-\mu)(x_i-\mu)^T`, d×d.

    One pass over the rows, n d² operations and d² memory. If products in the precision of the data
    lose some of the components, a second pass finds them: with float64 products for float32 data,
    with a triangular factor for float64 data.

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
            fold = source.fold(self._moments(problem, single))
            if not self._too_coarse(problem, fold):
                axes = self.finish(problem, fold)
                if axes.projection.depth >= FLOOR[single]:
                    return axes
        axes = self.finish(problem, source.fold(self.begin(problem)))
        if source.dtype == double and axes.projection.depth < FLOOR[double]:
            return SVD().fit(problem)
        return axes

    def begin(self, problem: Problem) -> Moments:
        return self._moments(problem, np.float64)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        scatter, mean = fold.scatter, fold.mean
        require_finite_sums(problem.source, mean, scatter)
        deviation = column_deviation(problem, np.diag(scatter), mean)
        C = scatter / problem.divisor
        if problem.scale:
            C = C / np.outer(deviation, deviation)
        error, confidence = fold.error(deviation)
        operator = DenseOperator(C, rounding=error / problem.divisor, confidence=confidence)
        spectrum, k = solve(problem, operator, find_solver(self.solver))
        vectors = like(to_numpy(spectrum.vectors[:, :k]), problem.source.reference)
        evidence = spectral_evidence(operator, spectrum, k, problem.rng)
        values = spectrum.values[:k]
        return linear_axes(
            problem, mean, deviation, vectors, values, evidence, total=operator.trace
        )

    def _too_coarse(self, problem: Problem, fold: Moments) -> bool:
        """Tell whether a column varies by so little that these products may miss it."""
        variance = np.diag(fold.scatter) / problem.divisor
        eps = float(np.finfo(fold.products).eps)
        return bool(np.any((variance != 0.0) & (variance <= (8 * eps * fold.mean) ** 2)))

    def _moments(self, problem: Problem, products: Any) -> Moments:
        source = problem.source
        return Moments(source.shape[1], source.reference, products, center=problem.center)


def _seems_deep(problem: Problem) -> bool:
    """Guess from a few rows whether float32 products will lose a component that is wanted.

    A guess that saves a pass: the result of the pass is judged by itself.
    """
    source, n, k = problem.source, problem.source.shape[0], problem.n_components
    if k is None or not 0 < k < _ROWS * _PLACES // 2 or n < 16 * _ROWS * _PLACES:
        return False
    starts = np.linspace(0, n - _ROWS, _PLACES).astype(int)
    blocks = [Block(0, source.read(i, i + _ROWS), None).dense(np.float64) for i in starts]
    rows = np.concatenate([to_numpy(block) for block in blocks])
    rows -= rows.mean(axis=0) if problem.center else 0.0
    with serial_blas(), np.errstate(all="ignore"):
        rows /= rows.std(axis=0) if problem.scale else 1.0
        dots = np.nan_to_num(rows @ rows.T)
    values, _ = eigh(dots, k)
    return bool(values[-1] < 1.5 * FLOOR[np.dtype(np.float32)] * values[0])
