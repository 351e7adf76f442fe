"""Products with the kernel matrix of remote rows, computed by the workers that hold them."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import numpy as np

from mercer.arrays import Array, cast
from mercer.data import Block, Fold, Source
from mercer.kernels import Kernel
from mercer.kernels.evaluate import KernelPairFold
from mercer.kernels.points import Points, cast_rows
from mercer.linalg.upper_blocks import SymmetricFill, SymmetricProduct, UpperBlocks

F = TypeVar("F", bound=Fold)


def upper_blocks(kernel: Kernel, source: Source, dtype: Any, *, keep: bool) -> UpperBlocks:
    """Return the upper blocks of a kernel matrix; those of remote rows are computed remotely."""
    if source.remote is None:
        return UpperBlocks(kernel, source, dtype, keep=keep)
    return DistributedGram(kernel, source, dtype)


class DistributedGram(UpperBlocks):
    """The kernel matrix of remote rows.

    Every pair of chunks is computed once, on a worker. Only the rows of a product are gathered:
    neither the rows of the source nor the matrix.
    """

    def __init__(self, kernel: Kernel, source: Source, dtype: Any) -> None:
        n = source.shape[0]
        self.kernel, self.source = kernel, source
        self.dtype, self.shape = np.dtype(dtype), (n, n)
        self.stored = None

    def fold(self, state: F) -> F:
        """Fold the matrix into a product; the whole matrix is its product with the identity."""
        if isinstance(state, SymmetricFill):
            state.out[...] = self.fold(SymmetricProduct(np.eye(self.shape[0]), self.dtype)).result
            return state
        if not isinstance(state, SymmetricProduct) or self.source.remote is None:
            raise TypeError(f"{type(state).__name__} needs blocks, which are not gathered here.")
        make = functools.partial(PairProduct, self.kernel, self.dtype)
        return self.source.remote.fold_pairs(self.source, make, state)


class PairProduct(KernelPairFold):
    """K V for the rows x of a chunk, and Kᵀ V for the rows y of another; summed in float64.

    An operand is the number of the first row, V, and the roots of the weights or None.
    """

    def __init__(self, kernel: Kernel, dtype: Any, y: Block, left: Any, right: Any) -> None:
        super().__init__(kernel, dtype, y, left, right)
        self.sums = {"left result": np.zeros(left[1].shape), "left square": np.zeros(())}
        if left[0] != right[0]:  # not the same rows
            self.sums["right result"] = np.zeros(right[1].shape)
        self.nbytes = 8 * (left[1].size + right[1].size)
        self.row_bytes = (self.dtype.itemsize + 16) * self.tile_columns

    def points_of(self, block: Block) -> Points:
        # Rows are not rounded to the dtype of products: close rows would move.
        listed = isinstance(block.rows, list)
        dtype = np.float64 if listed else np.result_type(block.rows.dtype, self.dtype)
        return Points(cast_rows(block.rows, dtype), block.start)

    def add_tile(self, tile: Array, rows: slice, columns: slice) -> None:
        self.sums["left result"][rows] += tile @ self.right[1][columns]
        if "right result" in self.sums:
            self.sums["right result"][columns] += (self.left[1][rows].T @ tile).T
        if self.left[2] is not None:
            tile = self.left[2][rows] * cast(tile, np.float64) * self.right[2][columns].T
            times = 2.0 if "right result" in self.sums else 1.0
            self.sums["left square"] += times * float(np.einsum("ij,ij->", tile, tile))
