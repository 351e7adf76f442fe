r"""Bounds on sums of eigenvalues.

They hold for any symmetric operator A, whatever method found the vectors, because they rest on
products, traces and norms alone. Q is an orthonormal basis, Θ = QᵀAQ the compression of A,
B = (I − QQᵀ)AQ the coupling, and C = (I − QQᵀ)A(I − QQᵀ) the part of A that Q does not see.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Matrix, Vector, eigvalsh


def pinching_bound(ritz: Vector, trace: float, r: int) -> float:
    r"""Bound λ_1 + … + λ_r of a positive semi-definite A by Σ_{i≤r} θ_i + tr A − tr Θ.

    The part of A that Q does not see has eigenvalues that sum to its trace.
    """
    return float(ritz[:r].sum() + max(0.0, trace - float(ritz.sum())))


def schur_bound(ritz: Vector, coupling: Matrix, unseen: float, r: int) -> float:
    r"""Bound λ_1 + … + λ_r after one product AQ; infinite where the hypothesis θ_r > δ fails.

    With `unseen` δ ≥ ‖C‖ and θ_r > δ, λ_i(A) ≤ λ_i(Θ + BᵀB/(θ_r − δ)) for every i ≤ r: by
    inertia, λ_i(A) = μ > δ is an eigenvalue of the Schur complement Θ + Bᵀ(μ − C)⁻¹B, which is at
    most Θ + BᵀB/(μ − δ). In particular, no eigenvalue was missed. `ritz` are the eigenvalues of Θ,
    largest first, and `coupling` is BᵀB in the coordinates in which Θ is diagonal.
    """
    if r == 0:
        return 0.0
    if r > len(ritz) or not ritz[r - 1] > unseen or not np.isfinite(coupling).all():
        return math.inf
    bounded = np.diag(ritz) + coupling / (float(ritz[r - 1]) - unseen)
    return float(eigvalsh(bounded)[::-1][:r].sum())


def unseen_frobenius(square: float, product: float, ritz: Vector) -> float:
    r"""Return ‖C‖_F from δ² = ‖A‖_F² − 2‖AQ‖_F² + ‖Θ‖_F²; infinite where squares overflow."""
    left = square - 2.0 * product + float(ritz @ ritz)
    return math.sqrt(max(0.0, left)) if math.isfinite(left) else math.inf


def split_bound(ritz: Vector, coupling: Matrix, unseen: float, r: int) -> float:
    r"""Bound λ_1 + … + λ_r after one product AQ, for any `unseen` δ ≥ λ_max(C).

    With B = [B₁ B₂], the first r Ritz vectors and the others, the off-diagonal blocks of A are
    at most diag(B₁ᵀB₁/s, B₂ᵀB₂/t, (s + t) I) for every s, t > 0. Therefore the i-th eigenvalue of
    A is at most the i-th largest of λ(Θ₁ + B₁ᵀB₁/s), λ(Θ₂ + B₂ᵀB₂/t) and δ + s + t, the last
    repeated as often as needed. Where θ_r > δ this comes close to `schur_bound`; elsewhere it
    still shows that no missed eigenvalue exceeds δ by much.
    """
    if r == 0:
        return 0.0
    if not np.isfinite(coupling).all():  # squares overflow
        return math.inf
    first, s = _perturbed(ritz[:r], coupling[:r, :r], [0.0])[0]
    others = _perturbed(ritz[r:], coupling[r:, r:], [max(0.0, float(ritz[r - 1]) - unseen)])
    best = math.inf
    for rest, t in others:
        values = np.sort(np.concatenate([first, rest]))[::-1][:r]
        best = min(best, float(np.maximum(values, unseen + s + t).sum()))
    return best


def _perturbed(ritz: Vector, coupling: Matrix, trials: list[float]) -> list[tuple[Vector, float]]:
    """Return the eigenvalues of Θ + BᵀB/t, and t, for ‖B‖, ‖B‖/2 and the given trials."""
    largest = float(eigvalsh(coupling)[-1]) if len(ritz) else 0.0
    norm = math.sqrt(max(0.0, largest))
    if norm == 0.0:
        return [(ritz, 0.0)]
    results: list[tuple[Vector, float]] = []
    for t in (norm, norm / 2, *(t / 2 for t in trials), *trials):
        if t > 0.0:
            values = eigvalsh(np.diag(ritz) + coupling / t)
            results.append((np.asarray(values, np.float64), t))
    return results


def lanczos_excess(steps: int, size: int, starts: int, confidence: float = 0.999) -> float:
    r"""Return the factor by which λ_max can exceed the largest Ritz value of block Lanczos.

    A random start and s steps on a positive semi-definite matrix of N rows miss more than a
    share ε with probability at most 1.648 √N ((1−√ε)/(1+√ε))^{s−1/2} (Kuczyński & Woźniakowski
    1992, Thm 4.2); independent starts must all fail.
    """
    odds = math.log(1.648 * math.sqrt(size)) - math.log(1.0 - confidence) / starts
    root = math.tanh(odds / (2 * steps - 1))
    return 1.0 / (1.0 - root * root)
