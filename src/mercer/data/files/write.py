"""Tables written to files, block by block."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mercer import progress
from mercer.arrays import to_numpy
from mercer.atomic_write import write_atomically
from mercer.data.errors import FileError, format_names
from mercer.data.files.table import Text, import_format, polars
from mercer.data.npy import write_npy
from mercer.data.source import Source

# Values in a record batch or row group: few enough to be read in place.
_BATCH, _GROUP = 2**18, 2**22


WRITERS: dict[str, Callable[[Any, IO[bytes], int], None]] = {
    ".csv": lambda frame, file, _: frame.sink_csv(file),
    ".tsv": lambda frame, file, _: frame.sink_csv(file, separator="\t"),
    ".parquet": lambda frame, file, width: frame.sink_parquet(
        file, row_group_size=max(1, _GROUP // width)
    ),
    ".arrow": lambda frame, file, width: frame.sink_ipc(
        file, record_batch_size=max(1, _BATCH // width)
    ),
}
WRITERS[".feather"] = WRITERS[".arrow"]


def write_table(
    source: Source,
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write rows to a file in full precision; the file appears when it is complete.

    Parameters
    ----------
    source : Source
        The rows.
    path : str or path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``, ``.feather`` or ``.npy`` file.
    names : sequence of str, optional
        Names of the columns; by default those of the source, else component1, component2, ....
        A ``.npy`` file has none.
    extra : mapping of str to array of shape (n,), optional
        Columns to put before the rows: labels, identifiers. Arrays of NumPy, pyarrow or Polars,
        or lists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer import as_source
    >>> from mercer.data.files import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.csv"
    ...     write_table(as_source([[0.5, 2.0]]), path, extra={"name": ["a"]})
    ...     print(path.read_text(), end="")
    name,component1,component2
    a,0.5,2.0
    """
    path = Path(path).expanduser()
    suffix = path.suffix.lower()
    if suffix not in WRITERS and suffix != ".npy":
        raise FileError(
            f"{path}: cannot write files with suffix {suffix!r}. Choose from "
            f"{', '.join(WRITERS)}, .npy."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}. Create it first.")
    if len(source.shape) != 2:
        raise FileError(f"{path}: rows of strings cannot be written. Pass numeric rows.")
    if suffix == ".npy" and extra:
        raise FileError(f"{path}: a .npy file contains only numbers, not {format_names(extra)}.")
    width, names = source.shape[1], names if names is not None else source.names
    names = names if names is not None else [f"component{i + 1}" for i in range(width)]
    if len(names) != width:
        raise FileError(f"{len(names)} names were given for {width} columns.")
    with progress.session():
        if suffix == ".npy":
            write_npy(source, path)
        else:
            _write(source, path, list(map(str, names)), dict(extra or {}))


def _write(source: Source, path: Path, names: list[str], extra: dict[str, Any]) -> None:
    pl, text = polars(), path.suffix.lower() in (".csv", ".tsv")
    beside = pl.DataFrame(
        [_series(str(name), values, source.shape[0], text) for name, values in extra.items()]
    )
    every = [*beside.columns, *names]
    twice = sorted({name for name in every if every.count(name) > 1})
    if twice:
        raise FileError(
            f"{path}: several columns are named {format_names(twice)}. Rename the extra columns, "
            f"or omit them."
        )
    number = pl.Float32 if source.dtype == np.float32 else pl.Float64
    schema = {**beside.schema, **dict.fromkeys(names, number)}
    size = source.block_rows(3 * source.shape[1] * source.dtype.itemsize, held=0, parts=1)
    # Polars calls from a thread of its own, which has other settings.
    context = contextvars.copy_context()

    def frames(*_: Any) -> Iterator[Any]:
        blocks = context.run(source.blocks, size)
        while (block := context.run(next, blocks, None)) is not None:
            rows = np.asfortranarray(to_numpy(block.dense(source.dtype)))
            frame = pl.DataFrame(rows, schema=dict.fromkeys(names, number))
            context.run(tick, block.length)
            yield beside[block.start : block.stop].hstack(frame) if extra else frame

    with write_atomically(path) as part, progress.task("write", source.shape[0]) as tick:
        register = import_format("polars.io.plugins", "Table").register_io_source
        # An open file, not its path: after an error, a thread of Polars may still write, and would
        # create the file again.
        with part.open("wb") as file:
            WRITERS[path.suffix.lower()](register(frames, schema=schema), file, len(schema))


def _series(name: str, values: Any, n: int, text: bool) -> Any:
    """Return a column in a type that the file can hold; values of several types become text."""
    pl = polars()
    if isinstance(values, Text):
        series = values.as_text() if text else values.typed()
    elif hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        series = pl.Series(values)
    else:
        values = values if isinstance(values, (list, tuple)) else to_numpy(values)
        objects = getattr(values, "dtype", np.dtype(float)).kind == "O"
        try:
            series = pl.Series(values.tolist() if objects else values)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            series = pl.Series([None if value is None else str(value) for value in values])
    if len(series) != n:
        raise FileError(f"column {name!r} has shape ({len(series)},), but there are {n} rows.")
    if series.dtype == pl.Null or (text and series.dtype.is_nested()):
        series = pl.Series(
            [None if value is None else str(value) for value in series], dtype=pl.String
        )
    return series.alias(name)
