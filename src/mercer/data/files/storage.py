"""Where the rows of a file are kept: in memory, in a temporary file, or in the file itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import working_dtype
from mercer.atomic_write import FULL
from mercer.config import format_bytes, get_config
from mercer.data.errors import FileGuard, file_errors
from mercer.data.in_memory import ArraySource
from mercer.data.npy import NpySource, write_npy
from mercer.data.source import Source
from mercer.messages import format_parameter

Rows = npt.NDArray[Any]
Decode = Callable[[int, int], Rows]
"""Returns rows start to stop - 1: a band, or any rows if they can be read alone."""

# Bands in the cache: the last of a block is the first of the next, and there are few workers.
_CACHED = 2
# Copies of a band in memory while it is decoded: encoded, decoded, as rows.
_COPIES = 3


def memory_share() -> int:
    """Return how many bytes of rows are kept in memory; beyond, they stay on the disk."""
    return get_config().budget // 4


class TemporaryFolder:
    """A folder that is deleted with the source that holds it, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mercer-"))
        weakref.finalize(self, _remove, self.path, os.getpid())

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Say where the disk is full, and how to get more room."""
        try:
            yield
        except OSError as error:
            if error.errno not in FULL:
                raise
            free = format_bytes(shutil.disk_usage(self.path).free)
            raise OSError(
                error.errno,
                f"no room for the rows in {self.path.parent} ({free} free), where they are kept "
                f"while they do not fit the memory budget. Set TMPDIR to a folder with more room, "
                f"or raise the budget with {format_parameter('memory')}",
            ) from error


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked process must not delete its parent's folder
        shutil.rmtree(path, ignore_errors=True)


class RowBuffer:
    """Collects blocks of rows, counts missing entries, and becomes a source.

    Parameters
    ----------
    width : int
        Number of columns.
    dtype : dtype
        Of the rows.
    expected : int
        Bytes of all rows, as far as known: if they are too many, no block stays in memory.
    """

    def __init__(self, width: int, dtype: Any = np.float64, expected: int = 0) -> None:
        self.width, self.dtype, self.count = width, np.dtype(dtype), 0
        self.missing = np.zeros(width, np.int64)
        self.blocks: list[Rows] = []
        self.folder: TemporaryFolder | None = None
        self.file: Any = None
        if expected > memory_share():
            self._spill()

    def add(self, rows: Rows) -> None:
        """Append rows."""
        rows = np.ascontiguousarray(rows, self.dtype)
        self.count += len(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isnan(rows.sum()):  # or infinities of both signs
                self.missing += np.isnan(rows).sum(axis=0)
        if self.folder is not None:
            with self.folder.writing():
                self.file.write(rows.data)
            return
        self.blocks.append(rows)
        if self.count * self.width * self.dtype.itemsize > memory_share():
            self._spill()

    def _spill(self) -> None:
        self.folder = TemporaryFolder()
        with self.folder.writing():
            self.file = (self.folder.path / "rows.npy").open("wb")
            self._write_header()
            for block in self.blocks:
                self.file.write(block.data)
        self.blocks.clear()

    def _write_header(self) -> None:
        """Write the header, whose length does not depend on the number of rows."""
        self.file.seek(0)
        shape = (self.count, self.width)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)

    def finish(self, columns: Sequence[int]) -> Source:
        """Return these columns of all rows as a source."""
        every = list(columns) == list(range(self.width))
        if self.folder is None:
            rows = np.empty((self.count, len(columns)), self.dtype)
            start = 0
            for i, block in enumerate(self.blocks):
                rows[start : start + len(block)] = block if every else block[:, columns]
                start += len(block)
                self.blocks[i] = block[:0]
            return ArraySource(rows)
        with self.folder.writing():
            self._write_header()
            self.file.close()
        path = self.folder.path / "rows.npy"
        source = NpySource(path)
        if not every:
            chosen = source.map(lambda block: block.rows[:, list(columns)], len(columns))
            with self.folder.writing(), progress.quiet():
                source = write_npy(chosen, self.folder.path / "chosen.npy")
            path.unlink()
        source.folder = self.folder
        return source

    def close(self) -> None:
        """Release memory and file if reading ends early."""
        self.blocks.clear()
        if self.file is not None:
            self.file.close()


class Banded(Source):
    """Rows of a file, decoded band by band; in a pass, each about once.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns.
    stored : dtype
        Of the entries in the file.
    edges : ndarray or None
        First row of every band and, last, the number of rows; None if any row can be read alone.
    guard : FileGuard
        Of the files, which must not change.
    label : tuple of str
        Path and format, for messages.
    """

    waits = True
    slow = False
    """Whether decoding takes much longer than reading a copy: Deflate."""
    order: Literal["C", "F"] = "C"

    def __init__(
        self,
        shape: tuple[int, int],
        stored: Any,
        edges: npt.NDArray[np.int64] | None,
        guard: FileGuard,
        label: tuple[str, str],
    ) -> None:
        self.shape, self.stored, self.edges = shape, np.dtype(stored), edges
        self.dtype = working_dtype(stored)
        self.guard, self.label = guard, label
        self._lock, self._cache = threading.Lock(), dict[int, Rows]()

    @abstractmethod
    def open(self) -> AbstractContextManager[Decode]:
        """Open the file."""

    def check(self, start: int, stop: int) -> None:
        """Raise if a file has changed; many files are checked where a pass begins and ends."""
        if len(self.guard.state) == 1 or start == 0 or stop == self.shape[0]:
            self.guard.check_all()

    @property
    def width(self) -> int:
        """Columns that are decoded."""
        return self.shape[1]

    @property
    def band_bytes(self) -> int:
        """Bytes of the largest band, decoded."""
        longest = 1 if self.edges is None else int(np.diff(self.edges).max())
        return longest * self.width * int(max(self.stored.itemsize, self.dtype.itemsize))

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: as it is returned, and as it is decoded."""
        return super().row_bytes + self.width * int(self.stored.itemsize)

    @property
    def held_bytes(self) -> int:
        return (_CACHED + _COPIES) * self.band_bytes

    def read(self, start: int, stop: int) -> Rows:
        out = np.empty((stop - start, self.shape[1]), self.dtype, order=self.order)
        self.check(start, stop)
        with file_errors(*self.label), self.open() as decode:
            if self.edges is None:
                out[:] = decode(start, stop)
                return out
            first = int(np.searchsorted(self.edges, start, "right")) - 1
            last = int(np.searchsorted(self.edges, stop, "left"))
            for band in range(first, last):
                low, high = int(self.edges[band]), int(self.edges[band + 1])
                a, b = max(start, low), min(stop, high)
                out[a - start : b - start] = self._band(band, decode)[a - low : b - low]
        return out

    def _take(self, at: npt.NDArray[Any]) -> Rows:
        out = np.empty((len(at), self.shape[1]), self.dtype, order=self.order)
        self.guard.check_all()
        with file_errors(*self.label), self.open() as decode:
            if self.edges is None:
                for i, row in enumerate(at.tolist()):
                    out[i] = decode(row, row + 1)[0]
                return out
            bands = np.searchsorted(self.edges, at, "right") - 1
            for band in np.unique(bands).tolist():
                rows = np.flatnonzero(bands == band)
                out[rows] = self._band(band, decode)[at[rows] - self.edges[band]]
        return out

    def _band(self, band: int, decode: Decode) -> Rows:
        """Return a band; threads that need the same one wait for it."""
        assert self.edges is not None
        with self._lock:
            rows = self._cache.pop(band, None)
            if rows is None:
                while len(self._cache) >= _CACHED:
                    del self._cache[next(iter(self._cache))]
                rows = decode(int(self.edges[band]), int(self.edges[band + 1]))
            self._cache[band] = rows  # the most recent is last
            return rows

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_lock": None, "_cache": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


