"""Rows divided by a power of two."""

from __future__ import annotations

from mercer.arrays import Array
from mercer.sources.base import Mapped, Source
from mercer.sources.fold import Block


class Scaled(Mapped):
    """Rows divided by a power of two, which loses nothing."""

    def __init__(self, source: Source, exponent: int) -> None:
        factor = 2.0**-exponent
        super().__init__(
            source, lambda block: block.rows * factor, source.shape[1], source.dtype, 0
        )
        self.exponent = exponent
        self.sparse, self.by_columns = source.sparse, source.by_columns

    def _made(self, start: int, found: Array) -> Array:
        return self.f(Block(start, found, None))

    def transposed(self) -> Source | None:
        columns = self.source.transposed()
        return None if columns is None else Scaled(columns, self.exponent)
