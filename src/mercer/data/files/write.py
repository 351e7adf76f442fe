"""From rows to a file, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import to_numpy
from mercer.atomic_write import whole
from mercer.data.errors import FileError, listed
from mercer.data.files.extra import extra as module
from mercer.data.files.labels import Text
from mercer.data.npy import write_npy
from mercer.data.source import Source

Opener = Callable[[str, Any], AbstractContextManager[Any]]


def _open_csv(path: str, schema: Any, delimiter: str) -> Any:
    csv = module("pyarrow.csv", "CSV")
    options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    return csv.CSVWriter(path, schema, write_options=options)


def _open_parquet(path: str, schema: Any) -> Any:
    # Numbers that hardly repeat gain nothing from a dictionary.
    return module("pyarrow.parquet", "Parquet").ParquetWriter(path, schema, use_dictionary=False)


def _open_arrow(path: str, schema: Any) -> Any:
    return module("pyarrow.ipc", "Arrow").new_file(path, schema)


WRITERS: dict[str, Opener] = {
    ".csv": partial(_open_csv, delimiter=","),
    ".tsv": partial(_open_csv, delimiter="\t"),
    ".parquet": _open_parquet,
    ".arrow": _open_arrow,
    ".feather": _open_arrow,
}


def write_table(
    source: Source,
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write rows to a file; it appears when all are in it, and every bit of them is.

    Parameters
    ----------
    source : Source
        The rows.
    path : str or path
        Of a ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``, ``.feather`` or ``.npy`` file.
    names : sequence of str, optional
        Of the columns; by default those of the source, else component1, component2, ....
        A ``.npy`` file has none.
    extra : mapping of str to array of shape (n,), optional
        Columns to put before the rows: labels, identifiers. Arrays of NumPy or pyarrow, lists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer import as_source
    >>> from mercer.data.files import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.csv"
    ...     write_table(as_source([[0.5, 2.0]]), path, extra={"name": ["a"]})
    ...     print(path.read_text().replace('"', ""), end="")
    name,component1,component2
    a,0.5,2
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS and suffix != ".npy":
        raise FileError(
            f"{path}: the suffix {suffix!r} is not one that is written. These are: "
            f"{', '.join(WRITERS)}, .npy."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} is not there. Make it first.")
    if len(source.shape) != 2:
        raise FileError(f"{path}: strings are not written; there are rows of numbers to expect.")
    with progress.session():
        if suffix == ".npy":
            if extra:
                raise FileError(
                    f"{path}: a .npy file holds numbers alone, not {listed(list(extra))}."
                )
            write_npy(source, path)
            return
        _write(source, path, WRITERS[suffix], _names(source, names), dict(extra or {}))


def _write(
    source: Source, path: Path, opener: Opener, names: Sequence[str], extra: dict[str, Any]
) -> None:
    pa = module("pyarrow", path.suffix)
    n = source.shape[0]
    as_text = path.suffix.lower() in (".csv", ".tsv")
    beside = {str(name): _column(v, str(name), n, as_text) for name, v in extra.items()}
    every = [*beside, *names]
    if len(set(every)) < len(every):
        twice = sorted({name for name in every if every.count(name) > 1})
        raise FileError(
            f"{path}: columns of the same name would be written: {listed(twice)}. Give those "
            f"beside the rows other names, or leave them out."
        )
    number = pa.from_numpy_dtype(source.dtype)
    schema = pa.schema(
        [
            *((name, column.type) for name, column in beside.items()),
            *((name, number) for name in names),
        ]
    )
    rows = source.block_rows(3 * source.shape[1] * source.dtype.itemsize, held=0, parts=1)
    with whole(path) as part, progress.task("write", n) as tick, opener(str(part), schema) as file:
        # In order, so one after the other: `fold` takes blocks in turn, as workers are free.
        for block in source.blocks(rows):
            dense = np.asfortranarray(to_numpy(block.dense(source.dtype)))
            columns = [pa.array(dense[:, j]) for j in range(dense.shape[1])]
            left = [_part(column, block.start, block.length) for column in beside.values()]
            file.write_batch(pa.record_batch([*left, *columns], schema=schema))
            tick(block.length)


def _column(values: Any, name: str, n: int, as_text: bool) -> Any:
    """Return a column as pyarrow has it, of a type that the file can hold."""
    pa = module("pyarrow", "CSV")
    if isinstance(values, Text):
        values = values.written() if as_text else values.typed()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        column = values
    else:
        column = _from_array(values, name, n)
    if len(column) != n:
        raise FileError(f"column {name!r} has shape ({len(column)},), where there are {n} rows.")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type) if as_text else _unified(column)
    if as_text and pa.types.is_nested(column.type):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        column = pa.array(texts, pa.string())
    return column


def _part(column: Any, start: int, length: int) -> Any:
    """Return some values of a column as one array."""
    part = column.slice(start, length)
    return part.combine_chunks() if hasattr(part, "chunks") else part


def _unified(column: Any) -> Any:
    """Return categories whose parts have the same dictionary."""
    return column.unify_dictionaries() if hasattr(column, "chunks") else column


def _from_array(values: Any, name: str, n: int) -> Any:
    """Return values in memory as a pyarrow array; those of several kinds become text."""
    pa = module("pyarrow", "CSV")
    values = np.asarray(to_numpy(values) if not isinstance(values, (list, tuple)) else values)
    if values.shape != (n,):
        raise FileError(f"column {name!r} has shape {values.shape}, where there are {n} rows.")
    if values.dtype.kind in "fiubM":
        return pa.array(np.ascontiguousarray(values))
    if values.dtype.kind == "O":
        try:
            found = pa.array(values.tolist())
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            found = None
        if found is not None and not pa.types.is_nested(found.type):
            return found.cast(pa.string()) if pa.types.is_null(found.type) else found
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _names(source: Source, names: Sequence[str] | None) -> list[str]:
    d = source.shape[1]
    if names is None:
        names = source.names or [f"component{i + 1}" for i in range(d)]
    if len(names) != d:
        raise FileError(f"{len(names)} names were given for {d} columns.")
    return [str(name) for name in names]
