"""Products with the kernel matrix of rows that lie elsewhere, made where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from mercer.arrays import Array, cast
from mercer.data import Block, Fold, Source
from mercer.data.remote import ACROSS, Meeting
from mercer.kernels import Kernel
from mercer.kernels.evaluate import evaluate_into
from mercer.kernels.points import Points, cast_rows
from mercer.linalg.upper_blocks import SymmetricFill, SymmetricProduct, UpperBlocks

F = TypeVar("F", bound=Fold)


class DistributedGram(UpperBlocks):
    """The kernel matrix of rows that lie elsewhere: nothing of it, nor the rows, comes here.

    Every two chunks of rows meet once, where they lie. What comes here is a product's share for
    each row.
    """

    def __init__(self, kernel: Kernel, source: Source, dtype: Any) -> None:
        n = source.shape[0]
        self.kernel, self.source = kernel, source
        self.dtype, self.shape = np.dtype(dtype), (n, n)
        self.stored = None

    def fold(self, state: F) -> F:
        """Fold the matrix into a product; into all of it, as the product with all unit vectors."""
        if isinstance(state, SymmetricFill):
            state.out[...] = self.fold(SymmetricProduct(np.eye(self.shape[0]), self.dtype)).result
            return state
        if not isinstance(state, SymmetricProduct) or self.source.elsewhere is None:
            raise TypeError(f"{type(state).__name__} takes strips, and none come here.")
        squared = None if state.roots is None else state.weighted
        meeting = PairProduct(self.kernel, self.dtype, squared)
        return self.source.elsewhere.pairs(self.source, meeting, state)


@dataclass(frozen=True)
class PairProduct(Meeting):
    """The product with the kernel matrix, of the part where two chunks of rows meet.

    Attributes
    ----------
    kernel : Kernel
    dtype : dtype
        Precision of the kernel's values.
    weighted : bool or None
        Whether squares are weighted; None where they are not summed.
    """

    kernel: Kernel
    dtype: Any
    weighted: bool | None

    def fold(self, y: Block, left: Any, right: Any) -> Fold:
        return PairFold(self, y, left, right)


class PairFold(Fold):
    """K_xy V_y for rows x that come by, and K_xyᵀ V_x for the rows y that they meet.

    Added in float64, as `Symmetric` does.
    """

    label = "kernel matrix"

    def __init__(self, product: PairProduct, y: Block, left: Any, right: Any) -> None:
        self.product, self.y, self.left, self.right = product, y, left, right
        # Rows are not rounded to the precision of products: close ones would move.
        self.points = Points(cast_rows(y.rows, _precision(y, product.dtype)), y.start)
        self.own = left[0] == right[0]
        """Whether the rows meet themselves: then all is told by one side."""
        self.sums = [np.zeros(side[1].shape) for side in (left, right)]
        self.square = 0.0
        self.nbytes = 8 * sum(part.size for part in self.sums)
        across = min(len(self.points), ACROSS)
        self.row_bytes = (product.dtype.itemsize + 16) * across

    def add(self, block: Block) -> None:
        kind, first = self.product.dtype, self.left[0]
        x = Points(cast_rows(block.rows, _precision(block, kind)), block.start)
        here = slice(block.start - first, block.stop - first)
        for start in range(0, len(self.points), ACROSS):
            there = slice(start, min(start + ACROSS, len(self.points)))
            tile = np.empty((block.length, there.stop - start), kind)
            evaluate_into(self.product.kernel.on, x, self.points.part(there), tile)
            self.sums[0][here] += tile @ self.right[1][there]
            if not self.own:
                self.sums[1][there] += (self.left[1][here].T @ tile).T
            if self.product.weighted is not None:
                self._add_squares(tile, here, there)

    def _add_squares(self, tile: Array, here: slice, there: slice) -> None:
        tile = cast(tile, np.float64)
        if self.product.weighted:
            tile = self.left[2][here] * tile * self.right[2][there].T
        self.square += (1.0 if self.own else 2.0) * float(np.einsum("ij,ij->", tile, tile))

    def merge(self, other: Self) -> None:
        self.sums = [a + b for a, b in zip(self.sums, other.sums, strict=True)]
        self.square += other.square

    def spawn(self) -> Self:
        return type(self)(self.product, self.y, self.left, self.right)

    def arrays(self) -> dict[str, Array]:
        left, right = self.sums
        both = {"left": left} if self.own else {"left": left, "right": right}
        return {**both, "square": np.asarray(self.square)}

    def restore(self, arrays: dict[str, Array]) -> None:
        for i, side in enumerate(("left", "right")):
            if side in arrays:
                self.sums[i] = arrays[side].copy()
        self.square = float(arrays["square"])


def _precision(block: Block, dtype: Any) -> Any:
    """Return the precision of the rows of a block, or that of products where it is higher."""
    return np.float64 if isinstance(block.rows, list) else np.result_type(block.rows.dtype, dtype)
