"""AnnData files, `.h5ad`: the matrix X or a layer, names from var, columns from obs.

Read with h5py: to import anndata takes two seconds, and it follows links to other files.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from mercer.arrays import working_dtype
from mercer.config import get_config, require_budget
from mercer.data.anndata import unique_names
from mercer.data.derived import select_columns
from mercer.data.errors import FileError, FileGuard, file_errors, format_names
from mercer.data.files.arrays import (
    check_filled,
    hdf5_rows,
    open_hdf5,
    read_hdf5,
    sparse_source,
)
from mercer.data.files.table import (
    Request,
    Roles,
    Table,
    assign_roles,
    find_column,
    make_table,
)
from mercer.data.in_memory import most_entries, require_inside
from mercer.data.source import Source
from mercer.messages import format_parameter, warn
from mercer.progress import Tick

Values = npt.NDArray[Any]


def read_h5ad(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read X, or another matrix (`x.h5ad::layers/counts`); labels and the like come from obs."""
    part = request.part.strip("/") or "X"
    if part not in ("X", "raw/X") and not part.startswith("layers/"):
        return read_hdf5(paths, root, request, tick)
    with file_errors(request.path, "AnnData"), open_hdf5(root) as file:
        X, (n, d) = _matrix(file, part, request)
        names = _names(file["raw"] if part == "raw/X" else file, d, request)
        chosen = Request(request.path, columns=request.columns, drop=request.drop)
        features = assign_roles(names, chosen).features
        obs = _member(file, "obs", request) if "obs" in file else {}
        index = _text(getattr(obs, "attrs", {}).get("_index", "_index"))
        own = request.id if request.id is not None else index if index in obs else None
        wanted = [name for name in (own, request.label) if name is not None]
        for name in request.keep:
            wanted += [name] if name in obs else fnmatch.filter(obs, name) or [name]
        wanted += [name for name in request.optional if name in obs]
        extra = {name: _obs(obs, name, n, request) for name in wanted}
        columns = dict(enumerate(extra.values(), d))  # numbered after those of X
        weights = None if request.weights is None else _obs(obs, request.weights, n, request)
        if weights is not None and weights.dtype.kind not in "fiub":
            raise FileError(f"{request.path}: {request.weights!r} of obs is not numeric.")
        source = _rows(root, X, (n, d), features, request)
    tick(root.stat().st_size)
    return make_table(
        request,
        Roles((*names, *extra), features, extra=tuple(columns)),
        source,
        columns=columns,
        ids=() if own is None else [d + list(extra).index(own)],
        weights=weights,
    )


def _member(group: Any, path: str, request: Request) -> Any:
    """Return a member of a group; raise if it is in another file or mostly empty."""
    for name in path.split("/"):
        link = group.get(name, getlink=True)
        if link is None:
            raise FileError(f"{request.path} has no {group.name.rstrip('/')}/{name}.")
        outside = type(link).__name__ == "ExternalLink"
        group = None if outside else group[name]
        if outside or getattr(group, "is_virtual", False) or getattr(group, "external", None):
            raise FileError(f"{request.path}: {name} is an external link. Copy its data here.")
        if getattr(group, "shape", None) is not None:
            check_filled(group, group.id.get_storage_size(), request)
    return group


def read_backed(adata: Any, at: Values | None) -> Source:
    """Return variables of the matrix X behind a backed AnnData object, by their numbers.

    It may be a view of variables, but not of observations.
    """
    path = Path(adata.filename)
    path.stat()  # raises a FileNotFoundError
    request = Request(str(path), direct=True)
    with file_errors(path, "AnnData"), open_hdf5(path) as file:
        file.file.flush()  # what was assigned to X and would be written while it is read
        guard = FileGuard([path])
        X, shape = _matrix(file, "X", request)
        columns = _viewed(adata, shape, path) if adata.is_view else np.arange(shape[1])
        if not adata.is_view and adata.shape != shape:
            raise FileError(
                f"{path} holds X of shape {shape}, but the AnnData object has shape "
                f"{adata.shape}: the file has changed since it was opened. Open it again."
            )
        columns = columns if at is None else columns[at]
        source = _rows(path, X, shape, columns.tolist(), request)
    guard.check()
    return source


def variable_names(path: Path) -> list[str]:
    """Return the names of all variables of an AnnData file, as they are stored."""
    with file_errors(path, "AnnData"), open_hdf5(path) as file:
        return _index(file, "var", Request(str(path)))


def _viewed(adata: Any, shape: tuple[int, int], path: Path) -> Values:
    """Return the numbers of the variables of a view of a backed object.

    anndata keeps them to itself: names would be ambiguous, and may have changed in memory.
    """
    indices = [x if isinstance(x, slice) else np.asarray(x) for x in (adata._oidx, adata._vidx)]
    rows, columns = (np.arange(size)[index] for size, index in zip(shape, indices, strict=True))
    if not np.array_equal(rows, np.arange(shape[0])):
        raise FileError(
            f"adata is a view of observations of {path}, which are not read block by block. Pass "
            f"adata.to_memory(), which reads the view into memory, or the whole object."
        )
    return columns


def _matrix(file: Any, part: str, request: Request) -> tuple[Any, tuple[int, int]]:
    """Return a matrix of the file, and its shape."""
    if part not in file:
        there = [*({"X"} & {*file}), *(f"layers/{name}" for name in sorted(file.get("layers", ())))]
        raise FileError(
            f"{request.path}: there is no {part!r}. Its matrices are {format_names(there)}. Read "
            f"HDF5 files that are not AnnData with {format_parameter('format', 'h5')}."
        )
    X = _member(file, part, request)
    shape = tuple(map(int, X.shape if hasattr(X, "shape") else X.attrs.get("shape", ())))
    if len(shape) != 2 or min(shape) < 1:
        raise FileError(f"{request.path}: X has shape {shape}, expected 2D.")
    return X, shape


