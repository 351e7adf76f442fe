"""Rows changed entry by entry: divided by a power of two, or less a shift."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Vector, cast, like
from mercer.data.fold import Block, Fold
from mercer.data.source import Mapped, Source


class Entrywise(Mapped):
    """Rows whose entries are changed one by one: sparse rows stay sparse, columns at hand."""

    def __init__(self, source: Source, dtype: Any) -> None:
        super().__init__(source, self.changed, source.shape[1], dtype, 0)
        self.sparse, self.by_columns = source.sparse, source.by_columns

    def changed(self, block: Block) -> Array:
        """Return the rows of a block, changed."""
        raise NotImplementedError

    def finish(self, start: int, found: Array) -> Array:
        rows = self.changed(Block(start, self.source.finish(start, found), None))
        return rows.astype(self.dtype) if self.sparse else cast(rows, self.dtype)

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        if not self.sparse or self.elsewhere is not None:
            return super()._take(at)
        return np.concatenate([self.read(int(i), int(i) + 1).toarray() for i in at])


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


class Levelled(Entrywise):
    """Rows less a shift, in float64; of sparse rows only the stored entries are shifted.

    A shift of a sparse column is zero unless every row has an entry there. `axis` is 0 where the
    shift has an entry for every row: rows that are columns.
    """

    def __init__(self, source: Source, shift: Vector, axis: int = 1) -> None:
        self.shift, self.axis = shift, axis
        super().__init__(source, np.float64)

    def changed(self, block: Block) -> Array:
        rows = block.rows
        if not self.sparse:
            rows = cast(rows, np.float64)
            return rows - like(self._of(block), rows)
        rows = rows.astype(np.float64)  # a copy of the entries
        lengths = np.diff(rows.indptr)
        rows.data = rows.data - (
            self.shift[rows.indices] if self.axis else np.repeat(self._of(block)[:, 0], lengths)
        )
        return rows

    def _of(self, block: Block) -> Vector:
        """Return the shift of a block's rows."""
        return self.shift if self.axis else self.shift[block.start : block.stop, None]

    def transposed(self) -> Source | None:
        columns = self.source.transposed()
        return None if columns is None else Levelled(columns, self.shift, 1 - self.axis)


class Stored(Fold):
    """Counts the stored entries of every column of sparse rows."""

    label = "stored entries"

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width, np.int64)

    def add(self, block: Block) -> None:
        self.count += np.bincount(block.rows.indices, minlength=len(self.count))

    def merge(self, other: Self) -> None:
        self.count += other.count

    def spawn(self) -> Self:
        return type(self)(len(self.count))

    def arrays(self) -> dict[str, Array]:
        return {"count": self.count}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.count[:] = arrays["count"]
