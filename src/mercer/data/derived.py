"""Derived sources: scaled by a power of two, shifted, or counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import Array, Vector, cast, entry_rows, like, namespace, to_numpy, with_data
from mercer.data.fold import Block, SumFold
from mercer.data.in_memory import ArraySource, SparseSource
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

    def gather(self, at: npt.NDArray[Any]) -> Array:
        return self.apply(0, self.source.gather(at))


class ScaledSource(Entrywise):
    """Rows divided by a power of two, which loses nothing."""

    def __init__(self, source: Source, exponent: int) -> None:
        self.exponent = exponent
        super().__init__(source, source.dtype)

    def changed(self, block: Block) -> Array:
        half = self.exponent // 2  # in two steps: the factor itself may be too large
        return block.rows * 2.0**-half * 2.0 ** (half - self.exponent)

    def transposed(self) -> Source:
        return ScaledSource(self.source.transposed(), self.exponent)


class FilledSource(Entrywise):
    """Rows with a value for each column in place of missing entries."""

    def __init__(self, source: Source, values: Vector) -> None:
        self.values = values
        super().__init__(source, source.dtype)

    def changed(self, block: Block) -> Array:
        rows = block.rows
        if self.sparse:
            entries, xp = rows.data, namespace(rows.data)
            values = xp.take(like(self.values, entries, self.dtype), rows.indices, axis=0)
            return with_data(rows, xp.where(xp.isnan(entries), values, entries))
        xp = namespace(rows)
        return xp.where(xp.isnan(rows), like(self.values, rows, self.dtype), rows)


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
        entries = cast(rows.data, np.float64)
        places = rows.indices if self.axis else entry_rows(rows)
        shifts = namespace(entries).take(like(shift, entries), places, axis=0)
        return with_data(rows, entries - shifts)

    def transposed(self) -> Source:
        return ShiftedSource(self.source.transposed(), self.shift, 1 - self.axis)


def select_columns(source: Source, columns: Sequence[int]) -> Source:
    """Return some columns of a source."""
    at = list(columns)
    if at == list(range(source.shape[1])):
        return source
    if isinstance(source, SparseSource):
        return SparseSource(source.csr[:, at])
    if isinstance(source, ArraySource):
        return ArraySource(source.array[:, at])
    return source.map(lambda block: block.rows[:, at], len(at))


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


class ColumnCounts(SumFold):
    """Counts the stored entries of every column of sparse rows, or the missing ones of any rows."""

    def __init__(self, width: int, *, missing: bool) -> None:
        self.sums, self.missing = {"result": np.zeros(width, np.int64)}, missing
        self.label = "missing values" if missing else "stored entries"

    def add(self, block: Block) -> None:
        rows, width = block.rows, len(self.result)
        if hasattr(rows, "tocsr"):
            at, entries = to_numpy(rows.indices), to_numpy(rows.data) if self.missing else None
            at = at if entries is None else at[np.isnan(entries)]
            self.sums["result"] += np.bincount(at, minlength=width)
        else:
            xp = namespace(rows)
            self.sums["result"] += to_numpy(xp.sum(cast(xp.isnan(rows), np.int64), axis=0))


class ColumnSums(SumFold):
    """Sums of the entries that are not missing, and the weights of those that are, by column."""

    label = "column means"

    def __init__(self, width: int) -> None:
        self.sums = {"entries": np.zeros(width), "missing": np.zeros(width)}

    def add(self, block: Block) -> None:
        rows, w = block.rows, block.count
        sparse = hasattr(rows, "tocsr")
        entries = rows.data if sparse else rows
        xp = namespace(entries)
        missing = xp.isnan(entries)
        entries = xp.where(missing, 0.0, cast(entries, np.float64))
        missing = cast(missing, np.float64)
        for name, values in (("entries", entries), ("missing", missing)):
            part = with_data(rows, values) if sparse else values
            self.sums[name] += to_numpy(part.T @ like(w, entries))


def column_means(source: Source) -> Vector:
    """Return the means of the entries that are not missing, in one pass; NaN where there are none.

    Entries that sparse rows do not store are zero.
    """
    sums = source.fold(ColumnSums(source.shape[1])).sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums["entries"] / (source.count - sums["missing"]))


def count_missing(source: Source) -> npt.NDArray[np.int64]:
    """Return the number of missing entries of every column, in one pass."""
    return np.asarray(source.fold(ColumnCounts(source.shape[1], missing=True)).result)


def count_stored(source: Source) -> npt.NDArray[np.int64]:
    """Return the number of stored entries of every column of sparse rows, in one pass."""
    return np.asarray(source.fold(ColumnCounts(source.shape[1], missing=False)).result)
