"""Sparse rows of any library: SciPy's on the host, `CSR` elsewhere; functions that take both."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.arrays.csr import CSR, count_to, index_dtype
from mercer.arrays.places import (
    Array,
    cast,
    device,
    like,
    namespace,
    numpy_dtype,
    same_device,
    to_numpy,
    working_dtype,
)
from mercer.config import get_config

# Entries of a dense copy of some rows, at most.
_DENSE = 2**26
_OUTSIDE = "A sparse matrix has indices outside its shape."


def is_sparse(x: Any) -> bool:
    """Return whether x is a sparse matrix or tensor of any library, but not of Dask."""
    return hasattr(x, "tocsr") or str(getattr(x, "layout", "")).startswith("torch.sparse")


def dense_remedy(rows: Any) -> str:
    """Return the advice that makes sparse rows dense."""
    if isinstance(rows, CSR):
        return "Pass X.toarray(), or X.to_dense() of a tensor."
    return f"Pass X.{'toarray' if hasattr(rows, 'tocsr') else 'to_dense'}()."


def as_csr(matrix: Any) -> Any:
    """Return a sparse matrix or tensor as canonical rows, in the working precision.

    As SciPy's `csr_array` where its arrays are NumPy's, otherwise as a `CSR`.
    """
    layout = str(getattr(matrix, "layout", "")).removeprefix("torch.")
    if layout:
        return _of_tensor(matrix.detach(), layout)
    csr = matrix.tocsr()
    if not isinstance(csr.data, np.ndarray):
        return canonical_csr(csr.data, csr.indices, csr.indptr, csr.shape)
    import scipy.sparse

    csr = scipy.sparse.csr_array(csr)  # shares the entries
    if csr.dtype != working_dtype(csr.dtype):
        csr = csr.astype(working_dtype(csr.dtype))
    if not csr.has_canonical_format:  # an entry stored in parts cannot be squared
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _of_tensor(tensor: Any, layout: str) -> CSR:
    """Return the rows of a sparse tensor of torch."""
    if layout == "sparse_coo":
        (rows, columns), data = tensor._indices(), tensor._values()  # coalesced or not
        return _from_entries(data, rows, columns, tensor.shape)
    if layout == "sparse_csr":
        parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
        return canonical_csr(*parts, tensor.shape)
    if layout == "sparse_csc":
        parts = tensor.values(), tensor.row_indices(), tensor.ccol_indices()
        return canonical_csr(*parts, tensor.shape[::-1]).T
    raise TypeError(f"X is a tensor of layout {layout}. Pass X.to_dense().to_sparse_csr().")


def canonical_csr(data: Array, indices: Array, indptr: Array, shape: Sequence[int]) -> CSR:
    """Return compressed rows: sorted, repeated entries added; raise if indices are outside."""
    xp, indptr, size = namespace(indptr), cast(indptr, np.int64), int(data.shape[0])
    ends = [int(indptr[0]), int(indptr[-1])] if indptr.shape[0] else []
    ordered = ends == [0, size] and not bool(xp.any(indptr[1:] < indptr[:-1]))
    if not ordered or indptr.shape[0] != shape[0] + 1 or indices.shape != data.shape:
        raise ValueError("The arrays of a sparse matrix do not match its shape.")
    data = cast(data, working_dtype(numpy_dtype(data)))
    _require_below(indices, shape[1])
    rows = CSR(data, cast(indices, index_dtype(shape[1])), indptr, shape)
    numbers = rows.entry_rows
    later = (indices[1:] > indices[:-1]) | (numbers[1:] > numbers[:-1])
    return rows if bool(xp.all(later)) else _from_entries(data, numbers, indices, shape)


def _from_entries(data: Array, rows: Array, columns: Array, shape: Sequence[int]) -> CSR:
    """Return the rows of entries in any order; those at the same place are added."""
    xp, (n, d) = namespace(data), map(int, shape)
    data = cast(data, working_dtype(numpy_dtype(data)))
    _require_below(rows, n)
    _require_below(columns, d)
    keys = cast(rows, np.int64) * d + cast(columns, np.int64)
    order = xp.argsort(keys, stable=True)
    keys, data = xp.take(keys, order), xp.take(data, order)
    zero = count_to(1, keys)
    (first,) = xp.nonzero(xp.concat([zero == 0, keys[1:] != keys[:-1]])[: keys.shape[0]])
    if first.shape[0] < keys.shape[0]:
        indptr = xp.concat([cast(first, np.int64), zero + keys.shape[0]])
        one = xp.ones((1, 1), dtype=data.dtype, device=device(data))
        parts = CSR(data, 0 * cast(keys, np.int32), indptr, (first.shape[0], 1))
        keys, data = xp.take(keys, first), (parts @ one)[:, 0]
    indptr = cast(xp.searchsorted(keys, count_to(n + 1, keys) * d), np.int64)
    return CSR(data, cast(keys % max(1, d), index_dtype(d)), indptr, (n, d))


def _require_below(indices: Array, size: int) -> None:
    xp = namespace(indices)
    if indices.shape[0] and not 0 <= int(xp.min(indices)) <= int(xp.max(indices)) < size:
        raise ValueError(_OUTSIDE)


def sparse_like(rows: Any, reference: Array) -> Any:
    """Copy sparse rows to the device of an array."""
    data, indices, indptr = map(to_numpy, (rows.data, rows.indices, rows.indptr))
    if isinstance(reference, np.ndarray):
        import scipy.sparse

        return scipy.sparse.csr_array((data, indices, indptr), rows.shape)
    indices = indices.astype(index_dtype(rows.shape[1]), copy=False)
    indptr = indptr.astype(np.int64, copy=False)
    data, indices, indptr = (like(part, reference) for part in (data, indices, indptr))
    return CSR(data, indices, indptr, rows.shape)


def to_device_of(x: Any, reference: Array) -> Any:
    """Copy an array, or sparse rows, to the device of `reference`, unless already there."""
    if same_device(x, reference):
        return x
    return sparse_like(x, reference) if hasattr(x, "tocsr") else like(to_numpy(x), reference)


def with_data(rows: Any, data: Array) -> Any:
    """Return sparse rows with other entries at the same places."""
    if isinstance(rows, CSR):
        return rows.with_data(data)
    other = copy.copy(rows)  # shares the indices
    other.data = data
    return other


def entry_rows(rows: Any) -> Array:
    """Return the row number of every entry."""
    if isinstance(rows, CSR):
        return rows.entry_rows
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def scale_rows(rows: Any, factors: Array) -> Any:
    """Return sparse rows times a factor each."""
    each = namespace(factors).take(factors, entry_rows(rows), axis=0)
    return with_data(rows, rows.data * each)


def scale_columns(rows: Any, factors: Array, dtype: Any) -> Any:
    """Return sparse rows with each column times a factor, a float64 host array, in a dtype."""
    factors = like(factors, rows.data)
    each = namespace(factors).take(factors, rows.indices, axis=0)
    return with_data(rows, cast(rows.data * each, dtype))


def squared_norms(rows: Any) -> Array:
    """Return the squared norm of every sparse row."""
    if not isinstance(rows, CSR):
        return np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    one = like(np.ones(rows.shape[1]), rows.data, rows.dtype)
    return rows.with_data(rows.data * rows.data) @ one


def row_maxima(rows: Any) -> Array:
    """Return the largest absolute value of every sparse row."""
    if not isinstance(rows, CSR):
        return abs(rows).max(axis=1).toarray().reshape(-1)
    xp, indptr = namespace(rows.data), rows.indptr
    # In order of their size, then of their row: the last of each row is the largest.
    order = xp.argsort(xp.abs(rows.data), stable=True)
    order = xp.take(order, xp.argsort(xp.take(rows.entry_rows, order), stable=True))
    sizes = xp.concat([like(np.zeros(1), rows.data, rows.dtype), xp.abs(xp.take(rows.data, order))])
    return xp.take(sizes, xp.where(indptr[1:] > indptr[:-1], indptr[1:], 0))


def row_products(x: Any, y: Any) -> Array:
    """Return the dot products of all rows x and y, of which one or both are sparse."""
    if not hasattr(x, "tocsr"):
        return row_products(y, x).T
    if isinstance(x, CSR) and hasattr(y, "tocsr"):
        most = min(_DENSE, get_config().budget // 256)
        m, step = y.shape[0], max(1, most // max(1, y.shape[1]))
        parts = [x @ y[i : i + step].toarray().T for i in range(0, max(1, m), step)]
        return parts[0] if len(parts) == 1 else namespace(x.data).concat(parts, axis=1)
    return x @ y.T


def stack_rows(parts: Sequence[Any]) -> Any:
    """Return groups of rows below each other, dense or sparse ones, as sparse rows."""
    if not any(isinstance(part, CSR) for part in parts):
        import scipy.sparse

        return scipy.sparse.vstack(parts, format="csr")
    groups = [part if isinstance(part, CSR) else _compressed(part) for part in parts]
    xp, starts = namespace(groups[0].data), np.cumsum([0, *(part.nnz for part in groups)])
    pointers = [groups[0].indptr[:1]]
    pointers += [part.indptr[1:] + int(at) for part, at in zip(groups, starts, strict=False)]
    data, indices = (xp.concat([part.arrays[i] for part in groups]) for i in range(2))
    shape = (sum(part.shape[0] for part in groups), groups[0].shape[1])
    return CSR(data, indices, xp.concat(pointers), shape)


def _compressed(rows: Array) -> CSR:
    """Return the nonzero entries of a dense array."""
    i, j = namespace(rows).nonzero(rows)
    return _from_entries(rows[i, j], i, j, rows.shape)


def first_entry(rows: Any, which: Array) -> tuple[int, int, float] | None:
    """Return row, column and value of the first of some entries; `which` is a mask of them."""
    at = np.flatnonzero(to_numpy(which))
    if not len(at):
        return None
    i = np.searchsorted(to_numpy(rows.indptr), at, side="right") - 1
    j = to_numpy(rows.indices)[at]
    first = np.lexsort((j, i))[0]
    return int(i[first]), int(j[first]), float(rows.data[int(at[first])])
