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
from mercer.data import Block
from mercer.kernels.points import cast_rows
from mercer.linalg.span import KernelMoments, Span, between
from mercer.problem import KernelProblem

CONFIDENCE = 0.999
# Samples that a fit within a gap draws at most.
_LOOKS = 16
# Fewer rows than these, drawn by what lies beyond the span, tell less than all that were drawn; of
# those so many at most.
_FEW, _MOST = 64, 1024
# Rows that tell the rounding of float32 values: so many at least, or one in so many.
_ROWS, _PART = 1024, 64


@dataclass(frozen=True)
class Sample:
    """Rows drawn in proportion to what of them lies beyond the span.

    Attributes
    ----------
    shares : ndarray
        ρ² of independent pairs.
    gain : float
        Estimate of Σ_k v_kᵀEv_k / c: what the axes hold beyond the span.
    error : float
        Its standard error.
    accepted : float
        Share of the rows drawn that were kept: tr E / (n max k(x, x)).
    looks : int
        How many samples there may be until one says what is wanted: all must hold.
    """

    shares: Vector
    gain: float
    error: float
    accepted: float
    looks: int = 1

    def norm(self, trace: float) -> Figure:
        """Return a bound on ‖E‖_F, given one on tr E."""
        mean = mean_bound(self.shares, 1.0 - (1.0 - CONFIDENCE) / self.looks)
        return Figure(trace * math.sqrt(mean), "bound", CONFIDENCE)


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
    return 7.0 * math.log(2.0 * _LOOKS / (1.0 - CONFIDENCE)) / (3.0 * max(mean, 1e-12)) + 1.0


def sampled(
    problem: KernelProblem,
    span: Span,
    T: Matrix,
    V: Matrix,
    mean: Vector,
    largest: float,
    rows: int,
) -> Sample:
    """Draw rows, keep each with probability E_ii over the largest k(x, x).

    T are the orthonormal directions of the span that E lies beyond; V makes of h − mean a row's
    entries in the axes' eigenvectors, each of the variance one.
    """
    source, rng = problem.source, problem.rng
    weights = source.weights
    chance = None if weights is None else weights / weights.sum()
    at = np.sort(rng.choice(source.shape[0], rows, p=chance))
    points = cast_rows(source.take(at), np.float64)
    block = Block(0, points, None)
    h = to_numpy(span.features(source, np.float64).f(block))  # type: ignore[attr-defined]
    f = h @ T
    beyond = np.maximum(to_numpy(span.own(block, np.float64)) - np.einsum("ij,ij->i", f, f), 0.0)
    kept = np.flatnonzero(rng.random(rows) * largest < beyond)
    rng.shuffle(kept)  # rows were read in order: pairs must not be neighbours
    accepted = float(np.sum(beyond)) / (rows * largest) if largest > 0 else 0.0
    many = kept if len(kept) >= _FEW else rng.permutation(rows)[:_MOST]
    # Drawn in proportion to E_ii a row counts by one over that; else as often as any other.
    counts = accepted * largest / beyond[many] if many is kept else np.ones(len(many))
    v = (h[many] - mean * problem.center) @ V
    share = source.count / problem.divisor
    E = _beyond(problem, points, f, many) * (v @ v.T) * share**2
    w = np.ones(len(many)) if weights is None else weights[at[many]]
    own = np.diag(E) * counts * w / source.count
    E[at[many][:, None] == at[many]] = 0.0  # a row beside itself is in `own`
    each = own + counts * (E @ counts) / max(1, len(many) - 1)
    error = 2.0 * float(np.std(each)) / math.sqrt(len(many))  # of a mean over pairs
    looks = 1 if problem.gap is None else _LOOKS
    looks *= 1 if span.dtype == np.float64 else 2  # `measured` may fail, too
    shares = _shares(problem, points, f, beyond, kept)
    return Sample(shares, float(each.mean()), error, accepted, looks)


@dataclass(frozen=True)
class Noise:
    """Bounds on Σ w‖δh‖ and Σ w‖δh‖², the rounding of kernel values to a basis."""

    first: float
    second: float


def measured(problem: KernelProblem, span: Span, seen: KernelMoments) -> Noise | None:
    """Bound the rounding of float32 kernel values by some random rows.

    At 99.95 %: no row can be off by more than its roundings, so that the empirical Bernstein
    inequality applies. None for float64 values, whose roundings are bound enough.
    """
    if span.dtype == np.float64 or span.kernel is None:
        return None
    source, weights = problem.source, problem.source.weights
    n = source.shape[0]
    chance = None if weights is None else weights / weights.sum()
    at = np.sort(problem.rng.choice(n, min(n, max(_ROWS, n // _PART)), p=chance))
    block = Block(0, source.take(at), None)
    near, exact = (
        to_numpy(span.features(source, kind).f(block)).astype(np.float64)  # type: ignore[attr-defined]
        for kind in (np.float32, np.float64)
    )
    unit = float(np.finfo(np.float32).eps) / 2
    most = seen.loudest * float(np.trace(span.matrix)) * unit**2
    if not 0.0 < most < math.inf:
        return None
    share = np.einsum("ij,ij->i", near - exact, near - exact) / most
    if np.max(share) > 1.0:  # more than roundings admit: nothing is known of the others
        return Noise(math.inf, math.inf)
    likely = 1.0 - (1.0 - CONFIDENCE) / 4  # two bounds
    first, second = (mean_bound(x, likely) for x in (np.sqrt(share), share))
    return Noise(seen.weight * math.sqrt(most) * first, seen.weight * most * second)


def _shares(problem: KernelProblem, points: Any, f: Matrix, beyond: Vector, kept: Any) -> Vector:
    """Return E_ij²/(E_ii E_jj) of pairs, each row in one of them."""
    half = len(kept) // 2
    first, second = kept[:half], kept[half : 2 * half]
    E = _beyond(problem, points, f, kept)[np.arange(half), np.arange(half, 2 * half)]
    return np.asarray(np.clip(E**2 / (beyond[first] * beyond[second]), 0.0, 1.0))


def _beyond(problem: KernelProblem, points: Any, f: Matrix, at: Any) -> Matrix:
    """Return rows and columns of E."""
    assert problem.kernel is not None
    if not len(at):
        return np.zeros((0, 0))
    return np.asarray(np.asarray(between(problem.kernel, _rows(points, at))) - f[at] @ f[at].T)


def _rows(points: Any, at: Any) -> Any:
    if isinstance(points, list):
        return [points[i] for i in at]
    if isinstance(points, np.ndarray) or hasattr(points, "tocsr"):
        return points[at]
    return namespace(points).take(points, like(at, points), axis=0)
