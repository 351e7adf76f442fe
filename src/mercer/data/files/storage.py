"""Where the rows of a file are kept: in memory, in a temporary file, or in the file itself."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import working_dtype
from mercer.atomic_write import FULL
from mercer.config import get_config
from mercer.data.derived import select_columns
from mercer.data.errors import FileGuard, file_errors
from mercer.data.in_memory import ArraySource
from mercer.data.npy import NpySource, write_header
from mercer.data.source import Source
from mercer.messages import format_parameter

Rows = npt.NDArray[Any]
Decode = Callable[[int, int], Rows]
"""Returns a band, rows start to stop - 1."""

# Bands in the cache: the last of a block is the first of the next, and there are few workers.
_CACHED = 2
# Bytes of a band of an array without chunks.
BAND_BYTES = 2**15
# Copies of a band in memory while it is decoded: encoded, decoded, as rows.
_COPIES = 3


class TemporaryFolder:
    """A folder that is deleted with the source that holds it, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mercer-"))
        self.rows = self.path / "rows.npy"
        weakref.finalize(self, _remove, self.path, os.getpid())

    def source(self) -> NpySource:
        """Return the rows in the file."""
        source = NpySource(self.rows)
        source.folder = self
        return source

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Report a full disk, and how to get more space."""
        try:
            yield
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise OSError(
                error.errno,
                f"no room in {self.path.parent} for rows that exceed the memory budget. Set TMPDIR "
                f"to a folder with more space, or raise it with {format_parameter('memory')}",
            ) from error


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked process must not delete its parent's folder
        shutil.rmtree(path, ignore_errors=True)


def copy_rows(chunks: Iterable[Rows], shape: tuple[int, int], dtype: Any, order: str) -> NpySource:
    """Write some rows at a time, or some columns (order F), to a temporary file."""
    folder = TemporaryFolder()
    with folder.writing(), folder.rows.open("wb") as file:
        write_header(file, shape, dtype, order)
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, dtype).data)
    return folder.source()


class RowBuffer:
    """Collects blocks of rows of numbers.

    They stay in memory while they take a quarter of the budget, and go to a temporary file else.
    """

    def __init__(self, width: int, dtype: Any = np.float64) -> None:
        self.width, self.dtype, self.length = width, np.dtype(dtype), 0
        self.missing: npt.NDArray[np.int64] = np.zeros(width, np.int64)
        """Number of missing entries of every column."""
        self._blocks: list[Rows] = []
        self._folder: TemporaryFolder | None = None

    def append(self, rows: Rows) -> None:
        """Append a block."""
        self.length += len(rows)
        self._blocks.append(rows)
        if np.isnan(rows.min(initial=0.0)):
            self.missing += np.isnan(rows).sum(axis=0)
        size = self.dtype.itemsize * self.length * self.width
        if self._folder or size > get_config().budget // 4:
            self._spill()

    def _spill(self) -> None:
        """Write rows to a temporary file."""
        self._folder = self._folder or TemporaryFolder()
        with self._folder.writing(), self._folder.rows.open("ab") as file:
            if not file.tell():
                write_header(file, (0, self.width), self.dtype)
            for rows in self._blocks:
                file.write(np.ascontiguousarray(rows, self.dtype).data)
        self._blocks.clear()

    def source(self, columns: Sequence[int]) -> Source:
        """Return some columns of all rows; the buffer is empty then."""
        if self._folder is None:
            at: Any = slice(None) if list(columns) == [*range(self.width)] else list(columns)
            out, start = np.empty((self.length, len(columns)), self.dtype), 0
            while self._blocks:
                rows = self._blocks.pop(0)
                out[start : start + len(rows)] = rows[:, at]
                start += len(rows)
            return ArraySource(out)
        with self._folder.writing(), self._folder.rows.open("r+b") as file:
            write_header(file, (self.length, self.width), self.dtype)
        return select_columns(self._folder.source(), columns)


class Banded(Source):
    """Rows of a file, decoded band by band; in a pass, each about once.

    `edges` are the first row of every band and, last, the number of rows. `label` has path and
    format, for messages.
    """

    waits = True
    slow = False
    """Whether decoding takes much longer than reading a copy: Deflate."""
    order: Literal["C", "F"] = "C"

    def __init__(
        self,
        shape: tuple[int, int],
        stored: Any,
        edges: npt.NDArray[np.int64],
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

    @property
    def width(self) -> int:
        """Columns that are decoded."""
        return self.shape[1]

    @property
    def held_bytes(self) -> int:  # type: ignore[override]
        size = max(self.stored.itemsize, self.dtype.itemsize)
        return (_CACHED + _COPIES) * int(np.diff(self.edges).max()) * self.width * int(size)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: as it is returned, and as it is decoded."""
        return super().row_bytes + self.width * int(self.stored.itemsize)

    def read(self, start: int, stop: int) -> Rows:
        return self._take(np.arange(start, stop))

    def _take(self, at: npt.NDArray[Any]) -> Rows:
        out = np.empty((len(at), self.shape[1]), self.dtype, order=self.order)
        # Many files are checked where a pass begins and ends.
        ends = {*at[:1].tolist(), *at[-1:].tolist()}
        if len(self.guard.state) == 1 or ends & {0, self.shape[0] - 1}:
            self.guard.check()
        bands = np.searchsorted(self.edges, at, "right") - 1
        with file_errors(*self.label), self.open() as decode:
            for band in np.unique(bands).tolist():
                rows = np.flatnonzero(bands == band)
                out[rows] = self._band(band, decode)[at[rows] - self.edges[band]]
        return out

    def _band(self, band: int, decode: Decode) -> Rows:
        """Return a band; threads that need the same one wait for it."""
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
    """Some or all columns of a two-dimensional array of HDF5 or Zarr."""

    def __init__(
        self,
        opener: Callable[[], AbstractContextManager[Any]],
        array: Any,
        columns: Sequence[int],
        guard: FileGuard,
        label: tuple[str, str],
    ) -> None:
        n, d = (int(size) for size in array.shape)
        # Rows that are not in chunks are read some at a time.
        chunk = max(1, BAND_BYTES // (8 * d))
        chunk = int(array.chunks[0]) if array.chunks else chunk
        edges = np.append(np.arange(0, n, chunk), n)
        super().__init__((n, len(columns)), array.dtype, edges, guard, label)
        self.opener, self.columns = opener, np.asarray(columns)

    @property
    def width(self) -> int:
        return int(np.ptp(self.columns)) + 1

    @contextmanager
    def open(self) -> Iterator[Decode]:
        low = int(self.columns.min())
        part, at = slice(low, low + self.width), self.columns - low
        with self.opener() as array:
            yield lambda start, stop: np.asarray(array[start:stop, part])[:, at]


def place_rows(source: Banded) -> Source:
    """Return rows in memory if they take a quarter of the budget, else in the file or a copy.

    Integers of one or two bytes stay as they are stored.
    """
    small = source.stored.kind in "ui" and source.stored.itemsize <= 2
    dtype = source.stored.newbyteorder("=") if small else source.dtype
    if math.prod(source.shape) * dtype.itemsize <= get_config().budget // 4:
        with progress.quiet():
            return ArraySource(source.collect(np.empty(source.shape, dtype)))
    if stays_in_file(source):
        return source
    with file_errors(*source.label), source.open() as decode:
        bands = (decode(low, high) for low, high in pairwise(source.edges.tolist()))
        copy = copy_rows(bands, source.shape, dtype, "C")
    source.guard.check()
    return copy


def stays_in_file(source: Banded) -> bool:
    """Return whether rows are better read from their file than from a temporary copy.

    Small bands cost as much as to make a copy (measured: Parquet with Snappy, Zarr with
    Zstandard), and no disk space. Deflate is so slow that a copy pays, if there is room.
    """
    if source.held_bytes > get_config().budget // 4:
        return False
    return not source.slow or 2 * source.nbytes > shutil.disk_usage(tempfile.gettempdir()).free
