"""A proven upper bound on the sum of the largest eigenvalues of a matrix in memory."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from mercer.arrays import (
    FEW,
    Array,
    Matrix,
    Vector,
    cast,
    diagonal,
    double_product,
    eigh,
    eigvalsh,
    is_positive_definite,
    like,
    namespace,
    numpy_dtype,
    orthonormalize,
    squares,
    summed,
    to_numpy,
)
from mercer.linalg.bounds import schur_bound, split_bound
from mercer.linalg.operator import DenseOperator
from mercer.linalg.solvers.krylov import KrylovBasis
from mercer.linalg.solvers.spectrum import random_basis

# A smaller matrix is decomposed, and one of which a larger share of the pairs is wanted.
_DENSE, _SHARE = 256, 0.15
# One of so many rows at most is decomposed if a search in a part of its space does not come close.
_MEDIUM, _SEARCHED = 2048, 0.15
# Ritz vectors beyond those wanted, at least: what all of them leave out must be smaller.
_MORE = 16
# The bound may exceed the sum by so much, as a share of it.
_CLOSE = 1.5e-3
# Most steps of block Krylov beyond those that give enough Ritz vectors.
_STEPS = 24
# What may be unseen, as shares of the last eigenvalue wanted: the larger, the sooner it is proven.
_EASY, _LAST = (0.9, 0.85, 0.8), (1.01, 1.03, 1.1, 2.0)
# Diagonal blocks that are factorized in place of the whole: more of them cost less, prove less.
_PARTS = (2, 1)


def top_sum(A: Array, k: int, rng: Generator, rounding: float = 0.0) -> float:
    r"""Bound λ_1 + … + λ_k of a matrix from above, closely.

    The matrix is no farther than `rounding`, in Frobenius norm and in trace, from one that is
    positive semi-definite.

    A few steps of block Krylov find p > k Ritz vectors V, with Θ = VᵀAV and B = AV − VΘ. If δI − C
    has a Cholesky factor, C = (I − VVᵀ)A(I − VVᵀ), then C, which V does not see, has no eigenvalue
    above δ, and `schur_bound` and `split_bound` apply. The bound holds however accurate V is, and
    includes the rounding of products in the precision of A.
    """
    s, dtype = int(A.shape[0]), numpy_dtype(A)
    trace = max(0.0, float(diagonal(A).sum()))
    unit = float(np.finfo(dtype).eps) / 2
    if k >= s or trace == 0.0:
        return trace + rounding
    if s <= _DENSE or k > _SHARE * s:
        return min(trace + rounding, _dense_sum(A, k))
    V, guess, close = _ritz_vectors(A, k, rng)
    if s <= _MEDIUM and not close:
        return min(trace + rounding, _dense_sum(A, k))
    p, size = int(V.shape[1]), math.sqrt(squares(A))
    product = double_product(A, V)
    T = to_numpy(V.T @ product)
    ritz, U = eigh((T + T.T) / 2)
    B = to_numpy(product - V @ like(T, V)) @ U
    coupling = B.T @ B
    half = cast(product - 0.5 * V @ like(T, V), dtype)
    # Of products in the precision of A with V rounded to it, in Frobenius norm.
    error = 4.0 * unit * (summed(p, dtype, A) + FEW) * math.sqrt(p) * size
    trials = _trials(ritz, coupling, guess, k, 2.0 * error + rounding)
    unseen = _unseen(A, cast(V, dtype), half, trials, error, rounding)
    best = _bound(ritz, coupling, unseen, k) + 1e-14 * s * math.sqrt(k * p) * size
    return min(trace + rounding, best)


def _dense_sum(A: Array, k: int) -> float:
    values = eigvalsh(to_numpy(A).astype(np.float64))
    rounding = 1e-13 * len(values) * float(np.abs(values).sum())
    return float(values[len(values) - k :].sum()) + rounding


def _ritz_vectors(A: Array, k: int, rng: Generator) -> tuple[Array, float, bool]:
    """Return orthonormal Ritz vectors, the size of what they leave out, and if it is small."""
    s, dtype, operator = int(A.shape[0]), numpy_dtype(A), DenseOperator(A)
    block = min(s, 32, max(16, k))
    basis = KrylovBasis(operator, random_basis(operator, block, rng), dtype)
    basis.room = min(s, 2 * k + 8 * block)
    wanted = min(k + max(_MORE, k // 2), s - 1)
    while basis.m <= wanted:
        basis.step(rng)
    for _ in range(_STEPS):
        ritz, _, coupled = basis.ritz_pairs()
        coupling, unseen = (coupled.T @ coupled)[:wanted, :wanted], _middle(ritz, k, ritz[wanted])
        close = basis.m == s or _is_close(ritz[:wanted], coupling, unseen, k)
        if close or (s <= _MEDIUM and basis.m > wanted + _SEARCHED * s):
            break
        basis.step(rng)
    V, _ = orthonormalize(cast(basis.vectors(wanted), np.float64))
    return V, float(ritz[wanted]), close


def _trials(ritz: Vector, coupling: Matrix, guess: float, k: int, slack: float) -> list[float]:
    """Return what may be unseen, in the order in which to try to prove it.

    First the largest with which the bound is close, plus what rounding may add: it needs the
    fewest factors.
    """
    last, middle = float(ritz[k - 1]), _middle(ritz, k, guess)
    easy = (share * last for share in _EASY if share * last > middle)
    close = (unseen for unseen in easy if _is_close(ritz, coupling, unseen + slack, k))
    first = next(close, middle)
    return [first, *(share * last for share in _LAST)]


def _middle(ritz: Vector, k: int, guess: float) -> float:
    """Return a bound for what is unseen that leaves room on both sides."""
    return max(0.5 * (float(ritz[k - 1]) + guess), 1.1 * guess)


def _is_close(ritz: Vector, coupling: Matrix, unseen: float, k: int) -> bool:
    return schur_bound(ritz, coupling, unseen, k) <= (1.0 + _CLOSE) * float(ritz[:k].sum())


def _bound(ritz: Vector, coupling: Matrix, unseen: float, k: int) -> float:
    return min(f(ritz, coupling, unseen, k) for f in (schur_bound, split_bound))


def _unseen(
    A: Array, V: Array, half: Array, trials: list[float], error: float, rounding: float
) -> float:
    """Return the first trial that bounds the eigenvalues of C = A − VHᵀ − HVᵀ, by Cholesky factors.

    If C is positive semi-definite, the largest is at most the sum of those of its diagonal blocks,
    which are cheaper to factorize and suffice if it is well below the bound. Each block is off by
    its part of `error`. C has no eigenvalue below −`rounding`: with that added to its diagonal it
    is semi-definite, which adds it to the bound for each block but one.
    """
    s, dtype = int(A.shape[0]), numpy_dtype(A)
    xp = namespace(A)
    left, right = xp.concat([V, half], axis=1), xp.concat([half, V], axis=1)
    for bound in trials:
        for parts in _PARTS:
            size = -(-s // parts)
            spans = [slice(start, min(start + size, s)) for start in range(0, s, size)]
            if all(_is_below(A, left, right, span, bound / len(spans)) for span in spans):
                # A matrix that has a factor by rounding is off by at most (size + 1) u its trace.
                unit = (summed(size + 1, dtype, A) + FEW) * float(np.finfo(dtype).eps) / 2
                off = math.sqrt(parts) * error + (parts - 1) * rounding
                return bound * (1.0 + size * unit) + off
    return math.inf


def _is_below(A: Array, left: Array, right: Array, span: slice, bound: float) -> bool:
    """Return whether no eigenvalue of a diagonal block of A − left rightᵀ exceeds a bound."""
    block = left[span, :] @ right[span, :].T
    block -= A[span, span]
    return is_positive_definite(block, bound)
