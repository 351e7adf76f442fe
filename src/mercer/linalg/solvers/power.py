"""Power iteration with deflation (worrell §5)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.arrays import Array, like, namespace
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.spectrum import PRECISION, Spectrum, rayleigh_ritz

_STEPS = 20_000


def power(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: np.random.Generator,
    start: Spectrum | None = None,
) -> Spectrum:
    r"""Iterate :math:`y \leftarrow Ay/\lVert Ay \rVert` for one eigenvector after the other.

    Every iterate is projected orthogonally to the eigenvectors found before; it stops when
    :math:`\lVert y_k - y_{k-1} \rVert` is small. One Rayleigh–Ritz step ends it, which
    measures the residuals. With probability 9/10,
    :math:`|y_k^T v_1| \ge 1 - 20 N (\lambda_2/\lambda_1)^k` (Prop. 6).
    """
    small = max(tol, PRECISION[operator.dtype] / 2)
    found = like(np.zeros((operator.size, 0)), operator.reference)
    if start is not None:
        found = start.vectors
    steps, converged, largest = 0, True, 0.0
    while found.shape[1] < k:
        y, taken, value = _climb(operator, found, small, largest, rng)
        found = namespace(found).concat([found, y], axis=1)
        steps, largest = steps + taken, max(largest, value)
        converged &= taken < _STEPS
    spectrum = rayleigh_ritz(operator, found, k)
    return replace(spectrum, products=steps + spectrum.products, converged=converged)


def _climb(
    operator: Operator, found: Array, small: float, largest: float, rng: np.random.Generator
) -> tuple[Array, int, float]:
    """Return the next eigenvector, the steps it took, and its eigenvalue.

    It stops, too, when the residual is down to rounding of the largest eigenvalue.
    """
    y = _deflated(like(rng.standard_normal((operator.size, 1)), operator.reference), found, 0.0)
    nothing = 16 * float(np.finfo(np.float64).eps) * abs(operator.trace)
    value = 0.0
    for step in range(1, _STEPS + 1):
        x = operator.matmat(y)
        value = float((y.T @ x)[0, 0])
        climbed = _deflated(x, found, nothing)
        if climbed is None:  # A is zero, to rounding, on all that is left
            return y, step, value
        change = _norm(climbed - y)
        y = climbed
        if change < small or value * change < small / 5 * largest:
            return y, step, value
    return y, _STEPS, value


def _deflated(x: Array, found: Array, nothing: float) -> Array:
    """Return x orthogonal to the vectors found, of unit length; None where nothing is left."""
    for _ in range(2):
        x = x - found @ (found.T @ x)
    left = _norm(x)
    return x / left if left > nothing else None


def _norm(x: Array) -> float:
    square = float((x.T @ x)[0, 0])
    if 1e-280 < square < math.inf:
        return math.sqrt(square)
    largest = float(namespace(x).max(abs(x)))  # its square overflows, or vanishes
    if not 0.0 < largest < math.inf:
        return largest
    y = x / largest
    return largest * math.sqrt(float((y.T @ y)[0, 0]))
