"""Sums over tiles of the kernel matrix between two chunks of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from mercer.arrays import Array
from mercer.data import Block, Fold
from mercer.data.remote import TILE_COLUMNS
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import evaluate_into
from mercer.kernels.points import Points, cast_rows


class KernelPairFold(Fold):
    """A fold of the rows x of one chunk, with the kernel between them and the rows y of another.

    It is made by a `PairTask`; `left` and `right` are the operands of x and y, and the first entry
    of `left` is the number of the first row x. Subclasses set `sums`.
    """

    label = "kernel matrix"
    sums: dict[str, Array]

    def __init__(self, kernel: Kernel, dtype: Any, y: Block, left: Any, right: Any) -> None:
        self.kernel, self.dtype, self.y = kernel, np.dtype(dtype), y
        self.left, self.right = left, right
        self.points = self.points_of(y)
        self.tile_columns = min(len(self.points), TILE_COLUMNS)

    def points_of(self, block: Block) -> Points:
        """Return the rows of a block as the kernel takes them."""
        return Points(cast_rows(block.rows, self.dtype), block.start)

    def rows_of(self, block: Block) -> slice:
        """Return the place of a block in the chunk of x."""
        return slice(block.start - self.left[0], block.stop - self.left[0])

    def add(self, block: Block) -> None:
        x, rows = self.points_of(block), self.rows_of(block)
        for start in range(0, len(self.points), TILE_COLUMNS):
            columns = slice(start, min(start + TILE_COLUMNS, len(self.points)))
            tile = np.empty((block.length, columns.stop - start), self.dtype)
            evaluate_into(self.kernel.on, x, self.points.part(columns), tile)
            self.add_tile(tile, rows, columns)

    @abstractmethod
    def add_tile(self, tile: Array, rows: slice, columns: slice) -> None:
        """Add the kernel between some rows x and some rows y to the sums."""

    def spawn(self) -> Self:
        return type(self)(self.kernel, self.dtype, self.y, self.left, self.right)

    def merge(self, other: Self) -> None:
        self.sums = {name: array + other.sums[name] for name, array in self.sums.items()}

    def arrays(self) -> dict[str, Array]:
        return dict(self.sums)

    def restore(self, arrays: dict[str, Array]) -> None:
        self.sums = {name: array.copy() for name, array in arrays.items()}
