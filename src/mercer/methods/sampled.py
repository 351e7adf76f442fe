"""What a few rows tell of the part of a kernel matrix that a basis does not hold.

E = K − N₀ is positive semi-definite. Pairs of rows drawn in proportion to E_ii E_jj have
ρ² = E_ij²/(E_ii E_jj) in [0, 1], with the mean ‖E‖_F²/(tr E)².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, like, namespace, to_numpy
from mercer.certificate import Figure
from mercer.kernels.base import as_precise
from mercer.problem import KernelProblem
from mercer.sources import Block
from mercer.span import Span, between

CONFIDENCE = 0.999


@dataclass(frozen=True)
class Sample:
    """Rows drawn in proportion to what of them lies beyond the span.

    Attributes
    ----------
    shares : ndarray
        ρ² of independent pairs.
    overlaps : float
        Mean over pairs of Σ_k v_ik v_jk E_ij / (E_ii E_jj): times (tr E)², it is Σ_k v_kᵀEv_k.
        Infinite where too few rows were kept to tell.
    error : float
        Its standard error.
    accepted : float
        Share of the rows drawn that were kept: tr E / (n max k(x, x)).
    """

    shares: Vector
    overlaps: float
    error: float
    accepted: float

    def norm(self, trace: float) -> Figure:
        """Return a bound on ‖E‖_F, given one on tr E."""
        return Figure(trace * math.sqrt(mean_bound(self.shares)), "bound", CONFIDENCE)

    def gain(self, trace: float) -> float:
        """Return an estimate of what the axes hold beyond the span, given tr E.

        One standard error more than the sample says: a small one may say nothing at all.
        """
        return max(0.0, trace**2 * (self.overlaps + self.error)) if trace > 0 else 0.0


def mean_bound(x: Vector, confidence: float = CONFIDENCE) -> float:
    """Return a bound on the mean of what x in [0, 1] were drawn from.

    The empirical Bernstein inequality of Maurer & Pontil (2009), Thm 4.
    """
    s = len(x)
    if s < 2:
        return 1.0
    log = math.log(2.0 / (1.0 - confidence))
    spread = math.sqrt(2.0 * float(np.var(x, ddof=1)) * log / s)
    return min(1.0, float(np.mean(x)) + spread + 7.0 * log / (3.0 * (s - 1)))


def pairs_needed(mean: float) -> float:
    """Return how many pairs bound a mean near zero by this."""
    return 7.0 * math.log(2.0 / (1.0 - CONFIDENCE)) / (3.0 * max(mean, 1e-12)) + 1.0


def sampled(
    problem: KernelProblem, span: Span, V: Matrix, mean: Vector, largest: float, rows: int
) -> Sample:
    """Draw rows, keep each with probability E_ii over the largest k(x, x).

    V makes of h − mean a row's entries in the axes' eigenvectors, each of the variance one.
    """
    source, rng = problem.source, problem.rng
    weights = source.weights
    chance = None if weights is None else weights / weights.sum()
    at = np.sort(rng.choice(source.shape[0], rows, p=chance))
    points = as_precise(source.take(at), np.float64)
    block = Block(0, points, None)
    h = to_numpy(span.features(source, np.float64).f(block))  # type: ignore[attr-defined]
    f = h @ span.white
    beyond = np.maximum(to_numpy(span.own(block, np.float64)) - np.einsum("ij,ij->i", f, f), 0.0)
    kept = np.flatnonzero(rng.random(rows) * largest < beyond)
    rng.shuffle(kept)  # rows were read in order: pairs must not be neighbours
    accepted = float(np.sum(beyond)) / (rows * largest) if largest > 0 else 0.0
    if len(kept) < 4:
        return Sample(np.zeros(0), math.inf, 0.0, accepted)
    own, f, v = beyond[kept], f[kept], (h[kept] - mean * problem.center) @ V
    assert problem.kernel is not None
    kernel = between(problem.kernel, _rows(points, kept))
    E = (kernel - f @ f.T) / np.sqrt(own)[:, None] / np.sqrt(own)
    half = len(kept) // 2
    shares = np.clip(E[np.arange(half), np.arange(half, 2 * half)] ** 2, 0.0, 1.0)
    along = v / np.sqrt(own)[:, None]
    product = E * (along @ along.T)
    each = (product.sum(axis=1) - np.diag(product)) / (len(kept) - 1)
    error = 2.0 * float(np.std(each, ddof=1)) / math.sqrt(len(kept))  # of a mean over pairs
    return Sample(shares, float(np.mean(each)), error, accepted)


def _rows(points: Any, at: Any) -> Any:
    if isinstance(points, list):
        return [points[i] for i in at]
    if isinstance(points, np.ndarray) or hasattr(points, "tocsr"):
        return points[at]
    return namespace(points).take(points, like(at, points), axis=0)
