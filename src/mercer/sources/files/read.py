"""From a path to rows: one table of suffixes, one file a format."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mercer import progress
from mercer.notices import warn
from mercer.sources.base import Source
from mercer.sources.errors import FileError
from mercer.sources.files import arrays, columnar, delimited, h5ad, lines, matrix_market
from mercer.sources.files.folder import Folder
from mercer.sources.files.roles import Ask
from mercer.sources.files.table import Table
from mercer.sources.npy import NpySource

Reader = Callable[[Path, Ask, Callable[[int], None]], Table]

READERS: dict[str, Reader] = {
    ".csv": partial(delimited.read, delimiter=None),
    ".tsv": partial(delimited.read, delimiter="\t"),
    ".parquet": columnar.read_parquet,
    ".arrow": columnar.read_arrow,
    ".feather": columnar.read_arrow,
    ".npy": arrays.read_npy,
    ".npz": arrays.read_npz,
    ".mtx": matrix_market.read,
    ".h5ad": h5ad.read,
    ".txt": lines.read,
}
_STARTS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",
    b"FEA1": ".feather",
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"%%MatrixMarket": ".mtx",
    b"\x89HDF\r\n\x1a\n": ".h5ad",
}


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    weights: str | None = None,
    keep: Sequence[str] = (),
    missing: str = "refuse",
    format: str | None = None,
) -> Table:
    r"""Read rows of numbers, or strings, from a file of any format that is known.

    The columns that are numbers are the features; of text, those where every entry is a number,
    or true or false. Rows that do not fit into a quarter of the memory budget go to a
    temporary file, which goes away with the source.

    Parameters
    ----------
    path : str or path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``, ``.feather``, ``.npy``, ``.npz``,
        ``.mtx``, ``.h5ad`` or ``.txt`` file (strings, one a line); ``"-"`` is the standard
        input.
    columns : sequence of str, optional
        The features, in this order. Columns of a file without names go by their number,
        ``"0"``, or by a range, ``"3-7"``.
    label, weights : str, optional
        Column of labels, and of weights of the rows. They are not features. Of an ``.h5ad``
        file these are columns of obs.
    keep : sequence of str
        Further columns that are wanted beside the rows; features only if `columns` names them.
    missing : {"refuse", "keep"}
        Whether missing values raise `MissingValues`, or are NaN in the rows.
    format : str, optional
        The suffix that tells the format, where the path does not: ``"csv"``. The standard input
        is looked at, and taken for CSV where its first bytes say nothing else.

    Returns
    -------
    Table
        With ``source``, ``extra``, ``dropped`` and ``missing``.

    Raises
    ------
    FileError
        The file is not what it should be; a `ValueError`.
    MissingValues
        Values are missing; a `ValueError` with their number by column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.sources.files import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text("name,length,width\na,1.5,2\nb,3.5,4\n")
    ...     table = read_table(path, label="name")
    >>> table.source.names, table.source.collect().tolist(), list(table.extra["name"])
    (['length', 'width'], [[1.5, 2.0], [3.5, 4.0]], ['a', 'b'])
    """
    if missing not in ("refuse", "keep"):
        raise ValueError(f"missing={missing!r} must be 'refuse' or 'keep'.")
    ask = Ask(
        "standard input" if os.fspath(path) == "-" else str(path),
        None if columns is None else _texts(columns),
        None if label is None else str(label),
        None if weights is None else str(weights),
        _texts(keep),
        missing == "refuse",
    )
    with progress.session():
        if os.fspath(path) != "-" and not Path(path).is_fifo():
            return _read(Path(path), ask, format)
        return _read_stream(path, ask, format)


def read_source(path: str | os.PathLike[str]) -> Source:
    """Return the rows of a file; says which columns are not used."""
    if Path(path).suffix.lower() == ".npy":
        return NpySource(path)
    table = read_table(path)
    if table.dropped:
        columns = f"{len(table.dropped)} column(s) are not used"
        warn(f"{os.fspath(path)}: {columns}, as {table.left_out}")
    return table.source


def _read_stream(path: str | os.PathLike[str], ask: Ask, format: str | None) -> Table:
    """Read what can be read once only, by way of a temporary file: most formats need to seek."""
    folder = Folder()  # held until all is read
    copy = folder.path / "input"
    with folder.room(), copy.open("wb") as file:
        if os.fspath(path) == "-":
            shutil.copyfileobj(sys.stdin.buffer, file, 2**20)
        else:
            with Path(path).open("rb") as stream:
                shutil.copyfileobj(stream, file, 2**20)
    table = _read(copy, ask, format or Path(path).suffix or _by_start(copy) or ".csv")
    if isinstance(table.source, NpySource) and table.source.folder is None:
        table.source.folder = folder  # a .npy file is read where it lies
    return table


def _read(path: Path, ask: Ask, format: str | None) -> Table:
    reader, suffix = _reader(path, ask, format)
    start = _by_start(path)
    if suffix in (".csv", ".tsv", ".txt") and start is not None and start != ".mtx":
        raise FileError(f"{ask.path} is not text: it begins as a {start} file does.")
    with progress.task("read", path.stat().st_size) as tick:
        return reader(path, ask, tick)


def _reader(path: Path, ask: Ask, format: str | None) -> tuple[Reader, str]:
    suffix = path.suffix.lower() if format is None else "." + format.lower().removeprefix(".")
    if suffix not in READERS:
        what = f"format={format!r}" if format is not None else f"the suffix {suffix!r}"
        raise FileError(f"{ask.path}: {what} is not known. What can be read: {', '.join(READERS)}.")
    return READERS[suffix], suffix


def _by_start(path: Path) -> str | None:
    with path.open("rb") as file:
        start = file.read(16)
    return next((suffix for magic, suffix in _STARTS.items() if start.startswith(magic)), None)


def _texts(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)
