"""Sparse rows whose arrays belong to a library other than NumPy.

The libraries' own products, by cuSPARSE, are not used: the algorithms that torch and CuPy choose
may add in another order every time, and transposed products add atomically. Here the terms of a
row are added in a fixed order. A transposed product is a product with the transposed matrix, for
which the entries of a block are sorted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.arrays.places import (
    Array,
    cast,
    device,
    like,
    namespace,
    numpy_dtype,
    put,
    to_numpy,
)

ENTRY_BYTES = 80
"""Bytes of an entry on a device while its block is transposed: itself, a copy, keys and order."""
# Longer rows are added in parts, by several threads.
_LONG = 1024
# Entries that one product takes, and terms that are stored at once where it stores them.
_ENTRIES, _TERMS = 2**28, 2**24


class CSR:
    """A matrix in compressed sparse rows: SciPy's `csr_array`, with arrays of any library.

    It is canonical: the columns of a row are in order, and none is stored twice.

    Attributes
    ----------
    data, indices, indptr : array
        The entries, row after row; their columns; and where each row begins, int64.
    shape : tuple of int
    """

    ndim = 2

    def __init__(
        self,
        data: Array,
        indices: Array,
        indptr: Array,
        shape: Sequence[int],
        places: dict[str, Any] | None = None,
    ) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = (int(shape[0]), int(shape[1]))
        # What follows from the places of the entries, whatever they are: shared by `with_data`.
        self._places: dict[str, Any] = {} if places is None else places

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.data)

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.data.shape[0])

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self.data, self.indices, self.indptr

    @property
    def native(self) -> Any:
        """The matrix as its library has it: a sparse tensor of torch, or a matrix of CuPy."""
        if hasattr(self.data, "is_cuda"):
            import torch

            columns = self.indices.to(torch.int64)
            return torch.sparse_csr_tensor(
                self.indptr, columns, self.data, self.shape, check_invariants=False
            )
        if type(self.data).__module__.startswith("cupy"):
            from cupyx.scipy.sparse import csr_matrix  # type: ignore[import-not-found]

            return csr_matrix(self.arrays, shape=self.shape)
        return self

    @property
    def entry_rows(self) -> Array:
        """The row of every entry, int64."""
        return _owners(self.indptr)[0]

    def tocsr(self) -> CSR:
        return self

    def copy(self) -> CSR:
        xp = namespace(self.data)
        data, indices, indptr = (xp.asarray(part, copy=True) for part in self.arrays)
        return CSR(data, indices, indptr, self.shape)

    def with_data(self, data: Array) -> CSR:
        """Return the matrix with other entries at the same places."""
        return CSR(data, self.indices, self.indptr, self.shape, self._places)

    def astype(self, dtype: Any, copy: bool = True) -> CSR:
        return self if self.dtype == dtype else self.with_data(cast(self.data, dtype))

    def __mul__(self, factor: float) -> CSR:
        return self.with_data(self.data * factor)

    def count_nonzero(self) -> int:
        return int(namespace(self.data).count_nonzero(self.data))

    def toarray(self) -> Array:
        xp, indices = namespace(self.data), cast(self.indices, np.int64)
        out = xp.zeros(self.shape, dtype=self.data.dtype, device=device(self.data))
        return put(out, self.entry_rows, indices, self.data)

    @property
    def T(self) -> CSR:  # noqa: N802 (NumPy's name)
        """The transposed matrix. The order of its entries is kept with the places."""
        if "columns" not in self._places:
            xp, (n, d) = namespace(self.data), self.shape
            order = xp.argsort(self.indices, stable=True)
            rows = cast(xp.take(self.entry_rows, order), index_dtype(n))
            columns = cast(xp.take(self.indices, order), np.int64)
            indptr = xp.searchsorted(columns, count_to(d + 1, self.data))
            self._places["columns"] = order, rows, cast(indptr, np.int64), {}
        order, rows, indptr, places = self._places["columns"]
        data = namespace(self.data).take(self.data, order)
        return CSR(data, rows, indptr, self.shape[::-1], places)

    def __getitem__(self, key: Any) -> CSR:
        """Return rows, or rows and columns, by a slice or an array of numbers."""
        key, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not (isinstance(columns, slice) and columns == slice(None)):
            return self[key].T[columns].T
        n, d = self.shape
        if not isinstance(key, slice):
            return self._take(key)
        start, stop, step = key.indices(n)
        if step != 1:
            return self._take(np.arange(start, stop, step))
        stop = max(start, stop)
        ends = self._ends
        part = slice(int(ends[start]), int(ends[stop]))
        indptr = self.indptr[start : stop + 1]
        indptr = indptr - indptr[:1] if part.start else indptr
        return CSR(self.data[part], self.indices[part], indptr, (stop - start, d))

    def _take(self, rows: Any) -> CSR:
        xp = namespace(self.data)
        if isinstance(rows, (list, np.ndarray)):
            rows = like(np.asarray(rows, np.int64), self.indptr)
        rows = cast(rows, np.int64)
        first = xp.take(self.indptr, rows)
        indptr = _pointers(xp.take(self.indptr, rows + 1) - first)
        owner, at = _owners(indptr)
        at = at - xp.take(indptr, owner) + xp.take(first, owner)
        data, indices = xp.take(self.data, at), xp.take(self.indices, at)
        return CSR(data, indices, indptr, (int(rows.shape[0]), self.shape[1]))

    def __matmul__(self, V: Array) -> Array:
        """Return the product with a dense matrix or vector."""
        dtype, xp = np.result_type(self.dtype, numpy_dtype(V)), namespace(V)
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        fused = hasattr(V, "is_cuda")  # torch has a product that stores no terms
        most = _ENTRIES if fused else max(1, _TERMS // max(1, int(V.shape[1])))
        if self.nnz > most and self.shape[0] > 1:
            starts = np.searchsorted(self._ends, np.arange(0, self.nnz, most))
            cuts = np.unique([0, *starts.tolist(), self.shape[0]]).tolist()
            if len(cuts) == 2:  # one row has nearly all entries
                cuts = [0, self.shape[0] // 2, self.shape[0]]
            return xp.concat([self[start:stop] @ V for start, stop in pairwise(cuts)])
        data, V = cast(self.data, dtype), cast(V, dtype)
        if not fused:
            terms = data[:, None] * xp.take(V, cast(self.indices, np.int64), axis=0)
            return _row_sums(terms, self.indptr)
        parts, ends = self._parts
        product = _bag_sums(data, self.indices, parts, V)
        if ends is None:
            return product
        return _bag_sums(None, count_to(int(product.shape[0]), self.data), ends, product)

    @property
    def _ends(self) -> np.ndarray[Any, Any]:
        """`indptr` on the host."""
        if "ends" not in self._places:
            self._places["ends"] = to_numpy(self.indptr)
        ends: np.ndarray[Any, Any] = self._places["ends"]
        return ends

    @property
    def _parts(self) -> tuple[Array, Array | None]:
        """Where parts of rows begin, and at which part each row; None if rows have one part."""
        if "parts" not in self._places:
            xp, lengths = namespace(self.indptr), self.indptr[1:] - self.indptr[:-1]
            self._places["parts"] = self.indptr, None
            if self.nnz > _LONG and int(xp.max(lengths)) > _LONG:
                ends = _pointers((lengths + (_LONG - 1)) // _LONG)
                owner, number = _owners(ends)
                begins = xp.take(self.indptr, owner) + (number - xp.take(ends, owner)) * _LONG
                self._places["parts"] = xp.concat([begins, self.indptr[-1:]]), ends
        parts: tuple[Array, Array | None] = self._places["parts"]
        return parts


def index_dtype(size: int) -> np.dtype[Any]:
    """Return the type of row or column numbers below `size`."""
    return np.dtype(np.int32 if size < 2**31 else np.int64)


def count_to(size: int, reference: Array) -> Array:
    """Return 0, 1, …, size − 1."""
    xp = namespace(reference)
    return xp.arange(size, dtype=xp.int64, device=device(reference))


def _pointers(lengths: Array) -> Array:
    """Return where rows of these lengths begin and end."""
    xp = namespace(lengths)
    return xp.concat([count_to(1, lengths), xp.cumulative_sum(lengths)])


def _owners(indptr: Array) -> tuple[Array, Array]:
    """Return the number of the row of every entry, and the number of the entry."""
    xp, at = namespace(indptr), count_to(int(indptr[-1]), indptr)
    return xp.searchsorted(indptr, at, side="right") - 1, at


def _bag_sums(data: Array | None, indices: Array, indptr: Array, V: Array) -> Array:
    """Return Σ data V[indices] of every row, by torch: its terms in order, in one thread."""
    from torch.nn.functional import embedding_bag

    return embedding_bag(
        indices,
        V.contiguous(),
        indptr.to(indices.dtype),
        mode="sum",
        per_sample_weights=data,
        include_last_offset=True,
    )


def _row_sums(terms: Array, indptr: Array) -> Array:
    """Return the sums of the terms of every row, added pair by pair: by any library.

    A cumulative sum would lose digits of short rows after long ones.
    """
    xp = namespace(terms)
    if not terms.shape[0]:
        shape = (int(indptr.shape[0]) - 1, int(terms.shape[1]))
        return xp.zeros(shape, dtype=terms.dtype, device=device(terms))
    lengths = indptr[1:] - indptr[:-1]
    longest = int(xp.max(lengths))
    while longest > 1:
        half = (lengths + 1) // 2
        shorter = _pointers(half)
        owner, at = _owners(shorter)
        within = 2 * (at - xp.take(shorter, owner))
        first = xp.take(indptr, owner) + within
        paired = within + 1 < xp.take(lengths, owner)
        second = xp.take(terms, xp.where(paired, first + 1, first), axis=0)
        terms = xp.take(terms, first, axis=0) + xp.where(
            paired[:, None], second, xp.zeros_like(second)
        )
        indptr, lengths, longest = shorter, half, (longest + 1) // 2
    own = xp.take(terms, xp.where(lengths > 0, indptr[:-1], 0 * indptr[:-1]), axis=0)
    return xp.where((lengths > 0)[:, None], own, xp.zeros_like(own))
