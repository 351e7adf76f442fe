"""Rows in a `.npy` file, read into buffers.

Not mapped: the pages of a memory map count as memory of the process, beyond the budget.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mercer.arrays import to_numpy, working_dtype
from mercer.atomic_write import write_atomically
from mercer.data.errors import FileError, FileGuard
from mercer.data.fold import Block, Place
from mercer.data.source import Source


class NpySource(Source):
    """Rows of a two-dimensional `.npy` file of numbers, C or Fortran order."""

    by_columns = True
    waits = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        shape, fortran, self.stored, self.offset = _header(self.path)
        self.shape = shape
        self.dtype = working_dtype(self.stored)
        self.contiguous = not fortran
        """Whether the file holds row after row, or column after column."""
        self.guard = FileGuard([self.path])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as it is read and, if that differs, as it is stored."""
        stored = 0 if self.stored == self.dtype else self.shape[1] * self.stored.itemsize
        return super().row_bytes + stored

    def read(self, start: int, stop: int) -> Any:
        n, d = self.shape
        self.guard.check()
        if self.contiguous:
            rows = self._numbers(start * d, (stop - start) * d).reshape(stop - start, d)
        else:
            rows = np.empty((d, stop - start), self.stored).T
            for j in range(d):
                rows[:, j] = self._numbers(j * n + start, stop - start)
        return rows.astype(self.dtype, copy=False)

    def column(self, j: int) -> Any:
        """Return a column as it is stored: long integers keep their digits."""
        column = np.lib.format.open_memmap(self.path, mode="r")[:, j]
        return np.array(column, self.stored.newbyteorder("="))

    def transposed(self) -> NpySource:
        other = self.weighted(None)
        other.shape, other.contiguous, other.names = self.shape[::-1], not self.contiguous, None
        return other

    def _numbers(self, first: int, count: int) -> Any:
        offset = self.offset + first * self.stored.itemsize
        try:
            numbers = np.fromfile(self.path, self.stored, count, offset=offset)
        except FileNotFoundError:  # removed since the guard looked
            self.guard.check()
            raise
        if len(numbers) < count:
            raise FileError(f"{self.path} was truncated while it was being read.")
        return numbers


class Write(Place):
    """Writes every block to its place in an open `.npy` file."""

    label = "transform"
    resumable = False  # the file is another in another process

    def __init__(self, file: int, offset: int, dtype: np.dtype[Any]) -> None:
        self.file, self.offset, self.dtype = file, offset, dtype

    def add(self, block: Block) -> None:
        rows = np.ascontiguousarray(to_numpy(block.dense(self.dtype)))
        at, view = self.offset + block.start * rows[:1].nbytes, memoryview(rows.data).cast("B")
        while len(view):
            done = os.pwrite(self.file, view, at)
            at, view = at + done, view[done:]


def write_header(file: BinaryIO, shape: tuple[int, int], dtype: Any, order: str = "C") -> None:
    """Write the header of a `.npy` file, whose length does not depend on the number of rows."""
    header = {"descr": np.dtype(dtype).str, "fortran_order": order == "F", "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def write_npy(source: Source, path: str | os.PathLike[str]) -> NpySource:
    """Write rows to a `.npy` file, block by block; it appears when it is complete."""
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"{path}: only .npy files can be written. Use a name that ends in .npy.")
    with write_atomically(path) as part, part.open("wb") as file:
        write_header(file, source.shape, source.dtype)
        file.flush()
        source.fold(Write(file.fileno(), file.tell(), source.dtype))
    return NpySource(path)


def _header(path: Path) -> tuple[tuple[int, int], bool, np.dtype[Any], int]:
    """Return shape, whether the order is Fortran's, dtype, and where the numbers begin."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # of any type: NumPy parses the header as Python text
        raise FileError(
            f"{path} is not a .npy file of numbers that NumPy can read, or it is truncated "
            f"({error}). Write float32 or float64 with numpy.save."
        ) from None
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise FileError(
            f"{path} contains an array of shape {array.shape} and dtype {array.dtype}, expected "
            f"2D and real numbers. Reshape it, or save it as float32 or float64."
        )
    n, d = array.shape
    return (n, d), not array.flags.c_contiguous, array.dtype, array.offset
