"""Rows in memory: arrays of any library, sparse matrices, strings, and tables that hold them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mercer.arrays import Array, cast, empty, like, namespace, numpy_dtype, working_dtype
from mercer.data.source import Source


def real_matrix_dtype(array: Array) -> np.dtype[Any]:
    """Return the dtype of a matrix; raise unless it is 2D and real."""
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: shape {tuple(array.shape)}. "
            f"Reshape it to rows and columns."
        )
    dtype = numpy_dtype(array)
    if dtype.kind not in "fiub":
        what = {"c": "Complex data not supported", "M": "Dates are not numbers"}
        days = ", for example to days: (X - X.min()) / numpy.timedelta64(1, 'D')"
        raise ValueError(
            f"{what.get(dtype.kind, 'Not numbers')}: the array has dtype {array.dtype}. Convert it "
            f"to float64{days if dtype.kind in 'mM' else ''}."
        )
    return dtype


class ArraySource(Source):
    """Rows of an array; blocks are views, or copies in the working precision."""

    by_columns = True
    row_bytes = 0

    def __init__(self, array: Array, names: Sequence[str] | None = None) -> None:
        self.array, self.names, self.stored = array, names, real_matrix_dtype(array)
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = working_dtype(self.stored)
        if self.stored != self.dtype:
            self.row_bytes = self.shape[1] * self.dtype.itemsize
        if not isinstance(array, np.ndarray):
            # Other libraries have threads, or a device, of their own.
            self.parallel = False
            self.reference = empty((0,), array, np.float64)  # does not keep the rows alive

    def read(self, start: int, stop: int) -> Array:
        return cast(self.array[start:stop, :], self.dtype)

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        if isinstance(self.array, np.ndarray):
            return cast(self.array[at], self.dtype)
        rows = namespace(self.array).take(self.array, like(at, self.array), axis=0)
        return cast(rows, self.dtype)

    def transposed(self) -> Source:
        return ArraySource(self.array.T)


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
        self.csr, self.names = csr, names
        self.shape, self.dtype = (int(csr.shape[0]), int(csr.shape[1])), csr.dtype

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.csr.nnz)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of average length, as if it were copied."""
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

    def load(self) -> Any:
        return self.csr

    def gather(self, at: np.ndarray[Any, Any]) -> Any:
        return self.csr[at]

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        return self.csr[at].toarray()

    def transposed(self) -> SparseSource:
        return self._columns

    @functools.cached_property
    def _columns(self) -> SparseSource:
        """The columns as compressed rows: made once and kept, as large as the matrix."""
        return SparseSource(self.csr.T.tocsr())


def require_inside(data: Any, indices: Any, indptr: Any, sizes: Sequence[int]) -> None:
    """Raise if indices are outside the shape, where compiled loops would access memory.

    `sizes` are the number of compressed rows (or columns) and their length, which is left out if
    the indices are checked when they are read.
    SciPy's own `check_format` lets a last pointer below zero through.
    """
    flat = indices.ndim == indptr.ndim == 1 and {indices.dtype.kind, indptr.dtype.kind} <= {*"iu"}
    if not flat or data.shape != indices.shape or len(indptr) != sizes[0] + 1:
        raise ValueError("The arrays of a sparse matrix do not match its shape.")
    ordered = indptr[0] == 0 and indptr[-1] <= len(data) and not (indptr[1:] < indptr[:-1]).any()
    if not ordered or any((indices < 0).any() or (indices >= size).any() for size in sizes[1:]):
        raise ValueError("A sparse matrix has indices outside its shape.")


class StringSource(Source):
    """Strings, one per row; blocks are lists of `str`."""

    row_bytes = 0

    def __init__(self, strings: Iterable[Any]) -> None:
        self.strings = [str(s) if isinstance(s, np.str_) else s for s in strings]
        for i, entry in enumerate(self.strings):
            if not isinstance(entry, str):
                remedy = "Decode" if isinstance(entry, bytes) else "Convert it with str, or drop"
                raise ValueError(
                    f"Entry {i} is {entry!r} ({type(entry).__name__}), but rows must be "
                    f"strings. {remedy} it."
                )
        self.shape = (len(self.strings),)  # type: ignore[assignment]
        self.dtype = np.dtype(np.float64)  # of kernel values

    def read(self, start: int, stop: int) -> list[str]:
        return self.strings[start:stop]

    def _take(self, at: np.ndarray[Any, Any]) -> list[str]:
        return [self.strings[i] for i in at]


def is_anndata(X: Any) -> bool:
    """Return whether X is an AnnData object; imports nothing, and reads no matrix of it."""
    named = any(base.__name__ == "AnnData" for base in type(X).__mro__)
    return named and hasattr(X, "obs_names") and hasattr(X, "var_names")


def is_lazy(X: Any) -> bool:
    """Return whether `materialize` would read or unwrap X; reads nothing."""
    library, name = type(X).__module__.split(".")[0], type(X).__name__
    if library == "pyarrow":
        return hasattr(X, "read_all") or hasattr(X, "to_table")
    return (library == "polars" and name == "LazyFrame") or is_anndata(X)


def materialize(X: Any) -> Any:
    """Return a polars LazyFrame, or a pyarrow reader or dataset, in memory; AnnData as a source.

    Everything else is returned as it is.
    """
    library, name = type(X).__module__.split(".")[0], type(X).__name__
    if library == "mercer" and name == "Table":
        raise TypeError("X is a Table, as returned by read_table. Pass table.source.")
    if is_anndata(X):
        from mercer.data.anndata import from_anndata

        return from_anndata(X)
    if is_lazy(X):
        method = next(each for each in ("collect", "read_all", "to_table") if hasattr(X, each))
        return getattr(X, method)()
    return X
