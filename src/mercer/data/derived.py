"""Derived sources: scaled by a power of two, shifted, or counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.arrays import Array, Vector, cast, like
from mercer.data.fold import Block, Fold
from mercer.data.source import Mapped, Source


class Entrywise(Mapped):
    """Rows whose entries are changed one by one: sparse rows stay sparse, columns readable."""

    def __init__(self, source: Source, dtype: Any) -> None:
        super().__init__(source, self.changed, source.shape[1], dtype, 0)
        self.sparse, self.by_columns = source.sparse, source.by_columns

    def changed(self, block: Block) -> Array:
        """Return the changed rows of a block."""
        raise NotImplementedError

    def apply(self, start: int, rows: Array) -> Array:
        rows = self.changed(Block(start, rows, None))
        return rows.astype(self.dtype) if self.sparse else cast(rows, self.dtype)


class ScaledSource(Entrywise):
    """Rows divided by a power of two, which loses nothing."""

    def __init__(self, source: Source, exponent: int) -> None:
        self.exponent = exponent
        super().__init__(source, source.dtype)

    def changed(self, block: Block) -> Array:
        half = self.exponent // 2  # in two steps: the factor itself may be too large
        return block.rows * 2.0**-half * 2.0 ** (half - self.exponent)

    def transposed(self) -> Source | None:
        columns = self.source.transposed()
        return None if columns is None else ScaledSource(columns, self.exponent)


class ShiftedSource(Entrywise):
    """Rows minus a shift, in float64; of sparse rows only the stored entries are shifted.

    The shift of a sparse column is zero unless every row has an entry there. With `axis` 0 the
    shift has an entry for every row: the source is a transposed one.
    """

    def __init__(self, source: Source, shift: Vector, axis: int = 1) -> None:
        self.shift, self.axis = shift, axis
        super().__init__(source, np.float64)

    def changed(self, block: Block) -> Array:
        rows = block.rows
        shift = self.shift if self.axis else self.shift[block.start : block.stop]
        if not self.sparse:
            rows = cast(rows, np.float64)
            return rows - like(shift if self.axis else shift[:, None], rows)
        rows = rows.astype(np.float64)  # a copy of the entries
        if self.axis:
            rows.data = rows.data - shift[rows.indices]
        else:
            rows.data = rows.data - np.repeat(shift, np.diff(rows.indptr))
        return rows

    def transposed(self) -> Source | None:
        columns = self.source.transposed()
        return None if columns is None else ShiftedSource(columns, self.shift, 1 - self.axis)


class PastRows(Source):
    """Number and weight of the rows of earlier batches; the rows are not stored."""

    def __init__(self, batch: Source, n: int, count: float) -> None:
        self.shape = (n, *batch.shape[1:])
        self.dtype, self.names, self.reference = batch.dtype, batch.names, batch.reference
        self._count = count

    @property
    def count(self) -> float:
        return self._count

    def read(self, start: int, stop: int) -> Any:
        raise ValueError("The rows of earlier batches are not stored.")


class ColumnCounts(Fold):
    """Counts entries of every column; `count` counts those of a block."""

    def __init__(
        self, width: int, count: Callable[[Block], npt.NDArray[np.int64]], label: str
    ) -> None:
        self.total, self.count, self.label = np.zeros(width, np.int64), count, label

    def add(self, block: Block) -> None:
        self.total += self.count(block)

    def merge(self, other: Self) -> None:
        self.total += other.total

    def spawn(self) -> Self:
        return type(self)(len(self.total), self.count, self.label)

    def arrays(self) -> dict[str, Array]:
        return {"total": self.total}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.total[:] = arrays["total"]


def stored_by_column(block: Block) -> npt.NDArray[np.int64]:
    """Count the stored entries of every column of sparse rows."""
    return np.bincount(block.rows.indices, minlength=block.rows.shape[1])


def missing_by_column(block: Block) -> npt.NDArray[np.int64]:
    """Count the missing entries of every column."""
    rows = block.rows
    if hasattr(rows, "tocsr"):
        return np.bincount(rows.indices[np.isnan(rows.data)], minlength=rows.shape[1])
    return np.asarray(np.isnan(rows).sum(axis=0))


def count_missing(source: Source) -> npt.NDArray[np.int64]:
    """Return the number of missing entries of every column, in one pass."""
    return source.fold(ColumnCounts(source.shape[1], missing_by_column, "missing values")).total


def count_stored(source: Source) -> npt.NDArray[np.int64]:
    """Return the number of stored entries of every column of sparse rows, in one pass."""
    return source.fold(ColumnCounts(source.shape[1], stored_by_column, "stored entries")).total
