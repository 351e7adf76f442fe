"""Axes from products with the data alone: no matrix is formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import cast, like, orthonormalize, svd
from mercer.eigen import Randomized, Solver, Spectrum, krylov
from mercer.folds import Triangle
from mercer.methods.base import (
    FLOOR,
    Cost,
    Method,
    Size,
    certify,
    find_solver,
    solve,
    warn_residuals,
)
from mercer.methods.dot import lifted
from mercer.operators import Covariance, Gram
from mercer.problem import Problem
from mercer.projection import Projection


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

    def __init__(self, solver: str | Solver = "krylov") -> None:
        self.solver = solver

    def cost(self, size: Size) -> Cost:
        N, k = size.side, size.axes
        width = min(N, 16, k + 8)
        basis = min(N, 4 * k + 10 * width)  # vectors that a slowly falling spectrum takes
        entries = size.n * size.d if size.nnz is None else size.nnz
        work = 4.0 * entries * basis
        orthogonal = 4.0 * N * basis**2
        memory = 8.0 * N * basis * 2 + 16.0 * (size.n + size.d) * width
        memory += 16.0 * size.nnz if size.nnz is not None else 0.0
        sparse, dense = (0.0, work) if size.nnz is None else (work, 0.0)
        passes = -(-basis // width) + 1
        return Cost(passes, dense + orthogonal, 4 / 3 * basis**3, memory, sparse)

    def fit(self, problem: Problem) -> Projection:
        mean, deviation, variance = problem.standard
        source, divisor = problem.source, problem.divisor
        n, d = source.shape
        small = n < d and source.by_columns
        operator = (Gram if small else Covariance)(source, mean, deviation, divisor, variance)
        solver = find_solver(self.solver)
        how: dict[str, Any] = {}
        if problem.gap is not None and solver is krylov:
            how["enough"] = lambda found: self._certified(problem, operator, found)
        spectrum, k = solve(problem, operator, solver, **how)
        if isinstance(solver, Randomized):
            self._complain(spectrum.head(k))
        certificate = certify(operator, spectrum, k, problem.rng)
        values, axes = spectrum.values[:k], spectrum.vectors[:, :k]
        depth = values[-1] / values[0] if k and values[0] > 0 else 0.0
        if isinstance(operator, Gram):
            if depth >= FLOOR[np.dtype(np.float64)]:
                values, axes = lifted(operator, spectrum, k, np.float64)
            else:
                axes, _ = orthonormalize(operator.lift(cast(axes, np.float64)))
        found = problem.projection(mean, deviation, axes, values, variance, certificate)
        return found if depth >= FLOOR[np.dtype(np.float64)] else self._polished(problem, found)

    def _certified(self, problem: Problem, operator: Any, found: Spectrum) -> bool:
        """Tell whether what was found is within the gap asked for, at no cost in products."""
        k = problem.choose(found.values, operator.trace)
        if k is None or problem.gap is None:
            return False
        return certify(operator, found, k, problem.rng, probe=False).gap <= problem.gap

    def _complain(self, spectrum: Spectrum) -> None:
        """Warn where a fixed number of steps was too few for the eigenvalues' first digits."""
        if np.any(spectrum.residuals > 0.05 * np.maximum(spectrum.values, 0.0)):
            warn_residuals(spectrum)

    def _polished(self, problem: Problem, found: Projection) -> Projection:
        """Decompose the scores by QR: variances as small as an SVD of the scores tells them."""
        from dataclasses import replace

        if not len(found.eigenvalues):
            return found
        scores = replace(found, mean=found.mean / 2.0**problem.exponent).scores(problem.source)
        fold = scores.fold(Triangle(scores.shape[1], scores.reference, center=problem.center))
        _, s, Vt = svd(fold.factor)
        axes = cast(found.components, np.float64) @ like(Vt.T, found.components)
        square = 1.0 if problem.scale else 4.0**problem.exponent
        return replace(found, components=axes, eigenvalues=s**2 / problem.divisor * square)