def _rows(
    path: Path, X: Any, shape: tuple[int, int], features: Sequence[int], request: Request
) -> Source:
    """Return rows of X: in memory if they fit, else in the file if that goes by rows."""
    if hasattr(X, "shape"):
        return hdf5_rows(path, X, request, features)
    kind = _text(X.attrs.get("encoding-type", "")).removesuffix("_matrix")
    if kind not in ("csr", "csc"):
        raise FileError(f"{request.path}: X has the unknown encoding {kind!r}.")
    parts = [_member(X, name, request) for name in ("data", "indices", "indptr")]
    needed = 3 * sum(part.size * part.dtype.itemsize for part in parts)
    if kind == "csr" and needed > get_config().budget:
        return CSRRows(path, X, shape, request, features)
    require_budget(needed, f"{request.path}: reading it")
    matrix = getattr(scipy.sparse, f"{kind}_array")(tuple(part[:] for part in parts), shape=shape)
    return select_columns(sparse_source(matrix, request), features)


class CSRRows(Source):
    """Rows of a CSR matrix in an HDF5 file; only the row pointers are in memory."""

    sparse = True
    uneven = True
    waits = True

    def __init__(
        self,
        path: Path,
        group: Any,
        shape: tuple[int, int],
        request: Request,
        columns: Sequence[int],
    ) -> None:
        data, indices, indptr = (group[name] for name in ("data", "indices", "indptr"))
        if data.dtype.kind not in "fiub":
            raise FileError(f"{request.path} holds dtype {data.dtype}, not real numbers.")
        self.path, self.group, self.label = path, group.name, (request.path, "AnnData")
        self.stored, self.columns = shape, None
        if list(columns) != list(range(shape[1])):
            self.columns = np.asarray(columns)
        self.shape = (shape[0], len(columns))
        self.dtype = working_dtype(data.dtype)
        self.indptr = indptr[:].astype(np.int64)
        self.held_bytes = int(self.indptr.nbytes)
        self.guard = FileGuard([path])
        require_inside(data, indices, self.indptr, (shape[0],))

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.indptr[-1])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in the longest of a few parts, twice: as stored, and sorted."""
        return 2 * 20 * self.row_entries + 8

    @property
    def row_entries(self) -> int:
        """Mean number of entries of a row in the densest part of the rows."""
        return most_entries(self.indptr)

    def read(self, start: int, stop: int) -> Any:
        self.guard.check()
        pointers = self.indptr[start : stop + 1]
        part = slice(int(pointers[0]), int(pointers[-1]))
        with file_errors(*self.label), open_hdf5(self.path, self.group) as group:
            entries = group["data"][part].astype(self.dtype, copy=False), group["indices"][part]
            shape = (stop - start, self.stored[1])
            require_inside(*entries, pointers - pointers[0], shape)
            rows = scipy.sparse.csr_array((*entries, pointers - pointers[0]), shape=shape)
        if self.columns is not None:
            rows = rows[:, self.columns]
        if not rows.has_canonical_format:  # an entry stored in parts cannot be squared
            rows.sum_duplicates()
        return rows

    def gather(self, at: np.ndarray[Any, Any]) -> Any:
        if not len(at):
            return self.read(0, 0)
        runs = np.split(at, np.flatnonzero(np.diff(at) != 1) + 1)
        parts = [self.read(int(run[0]), int(run[-1]) + 1) for run in runs]
        return scipy.sparse.vstack(parts, format="csr")


def _names(file: Any, count: int, request: Request) -> list[str]:
    """Return the names in var, made unique as AnnData does."""
    names = _index(file, "var", request)
    if len(names) != count:
        raise FileError(f"{request.path}: var has {len(names)} names, but X has {count} columns.")
    names, repeated = unique_names(names)
    if repeated:
        warn(f"{request.path}: {repeated} names in var are not unique; numbers are appended.")
    return names


def _index(file: Any, name: str, request: Request) -> list[str]:
    """Return the names of the rows of obs or var."""
    table = _member(file, name, request)
    index = _column(table, _text(table.attrs.get("_index", "_index")), request)
    return [_text(value) for value in index]


def _obs(obs: Any, name: str, n: int, request: Request) -> Values:
    """Return a column of obs: numbers, texts or categories."""
    find_column(name, {key: i for i, key in enumerate(obs)}, request.path)
    values = _column(obs, name, request)
    if values.shape != (n,):
        raise FileError(f"{request.path}: {name!r} of obs has shape {values.shape}, not ({n},).")
    return values if values.dtype.kind in "fiub" else _texts(values)


def _column(table: Any, name: str, request: Request) -> Values:
    """Return the values of an array, of categories, or of an array with a mask."""
    column = _member(table, name, request)
    if hasattr(column, "shape"):
        return np.asarray(column[:])
    if "codes" in column:
        return _decode(*(_column(column, key, request) for key in ("codes", "categories")))
    values, mask = (_column(column, key, request) for key in ("values", "mask"))
    return _decode(np.where(mask, -1, np.arange(len(values))), values)


def _decode(codes: Values, categories: Values) -> Values:
    """Return the category of every code; a negative code is a missing entry."""
    if np.any(codes >= len(categories)):
        raise FileError("codes point past the categories")
    numbers = categories.dtype.kind in "fiub"
    values = categories if numbers else _texts(categories)
    if np.any(codes < 0):
        values = np.append(values.astype(float if numbers else object), [np.nan if numbers else ""])
    return values[codes]


def _texts(values: Values) -> Values:
    return np.array([_text(value) for value in values] + [None], dtype=object)[:-1]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
