"""Rows in random order, in blocks of a fixed size."""

from __future__ import annotations

import math

import numpy as np

from mercer.arrays import Array
from mercer.config import require_budget
from mercer.data.source import Source


def shuffle(source: Source, rows: int, rng: np.random.Generator, block_memory: int = 0) -> Source:
    """Return the rows in random order, in blocks of `rows` rows, each from everywhere."""
    if source.remote is None:
        return Shuffled(source, rows, rng, block_memory)
    from mercer.data.dask import shuffle_chunks

    return shuffle_chunks(source, rows, rng)


class Shuffled(Source):
    """Every row of a source once, in random order, in blocks of `rows` rows.

    The blocks are the same whatever the memory and the number of threads. `block_memory` is what
    a pass needs for a block, besides its rows. Rows of weight zero are left out.
    """

    def __init__(
        self, source: Source, rows: int, rng: np.random.Generator, block_memory: int = 0
    ) -> None:
        n, weights = source.shape[0], source.weights
        self.order = rng.permutation(n if weights is None else np.flatnonzero(weights > 0))
        self.source, self.rows, self.block_memory = source, rows, block_memory
        self.shape = (len(self.order), *source.shape[1:])
        self.dtype, self.reference, self.sparse = source.dtype, source.reference, source.sparse
        self.weights = None if weights is None else weights[self.order]
        self.parallel = source.parallel

    @property
    def row_bytes(self) -> int:
        """Bytes of a copy of a row, and of what its source needs to read it."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize + self.source.row_bytes

    def read(self, start: int, stop: int) -> Array:
        return self.source.gather(self.order[start:stop])

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        needed = held + parts * (self.block_memory + self.rows * (self.row_bytes + extra_bytes))
        require_budget(needed, f"A block of {self.rows} rows")
        return self.rows
