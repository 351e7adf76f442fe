"""Rows that a file stores in bands, each unpacked as a whole: row groups, rows of chunks."""

from __future__ import annotations

import shutil
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import working_dtype
from mercer.config import get_config
from mercer.data.array import ArraySource
from mercer.data.errors import decoding
from mercer.data.file_guard import Stamp
from mercer.data.files.gather import Gather
from mercer.data.source import Source

Rows = npt.NDArray[Any]
Unpack = Callable[[int, int], Rows]
"""Rows start to stop - 1, where both are edges of bands."""

# Bands kept: the last of a block is the first of the next, and workers are blocks apart.
_KEPT = 2
# In how many forms a band is in memory while it is unpacked: packed, unpacked, as rows.
_FORMS = 3


class Kept:
    """The bands unpacked last; who needs one that another thread unpacks waits for it."""

    def __init__(self) -> None:
        self.lock, self.bands = threading.Lock(), dict[int, Rows]()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Kept, ()

    def get(self, start: int, unpack: Callable[[], Rows]) -> Rows:
        """Return the band that begins at a row."""
        with self.lock:
            found = self.bands.pop(start, None)
            if found is None:
                while len(self.bands) >= _KEPT:
                    del self.bands[next(iter(self.bands))]
                found = unpack()
            self.bands[start] = found  # the last is the one used last
            return found


