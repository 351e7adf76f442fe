"""The d×q matrix of a sketch, which maps rows of d columns to rows of q."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from mercer.arrays import (
    CSR,
    Array,
    Matrix,
    cast,
    device,
    is_foreign,
    like,
    namespace,
    numpy_dtype,
    working_dtype,
)
from mercer.config import get_config
from mercer.data import Block, Source, finite_rows

# Most rows and entries of a part of the matrix: 4 MiB in float64.
_ROWS, _ENTRIES = 1024, 2**19

_lock = threading.Lock()


def stream(seed: int, number: int) -> np.random.Generator:
    """Return the generator of one part, which does not depend on the parts before it."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


class SketchMatrix(ABC):
    """A d×q matrix W, which maps rows x to xᵀW.

    The matrix is the same, to the bit, for any block of rows, source and number of threads; the
    results are the same to rounding.
    """

    drops = False
    """Whether some rows of the matrix are 0: a NaN in those columns would leave no trace."""
    _cache: tuple[Any, Array] = (None, None)

    def __init__(self, d: int, q: int) -> None:
        self.d, self.q = d, q
        self.step = max(1, min(_ROWS, _ENTRIES // q))

    @abstractmethod
    def block(self, first: int, stop: int) -> Matrix:
        """Return rows `first` to `stop` - 1; `step` divides `first`."""

    def toarray(self, dtype: Any = np.float64) -> Array:
        """Return the whole matrix."""
        whole = np.empty((self.d, self.q), dtype)
        for first in range(0, self.d, self.step):
            whole[first : first + self.step] = self.block(first, min(first + self.step, self.d))
        return whole

    def row_bytes(self, source: Source) -> int:
        """Bytes needed for a row, besides the row itself and the result."""
        return self.q * source.dtype.itemsize

    def apply(self, rows: Any) -> Array:
        """Return rows of q columns for an array or sparse matrix of d, dense, in their dtype."""
        sparse = hasattr(rows, "tocsr")
        if not is_foreign(rows) and not sparse:
            rows = np.asarray(rows)
        self._check_columns(tuple(rows.shape))
        if isinstance(rows, CSR):
            return self._on_device(rows)
        if sparse:
            csr = rows.tocsr().astype(working_dtype(rows.dtype), copy=False)
            # A part of the matrix takes the entries of its columns: they must be in order.
            return self._on_sparse(csr if csr.has_sorted_indices else csr.sorted_indices())
        rows = cast(rows, working_dtype(numpy_dtype(rows)))
        return self._on_host(rows) if isinstance(rows, np.ndarray) else self._on_device(rows)

    def on(self, source: Source) -> Source:
        """Return the rows of a source through the map, computed when they are read."""
        self._check_columns(source.shape)

        def transform(block: Block) -> Array:
            with np.errstate(invalid="ignore", over="ignore"):
                rows = self.apply(block.rows)
            return finite_rows(rows, block, source, unread=self.drops)

        extra, part = self.row_bytes(source), self.step * self.q * 8
        return source.map(transform, self.q, extra_bytes=extra, part_bytes=part)

    def _check_columns(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[1] != self.d:
            raise ValueError(
                f"The rows have shape {shape}, but the map takes {self.d} columns. Fit it to rows "
                f"with the same columns."
            )

    def _whole(self, reference: Array, dtype: Any) -> Array | None:
        """Return the matrix if it fits in memory, where it is kept."""
        if self.d * self.q * np.dtype(dtype).itemsize > get_config().budget // 4:
            return None
        place = (namespace(reference).__name__, str(device(reference)), np.dtype(dtype).name)
        with _lock:
            if self._cache[0] != place:  # one at a time: two would not fit
                self._cache = (None, None)
                self._cache = (place, like(self.toarray(dtype), reference))
            return self._cache[1]

    def _parts(self, reference: Array, dtype: Any) -> Iterator[tuple[slice, Array]]:
        """Yield the matrix in parts: in memory if it fits, else computed each time."""
        whole = self._whole(reference, dtype)
        for first in range(0, self.d, self.step):
            part = slice(first, min(first + self.step, self.d))
            if whole is None:
                yield part, like(self.block(part.start, part.stop), reference, dtype)
            else:
                yield part, whole[part, :]

    def _on_host(self, rows: Array) -> Array:
        # In parts even if the matrix is in memory: the same bits as if it were not.
        out: Array = 0.0
        for columns, part in self._parts(rows, numpy_dtype(rows)):
            out += rows[:, columns] @ part
        return out

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import add_products

        out = np.zeros((rows.shape[0], self.q), rows.dtype)
        csr, start = (rows.indptr, rows.indices, rows.data), rows.indptr[:-1].copy()
        for columns, part in self._parts(out, rows.dtype):
            add_products(csr, start, (columns.start, columns.stop), part, out)
        return out

    def _on_device(self, rows: Any) -> Array:
        if not isinstance(rows, CSR):
            return SketchMatrix._on_host(self, rows)
        whole = self._whole(rows.data, rows.dtype)
        if whole is not None:
            return rows @ whole
        parts = self._parts(rows.data, rows.dtype)
        return sum(rows[:, columns] @ part for columns, part in parts)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cache"}


class SparseMatrix(SketchMatrix):
    """A sparse matrix; sums are in float64.

    Dense rows, sparse rows and any block of them give the same bits.
    """

    matrix: sp.csr_array

    def row_bytes(self, source: Source) -> int:
        return self.q * 8  # the sums; for arrays on a device, a product

    def block(self, first: int, stop: int) -> Matrix:
        return np.asarray(self.matrix[first:stop].toarray())

    def _on_host(self, rows: Array) -> Array:
        from mercer.sketches.loops import scatter

        out, matrix = np.zeros((rows.shape[0], self.q)), self.matrix
        packed = np.ascontiguousarray(rows)
        scatter(packed, (matrix.indptr, matrix.indices, matrix.data), out)
        return out.astype(rows.dtype, copy=False)

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import scatter_sparse

        out, matrix = np.zeros((rows.shape[0], self.q)), self.matrix
        csr = (rows.indptr, rows.indices, rows.data)
        scatter_sparse(csr, (matrix.indptr, matrix.indices, matrix.data), out)
        return out.astype(rows.dtype, copy=False)


class FixedMatrix(SparseMatrix):
    """A given sparse d×q matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr().astype(np.float64)
        super().__init__(*map(int, self.matrix.shape))
        self.drops = bool(np.any(np.diff(self.matrix.indptr) == 0))


class IdentityMatrix(FixedMatrix):
    """The identity matrix."""

    def __init__(self, d: int) -> None:
        super().__init__(sp.eye_array(d))


class RandomSparseMatrix(SparseMatrix):
    """A random matrix with `each` entries in every row."""

    def __init__(self, d: int, q: int, each: int, seed: int) -> None:
        super().__init__(d, q)
        self.each, self.seed = each, seed

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.int64], Any]:
        """Return the columns and the values of the entries of n rows, of shape (n, each)."""

    @cached_property
    def matrix(self) -> sp.csr_array:  # type: ignore[override]
        """The matrix; two threads may both draw it: they get the same."""
        parts = [
            self.draw(stream(self.seed, i), min(_ROWS, self.d - first))
            for i, first in enumerate(range(0, self.d, _ROWS))
        ]
        dtype = sp.get_index_dtype(maxval=self.d * self.each)
        columns = np.vstack([columns for columns, _ in parts]).astype(dtype)
        values = np.vstack([np.broadcast_to(v, columns.shape) for columns, v in parts])
        indptr = np.arange(self.d + 1, dtype=dtype) * self.each
        return sp.csr_array((values.ravel(), columns.ravel(), indptr), (self.d, self.q))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "matrix"}
