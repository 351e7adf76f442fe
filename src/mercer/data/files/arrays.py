"""Arrays: NumPy's `.npy` and `.npz`, Matrix Market, HDF5, Zarr."""

from __future__ import annotations

import shutil
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mercer import progress
from mercer.config import format_bytes, get_config, require_budget
from mercer.data.derived import select_columns
from mercer.data.errors import FileError, FileGuard, file_errors, format_names
from mercer.data.files.storage import ArrayRows, TemporaryFolder, place_rows
from mercer.data.files.table import (
    Request,
    Table,
    import_format,
    make_unnamed_table,
)
from mercer.data.in_memory import ArraySource, SparseSource, require_inside
from mercer.data.npy import NpySource
from mercer.data.source import Source
from mercer.progress import Tick

# Deflate shrinks nothing more than this; LZMA and bzip2 can, and are not used by numpy.savez.
DEFLATE_RATIO = 1032
_SPARSE = {"format", "shape", "data"}
# The entry mirrored at the diagonal, as a multiple of the one that is stored.
_MIRRORED = {"general": 0, "symmetric": 1, "skew-symmetric": -1}


def read_npy(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read a `.npy` file in place."""
    with file_errors(request.path, "a .npy file"):
        return _numbered(request, NpySource(paths[0]))


def _numbered(request: Request, source: Source) -> Table:
    if 0 in source.shape:
        raise FileError(f"{request.path}: shape {source.shape}, a row and a column are required.")

    def column(j: int) -> Any:
        if isinstance(source, NpySource):
            return source.column(j)
        with progress.quiet():
            return select_columns(source, [j]).collect()[:, 0]

    return make_unnamed_table(request, source.shape[1], partial(select_columns, source), column)


def read_npz(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read the array, or the sparse matrix, of a `.npz` file."""
    path = paths[0]
    with file_errors(request.path, "a .npz file"), zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        size = path.stat().st_size
        for entry in entries:
            most = DEFLATE_RATIO * min(entry.compress_size, size) + 1024
            if entry.compress_size > size or entry.file_size > most:
                raise FileError(
                    f"{request.path} is damaged: {entry.filename!r} cannot unpack from "
                    f"{format_bytes(size)} to {format_bytes(entry.file_size)}."
                )
        if set(names) >= _SPARSE:
            needed = 3 * sum(entry.file_size for entry in entries)
            require_budget(needed, f"{request.path}: reading it")
            source: Source = sparse_source(scipy.sparse.load_npz(path), request)
        elif len(entries) == 1:
            folder = TemporaryFolder()
            with (
                folder.writing(),
                archive.open(entries[0]) as packed,
                folder.rows.open("wb") as file,
            ):
                shutil.copyfileobj(packed, file, 2**20)
            source = folder.source()
            if request.all_columns and source.nbytes <= get_config().budget // 4:
                with progress.quiet():
                    source = ArraySource(source.collect())
        else:
            raise FileError(
                f"{request.path} contains {len(names)} arrays ({format_names(names)}), expected "
                f"one. Save only the data: numpy.savez(path, X)."
            )
        tick(size)
        return _numbered(request, source)


def sparse_source(matrix: Any, request: Request) -> SparseSource:
    """Return the rows of a sparse matrix, whose entries may lie beyond its shape."""
    if len(matrix.shape) != 2 or min(matrix.shape) < 1 or max(matrix.shape) >= 2**62:
        raise FileError(f"{request.path}: the matrix has shape {matrix.shape}, expected 2D.")
    if matrix.dtype.kind not in "fiub" or matrix.format not in ("csr", "csc", "coo"):
        raise FileError(
            f"{request.path} holds a {matrix.format!r} matrix of dtype {matrix.dtype}, expected "
            f"real numbers in 'csr', 'csc' or 'coo' format. Save X.tocsr() instead."
        )
    require_budget(8 * max(matrix.shape), f"{request.path}: reading it")
    if matrix.format != "coo":  # whose constructor has checked
        sizes = matrix.shape[::-1] if matrix.format == "csc" else matrix.shape
        require_inside(matrix.data, matrix.indices, matrix.indptr, sizes)
    return SparseSource(matrix.tocsr())


def read_mtx(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read a Matrix Market file, the entries with NumPy.

    `scipy.io.mmread` and `mminfo` abort the process on some files (SciPy 1.17).
    """
    path, size = paths[0], paths[0].stat().st_size
    with file_errors(request.path, "Matrix Market"), path.open("rb") as file:
        (layout, field, symmetry), (rows, columns, *count) = _mtx_header(file)
        if field == "complex" or symmetry == "hermitian":
            raise FileError(f"{request.path} holds complex numbers, not real ones.")
        mirrored, dense = _MIRRORED[symmetry], layout == "array"
        if mirrored and rows != columns:
            raise FileError(
                f"{request.path}: a {symmetry} matrix cannot have shape {rows} × {columns}."
            )
        if dense:
            count = [rows * columns if not mirrored else rows * (rows + mirrored) // 2]
        (entries,) = count
        require_budget(64 * entries + 8 * max(rows, columns), f"{request.path}: reading it")
        width = 1 if dense else 2 if field == "pattern" else 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no entries at all
            body = np.loadtxt(file, np.float64, comments="%", ndmin=2)
        body = body if body.size else np.empty((0, width))
        if body.shape != (entries, width):
            raise FileError(
                f"{request.path} has {len(body)} entries of {body.shape[1]} fields, but its header "
                f"declares {entries} of {width}. Write it again."
            )
        source = _make_matrix(body, (rows, columns), mirrored, dense, request)
        tick(size)
        return _numbered(request, source)


def _mtx_header(file: Any) -> tuple[list[str], list[int]]:
    """Return layout, field and symmetry, and the sizes."""
    mark, _, *words = file.readline(1024).decode().lower().split()
    line = b"%"
    while line and (line.startswith(b"%") or line.isspace()):
        line = file.readline(65536)
    sizes = [int(text) for text in line.split()]
    known = len(words) == 3 and words[0] in ("array", "coordinate") and words[2] in _MIRRORED
    if mark != "%%matrixmarket" or not (known or "complex" in words) or min(sizes) < 0:
        raise ValueError("the header does not describe a numeric matrix")
    return words, sizes


def _make_matrix(
    body: Any, shape: tuple[int, int], mirrored: int, dense: bool, request: Request
) -> Source:
    """Return the matrix of these entries: values, or places from 1 on and values."""
    if dense and not mirrored:
        return ArraySource(body[:, 0].reshape(shape, order="F"))
    values = np.ones(len(body)) if body.shape[1] == 2 else body[:, -1]
    if dense:  # the lower triangle, column by column, is the upper one, row by row
        j, i = np.triu_indices(shape[0], 0 if mirrored > 0 else 1)
    else:
        places = body[:, :2]
        if np.any((places < 1) | (places > shape) | (places % 1 != 0)):
            raise FileError(f"{request.path}: an entry is outside {shape[0]} × {shape[1]}.")
        i, j = (places.T - 1).astype(np.int64)
    if mirrored:
        off = i != j
        i, j = np.append(i, j[off]), np.append(j, i[off])
        values = np.append(values, mirrored * values[off])
    matrix = scipy.sparse.coo_array((values, (i, j)), shape)
    return ArraySource(matrix.toarray()) if dense else sparse_source(matrix, request)


@contextmanager
def open_hdf5(path: Path, name: str = "/") -> Iterator[Any]:
    """Open a member of an HDF5 file."""
    with import_format("h5py", "HDF5").File(path, "r") as file:
        yield file[name]


@contextmanager
def open_zarr(path: Path, name: str = "") -> Iterator[Any]:
    """Open a member of a Zarr folder."""
    yield import_format("zarr", "Zarr").open(str(path), path=name.strip("/") or None, mode="r")


def read_hdf5(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read the dataset with the name in the path, or the only one of rows and columns."""
    members: dict[str, Any] = {}
    with file_errors(request.path, "HDF5"), open_hdf5(root) as file:
        file.visititems(members.__setitem__)  # follows no links to other files
        array = _find_array(members, request)
        rows = partial(hdf5_rows, root, array, request)
        table = make_unnamed_table(request, array.shape[1], rows, lambda j: array[:, j])
    tick(root.stat().st_size)
    return table


def hdf5_rows(path: Path, array: Any, request: Request, columns: Sequence[int]) -> Source:
    """Return some columns of a dataset of rows and columns."""
    if not _is_matrix(array):
        raise FileError(f"{request.path}: {array.name} is not a 2D numeric array of this file.")
    check_filled(array, array.id.get_storage_size(), request)
    opener = partial(open_hdf5, path, array.name)
    rows = ArrayRows(opener, array, columns, FileGuard([path]), (request.path, "HDF5"))
    rows.slow = array.compression == "gzip"
    return place_rows(rows)


def read_zarr(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read the array with the name in the path, or the only one of rows and columns."""
    with file_errors(request.path, "Zarr"), open_zarr(root) as group:
        members = {"": group} if hasattr(group, "shape") else dict(group.members(max_depth=None))
        array = _find_array(members, request)
        # Of folders too, after what is in them: chunks may be added.
        folder = root / array.path
        files = sorted(folder.rglob("*"), key=lambda path: (path.is_dir(), path))
        guard = FileGuard([*files, folder])
        check_filled(array, guard.size, request)
        opener = partial(open_zarr, root, array.path)

        def rows(columns: Sequence[int]) -> Source:
            source = ArrayRows(opener, array, columns, guard, (request.path, "Zarr"))
            source.slow = any(name in str(array.compressors).lower() for name in ("gzip", "zlib"))
            return place_rows(source)

        return make_unnamed_table(request, array.shape[1], rows, lambda j: array[:, j])


def _find_array(members: dict[str, Any], request: Request) -> Any:
    """Return the array with the name in the path, or the only one of rows and columns."""
    tables = sorted(name for name, array in members.items() if _is_matrix(array))
    name = request.part.strip("/") or (tables[0] if len(tables) == 1 else "")
    if name not in tables:
        raise FileError(
            f"{request.path}: {repr(name) if name else 'the file'} is not one 2D numeric array. "
            f"Select one by {request.path.partition('::')[0]}::NAME: {format_names(tables)}."
        )
    return members[name]


def _is_matrix(array: Any) -> bool:
    """Return whether this is a 2D numeric array that is stored in the file itself."""
    shape = getattr(array, "shape", None)
    if shape is None or getattr(array, "is_virtual", False) or getattr(array, "external", None):
        return False
    return len(shape) == 2 and 0 not in shape and array.dtype.kind in "fiub"


def check_filled(array: Any, stored: int, request: Request) -> None:
    """Raise if an array declares far more data than is stored."""
    size = int(np.prod(array.shape, dtype=object)) * array.dtype.itemsize
    if size > DEFLATE_RATIO * stored + 2**20:
        raise FileError(f"{request.path} declares shape {array.shape}, but is mostly empty.")