class Banded(Source):
    """Rows read where they lie; every band is unpacked about once a pass.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns handed out.
    stored : dtype
        Of the entries in the file.
    edges : int or ndarray
        Rows of a band; or where each begins and, last, the number of rows.
    stamp : Stamp
        Of the files, which must not change.
    called : tuple of str
        What messages call the file, and its format.
    """

    waits = True
    slow = False
    """Whether unpacking takes much longer than reading what is not packed: Deflate."""
    order: Literal["C", "F"] = "C"

    def __init__(
        self,
        shape: tuple[int, int],
        stored: Any,
        edges: int | npt.NDArray[np.int64],
        stamp: Stamp,
        called: tuple[str, str],
    ) -> None:
        self.shape, self.stored, self.edges = shape, np.dtype(stored), edges
        self.dtype = working_dtype(stored)
        self.stamp, self.called, self.kept = stamp, called, Kept()

    @abstractmethod
    def opened(self) -> AbstractContextManager[Unpack]:
        """Open the file and return what unpacks whole bands of it."""

    def check(self, start: int, stop: int) -> None:
        """Refuse files that are not what they were, as far as these rows lie in them."""
        self.stamp.check_all()

    @property
    def width(self) -> int:
        """Columns that are unpacked."""
        return self.shape[1]

    @property
    def band_bytes(self) -> int:
        """Bytes of the largest band, unpacked."""
        high = self.edges if isinstance(self.edges, int) else int(np.diff(self.edges).max())
        entry: int = max(self.stored.itemsize, self.dtype.itemsize)
        return min(high, self.shape[0]) * self.width * entry

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: as it is handed out, and as it is unpacked."""
        stored: int = self.stored.itemsize
        return super().row_bytes + self.width * stored

    @property
    def held_bytes(self) -> int:
        return (_KEPT + _FORMS) * self.band_bytes

    def read(self, start: int, stop: int) -> Rows:
        above = self._edges(start, stop)[1]
        out = np.empty((stop - start, self.shape[1]), self.dtype, order=self.order)
        self.check(start, stop)
        with decoding(*self.called), self.opened() as unpack:
            at = start
            while at < stop:
                here, end = self._edges(at, at + 1)
                if here == at and end <= stop:  # whole bands, at once, and not kept
                    end = above if above <= stop else self._edges(stop, stop)[0]
                    band = unpack(at, end)
                    here = at
                else:
                    band = self._band(here, end, unpack)
                upto = min(end, stop)
                out[at - start : upto - start] = band[at - here : upto - here]
                at = upto
        return out

    def _band(self, here: int, end: int, unpack: Unpack) -> Rows:
        if isinstance(self.edges, int) and self.edges == 1:
            return unpack(here, end)
        return self.kept.get(here, lambda: unpack(here, end))

    def _edges(self, start: int, stop: int) -> tuple[int, int]:
        """Return the last edge not after `start`, and the first not before `stop`."""
        n = self.shape[0]
        if isinstance(self.edges, int):
            return start - start % self.edges, min(n, -(-stop // self.edges) * self.edges)
        low = self.edges[np.searchsorted(self.edges, start, "right") - 1]
        return int(low), int(self.edges[np.searchsorted(self.edges, stop, "left")])

    def _take(self, at: npt.NDArray[Any]) -> Rows:
        """Return named rows; a band that holds several is unpacked once."""
        out = np.empty((len(at), self.shape[1]), self.dtype, order=self.order)
        turn = np.argsort(at, kind="stable")
        self.stamp.check_all()
        with decoding(*self.called), self.opened() as unpack:
            i = 0
            while i < len(turn):
                here, end = self._edges(int(at[turn[i]]), int(at[turn[i]]) + 1)
                upto = i + int(np.searchsorted(at[turn[i:]], end))
                some = turn[i:upto]
                out[some] = self._band(here, end, unpack)[at[some] - here]
                i = upto
        return out


def placed(source: Banded) -> Source:
    """Return rows where reading them again costs least.

    In memory while they take no more than a quarter of the budget; then where they lie, or in a
    temporary `.npy` file: see `in_place`.
    """
    n, d = source.shape
    if n * d * source.dtype.itemsize <= get_config().budget // 4:
        with progress.quiet():
            return ArraySource(source.collect(np.empty(source.shape, source.dtype)))
    return source if in_place(source) else gathered(source)


def in_place(source: Banded) -> bool:
    """Tell whether rows are to be read where they lie.

    A fit goes over the rows a few times, and looks at some from all over the file. Where bands
    are small beside the budget that costs as much as a copy of the file does (measured: Parquet
    with Snappy, Zarr with Zstandard), and takes no room on the disk. Deflate is so slow that a
    copy pays, if there is room for it.
    """
    if source.held_bytes > get_config().budget // 4:
        return False
    needed = source.shape[0] * source.shape[1] * source.dtype.itemsize
    return not source.slow or 2 * needed > shutil.disk_usage(tempfile.gettempdir()).free


def gathered(source: Banded) -> Source:
    """Return the rows in memory or in a temporary file; one band at a time is unpacked."""
    gather = Gather(source.shape[1], source.dtype)
    n = source.shape[0]
    try:
        with decoding(*source.called), source.opened() as unpack:
            at = 0
            while at < n:
                end = source._edges(at, at + 1)[1]
                gather.add(unpack(at, end))
                at = end
        source.stamp.check_all()
        return gather.finish(range(gather.width))
    finally:
        gather.close()


class Sliced(Banded):
    """Rows of a two-dimensional array of a library that reads slices: HDF5, Zarr."""

    columns: tuple[int, ...] | None = None
    """Which columns are handed out, in this order; None is all."""
    runs: tuple[tuple[int, int], ...] = ()
    """The columns [first, last + 1) that are read for them."""

    def choose(self, columns: Sequence[int], gap: int) -> None:
        """Read some columns only; a gap between two is read, too, where it is shorter than this."""
        runs: list[tuple[int, int]] = []
        for column in sorted(columns):
            if runs and column - runs[-1][1] < gap:
                runs[-1] = (runs[-1][0], column + 1)
            else:
                runs.append((column, column + 1))
        self.columns, self.runs = tuple(columns), tuple(runs)

    @property
    def width(self) -> int:
        return sum(high - low for low, high in self.runs) if self.columns else self.shape[1]

    def pick(self, array: Any) -> Unpack:
        """Return what reads rows of an open array."""
        if self.columns is None:
            return lambda start, stop: np.asarray(array[start:stop, :])
        read = np.concatenate([np.arange(low, high) for low, high in self.runs])
        at = np.searchsorted(read, self.columns)

        def unpack(start: int, stop: int) -> Rows:
            parts = [np.asarray(array[start:stop, low:high]) for low, high in self.runs]
            return np.hstack(parts)[:, at]

        return unpack
