"""What noise alone looks like: its eigenvalues, their law, and how to tell it from more."""

from functools import cache
from math import cos, log, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def noise_shares(n: int, d: int, ranks: int, trials: int, rng: np.random.Generator) -> Values:
    """Leading eigenvalues, as shares of their sum, of noise with n degrees of freedom."""
    from scipy.linalg import eigh_tridiagonal

    p, q = sorted((n, d))
    # The leading eigenvectors of B Bᵀ fade like Airy functions of width p^(1/3): beyond this
    # corner they are below rounding.
    corner = min(p, int(p ** (1 / 3) * (2.8 * ranks ** (2 / 3) + 12)) + 1)
    shares = np.zeros((trials, ranks))
    for row in shares if ranks else ():
        a = rng.chisquare(q - np.arange(p))
        b = np.append(rng.chisquare(np.arange(p - 1, 0, -1)), 0.0)
        diagonal, beside = (a + np.append(0.0, b[:-1]))[:corner], np.sqrt(a * b)[: corner - 1]
        top = (corner - ranks, corner - 1)
        found = eigh_tridiagonal(diagonal, beside, eigvals_only=True, select="i", select_range=top)
        row[:] = found[::-1] / (a.sum() + b.sum())
    return shares


def hard_threshold(beta: float) -> float:
    """Return λ*(β): the best cut for singular values in noise of unit variance per √q."""
    return sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + sqrt(beta**2 + 14 * beta + 1)))


@cache
def marchenko_pastur_median(beta: float) -> float:
    """Median of the law of aspect 0 < β ≤ 1 and unit variance."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    def point(angle: float) -> float:
        return 1 + beta + 2 * sqrt(beta) * cos(angle)

    def above(angle: float) -> float:
        # In the angle the density has no square roots: smooth up to the ends of the support.
        return float(quad(lambda a: 2 / pi * sin(a) ** 2 / point(a), 0, angle)[0])

    return point(brentq(lambda angle: above(angle) - 0.5, 0.0, 3.0, xtol=1e-12))


def log_curvatures(values: Values, logs: Values, noise: Values, n: int, tiny: float) -> Values:
    """Σ_{i ≤ k, j > i} log(n (λ_i - λ_j) (1/λ̂_j - 1/λ̂_i)), k = 1 … d-1; λ̂_j = noise for j > k.

    Equal eigenvalues may be rotated freely: their pair has no curvature and drops out.
    """
    sums = np.zeros(len(noise))
    for i in range(int(np.sum(values[:-1] >= tiny))):
        gaps = values[i] - values[i + 1 :]
        distinct = gaps > tiny
        log_gaps = np.log(np.maximum(gaps, tiny))
        slopes = np.log(np.maximum(1 / noise[i:] - 1 / values[i], tiny))
        within = distinct * (log(n) + 2 * log_gaps - logs[i] - logs[i + 1 :])
        across = distinct * (log(n) + log_gaps)
        sums[i + 1 :] += np.cumsum(within)[:-1]
        sums[i:] += np.cumsum(across[::-1])[::-1] + np.cumsum(distinct[::-1])[::-1] * slopes
    return sums
