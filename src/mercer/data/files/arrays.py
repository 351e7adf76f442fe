"""Rows in NumPy's own files: `.npy`, and `.npz` with one array or SciPy's sparse matrix."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer import progress
from mercer.config import format_bytes, get_config
from mercer.data.array import ArraySource
from mercer.data.errors import BudgetError, FileError, decoding, listed
from mercer.data.files.folder import Folder
from mercer.data.files.roles import Ask, assign
from mercer.data.files.table import Table, from_numbers
from mercer.data.npy import NpySource
from mercer.data.source import Source
from mercer.data.sparse import SparseSource, require_inside
from mercer.messages import format_parameter

# Deflate makes nothing more than 1032 times smaller; LZMA and bzip2 can, and are not used by
# numpy.savez.
_SMALLEST = 1032
_SPARSE = {"format", "shape", "data"}


def read_npy(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read a `.npy` file where it lies."""
    with decoding(ask.path, "a .npy file"):
        return numbered(ask, NpySource(path))


def numbered(ask: Ask, source: Source) -> Table:
    """Return the table of a source without names: its columns go by their numbers."""
    if 0 in source.shape:
        raise FileError(
            f"{ask.path} holds an array of shape {source.shape}: no rows, or no columns."
        )
    width = source.shape[1]
    names = [str(i) for i in range(width)] if width < 2**24 or not ask.plain else []
    roles = assign(names, ask, named=False)
    return from_numbers(ask, source, roles)


def read_npz(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read the array, or the sparse matrix, of a `.npz` file."""
    with decoding(ask.path, "a .npz file"), zipfile.ZipFile(path) as archive:
        members = {
            entry.filename.removesuffix(".npy"): entry
            for entry in archive.infolist()
            if entry.filename.endswith(".npy")
        }
        for entry in members.values():
            _check_size(ask, path, entry)
        if members.keys() >= _SPARSE:
            source: Source = SparseSource(_sparse(ask, archive, members))
        elif len(members) == 1:
            source = _extracted(archive, *members.values(), collect=ask.plain)
        else:
            raise FileError(
                f"{ask.path} holds {len(members)} arrays ({listed(list(members))}), and one is "
                f"wanted. Save the rows alone: numpy.savez(path, X)."
            )
        tick(path.stat().st_size)
        return numbered(ask, source)


def _check_size(ask: Ask, path: Path, entry: zipfile.ZipInfo) -> None:
    there = path.stat().st_size
    most = _SMALLEST * min(entry.compress_size, there) + 1024
    if entry.compress_size > there or entry.file_size > most:
        raise FileError(
            f"{ask.path} says that {entry.filename!r} unpacks to "
            f"{format_bytes(entry.file_size)}, which its {format_bytes(there)} cannot hold."
        )


def _extracted(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, *, collect: bool) -> Source:
    """Return the rows of a member: in memory if `collect` and they fit, else in a file."""
    folder = Folder()
    path = folder.path / "rows.npy"
    with folder.room(), archive.open(entry) as packed, path.open("wb") as plain:
        shutil.copyfileobj(packed, plain, 2**20)
    source = NpySource(path)
    size = np.prod(source.shape, dtype=object) * source.dtype.itemsize
    if collect and size <= get_config().budget // 4:
        with progress.quiet():
            return ArraySource(source.collect())
    source.folder = folder
    return source


def _sparse(ask: Ask, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> Any:
    import scipy.sparse

    needed = 3 * sum(entry.file_size for entry in members.values())
    require_room(ask, needed)
    arrays = {}
    for name in ("format", "shape", "data", "indices", "indptr", "row", "col", "offsets"):
        if name in members:
            with archive.open(members[name]) as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    kind = arrays["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    shape = tuple(int(size) for size in np.asarray(arrays["shape"]).ravel())
    if len(shape) != 2 or min(shape) < 1 or max(shape) >= 2**62:
        raise FileError(f"{ask.path} holds a sparse matrix of shape {shape}, not rows and columns.")
    if kind in ("csr", "csc", "bsr"):
        data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
        matrix = compressed(kind, data, indices, indptr, shape)
    elif kind == "coo":
        matrix = scipy.sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape)
    else:
        raise FileError(
            f"{ask.path} holds a sparse matrix in the format {kind!r}. Save it as X.tocsr()."
        )
    return real_sparse(ask, matrix)


def compressed(kind: str, data: Any, indices: Any, indptr: Any, shape: tuple[int, ...]) -> Any:
    """Return a matrix of compressed rows, columns ("csc") or blocks; refuse entries beyond it."""
    import scipy.sparse

    if data.ndim != (3 if kind == "bsr" else 1) or 0 in data.shape[1:]:
        raise ValueError(f"the entries of a {kind} matrix have shape {data.shape}")
    sizes = shape[::-1] if kind == "csc" else shape
    if kind == "bsr":
        sizes = shape[0] // data.shape[1], shape[1] // data.shape[2]
    require_inside(data, indices, indptr, sizes)
    return getattr(scipy.sparse, f"{kind}_array")((data, indices, indptr), shape=shape)


def real_sparse(ask: Ask, matrix: Any) -> Any:
    """Return a sparse matrix as compressed rows, if it is of real numbers and they fit."""
    if matrix.dtype.kind not in "fiub":
        raise FileError(f"{ask.path} holds dtype {matrix.dtype}, not real numbers.")
    require_room(ask, 8 * max(matrix.shape))
    return matrix.tocsr()


def require_room(ask: Ask, needed: int) -> None:
    """Refuse what is read at once and does not fit the memory budget."""
    budget = get_config().budget
    if needed > budget:
        raise BudgetError(
            f"{ask.path}: reading it takes {format_bytes(needed)}, and the memory budget is "
            f"{format_bytes(budget)}. Raise it with {format_parameter('memory')}."
        )
