"""Products of the centred rows, or of their transpose, with a few vectors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import Array, cast, like, to_numpy
from mercer.data import Block, Fold


class Centre:
    """Subtracts a mean: from dense rows before a product, from sparse rows after it."""

    def __init__(self, mean: Array, dtype: Any, reference: Array) -> None:
        self.dtype = np.dtype(dtype)
        self.mean = like(to_numpy(mean), reference, self.dtype)
        self.zero = not np.any(to_numpy(mean))

    def __call__(self, rows: Array) -> Array:
        """Return dense rows centred, sparse rows as they are, in the precision asked for."""
        if hasattr(rows, "tocsr"):
            return rows.astype(self.dtype, copy=False)
        rows = cast(rows, self.dtype)
        return rows if self.zero else rows - self.mean

    def times(self, rows: Array, V: Array) -> Array:
        """Return (rows - mean) @ V for rows that `__call__` returned."""
        product = rows @ V
        return product - self.mean @ V if self._late(rows) else product

    def transposed_times(self, rows: Array, V: Array) -> Array:
        """Return (rows - mean)ᵀ @ V for rows that `__call__` returned."""
        product = rows.T @ V
        return product - np.outer(self.mean, V.sum(axis=0)) if self._late(rows) else product

    def _late(self, rows: Array) -> bool:
        return hasattr(rows, "tocsr") and not self.zero


class Sum(Fold):
    """A matrix that every block adds to, in float64 whatever the blocks' precision."""

    label = "product"

    def __init__(self, centre: Centre, V: Array, shape: tuple[int, int]) -> None:
        # Rows one after the other: SciPy would copy V so for every sparse block.
        V = np.ascontiguousarray(V) if isinstance(V, np.ndarray) else V
        self.centre, self.V, self.shape = centre, V, shape
        self.inputs = (V,)
        self.result = like(np.zeros(shape), V)
        self.row_bytes = (shape[0] + 2 * shape[1]) * centre.dtype.itemsize
        self.nbytes = shape[0] * shape[1] * 8

    def merge(self, other: Self) -> None:
        self.result += other.result

    def spawn(self) -> Self:
        return type(self)(self.centre, self.V, self.shape)

    def arrays(self) -> dict[str, Array]:
        return {"result": self.result}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.result = like(to_numpy(arrays["result"]).copy(), self.V)


class Product(Sum):
    r"""The product :math:`\sum_i w_i (x_i-\mu)(x_i-\mu)^T V`, in one pass, in V's precision."""

    def add(self, block: Block) -> None:
        rows = self.centre(block.rows)
        scores = self.centre.times(rows, self.V)
        if block.weights is not None:
            scores = scores * like(block.weights, self.V, self.centre.dtype)[:, None]
        self.result += self.centre.transposed_times(rows, scores)


class Adjoint(Sum):
    r"""The product :math:`(X - 1\mu^T)^T V` for V with as many rows as X."""

    def add(self, block: Block) -> None:
        V = self.V[block.start : block.stop, :]
        self.result += self.centre.transposed_times(self.centre(block.rows), V)
