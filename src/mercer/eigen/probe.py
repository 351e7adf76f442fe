"""How large an operator can be where a basis does not see it."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Array, cast, like, namespace, to_numpy
from mercer.certificate import Figure, unseen_probed
from mercer.operators import Operator

_PROBES, _STEPS = 10, 2


def unseen(operator: Operator, basis: Array, rng: np.random.Generator) -> Figure:
    """Return a bound, at 99.9 %, on ‖(I − QQᵀ)A(I − QQᵀ)‖: two products of ten vectors.

    The vectors must be fresh: those that the basis grew from tell nothing of what it missed.
    """
    Q = cast(basis, np.float64)
    G = like(rng.standard_normal((operator.size, _PROBES)), Q)
    G = G - Q @ (Q.T @ G)
    for _ in range(_STEPS):
        G = operator.matmat(G)
        G = G - Q @ (Q.T @ G)
    lengths = np.sqrt(to_numpy(namespace(G).sum(G * G, axis=0)))
    return unseen_probed(lengths, _STEPS)
