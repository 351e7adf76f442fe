"""Parquet, Arrow and Feather files, read by Polars: some columns, or one row group, at a time."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mercer.config import get_config, require_budget
from mercer.data.errors import FileError, FileGuard, file_errors, format_names
from mercer.data.files.storage import Banded, Decode, Rows, copy_rows, stays_in_file
from mercer.data.files.table import Request, Table, is_numeric, polars
from mercer.data.files.typed import TypedColumns, floats
from mercer.data.in_memory import ArraySource
from mercer.data.source import Source
from mercer.progress import Tick


class Part:
    """One file of a table; `keys` are in the names of its folders, as in ``year=2024``."""

    def __init__(self, path: Path, root: Path, request: Request) -> None:
        self.path, self.stream = path, None
        with path.open("rb") as file:
            start = file.read(6)
        if start[:4] == b"FEA1":
            raise FileError(f"{path} is a Feather file of version 1. Write it again as version 2.")
        self.parquet, pl = start[:4] == b"PAR1", polars()
        if not self.parquet and start != b"ARROW1":
            require_budget(3 * path.stat().st_size, f"{request.path}: reading it")
            self.stream = pl.read_ipc_stream(path)
        folders = path.relative_to(root).parts[:-1] if path != root else ()
        pairs = [name.partition("=") for name in folders if "=" in name]
        self.keys = {key: urllib.parse.unquote(value) for key, _, value in pairs}
        self.types = dict(self.scan().collect_schema())
        self.length = int(self.scan().select(pl.len()).collect().item())

    def scan(self, *, mapped: bool = True) -> Any:
        """Return a LazyFrame. A mapped Arrow file must not be truncated: that ends the process."""
        pl = polars()
        if self.stream is not None:
            frame = self.stream.lazy()
        elif self.parquet:
            frame = pl.scan_parquet(self.path, glob=False, hive_partitioning=False)
        else:
            path = self.path if mapped else self.path.resolve().as_uri()
            frame = pl.scan_ipc(path, glob=False, hive_partitioning=False)
        return frame.with_columns(
            pl.lit(int(text) if text.isdecimal() else text).alias(key)
            for key, text in self.keys.items()
        )

    def groups(self) -> list[int]:
        """Return the lengths of the row groups or record batches: Polars reads one at a time."""
        lengths: list[int] = []
        name = next(iter(self.types))
        batches = self.scan().select(name)
        batches.sink_batches(lambda batch: lengths.append(len(batch)), engine="streaming")
        return lengths


class Grouped(Banded):
    """Rows of Parquet or Arrow files, read in place; a band is a row group."""

    order = "F"  # columns are decoded one by one

    def __init__(self, parts: Sequence[Part], names: Sequence[str], dtype: Any, path: str) -> None:
        self.parts, self.columns = parts, list(names)
        groups = [part.groups() for part in parts]
        edges = np.cumsum([0, *(length for lengths in groups for length in lengths)])
        # Of every band: its file, and its first row there.
        self.places = [
            (part, int(start))
            for part, lengths in zip(parts, groups, strict=True)
            for start in np.cumsum([0, *lengths])[:-1]
        ]
        guard = FileGuard(part.path for part in parts)
        super().__init__((int(edges[-1]), len(names)), dtype, edges, guard, (path, "a table"))

    @contextmanager
    def open(self) -> Iterator[Decode]:
        def decode(start: int, stop: int) -> Rows:
            part, first = self.places[int(np.searchsorted(self.edges, start))]
            frame = part.scan(mapped=False).slice(first, stop - start).select(self.columns)
            return floats(frame.collect(), self.dtype)

        yield decode


def read_columnar(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read the Parquet or Arrow files of one table."""
    with file_errors(request.path, "a table"):
        parts = [Part(path, root, request) for path in paths]
        types = _common_types(parts, request)
        columns = TypedColumns(types, request, index=_pandas_index(parts[0], list(types)))
        if not any(part.length for part in parts):
            raise FileError(f"{request.path} has columns, but no rows.")
        beside = _collect(parts, columns.names_of(columns.beside))

    def rows(features: list[int]) -> tuple[Source, None]:
        with file_errors(request.path, "a table"):
            names, dtype = columns.names_of(features), columns.dtype(features)
            return _rows(parts, names, dtype, request, tick), None

    return columns.table(beside, rows)


def _common_types(parts: Sequence[Part], request: Request) -> dict[str, Any]:
    """Return the dtypes of the columns; raise if the files differ."""
    first, types = parts[0], dict(parts[0].types)
    for part in parts[1:]:
        odd = types.keys() ^ part.types.keys()
        for name in types.keys() & part.types.keys():
            a, b = types[name], part.types[name]
            odd |= set() if a == b or (is_numeric(a) and is_numeric(b)) else {name}
            types[name] = a if a == b else polars().Float64
        if odd:
            raise FileError(
                f"{request.path}: {first.path.name} and {part.path.name} have different columns or "
                f"dtypes ({format_names(sorted(odd))}). All files of a table must have the same."
            )
    return types


def _collect(parts: Sequence[Part], names: Sequence[str]) -> Any:
    frames = [part.scan().select(names) for part in parts]
    return polars().concat(frames, how="vertical_relaxed").collect()


def _rows(
    parts: Sequence[Part], names: list[str], dtype: Any, request: Request, tick: Tick
) -> Source:
    """Return rows in memory, in the files or in a temporary file."""
    n, d = sum(part.length for part in parts), len(names)
    tick(sum(part.path.stat().st_size for part in parts))
    if n * d * dtype.itemsize <= get_config().budget // 4:
        return ArraySource(np.ascontiguousarray(floats(_collect(parts, names), dtype)))
    source = Grouped(parts, names, dtype, request.path)
    if stays_in_file(source):
        return source
    step = max(1, get_config().budget // (8 * 16 * n))  # as many columns as the budget allows
    columns = (
        floats(series, dtype)
        for first in range(0, d, step)
        for series in _collect(parts, names[first : first + step]).iter_columns()
    )
    return copy_rows(columns, (n, d), dtype, "F")


def _pandas_index(part: Part, names: Sequence[str]) -> list[int]:
    """Return the columns that were the index of a pandas DataFrame."""
    index = [name for name in names if name.startswith("__index_level_")]
    try:
        about = polars().read_parquet_metadata(part.path) if part.parquet else {}
        index += json.loads(about["pandas"])["index_columns"]
    except (ValueError, KeyError, TypeError):
        pass
    return [i for i, name in enumerate(names) if name in index]
