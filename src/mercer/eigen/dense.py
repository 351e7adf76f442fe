"""All of a small matrix, by LAPACK."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Matrix, Vector, eigh, like
from mercer.eigen.spectrum import Spectrum
from mercer.operators import Operator


def dense(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: np.random.Generator,
    start: Spectrum | None = None,
) -> Spectrum:
    """Decompose the matrix itself: the operator must fit in memory, N×N.

    A few pairs beyond the k come along: they tell how far the k-th is from the next.
    """
    A = operator.dense()
    return decomposed(operator, A, k, *eigh(A, min(operator.size, k + max(8, k // 4))))


def decomposed(operator: Operator, A: Matrix, k: int, values: Vector, V: Matrix) -> Spectrum:
    """Return the first k pairs of a decomposition of A, with their residuals measured."""
    basis = like(V, operator.reference)
    return Spectrum(
        values=values[:k],
        vectors=basis[:, :k],
        residuals=np.linalg.norm(A @ V[:, :k] - V[:, :k] * values[:k], axis=0) + operator.rounding,
        complete=True,
        basis=basis,
        ritz=values,
        products=operator.size,
    )
