"""Frequencies of kernels that look the same in all directions: normal ones, and what they make."""

from __future__ import annotations

from typing import Any

import numpy as np

Frequency = np.ndarray[Any, Any]


def normal(d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False) -> Frequency:
    """Draw q standard normal vectors of d entries: independent, or d at a time orthogonal.

    Orthogonal ones are S Q of Yu et al. (2016), Orthogonal random features: Q uniform among the
    orthogonal matrices, and S lengths of their own that are those of normal vectors. Each is
    still normal by itself, so that what is estimated stays unbiased.
    """
    if not orthogonal or d == 0:
        return rng.standard_normal((d, q))
    blocks = [_directions(d, min(d, q - first), rng) for first in range(0, q, d)]
    return np.hstack(blocks) * np.sqrt(rng.chisquare(d, q))


def student(
    d: int, q: int, freedom: float, rng: np.random.Generator, *, orthogonal: bool = False
) -> Frequency:
    """Draw q vectors of d entries from the multivariate t distribution; never infinite ones."""
    drawn = normal(d, q, rng, orthogonal=orthogonal)
    divide = rng.chisquare(freedom, q) / freedom
    return drawn / np.sqrt(np.maximum(divide, np.finfo(np.float64).tiny))


def _directions(d: int, count: int, rng: np.random.Generator) -> Frequency:
    """Return orthonormal columns, uniform among all such: signs as in Mezzadri (2007)."""
    Q, R = np.linalg.qr(rng.standard_normal((d, count)))
    signs = np.sign(np.diag(R))
    return np.asarray(Q * np.where(signs == 0.0, 1.0, signs))