class ArrayRows(Banded):
    """Rows of a two-dimensional array of HDF5 or Zarr.

    Parameters
    ----------
    opener : callable
        Returns a context manager of the array.
    array : h5py.Dataset or zarr.Array
        The array, open.
    columns : sequence of int, optional
        Columns to return, in this order.
    guard, label
        As in `Banded`.
    """

    def __init__(
        self,
        opener: Callable[[], AbstractContextManager[Any]],
        array: Any,
        columns: Sequence[int] | None,
        guard: FileGuard,
        label: tuple[str, str],
    ) -> None:
        n, d = (int(size) for size in array.shape)
        columns = None if columns is None or list(columns) == list(range(d)) else columns
        chunk = None if array.chunks is None else int(array.chunks[0])
        edges = None if chunk is None else np.append(np.arange(0, n, chunk), n)
        super().__init__(
            (n, d if columns is None else len(columns)), array.dtype, edges, guard, label
        )
        self.opener = opener
        self.columns = None if columns is None else np.asarray(columns)

    @property
    def width(self) -> int:
        return self.shape[1] if self.columns is None else int(np.ptp(self.columns)) + 1

    @contextmanager
    def open(self) -> Iterator[Decode]:
        with self.opener() as array:
            if self.columns is None:
                yield lambda start, stop: np.asarray(array[start:stop, :])
                return
            at, low = self.columns - self.columns.min(), int(self.columns.min())
            part = slice(low, low + self.width)
            yield lambda start, stop: np.asarray(array[start:stop, part])[:, at]


def place_rows(source: Banded) -> Source:
    """Return rows where reading them again costs least.

    In memory while they take no more than a quarter of the budget; else in the file, or in a
    temporary copy: see `stays_in_file`.
    """
    if array_bytes(source) <= memory_share():
        with progress.quiet():
            return ArraySource(source.collect(np.empty(source.shape, source.dtype)))
    return source if stays_in_file(source) else copy_rows(source)


def array_bytes(source: Source) -> int:
    """Return the bytes of all rows."""
    return source.shape[0] * source.shape[1] * int(source.dtype.itemsize)


def stays_in_file(source: Banded) -> bool:
    """Tell whether rows are better read from their file than from a temporary copy.

    A fit makes a few passes, and reads some rows from all over the file. If bands are small
    compared to the budget, that costs as much as to make a copy (measured: Parquet with Snappy,
    Zarr with Zstandard), and no disk space. Deflate is so slow that a copy pays, if there is room.
    """
    if source.held_bytes > get_config().budget // 4:
        return False
    return (
        not source.slow or 2 * array_bytes(source) > shutil.disk_usage(tempfile.gettempdir()).free
    )


def copy_rows(source: Banded) -> Source:
    """Copy rows to memory or a temporary file, one band at a time."""
    assert source.edges is not None
    buffer = RowBuffer(source.shape[1], source.dtype, array_bytes(source))
    try:
        with file_errors(*source.label), source.open() as decode:
            for low, high in pairwise(source.edges.tolist()):
                buffer.add(decode(low, high))
        source.guard.check_all()
        return buffer.finish(range(buffer.width))
    finally:
        buffer.close()
