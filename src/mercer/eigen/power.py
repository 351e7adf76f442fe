"""Power iteration with deflation (worrell §5)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mercer.arrays import Array, like, namespace
from mercer.eigen.spectrum import PRECISION, Spectrum, rayleigh_ritz
from mercer.operators import Operator

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
    found: list[Array] = [] if start is None else [v[:, None] for v in start.vectors.T]
    steps, converged = 0, True
    while len(found) < k:
        y, taken = _climb(operator, found, small, rng)
        found.append(y)
        steps += taken
        converged &= taken < _STEPS
    Q = namespace(operator.reference).concat(found, axis=1)
    spectrum = rayleigh_ritz(operator, Q, k)
    return replace(spectrum, products=steps + spectrum.products, converged=converged)


def _climb(
    operator: Operator, found: list[Array], small: float, rng: np.random.Generator
) -> tuple[Array, int]:
    y = like(rng.standard_normal((operator.size, 1)), operator.reference)
    y = _deflated(y, found, 0.0)
    nothing = 16 * float(np.finfo(np.float64).eps) * abs(operator.trace)
    for step in range(1, _STEPS + 1):
        x = operator.matmat(y)
        climbed = _deflated(x, found, nothing)
        if climbed is None:  # A is zero, to rounding, on all that is left
            return y, step
        change = _norm(climbed - y)
        y = climbed
        if change < small:
            return y, step
    return y, _STEPS


def _deflated(x: Array, found: list[Array], nothing: float) -> Array:
    """Return x orthogonal to the vectors found, of unit length; None where nothing is left."""
    for _ in range(2):
        for v in found:
            x = x - v * (v.T @ x)
    left = _norm(x)
    return x / left if left > nothing else None


def _norm(x: Array) -> float:
    return math.sqrt(float(namespace(x).sum(x * x)))
