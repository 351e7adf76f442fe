"""Rows in a Matrix Market file, `.mtx`: sparse, or dense.

NumPy parses the entries: `scipy.io.mmread` is faster, and a damaged file can end the process in
it (seen with SciPy 1.17: a line with too many fields).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.data.array import ArraySource
from mercer.data.errors import FileError, decoding
from mercer.data.files.arrays import numbered, real_sparse, require_room
from mercer.data.files.roles import Ask
from mercer.data.files.table import Table
from mercer.data.source import Source
from mercer.data.sparse import SparseSource

# Characters of a line of the header; the standard says 1024.
_LINE = 65536
# The entry mirrored at the diagonal, as a multiple of the one that is stored.
_MIRRORED = {"general": 0, "symmetric": 1, "skew-symmetric": -1}


@dataclass(frozen=True)
class Header:
    """What the first lines of a Matrix Market file say."""

    layout: str
    field: str
    mirrored: int
    rows: int
    columns: int
    entries: int


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read a Matrix Market file; the sizes in its header are checked first."""
    there = path.stat().st_size
    with decoding(ask.path, "Matrix Market"), path.open("rb") as file:
        header = _header(file, ask)
        # An entry takes a digit and a space at least; of coordinates, two of each.
        least = header.entries * (2 if header.layout == "array" else 4)
        if least > there + 4:
            raise FileError(
                f"{ask.path} says that it holds {header.entries} entries, and has {there} bytes. "
                f"It was cut short: write it again."
            )
        require_room(ask, 64 * header.entries + 8 * max(header.rows, header.columns))
        source = _dense(file, header) if header.layout == "array" else _sparse(file, header, ask)
        tick(there)
        return numbered(ask, source)


def _header(file: Any, ask: Ask) -> Header:
    words = file.readline(_LINE).decode("ascii").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise FileError(f"{ask.path} does not begin as a Matrix Market file does.")
    layout, field, symmetry = words[2:]
    if field == "complex" or symmetry == "hermitian":
        raise FileError(f"{ask.path} holds complex numbers, not real ones.")
    known = ("array", "coordinate"), ("real", "integer", "unsigned-integer", "double", "pattern")
    if layout not in known[0] or field not in known[1] or symmetry not in _MIRRORED:
        raise FileError(f"{ask.path}: {' '.join(words[2:])!r} is not a kind of matrix known.")
    line = b"%"
    while line and (line.startswith(b"%") or line.isspace()):
        line = file.readline(_LINE)
    sizes = [int(word) for word in line.split()]
    if len(sizes) != (2 if layout == "array" else 3) or min(sizes) < 0 or max(sizes) >= 2**62:
        raise FileError(f"{ask.path}: {line[:60]!r} are not the sizes of a matrix.")
    rows, columns = sizes[:2]
    mirrored = _MIRRORED[symmetry]
    if mirrored and rows != columns:
        raise FileError(f"{ask.path}: a {symmetry} matrix of {rows} rows and {columns} columns.")
    if layout == "array":  # of a mirrored one, a triangle
        entries = rows * columns if not mirrored else rows * (rows + mirrored) // 2
    else:
        entries = sizes[2]
    return Header(layout, field, mirrored, rows, columns, entries)


def _body(file: Any, header: Header, width: int) -> npt.NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no entries at all
        found = np.loadtxt(file, np.float64, comments="%", ndmin=2)
    if found.size == 0:
        found = np.empty((0, width))
    if found.shape != (header.entries, width):
        raise FileError(
            f"{len(found)} entries of {found.shape[1]} fields, where {header.entries} of {width} "
            f"were announced"
        )
    return found


def _dense(file: Any, header: Header) -> Source:
    values = _body(file, header, 1)[:, 0]
    shape = (header.rows, header.columns)
    if not header.mirrored:
        return ArraySource(values.reshape(shape, order="F"))
    X = np.zeros(shape)
    # The lower triangle, column after column, is the upper one, row after row.
    i, j = np.triu_indices(header.rows, 0 if header.mirrored > 0 else 1)
    X[j, i] = values
    X[i, j] = header.mirrored * values
    return ArraySource(X)


def _sparse(file: Any, header: Header, ask: Ask) -> Source:
    import scipy.sparse

    pattern = header.field == "pattern"
    body = _body(file, header, 2 if pattern else 3)
    places = body[:, :2]
    if np.any((places < 1) | (places > (header.rows, header.columns)) | (places % 1 != 0)):
        raise FileError(f"{ask.path}: an entry lies outside {header.rows} × {header.columns}.")
    i, j = (places.T - 1).astype(np.int64)
    values = np.ones(len(body)) if pattern else body[:, 2]
    if header.mirrored:
        off = i != j
        i, j, values = (
            np.append(i, j[off]),
            np.append(j, i[off]),
            np.append(values, header.mirrored * values[off]),
        )
    shape = (header.rows, header.columns)
    return SparseSource(real_sparse(ask, scipy.sparse.coo_array((values, (i, j)), shape)))
