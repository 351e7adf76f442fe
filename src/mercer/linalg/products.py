"""Products of the centered rows, or of their transpose, with a few vectors."""

from __future__ import annotations

from typing import Self

import numpy as np

from mercer.arrays import Array, like, to_numpy
from mercer.data import Block, Fold
from mercer.linalg.centering import Centering


class SummedProduct(Fold):
    """A matrix that every block adds to, in float64 whatever the precision of the blocks."""

    label = "product"

    def __init__(self, centering: Centering, V: Array, shape: tuple[int, int]) -> None:
        # C order: SciPy would copy V to it for every sparse block.
        V = np.ascontiguousarray(V) if isinstance(V, np.ndarray) else V
        self.centering, self.V, self.shape = centering, V, shape
        self.inputs = (V,)
        self.result = like(np.zeros(shape), V)
        self.row_bytes = (shape[0] + 2 * shape[1]) * centering.dtype.itemsize
        self.nbytes = shape[0] * shape[1] * 8

    def merge(self, other: Self) -> None:
        self.result += other.result

    def spawn(self) -> Self:
        return type(self)(self.centering, self.V, self.shape)

    def arrays(self) -> dict[str, Array]:
        return {"result": self.result}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.result = like(to_numpy(arrays["result"]).copy(), self.V)


class CovarianceProduct(SummedProduct):
    r"""The product :math:`\sum_i w_i (x_i-\mu)(x_i-\mu)^T V`, in one pass, in V's precision."""

    def add(self, block: Block) -> None:
        rows = self.centering(block.rows)
        scores = self.centering.times(rows, self.V)
        if block.weights is not None:
            scores = scores * like(block.weights, self.V, self.centering.dtype)[:, None]
        self.result += self.centering.transposed_times(rows, scores)


class AdjointProduct(SummedProduct):
    r"""The product :math:`(X - 1\mu^T)^T V` for V with as many rows as X."""

    def add(self, block: Block) -> None:
        V = self.V[block.start : block.stop, :]
        self.result += self.centering.transposed_times(self.centering(block.rows), V)
