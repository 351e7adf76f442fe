"""The triangular factor of the centred rows (TSQR): the data are never squared."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, like, namespace, to_numpy, triangle
from mercer.sources import Block, Fold


class Triangle(Fold):
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
        self.weight = 0.0
        self._mean = like(np.zeros(d), reference)
        self._factor = like(np.zeros((0, d)), reference)
        self._waiting: list[Array] = []
        self.row_bytes = 16 * d
        self.nbytes = 4 * 8 * d * d

    def add(self, block: Block) -> None:
        weight = float(block.count.sum())
        if weight == 0.0:
            return
        rows = block.dense(np.float64)
        w = like(block.count, self.reference)
        if self.center:
            mean = (w @ rows) / weight
            rows = rows - mean
            rest = (w @ rows) / weight  # what rounding left of the mean in the rows
            mean, rows = mean + rest, rows - rest
            self._shift(weight, mean)
        else:
            self.weight += weight
        if block.weights is not None:
            rows = rows * namespace(w).sqrt(w)[:, None]
        self._append(rows)

    def merge(self, other: Self) -> None:
        if other.weight == 0.0:
            return
        if self.center:
            self._shift(other.weight, other._mean)
        else:
            self.weight += other.weight
        self._append(other._factor)
        for rows in other._waiting:
            self._append(rows)

    def spawn(self) -> Self:
        return type(self)(self.d, self.reference, center=self.center)

    def arrays(self) -> dict[str, Array]:
        self._reduce()
        return {"weight": np.array(self.weight), "mean": self._mean, "factor": self._factor}

    def restore(self, arrays: dict[str, Array]) -> None:
        self._waiting = []
        self.weight = float(arrays["weight"])
        self._mean = like(to_numpy(arrays["mean"]), self.reference)
        self._factor = like(to_numpy(arrays["factor"]), self.reference)

    @property
    def mean(self) -> np.ndarray[Any, Any]:
        """Mean of the rows, on the host."""
        return to_numpy(self._mean)

    @property
    def factor(self) -> np.ndarray[Any, Any]:
        """The triangle R, on the host; fewer rows than columns where there were fewer."""
        self._reduce()
        return to_numpy(self._factor)

    def _shift(self, weight: float, mean: Array) -> None:
        total = self.weight + weight
        apart = mean - self._mean
        if self.weight > 0.0:
            self._append((math.sqrt(self.weight * weight / total) * apart)[None, :])
        self._mean = self._mean + (weight / total) * apart
        self.weight = total

    def _append(self, rows: Array) -> None:
        self._waiting.append(rows)
        if sum(rows.shape[0] for rows in self._waiting) >= max(256, 2 * self.d):
            self._reduce()

    def _reduce(self) -> None:
        if self._waiting:
            stacked = namespace(self._mean).concat([self._factor, *self._waiting])
            self._waiting = []
            self._factor = triangle(stacked)
