"""The triangular factor of the centred rows (TSQR): the data are never squared."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from mercer.arrays import Array, Matrix, Vector, like, namespace, to_numpy, triangle
from mercer.data import Block, Fold
from mercer.linalg.centering import RunningMean


class TriangularFactor(Fold):
    r"""Weight, mean and R with :math:`R^T R = \sum_i w_i (x_i-\mu)(x_i-\mu)^T`, by QR alone.

    The singular values of R are those of the centred rows to the accuracy of a full SVD.
    Two groups of rows with weights :math:`a, b` and means apart by :math:`\delta` merge as
    the QR of their triangles and the row :math:`\sqrt{ab/(a+b)}\,\delta`.

    Source: Demmel, Grigori, Hoemmen & Langou (2012); the mean's row: Ross et al. (2008).
    """

    label = "triangular factor"

    def __init__(self, d: int, reference: Array, *, center: bool = True) -> None:
        self.d = d
        self.reference = reference
        self.center = center
        self.running = RunningMean(d, reference)
        self._factor = like(np.zeros((0, d)), reference)
        self._waiting: list[Array] = []
        self.row_bytes = 32 * d  # as float64, centred, stacked, and as LAPACK's own
        self.nbytes = 4 * 8 * d * d

    def add(self, block: Block) -> None:
        weight = float(block.count.sum())
        if weight == 0.0:
            return
        rows = block.dense(np.float64)
        w = like(block.count, self.reference)
        if self.center:
            rows, offset, left = self.running.center(rows, w, weight)
            rows = rows - left / weight
            self._join(weight, offset)
        else:
            self.running.weight += weight
        if block.weights is not None:
            rows = rows * namespace(w).sqrt(w)[:, None]
        self._append(rows)

    def merge(self, other: Self) -> None:
        if other.weight == 0.0:
            return
        if self.center:
            self._join(other.weight, self.running.offset_of(other.running))
        else:
            self.running.weight += other.weight
        self._append(other._factor)
        for rows in other._waiting:
            self._append(rows)

    def spawn(self) -> Self:
        return type(self)(self.d, self.reference, center=self.center)

    def arrays(self) -> dict[str, Array]:
        waiting = {f"waiting {i}": rows for i, rows in enumerate(self._waiting)}
        return {"factor": self._factor, **waiting, **self.running.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        names = [f"waiting {i}" for i in range(len(arrays))]
        self._waiting = [
            like(to_numpy(arrays[name]), self.reference) for name in names if name in arrays
        ]
        self.running.restore(arrays)
        self._factor = like(to_numpy(arrays["factor"]), self.reference)

    @property
    def weight(self) -> float:
        """Weight of the rows."""
        return self.running.weight

    @property
    def mean(self) -> Vector:
        """Mean of the rows, on the host."""
        return self.running.value

    @property
    def factor(self) -> Matrix:
        """The triangle R, on the host; fewer rows than columns where there were fewer."""
        self.settle()
        return to_numpy(self._factor)

    def _join(self, weight: float, offset: Array) -> None:
        before = self.running.weight
        apart = self.running.update(weight, offset)
        if before > 0.0:
            self._append((math.sqrt(before * weight / (before + weight)) * apart)[None, :])

    def _append(self, rows: Array) -> None:
        self._waiting.append(rows)
        if sum(rows.shape[0] for rows in self._waiting) >= max(256, 2 * self.d):
            self.settle()

    def settle(self) -> None:
        if self._waiting:
            stacked = namespace(self._factor).concat([self._factor, *self._waiting])
            self._waiting = []
            self._factor = triangle(stacked)
