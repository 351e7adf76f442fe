"""Sparse rows of an HDF5 file, read where they lie: compressed rows, sliced by their pointers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import working_dtype
from mercer.data.errors import FileError, decoding
from mercer.data.file_guard import Stamp
from mercer.data.files.extra import extra
from mercer.data.files.roles import Ask
from mercer.data.source import Source

Values = npt.NDArray[Any]


class H5Rows(Source):
    """Rows of a CSR matrix in a group of an HDF5 file; of it, only the pointers are in memory.

    Parameters
    ----------
    path : Path
        Of the file.
    group : h5py.Group
        With data, indices and indptr, as AnnData writes them.
    shape : tuple of int
        Rows and columns of the matrix.
    ask : Ask
        What messages call it.
    columns : ndarray, optional
        Those handed out, in this order.
    """

    sparse = True
    uneven = True
    waits = True

    def __init__(
        self,
        path: Path,
        group: Any,
        shape: tuple[int, int],
        ask: Ask,
        columns: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.path, self.group, self.called = path, group.name, (ask.path, "AnnData")
        self.full, self.columns = shape, columns
        self.shape = shape if columns is None else (shape[0], len(columns))
        stored = group["data"].dtype
        if stored.kind not in "fiub":
            raise FileError(f"{ask.path} holds dtype {stored}, not real numbers.")
        self.dtype = working_dtype(stored)
        self.indptr = group["indptr"][:].astype(np.int64)
        self.nnz = int(self.indptr[-1]) if len(self.indptr) else 0
        self.stamp = Stamp([path])
        self._check(group, ask)

    def _check(self, group: Any, ask: Ask) -> None:
        """Refuse pointers that do not fit: reading would follow them."""
        data, indices = group["data"], group["indices"]
        bad = (
            self.indptr.shape != (self.full[0] + 1,)
            or self.indptr[0] != 0
            or np.any(np.diff(self.indptr) < 0)
            or data.shape != indices.shape
            or data.ndim != 1
            or len(data) < self.nnz
            or indices.dtype.kind not in "iu"
        )
        if bad:
            raise FileError(f"{ask.path}: data, indices and indptr of X do not fit its shape.")

    @property
    def row_bytes(self) -> int:
        """Bytes of the longest of a few parts of the rows, twice: as stored, and put in order."""
        n = self.shape[0]
        cuts = np.linspace(0, n, min(n, 64) + 1).astype(np.int64)
        longest = np.max(np.diff(self.indptr[cuts]) / np.maximum(1, np.diff(cuts)))
        return int(2 * 20 * longest) + 8

    @property
    def held_bytes(self) -> int:
        return int(self.indptr.nbytes)

    def read(self, start: int, stop: int) -> Any:
        self.stamp.check(self.path)
        with decoding(*self.called), extra("h5py", "AnnData").File(self.path, "r") as file:
            return self._rows(file[self.group], start, stop)

    def _rows(self, group: Any, start: int, stop: int) -> Any:
        import scipy.sparse

        pointers = self.indptr[start : stop + 1]
        part = slice(int(pointers[0]), int(pointers[-1]))
        entries = group["data"][part].astype(self.dtype, copy=False), group["indices"][part]
        rows = scipy.sparse.csr_array(
            (*entries, pointers - pointers[0]), shape=(stop - start, self.full[1])
        )
        rows.check_format(full_check=True)  # the loops over them follow every index
        if self.columns is not None:
            rows = rows[:, self.columns]
        if not rows.has_canonical_format:  # an entry stored in parts cannot be squared
            rows.sum_duplicates()
        return rows

    def whole(self) -> Any:
        return self.read(0, self.shape[0])

    def _take(self, at: Values) -> Values:
        out = np.empty((len(at), self.shape[1]), self.dtype)
        self.stamp.check(self.path)
        with decoding(*self.called), extra("h5py", "AnnData").File(self.path, "r") as file:
            group = file[self.group]
            for i, row in enumerate(at.tolist()):
                out[i] = self._rows(group, row, row + 1).toarray()[0]
        return out
