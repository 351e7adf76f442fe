"""What linear methods share: from eigenpairs to axes in the user's units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Array, Vector, cast, column_signs, like, numpy_dtype, svd
from mercer.certificate import Axes, Evidence
from mercer.linalg import Centering, TriangularFactor
from mercer.methods.preparation import ColumnStatistics
from mercer.problem import Problem
from mercer.projection import LinearProjection

# Eigenvalues below this share of the largest are invisible to a squared matrix.
INVISIBLE = 1e-12


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
    with np.errstate(over="ignore", under="ignore"):
        unit, square = np.ldexp(1.0, problem.exponent), np.ldexp(1.0, 2 * problem.exponent)
    if problem.scale:  # z-scores have no unit
        deviation, square = deviation * unit, 1.0
        deviation = np.where(np.isfinite(deviation), deviation, 1.0)
    mean = mean if problem.shift is None else mean + problem.shift
    if total > 0 and not 0.0 < total * square < np.inf:
        raise ValueError(
            "The variance of X is too large, or too small, for float64. "
            "Divide X by its largest entry first."
        )
    values = np.maximum(values, 0.0)
    projection = LinearProjection(
        mean=mean * unit,
        deviation=deviation,
        components=vectors * like(column_signs(vectors), vectors, numpy_dtype(vectors)),
        eigenvalues=values * square,
        total_variance=max(total, 0.0) * square,
        rest=max(rest, 0.0) * square,
    )
    evidence = replace(evidence, eigenvalues=values)
    return Axes(projection, evidence if square == 1.0 else evidence.scaled(square))


def refine_by_scores(
    problem: Problem, columns: ColumnStatistics, vectors: Array
) -> tuple[Vector, Array]:
    """Return variances and components from a QR decomposition of the scores.

    Variances are then as accurate as those of an SVD of the scores.
    """
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
