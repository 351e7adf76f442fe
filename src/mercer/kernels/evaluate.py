"""Kernel values of whole groups of rows: matrices, feature maps and sums over remote points."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    empty,
    like,
    namespace,
    numpy_dtype,
    same_device,
    to_device_of,
    to_numpy,
)
from mercer.data import Block, Collect, Source, SumFold, require_finite_rows
from mercer.data.remote import TILE_COLUMNS
from mercer.kernels.pair import TilePair
from mercer.kernels.points import Points, cast_rows

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

# Kernel values in this range leave float32 room for sums of them.
_SMALL, _LARGE = 1e-30, 1e30
# Kernel values in this range have squares, and sums of them, that float64 can hold.
_SMALLEST, _LARGEST = 1e-140, 1e140

Formula = Callable[[TilePair], Any]


def evaluate_into(formula: Formula, x: Points, y: Points, out: Array) -> None:
    """Write a formula of all rows of x and y to an array; matrix products go there first."""
    first, dtype = None, None if isinstance(x.rows, list) else numpy_dtype(x.rows)
    if dtype == np.float32 and (x.is_extreme or y.is_extreme):
        x, y = x.double, y.double
    elif dtype is None or dtype == numpy_dtype(out):
        first = [out]
    host = isinstance(out, np.ndarray)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # the caller judges
        for pair in TilePair.tiles(x, y, first) if host else [TilePair.between(x, y)]:
            values, target = formula(pair), out[pair.rows, pair.columns]
            # The product itself is there already.
            if not (isinstance(values, np.ndarray) and np.may_share_memory(values, target)):
                same = host or isinstance(values, float)
                out[pair.rows, pair.columns] = values if same else cast(values, numpy_dtype(out))


def evaluate(formula: Formula, x: Points, y: Points, reference: Array, dtype: Any) -> Array:
    """Return a formula of all rows of x and y, an array on the device of `reference`.

    The array may belong to the pair: it must not be written to.
    """
    shape = len(x), len(y)
    if not isinstance(reference, np.ndarray) and not (x.is_extreme or y.is_extreme):
        values = formula(TilePair.between(x, y))
        if tuple(getattr(values, "shape", ())) == shape and numpy_dtype(values) == dtype:
            return values
    out = empty(shape, reference, dtype)
    evaluate_into(formula, x, y, out)
    return out


def gram_matrix(formula: Formula, x: Source, y: Source) -> Array:
    """Return a formula of all rows of two sources."""
    dtype = np.result_type(x.dtype, y.dtype)
    out = empty((x.shape[0], y.shape[0]), x.output_reference, dtype)
    points = Points(cast_rows(y.load(), dtype))
    return x.fold(GramFold(formula, points, out, x.reference)).out


class GramFold(Collect):
    """Writes a formula of the rows that are folded and of fixed points y to an array.

    `reference` is an array on the device where values are computed.
    """

    def __init__(self, formula: Formula, y: Points, out: Array, reference: Array) -> None:
        super().__init__(out, "kernel")
        self.formula, self.y, self.reference = formula, y, reference
        self.row_bytes = len(y) * numpy_dtype(out).itemsize

    def add(self, block: Block) -> None:
        dtype, target = numpy_dtype(self.out), self.out[block.start : block.stop, :]
        x = Points(cast_rows(block.rows, dtype), block.start)
        if same_device(self.reference, self.out):
            evaluate_into(self.formula, x, self.y, target)
        else:
            values = evaluate(self.formula, x, self.y, self.reference, dtype)
            self.out[block.start : block.stop, :] = to_device_of(values, self.out)

    def spawn(self) -> Self:
        return type(self)(self.formula, self.y, self.out, self.reference)


def value_dtype(diagonal: Array, dtype: Any) -> np.dtype[Any]:
    """Return dtype, or float64 if dtype cannot represent kernel values of this diagonal."""
    largest = float(namespace(diagonal).max(abs(diagonal))) if diagonal.shape[0] else 0.0
    fits = largest == 0.0 or _SMALL < largest < _LARGE
    return np.dtype(dtype if fits else np.float64)


def check_magnitude(kernel: Kernel | None, largest: float) -> None:
    """Raise if squares of kernel values overflow or underflow in float64."""
    if 0.0 < largest < _SMALLEST or largest > _LARGEST:
        name = "a precomputed matrix" if kernel is None else repr(kernel)
        raise ValueError(
            f"{name} gives values of about {largest:.0e}: their squares are too large, or too "
            f"small, for float64. Scale the rows, or change the kernel's parameters."
        )


@dataclass(frozen=True)
class KernelMap:
    """The kernel between rows and a basis, h(x) = k(Y, x)."""

    kernel: Kernel | None
    """None if the rows are h(x) already."""
    basis: Any
    """The points Y; without a kernel, the columns of the rows that are h(x), or None for all."""
    shift: Vector | None = None
    """Subtracted from rows first; the basis is shifted already."""

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
        if isinstance(self.basis, list):
            return self.basis
        if isinstance(self.basis, np.ndarray) and isinstance(source.reference, np.ndarray):
            return self.basis
        return to_device_of(self.basis, source.reference)


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """A `KernelMap` for the rows of one source: a feature map."""

    map: KernelMap
    source: Source
    dtype: np.dtype[Any]
    basis: Any
    """The points Y, in the precision `dtype`; None without a kernel."""
    extra_bytes = 0

    @property
    def width(self) -> int:
        basis = self.map.basis if self.basis is None else self.basis
        return self.source.shape[1] if basis is None else len(basis)

    def __call__(self, block: Block) -> Array:
        """Return h(x) of the rows of a block; raise on NaN or infinity."""
        if self.basis is None and self.map.basis is not None:  # of rows that have been checked
            return cast(block.rows[:, self.map.basis], self.dtype)
        require_finite_rows(block, self.source)
        if self.basis is None or self.map.kernel is None:
            return block.dense(self.dtype)
        x = self.map.points(block, self.dtype)
        return evaluate(self.map.kernel.on, x, self.basis, self.source.reference, self.dtype)


def rounded_mean(mean: Vector, reference: Array, dtype: Any) -> tuple[Array, Array]:
    """Return a mean rounded to a precision, and the rest, to be subtracted after it."""
    # A mean of 1e4 loses 5e-4 in float32; float32 rows near it do not.
    rounded = like(mean, reference, dtype)
    rest = like(mean - to_numpy(rounded).astype(np.float64), reference, dtype)
    return rounded, rest


class KernelPairFold(SumFold):
    """A fold of the rows x of one chunk, with the kernel between them and the rows y of another.

    It is made by a `PairTask`; `left` and `right` are the operands of x and y, and the first entry
    of `left` is the number of the first row x. Subclasses set `sums`.
    """

    label = "kernel matrix"

    def __init__(self, kernel: Kernel, dtype: Any, y: Block, left: Any, right: Any) -> None:
        self.kernel, self.dtype, self.y = kernel, np.dtype(dtype), y
        self.left, self.right = left, right
        self.points = self.points_of(y)
        self.tile_columns = min(len(self.points), TILE_COLUMNS)

    def points_of(self, block: Block) -> Points:
        """Return the rows of a block as the kernel takes them."""
        return Points(cast_rows(block.rows, self.dtype), block.start)

    def add(self, block: Block) -> None:
        x, first = self.points_of(block), self.left[0]
        for start in range(0, len(self.points), TILE_COLUMNS):
            columns = slice(start, min(start + TILE_COLUMNS, len(self.points)))
            tile = np.empty((block.length, columns.stop - start), self.dtype)
            evaluate_into(self.kernel.on, x, self.points.part(columns), tile)
            self.add_tile(tile, slice(block.start - first, block.stop - first), columns)

    @abstractmethod
    def add_tile(self, tile: Array, rows: slice, columns: slice) -> None:
        """Add the kernel between some rows x and some rows y to the sums."""


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
            rows = slice(block.start - self.left[0], block.stop - self.left[0])
            self.sums["left result"][rows, -1] = self.kernel.on_diagonal(self.points_of(block))

    def add_tile(self, tile: Array, rows: slice, columns: slice) -> None:
        self.sums["left result"][rows, :-1] += (tile - self.mean[columns]) @ self.A[columns]


def kernel_sums(
    kernel: Kernel,
    points: Any,
    source: Source,
    weights: tuple[Vector, Matrix],
    after: Callable[[Block], Array],
    width: int,
) -> Source:
    """Return a function of Σ_y (k(x, y) − m_y) a_y and k(x, x) for every row x.

    The sums run on the workers that hold the points, a Dask array: neither the points nor the
    kernel matrix are gathered. `weights` are m and a, one row for every point; `after` is the
    function of a block of sums, whose last column is k(x, x), to `width` columns.
    """
    from mercer.data.dask import sum_over_points

    mean, A = (part.astype(source.dtype) for part in weights)
    make = functools.partial(KernelSums, kernel, source.dtype)
    n_sums = A.shape[1] + 1
    return sum_over_points(
        source, points, make, lambda i, j: (i == 0, mean[i:j], A[i:j]), n_sums, after, width
    )
