"""Rows of Parquet and Arrow files, read where they lie: one row group or record batch at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import threads
from mercer.data.file_guard import Stamp
from mercer.data.files.banded import Banded, Rows, Unpack
from mercer.data.files.extra import extra
from mercer.data.files.roles import Ask


class Grouped(Banded):
    """Rows of typed columns in one file or several, which hold groups of rows.

    Parameters
    ----------
    paths : sequence of Path
        Files of one table, in order.
    groups : sequence of sequence of int
        Rows of every group of every file.
    names : sequence of str
        Columns wanted; no others are read.
    dtype : dtype
        What all of them become.
    """

    # Columns are unpacked one by one: rows in Fortran order are copied at full speed.
    order = "F"
    format = ""
    edges: npt.NDArray[np.int64]

    def __init__(
        self,
        paths: Sequence[Path],
        groups: Sequence[Sequence[int]],
        names: Sequence[str],
        dtype: Any,
        ask: Ask,
    ) -> None:
        lengths = [length for file in groups for length in file if length]
        edges = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shape = (int(edges[-1]), len(names))
        super().__init__(shape, dtype, edges, Stamp(paths), (ask.path, self.format))
        self.paths, self.columns = list(paths), list(names)
        # Which file and which of its groups a band is; groups may be empty.
        self.places = [(f, g) for f, file in enumerate(groups) for g, n in enumerate(file) if n]

    def check(self, start: int, stop: int) -> None:
        first, last = np.searchsorted(self.edges, (start, max(start, stop - 1)), "right") - 1
        for f in sorted({self.places[i][0] for i in range(int(first), int(last) + 1)}):
            self.stamp.check(self.paths[f])

    @contextmanager
    def opened(self) -> Iterator[Unpack]:
        now: tuple[int, Any] = (-1, None)
        with ExitStack() as stack:

            def unpack(start: int, stop: int) -> Rows:
                nonlocal now
                out = np.empty((stop - start, self.shape[1]), self.dtype, order="F")
                first, last = np.searchsorted(self.edges, (start, stop))
                for i in range(int(first), int(last)):
                    f, g = self.places[i]
                    if now[0] != f:
                        stack.close()
                        now = f, self._open(f, stack)
                    at = int(self.edges[i]) - start
                    rows = out[at : at + int(self.edges[i + 1] - self.edges[i])]
                    self._fill(rows, self._group(now[1], g))
                return out

            yield unpack

    def _fill(self, rows: Rows, table: Any) -> None:
        for j, name in enumerate(self.columns):
            rows[:, j] = values(table.column(table.schema.get_field_index(name)), self.dtype)

    @abstractmethod
    def _open(self, file: int, stack: ExitStack) -> Any:
        """Open a file, which the stack closes."""

    @abstractmethod
    def _group(self, opened: Any, group: int) -> Any:
        """Return a group of an open file."""


class ParquetRows(Grouped):
    """Rows of Parquet files, by row groups."""

    format = "Parquet"
    metadata: Sequence[Any] = ()
    """Of every file, kept: that of many columns and groups takes long to parse."""

    def _open(self, file: int, stack: ExitStack) -> Any:
        opened = stack.enter_context(self.paths[file].open("rb"))
        parquet = extra("pyarrow.parquet", "Parquet")
        return stack.enter_context(parquet.ParquetFile(opened, metadata=self.metadata[file]))

    def _group(self, opened: Any, group: int) -> Any:
        return opened.read_row_group(group, columns=self.columns, use_threads=threads.workers() > 1)


class ArrowRows(Grouped):
    """Rows of Arrow files, by record batches."""

    format = "Arrow"

    def _open(self, file: int, stack: ExitStack) -> Any:
        return open_batches(self.paths[file], self.columns, stack)

    def _group(self, opened: Any, group: int) -> Any:
        batch = opened.get_batch(group)
        # Offsets that point outside their buffer would be followed: check before use.
        batch.validate(full=True)
        return batch


def open_batches(path: Path, columns: Sequence[str], stack: ExitStack) -> Any:
    """Return a reader of some columns of the record batches of an Arrow file."""
    pa, ipc = extra("pyarrow", "Arrow"), extra("pyarrow.ipc", "Arrow")
    file = stack.enter_context(pa.OSFile(str(path)))
    schema = ipc.open_file(file).schema
    wanted = [schema.get_field_index(name) for name in columns]
    return ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=wanted))


def values(column: Any, dtype: Any) -> Rows:
    """Return numbers of any kind as floats, NaN where they are missing."""
    kind = "float32" if dtype == np.float32 else "float64"
    if str(column.type) not in ("float", "double"):
        column = column.cast(kind, safe=False)
    if hasattr(column, "num_chunks"):
        return np.asarray(column.to_numpy(), dtype)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype)
