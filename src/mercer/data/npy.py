"""Rows in a `.npy` file, read into buffers: nothing is mapped, nothing is kept.

The pages of a memory map count as the process's own memory; a buffer is as large as
the block and no larger.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy, working_dtype
from mercer.atomic_write import whole
from mercer.data.errors import FileError, FileGuard
from mercer.data.fold import Block, Fold
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
        # What lies one after the other in the file: rows, or columns in Fortran order.
        self.contiguous = not fortran
        self.guard = FileGuard([self.path])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: as it is handed out, and as it is stored where that is something else."""
        stored = 0 if self.stored == self.dtype else self.shape[1] * self.stored.itemsize
        return super().row_bytes + stored

    def read(self, start: int, stop: int) -> Any:
        n, d = self.shape
        rows = self._lines(start, stop, d) if self.contiguous else self._strips(start, stop, n, d)
        return rows.astype(self.dtype, copy=False)

    def column(self, j: int) -> Any:
        """Return a column in the precision it is stored in: long integers keep their digits."""
        n, d = self.shape
        out = np.empty(n, self.stored)
        rows = self.block_rows(0, held=out.nbytes, parts=1)
        for start in range(0, n, rows):
            stop = min(n, start + rows)
            if self.contiguous:
                out[start:stop] = self._lines(start, stop, d)[:, j]
            else:
                with self._open() as file:
                    self._fill(file, out[start:stop], j * n + start)
        return out.astype(self.stored.newbyteorder("="), copy=False)

    def transposed(self) -> NpySource:
        other = object.__new__(NpySource)
        other.__dict__ = {
            **self.__dict__,
            "shape": self.shape[::-1],
            "contiguous": not self.contiguous,
            "weights": None,
            "names": None,
        }
        return other

    def _lines(self, start: int, stop: int, length: int) -> Any:
        buffer = np.empty((stop - start, length), self.stored)
        with self._open() as file:
            self._fill(file, buffer, start * length)
        return buffer

    def _strips(self, start: int, stop: int, length: int, count: int) -> Any:
        buffer = np.empty((count, stop - start), self.stored)
        with self._open() as file:
            for i in range(count):
                self._fill(file, buffer[i], i * length + start)
        return buffer.T

    def _open(self) -> Any:
        try:
            file = self.path.open("rb", buffering=0)
        except FileNotFoundError:
            self.guard.check(self.path)  # says that it was removed
            raise
        try:
            self.guard.check(self.path, file.fileno())
        except FileError:
            file.close()
            raise
        return file

    def _fill(self, file: Any, buffer: Any, item: int) -> None:
        file.seek(self.offset + item * self.stored.itemsize)
        view = memoryview(buffer).cast("B")
        while len(view):
            got = file.readinto(view)
            if not got:
                raise FileError(f"{self.path} ended while it was being read: it was truncated.")
            view = view[got:]


class Write(Fold):
    """Writes every block to its place in an open `.npy` file."""

    label = "transform"
    here = True
    resumable = False  # the file is another in another process

    def __init__(self, file: int, offset: int, dtype: np.dtype[Any]) -> None:
        self.file, self.offset, self.dtype = file, offset, dtype

    def add(self, block: Block) -> None:
        rows = np.ascontiguousarray(to_numpy(block.dense(self.dtype)))
        at, view = self.offset + block.start * rows[:1].nbytes, memoryview(rows.data).cast("B")
        while len(view):
            done = os.pwrite(self.file, view, at)
            at, view = at + done, view[done:]

    def merge(self, other: Self) -> None:
        pass  # both write into the same file

    def spawn(self) -> Self:
        return type(self)(self.file, self.offset, self.dtype)

    def arrays(self) -> dict[str, Any]:
        return {}

    def restore(self, arrays: dict[str, Any]) -> None:
        pass


def write_npy(source: Source, path: str | os.PathLike[str]) -> NpySource:
    """Write rows to a `.npy` file, block by block; the file appears when all are in it."""
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"{path}: rows are written to .npy files. Give it a name that ends so.")
    header = {"descr": source.dtype.str, "fortran_order": False, "shape": tuple(source.shape)}
    with whole(path) as part, part.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        source.fold(Write(file.fileno(), file.tell(), source.dtype))
    return NpySource(path)


def _header(path: Path) -> tuple[tuple[int, int], bool, np.dtype[Any], int]:
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
        except Exception as error:  # of whatever kind: NumPy parses the header as Python text
            raise FileError(
                f"{path} is not a .npy file that NumPy can read ({error}). "
                f"Write one with numpy.save."
            ) from None
        offset = file.tell()
    if len(shape) != 2 or min(shape) < 0:
        raise FileError(
            f"{path} holds an array of shape {shape}; expected 2D, rows and columns. "
            f"Reshape it before saving."
        )
    if dtype.kind not in "fiub":
        raise FileError(
            f"{path} holds dtype {dtype}, not real numbers. Save it as float32 or float64."
        )
    needed, there = offset + shape[0] * shape[1] * dtype.itemsize, path.stat().st_size
    if there < needed:
        raise FileError(
            f"{path} is truncated: shape {shape} of {dtype} needs {needed} bytes, "
            f"the file has {there}. Write it again."
        )
    return (int(shape[0]), int(shape[1])), bool(fortran), dtype, offset
