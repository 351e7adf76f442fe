"""What a sample of rows says about the part of a kernel matrix outside the span of landmarks.

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
from mercer.linalg.span import KernelMoments, Span, kernel_matrix
from mercer.problem import KernelProblem

CONFIDENCE = 0.999
# Samples that a fit within a gap draws at most.
_LOOKS = 16
# Fewer rows than these, drawn by their residual, say less than rows drawn with equal chances, of
# which at most so many are used.
_FEW, _MOST = 64, 1024
# Rows that measure the rounding of float32 values: so many at least, or one in so many.
_ROWS, _PART = 1024, 64


@dataclass(frozen=True)
class ResidualSample:
    """Rows drawn in proportion to their residual outside the span."""

    shares: Vector  # ρ² of independent pairs
    gain: float  # estimate of Σ_k v_kᵀEv_k / c: what the components explain outside the span
    error: float  # its standard error
    accepted: float  # share of the rows drawn that were accepted: tr E / (n max k(x, x))
    looks: int = 1  # samples there may be until one is good enough: all bounds must hold

    def norm(self, trace: float) -> Figure:
        """Return a bound on ‖E‖_F, given one on tr E."""
        mean = mean_bound(self.shares, 1.0 - (1.0 - CONFIDENCE) / self.looks)
        return Figure(trace * math.sqrt(mean), "bound", CONFIDENCE)


def mean_bound(x: Vector, confidence: float = CONFIDENCE) -> float:
    """Bound the mean of a distribution on [0, 1] from independent draws.

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


def draw_residual_sample(
    problem: KernelProblem,
    span: Span,
    T: Matrix,
    V: Matrix,
    mean: Vector,
    diag_max: float,
    rows: int,
) -> ResidualSample:
    """Draw rows, and accept each with probability E_ii over the largest k(x, x).

    T are the orthonormal directions of the span that E lies outside of; V turns h − mean into the
    entries of unit-variance eigenvectors.
    """
    source, rng, weights = problem.source, problem.rng, problem.source.weights
    chance = None if weights is None else weights / weights.sum()
    at = np.sort(rng.choice(source.shape[0], rows, p=chance))
    points = cast_rows(source.take(at), np.float64)
    block = Block(0, points, None)
    h = to_numpy(span.feature_map(source, np.float64)(block))
    f = h @ T
    diag = to_numpy(span.diag(block, np.float64))
    residuals = np.maximum(diag - np.einsum("ij,ij->i", f, f), 0.0)
    accepted = np.flatnonzero(rng.random(rows) * diag_max < residuals)
    rng.shuffle(accepted)  # rows were read in order: pairs must not be neighbors
    rate = float(np.sum(residuals)) / (rows * diag_max) if diag_max > 0 else 0.0
    enough = len(accepted) >= _FEW
    chosen = accepted if enough else rng.permutation(rows)[:_MOST]
    # A row drawn in proportion to E_ii counts by one over that; else as often as any other.
    counts = rate * diag_max / residuals[chosen] if enough else np.ones(len(chosen))
    v = (h[chosen] - mean * problem.center) @ V
    share = source.count / problem.divisor
    E = _residual_matrix(problem, points, f, chosen) * (v @ v.T) * share**2
    w = np.ones(len(chosen)) if weights is None else weights[at[chosen]]
    own = np.diag(E) * counts * w / source.count
    E[at[chosen][:, None] == at[chosen]] = 0.0  # a row with itself is in `own`
    gains = own + counts * (E @ counts) / max(1, len(chosen) - 1)
    error = 2.0 * float(np.std(gains)) / math.sqrt(len(chosen))  # of a mean over pairs
    looks = 1 if problem.gap is None else _LOOKS
    looks *= 1 if span.dtype == np.float64 else 2  # `measure_rounding` may fail, too
    first, second = np.split(accepted[: len(accepted) // 2 * 2], 2)
    half = np.arange(len(first))
    E = _residual_matrix(problem, points, f, accepted)[half, half + len(half)]
    shares = np.clip(E**2 / (residuals[first] * residuals[second]), 0.0, 1.0)
    return ResidualSample(shares, float(gains.mean()), error, rate, looks)


def measure_rounding(
    problem: KernelProblem, span: Span, moments: KernelMoments
) -> tuple[float, float] | None:
    """Bound Σ w‖δh‖ and Σ w‖δh‖², the rounding of float32 kernel values, from some random rows.

    At 99.95 % confidence: no row can be off by more than its a-priori bound, so the empirical
    Bernstein inequality applies. Infinite if a row is.
    """
    source, weights = problem.source, problem.source.weights
    n, chance = source.shape[0], None if weights is None else weights / weights.sum()
    at = np.sort(problem.rng.choice(n, min(n, max(_ROWS, n // _PART)), p=chance))
    block = Block(0, source.take(at), None)
    rounded, exact = (
        to_numpy(span.feature_map(source, dtype)(block)).astype(np.float64)
        for dtype in (np.float32, np.float64)
    )
    unit = float(np.finfo(np.float32).eps) / 2
    most = moments.rounding_max * float(np.trace(span.matrix)) * unit**2
    if not 0.0 < most < math.inf:
        return None
    share = np.einsum("ij,ij->i", rounded - exact, rounded - exact) / most
    if np.max(share) > 1.0:  # more than the a-priori bound: nothing is known of the others
        return math.inf, math.inf
    likely = 1.0 - (1.0 - CONFIDENCE) / 4  # two bounds
    first, second = (mean_bound(x, likely) for x in (np.sqrt(share), share))
    return moments.weight * math.sqrt(most) * first, moments.weight * most * second


def _residual_matrix(problem: KernelProblem, points: Any, f: Matrix, at: Any) -> Matrix:
    """Return rows and columns of E."""
    assert problem.kernel is not None
    if not len(at):
        return np.zeros((0, 0))
    if isinstance(points, list):
        rows: Any = [points[i] for i in at]
    elif isinstance(points, np.ndarray) or hasattr(points, "tocsr"):
        rows = points[at]
    else:
        rows = namespace(points).take(points, like(at, points), axis=0)
    return np.asarray(np.asarray(kernel_matrix(problem.kernel, rows)) - f[at] @ f[at].T)
