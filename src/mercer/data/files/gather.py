"""Rows as they come out of a file: in memory while they are few, then in a `.npy` file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.config import get_config
from mercer.data.array import ArraySource
from mercer.data.files.folder import Folder
from mercer.data.npy import NpySource, write_npy
from mercer.data.source import Source

Rows = npt.NDArray[Any]


class Gather:
    """Takes blocks of rows one after the other, counts what is missing, and ends as a source."""

    def __init__(self, width: int, dtype: Any = np.float64, share: int = 1) -> None:
        self.width, self.dtype = width, np.dtype(dtype)
        self.count = 0
        self.missing = np.zeros(width, np.int64)
        self.limit = get_config().budget // 4 // share
        self.blocks: list[Rows] = []
        self.folder: Folder | None = None
        self.file: Any = None

    def add(self, rows: Rows) -> None:
        """Take rows in."""
        rows = np.ascontiguousarray(rows, self.dtype)
        self.count += len(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            some = np.isnan(rows.sum())  # or infinities of both signs
        if some:
            self.missing += np.isnan(rows).sum(axis=0)
        if self.folder is None:
            self.blocks.append(rows)
            if self.count * self.width * self.dtype.itemsize > self.limit:
                self._spill()
        else:
            with self.folder.room():
                self.file.write(rows.data)

    def finish(self, columns: Sequence[int]) -> Source:
        """Return these columns of all rows as a source."""
        every = list(columns) == list(range(self.width))
        if self.folder is None:
            whole = np.empty((self.count, self.width), self.dtype)
            at = 0
            for block in self.blocks:
                whole[at : at + len(block)] = block
                at += len(block)
            self.blocks.clear()
            return ArraySource(whole if every else np.ascontiguousarray(whole[:, list(columns)]))
        with self.folder.room():
            self._header()
            self.file.close()
        path = self.folder.path / "rows.npy"
        source = NpySource(path)
        if not every:
            chosen = source.map(lambda block: block.rows[:, list(columns)], len(columns))
            with self.folder.room(), progress.quiet():
                source = write_npy(chosen, self.folder.path / "chosen.npy")
            path.unlink()
        source.folder = self.folder
        return source

    def close(self) -> None:
        """Let go of what was gathered; for a reading that ends early."""
        self.blocks.clear()
        if self.file is not None:
            self.file.close()

    def _spill(self) -> None:
        self.folder = Folder()
        with self.folder.room():
            self.file = (self.folder.path / "rows.npy").open("wb")
            self._header()
            for block in self.blocks:
                self.file.write(block.data)
        self.blocks.clear()

    def _header(self) -> None:
        """Write the header, of the same length for any number of rows."""
        self.file.seek(0)
        shape = (self.count, self.width)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)


class Beside(Source):
    """Rows whose columns lie in several sources."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self.parts = parts
        self.shape = (parts[0].shape[0], sum(part.shape[1] for part in parts))
        self.dtype = parts[0].dtype

    @property
    def row_bytes(self) -> int:
        return 2 * super().row_bytes

    def read(self, start: int, stop: int) -> Rows:
        return np.hstack([part.read(start, stop) for part in self.parts])


def side_by_side(parts: Sequence[Source]) -> Source:
    """Return rows whose columns were gathered apart as rows of one source."""
    if len(parts) == 1:
        return parts[0]
    whole = Gather(sum(part.shape[1] for part in parts), parts[0].dtype, share=len(parts))
    joined = Beside(parts)
    for block in joined.blocks(joined.block_rows(0, held=whole.limit, parts=1)):
        whole.add(block.rows)
    return whole.finish(range(whole.width))
