"""Sparse rows: compressed rows of SciPy, sliced without copying their entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.arrays import Array, working_dtype
from mercer.data.source import Source


def require_inside(data: Any, indices: Any, indptr: Any, sizes: Sequence[int]) -> None:
    """Refuse entries beyond the shape: compiled loops would read, and write, there unasked.

    `sizes` are how many rows there are and how long they are; columns, where these are compressed.
    SciPy's own `check_format` lets a last pointer below zero through.
    """
    flat = indices.ndim == indptr.ndim == 1 and {indices.dtype.kind, indptr.dtype.kind} <= {*"iu"}
    if not flat or len(data) != len(indices) or len(indptr) != sizes[0] + 1:
        raise ValueError("a sparse matrix is not of its shape")
    ordered = indptr[0] == 0 and indptr[-1] <= len(data) and not (indptr[1:] < indptr[:-1]).any()
    if not ordered or (indices < 0).any() or (indices >= sizes[1]).any():
        raise ValueError("a sparse matrix has entries beyond its shape")


class SparseSource(Source):
    """Rows of a sparse matrix; blocks are CSR arrays."""

    sparse = True
    uneven = True
    by_columns = True

    def __init__(self, matrix: Any, names: Sequence[str] | None = None) -> None:
        import scipy.sparse

        csr = scipy.sparse.csr_array(matrix)  # shares the entries of a CSR matrix
        if csr.dtype != working_dtype(csr.dtype):
            csr = csr.astype(working_dtype(csr.dtype))
        if not csr.has_canonical_format:  # an entry stored in parts cannot be squared
            csr = csr.copy()
            csr.sum_duplicates()
        self.csr = csr
        self.shape = (int(csr.shape[0]), int(csr.shape[1]))
        self.dtype = csr.dtype
        self.names = names
        self._columns: SparseSource | None = None

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.csr.nnz)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of average length, pessimistically as if it were copied."""
        return 12 * self.nnz // max(1, self.shape[0])

    def read(self, start: int, stop: int) -> Any:
        import scipy.sparse

        pointers = self.csr.indptr[start : stop + 1]
        part = slice(int(pointers[0]), int(pointers[-1]))
        # Made empty and then filled: the constructor would copy a slice of a larger array.
        rows = scipy.sparse.csr_array((stop - start, self.shape[1]), dtype=self.dtype)
        rows.data, rows.indices = self.csr.data[part], self.csr.indices[part]
        rows.indptr = pointers - pointers[0]
        return rows

    def whole(self) -> Any:
        return self.csr

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        return self.csr[at].toarray()

    def transposed(self) -> SparseSource:
        """Return the columns as compressed rows: made once, kept, as large as the matrix."""
        if self._columns is None:
            self._columns = SparseSource(self.csr.T.tocsr())
        return self._columns
