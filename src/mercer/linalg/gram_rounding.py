"""How far the values of a kernel matrix can be from exact ones, row by row."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, namespace, to_numpy
from mercer.data import Block, Source
from mercer.kernels import Kernel
from mercer.kernels.points import Points

# A bound on the rounding of kernel values that says too little.
_VAGUE = 1e-6


class Roundings:
    """The roundings of the kernel values of every row of a source.

    Parameters
    ----------
    kernel : Kernel
    source : Source
    points : Points or None
        The rows; None where they lie elsewhere.
    """

    def __init__(self, kernel: Kernel, source: Source, points: Points | None) -> None:
        self.kernel, self.source, self.points = kernel, source, points

    def of(self, dtype: Any) -> Vector:
        """Return how many unit roundoffs of a precision the values of each row may be off by."""
        if self.points is not None:
            return self._beside(self.points, dtype)
        # Of rows that lie elsewhere: what holds for any, or for any that are no larger.
        each = self._beside(Points(np.full((1, self.source.shape[1]), np.inf)), dtype)
        vague = not np.max(each) * float(np.finfo(dtype).eps) < _VAGUE
        return self._beside(self._as_large, dtype) if vague else each

    def _beside(self, points: Points, dtype: Any) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):
            each = np.asarray(self.kernel.roundings(points, points, dtype), np.float64)
        n = self.source.shape[0]
        return np.broadcast_to(each if each.shape == (n,) else np.asarray(np.max(each)), (n,))

    @cached_property
    def _as_large(self) -> Points:
        """Two rows with all entries as large as twice the largest: shifted or not, no row is more.

        One on either side of zero, so that they are not shifted.
        """

        def sizes(block: Block) -> Array:
            return namespace(block.rows).max(abs(block.dense(np.float64)), axis=1)[:, None]

        found = self.source.map(sizes, 1, np.float64).collect(label="kernel matrix")
        largest = 2.0 * float(np.max(to_numpy(found), initial=0.0))
        return Points(np.outer([largest, -largest], np.ones(self.source.shape[1])))
