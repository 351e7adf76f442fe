"""The kernel matrix by its cheap products."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Array, Matrix, cast
from mercer.arrays.rounding import confidence
from mercer.linalg.gram import Gram
from mercer.linalg.operator import Operator


class Coarse(Operator):
    """A kernel matrix by its cheap products, whose rounding is counted.

    Parameters
    ----------
    gram : Gram
        The matrix.
    hidden : float or None
        Bound on what the vectors of its first product do not see.
    """

    def __init__(self, gram: Gram, hidden: float | None = None) -> None:
        self.gram, self.hidden = gram, hidden
        self.size, self.trace, self.psd = gram.size, gram.trace, gram.psd
        self.square, self.probe, self.rounding = gram.square, gram.probe, gram.coarse
        self.block, self.look = gram.block, gram.look
        self.confidence = confidence(gram.dtype)

    @property
    def floor(self) -> float:
        if self.gram.dtype == np.float64:
            return self.gram.floor
        return 16.0 * float(np.finfo(np.float32).eps) * self.gram.amount / self.gram.divisor

    @property
    def reference(self) -> Array:
        return self.gram.reference

    @property
    def rank(self) -> int:
        return self.gram.rank

    def project(self, V: Array) -> Array:
        return self.gram.project(V)

    def matmat(self, V: Array) -> Array:
        return self.gram.matmat(cast(V, self.gram.dtype))

    def dense(self) -> Matrix:
        return self.gram.dense()
