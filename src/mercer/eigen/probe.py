"""How large an operator can be where a basis does not see it."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Array, cast, like, orthonormalize
from mercer.certificate import Figure, lanczos_excess
from mercer.eigen.krylov import Basis
from mercer.operators import Deflated, Operator

_STARTS, _STEPS = 4, 16


def unseen(operator: Operator, basis: Array, rng: np.random.Generator) -> Figure:
    """Return a bound, at 99.9 %, on the largest eigenvalue of (I − QQᵀ)A(I − QQᵀ), A ⪰ 0.

    Sixteen products of four fresh random vectors: those that the basis grew from tell nothing
    of what it missed.
    """
    hidden = Deflated(operator, basis)
    left = operator.size - int(basis.shape[1])
    if left <= 0:
        return Figure(0.0)
    starts = min(_STARTS, left)
    G = like(rng.standard_normal((operator.size, starts)), cast(basis, np.float64))
    Q, _ = orthonormalize(hidden.project(hidden.project(G)))
    search = Basis(hidden, Q, np.float64)
    steps = min(_STEPS, max(1, left // starts))
    for _ in range(steps):
        search.step(rng)
    if steps * starts >= left:
        return Figure(search.largest + operator.rounding)
    excess = lanczos_excess(steps, left, starts)
    return Figure(search.largest * excess + operator.rounding, "bound", 0.999)
