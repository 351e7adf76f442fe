"""The upper blocks of a symmetric kernel matrix: every pair of rows once, here or on a cluster."""

from __future__ import annotations

import functools
import math
from typing import Any, TypeVar

import numpy as np

from mercer.arrays import Array, Matrix, cast, empty, like, on_accelerator, squares, to_numpy
from mercer.config import get_config
from mercer.data import Block, Collect, Fold, Source, SumFold
from mercer.kernels import Kernel
from mercer.kernels.evaluate import KernelPairFold, evaluate, evaluate_into
from mercer.kernels.points import Points, cast_rows

F = TypeVar("F", bound=Fold)

# Bytes of a block: enough for an efficient matrix product on the host, and on a device.
_BLOCK_BYTES, _DEVICE_BYTES = 32 * 2**20, 4 * 2**30
# At least this many blocks, for the workers to share, of no fewer rows than these.
_BLOCKS, _BLOCK_ROWS = 8, 64
# A matrix of so few bytes is one block: threads and merging would take longer than its products.
_WHOLE_BYTES = 2**19
# Rows of a block that are squared at a time.
_SQUARED = 64
# Columns of a block that one matrix product makes on the host; on a device, all of them.
_ACROSS = 4096


def upper_block_rows(n: int, itemsize: int, *, on_device: bool = False) -> int:
    """Return the number of rows of a block of an n×n matrix; several blocks fit the budget."""
    room = min(_DEVICE_BYTES if on_device else _BLOCK_BYTES, get_config().budget // 16)
    if n * n * itemsize <= min(room, _WHOLE_BYTES):
        return max(1, n)
    return max(1, min(n, room // (n * itemsize), max(_BLOCK_ROWS, -(-n // _BLOCKS))))


def upper_blocks(kernel: Kernel | None, source: Source, dtype: Any, *, keep: bool) -> UpperBlocks:
    """Return the upper blocks of a kernel matrix; those of remote rows are computed remotely.

    Without a kernel the rows are the matrix itself.
    """
    if kernel is None or source.remote is None:
        return UpperBlocks(kernel, source, dtype, keep=keep)
    return DistributedGram(kernel, source, dtype)


class UpperBlocks(Source):
    """The rows of a kernel matrix, each from the diagonal on.

    The block that starts at row i holds k(x_i, x_j) for j ≥ i. Blocks are computed when they are
    read, and stored if `keep` is set. Without a kernel the rows are the matrix itself.
    """

    def __init__(self, kernel: Kernel | None, source: Source, dtype: Any, *, keep: bool) -> None:
        n = source.shape[0]
        self.kernel, self.source = kernel, source
        self.dtype, self.shape = np.dtype(dtype), (n, n)
        self.parallel = source.parallel
        self.on_device = on_accelerator(source.reference)
        self.rows = upper_block_rows(n, self.dtype.itemsize, on_device=self.on_device)
        self.stored: dict[int, Array] | None = {} if keep and kernel is not None else None
        # Rows keep their own precision: rounding would move close rows.
        wide = source.dtype if kernel is None else np.result_type(self.dtype, source.dtype)
        self.points = Points(cast_rows(source.load(), wide))

    @property
    def reference(self) -> Array:
        return self.source.reference

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        return self.rows

    def read(self, start: int, stop: int) -> Array:
        if self.stored is not None and start in self.stored:
            return self.stored[start]
        if self.kernel is None:
            return cast(self.points.rows[start:stop, start:], self.dtype)
        n, x = self.shape[0], self.points.part(slice(start, stop))
        if self.on_device:
            y = self.points.part(slice(start, n))
            block = evaluate(self.kernel.on, x, y, self.reference, self.dtype)
        else:
            block = empty((stop - start, n - start), self.reference, self.dtype)
            for first in range(start, n, _ACROSS):
                y = self.points.part(slice(first, min(first + _ACROSS, n)))
                target = block[:, first - start : first - start + len(y)]
                evaluate_into(self.kernel.on, x, y, target)
        if self.stored is not None:
            self.stored[start] = block
        return block


class SymmetricProduct(SumFold):
    """The product of a symmetric matrix, folded from its upper blocks, with the columns of V.

    Blocks are multiplied in their own precision and added in float64. "square" is the sum of the
    squares of the matrix, weighted by `roots` on both sides.
    """

    label = "kernel matrix"

    def __init__(
        self, V: Array, dtype: Any, roots: Array = None, *, weighted: bool = False
    ) -> None:
        self.V, self.dtype, self.roots, self.weighted = cast(V, dtype), dtype, roots, weighted
        self.inputs = (self.V,)
        self.low_precision = np.dtype(dtype) == np.float32
        self.sums = {"result": like(np.zeros(V.shape), V), "square": np.zeros(())}
        self.nbytes = 8 * math.prod(V.shape)

    def add(self, block: Block) -> None:
        upper, rows = block.rows, block.length
        here, beyond = slice(block.start, block.stop), slice(block.stop, None)
        self.result[here, :] += upper @ self.V[block.start :, :]
        self.result[beyond, :] += (self.V[here, :].T @ upper[:, rows:]).T  # twice as fast
        if self.roots is not None:
            self._add_squares(upper, block.start, rows)

    def _add_squares(self, upper: Array, start: int, rows: int) -> None:
        """Add the squares of √w K √w; those right of the diagonal block count twice."""
        if not self.weighted and on_accelerator(upper):
            self.sums["square"] += 2.0 * squares(upper) - squares(upper[:, :rows])
            return
        for first in range(0, rows, _SQUARED):  # float64 copies of a few rows at a time
            some = slice(first, min(first + _SQUARED, rows))
            part = cast(upper[some, :], np.float64)
            if self.weighted:
                left = self.roots[start + some.start : start + some.stop, :]
                part = left * part * self.roots[start:, :].T
            self.sums["square"] += 2.0 * squares(part) - squares(part[:, :rows])

    def operand(self, start: int, stop: int) -> tuple[int, Array, Array]:
        """Return the operand of the rows start to stop - 1, which is sent with them to a worker."""
        roots = None if self.roots is None else self.roots[start:stop, :]
        return start, self.V[start:stop, :], roots

    def add_sums(self, start: int, stop: int, sums: dict[str, Array]) -> None:
        """Add the sums of the rows start to stop - 1."""
        self.result[start:stop, :] += sums["result"]
        self.sums["square"] += float(sums.get("square", 0.0))


class SymmetricFill(Collect):
    """Writes upper blocks to both sides of the diagonal of a host matrix."""

    def __init__(self, out: Matrix, label: str = "kernel matrix") -> None:
        super().__init__(out, label)

    def add(self, block: Block) -> None:
        upper = to_numpy(block.rows)
        self.out[block.start : block.stop, block.start :] = upper
        self.out[block.start :, block.start : block.stop] = upper.T


class DistributedGram(UpperBlocks):
    """The kernel matrix of remote rows.

    Every pair of chunks is computed once, on a worker. Only the rows of a product are gathered:
    neither the rows of the source nor the matrix.
    """

    def __init__(self, kernel: Kernel, source: Source, dtype: Any) -> None:
        self.kernel, self.source, self.stored = kernel, source, None
        self.dtype, self.shape = np.dtype(dtype), (source.shape[0], source.shape[0])

    def fold(self, state: F) -> F:
        """Fold the matrix into a product; the whole matrix is its product with the identity."""
        if isinstance(state, SymmetricFill):
            state.out[...] = self.fold(SymmetricProduct(np.eye(self.shape[0]), self.dtype)).result
            return state
        assert isinstance(state, SymmetricProduct)
        assert self.kernel is not None
        assert self.source.remote is not None
        make = functools.partial(PairProduct, self.kernel, self.dtype)
        self.source.remote.fold_pairs(self.source, make, state)
        return state


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
