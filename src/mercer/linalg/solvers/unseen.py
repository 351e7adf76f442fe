"""How large an operator can be where a basis does not see it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.arrays import Array, cast, like, orthonormalize
from mercer.linalg.bounds import Figure, lanczos_excess
from mercer.linalg.operator import DeflatedOperator, Operator
from mercer.linalg.solvers.krylov import KrylovBasis

_STARTS = 4
# Products after which it looks; every look may fail with its share of one in a thousand.
_LOOKS = (6, 10, 16)
_CONFIDENCE = 0.999


def unseen_norm(
    operator: Operator,
    basis: Array,
    rng: np.random.Generator,
    enough: Callable[[float], bool] = lambda bound: False,
) -> Figure:
    """Return a bound, at 99.9 %, on the largest eigenvalue of (I − QQᵀ)A(I − QQᵀ), A ⪰ 0.

    Six products of four fresh random vectors, those that the basis grew from tell nothing of
    what it missed; up to ten more where that bound is not `enough`.
    """
    hidden = DeflatedOperator(operator, basis)
    left = hidden.rank
    if left <= 0:
        return Figure(0.0)
    starts = min(_STARTS, left)
    G = like(rng.standard_normal((operator.size, starts)), cast(basis, np.float64))
    Q, _ = orthonormalize(hidden.project(hidden.project(G)))
    search = KrylovBasis(hidden, Q, operator.probe_dtype)
    search.room, search.whole = starts * _LOOKS[-1], left
    bound = np.inf
    for steps in _LOOKS:
        while search.m < min(steps * starts, left):
            search.step(rng)
        if search.m == left:
            return Figure(search.largest + operator.product_error)
        excess = lanczos_excess(steps, left, starts, 1 - (1 - _CONFIDENCE) / len(_LOOKS))
        bound = min(bound, search.largest * excess + operator.product_error)
        if enough(bound):
            break
    return Figure(bound, "bound", _CONFIDENCE)
