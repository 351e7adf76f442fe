"""The kernel between rows and a basis, as a map of rows to features."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, like, moved, to_numpy
from mercer.data import Block, Source, require_finite_rows
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import evaluate, value_dtype
from mercer.kernels.pair_fold import KernelPairFold
from mercer.kernels.points import Points, cast_rows


@dataclass(frozen=True)
class KernelMap:
    """The kernel between rows and a basis, h(x) = k(Y, x).

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None if the rows are h(x) already.
    basis : rows or None
        The points Y.
    shift : ndarray of shape (d,) or None
        What is subtracted from rows first; the basis is shifted already.
    """

    kernel: Kernel | None
    basis: Any
    shift: Vector | None = None

    def on(self, source: Source, dtype: Any = None) -> KernelFeatures:
        """Return the map for rows of a source, on their device."""
        dtype = source.dtype if dtype is None else np.dtype(dtype)
        points = None
        if self.kernel is not None:
            points = Points(cast_rows(self.near(source), dtype))
        return KernelFeatures(self, source, dtype, points)

    def points(self, block: Block, dtype: Any) -> Points:
        """Return the rows of a block as the kernel takes them."""
        rows = cast_rows(block.rows, dtype)
        if self.shift is not None:
            rows = rows.toarray() if hasattr(rows, "tocsr") else rows
            shift, rest = rounded_mean(self.shift, rows, dtype)
            rows = rows - shift - rest
        return Points(rows, block.start)

    def precision(self, source: Source, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the precision of h(x): float32 only if it can represent the values."""
        if self.kernel is None or dtype == np.float64:
            return dtype
        with np.errstate(over="ignore", invalid="ignore"):
            diag = self.kernel.on_diagonal(Points(cast_rows(self.near(source), np.float64)))
        return value_dtype(diag, dtype)

    def near(self, source: Source) -> Any:
        """Return the basis on the device of the rows."""
        if isinstance(self.basis, list) or hasattr(self.basis, "tocsr"):
            return self.basis
        return moved(self.basis, source.reference)


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """A `KernelMap` for the rows of one source: a feature map."""

    map: KernelMap
    source: Source
    dtype: np.dtype[Any]
    basis: Points | None
    extra_bytes = 0

    @property
    def width(self) -> int:
        """Number of points of the basis."""
        return self.source.shape[1] if self.basis is None else len(self.basis)

    def __call__(self, block: Block) -> Array:
        """Return h(x) of the rows of a block; refuse NaN and infinity."""
        require_finite_rows(block, self.source)
        if self.basis is None or self.map.kernel is None:
            return block.dense(self.dtype)
        x = self.map.points(block, self.dtype)
        return evaluate(self.map.kernel.on, x, self.basis, self.source.reference, self.dtype)


def rounded_mean(mean: Vector, reference: Array, dtype: Any) -> tuple[Array, Array]:
    """Return a mean rounded to a precision, and the rest, to be subtracted after it.

    A mean of 1e4 loses 5e-4 in float32; float32 rows near it do not.
    """
    rounded = like(mean, reference, dtype)
    rest = like(mean - to_numpy(rounded).astype(np.float64), reference, dtype)
    return rounded, rest


def kernel_sums(
    kernel: Kernel,
    points: Any,
    source: Source,
    weights: tuple[Vector, Matrix],
    after: Callable[[Block], Array],
    width: int,
) -> Source:
    """Return a function of Σ_y (k(x, y) − m_y) a_y and k(x, x) for every row x.

    The sums run on the workers that hold the points: neither the points nor the kernel matrix
    are gathered.

    Parameters
    ----------
    kernel : Kernel
    points : dask.array.Array
        The points y.
    source : Source
        Rows x, in the dtype to compute in.
    weights : tuple of ndarray
        m, and a: one row for every point.
    after : callable
        Function of a block of sums, whose last column is k(x, x).
    width : int
        Number of columns that it returns.
    """
    from mercer.data.dask import sum_over_points

    mean, A = (part.astype(source.dtype) for part in weights)
    make = functools.partial(KernelSums, kernel, source.dtype)
    n_sums = A.shape[1] + 1
    return sum_over_points(
        source, points, make, lambda i, j: (i == 0, mean[i:j], A[i:j]), n_sums, after, width
    )


class KernelSums(KernelPairFold):
    """The sums of (k(x, y) − m_y) a_y over points y, and k(x, x) as a last column."""

    def __init__(self, kernel: Kernel, dtype: Any, y: Block, left: Any, right: Any) -> None:
        super().__init__(kernel, dtype, y, left, right)
        self.first, self.mean, self.A = right
        width = self.A.shape[1] + 1
        self.sums = {"left result": np.zeros((left[1] - left[0], width), self.dtype)}
        self.row_bytes = (width + 2 * self.tile_columns) * self.dtype.itemsize

    def add(self, block: Block) -> None:
        super().add(block)
        if self.first:  # once per row, not once per chunk of points
            diag = self.kernel.on_diagonal(self.points_of(block))
            self.sums["left result"][self.rows_of(block), -1] = diag

    def add_tile(self, tile: Array, rows: slice, columns: slice) -> None:
        self.sums["left result"][rows, :-1] += (tile - self.mean[columns]) @ self.A[columns]
