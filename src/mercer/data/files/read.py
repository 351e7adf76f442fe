"""From a path to rows: one table of suffixes, one file a format."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mercer import progress
from mercer.data.errors import FileError, decoding
from mercer.data.file_guard import Stamp
from mercer.data.files import arrays, columnar, delimited, h5ad, hdf5, lines, zarrs
from mercer.data.files import matrix_market as market
from mercer.data.files.addresses import download, is_url
from mercer.data.files.columnar import files
from mercer.data.files.folder import Folder
from mercer.data.files.roles import Ask
from mercer.data.files.table import Table
from mercer.data.npy import NpySource
from mercer.data.source import Mapped, Source
from mercer.messages import format_parameter, warn

Reader = Callable[[Path, Ask, Callable[[int], None]], Table]

READERS: dict[str, Reader] = {
    ".csv": partial(delimited.read, delimiter=None),
    ".tsv": partial(delimited.read, delimiter="\t"),
    ".parquet": columnar.read_parquet,
    ".arrow": columnar.read_arrow,
    ".feather": columnar.read_arrow,
    ".npy": arrays.read_npy,
    ".npz": arrays.read_npz,
    ".mtx": market.read,
    ".h5ad": h5ad.read,
    ".h5": hdf5.read,
    ".hdf5": hdf5.read,
    ".zarr": zarrs.read,
    ".txt": lines.read,
}
FOLDERS = (".parquet", ".arrow", ".feather", ".zarr")
"""Formats whose tables may be folders."""
_LISTED = ", ".join(FOLDERS)
NAMELESS = (".npy", ".npz", ".mtx", ".txt", ".h5", ".hdf5", ".zarr")
"""Formats without names of columns: these are taken in the order they have."""
PARTED = (".h5", ".hdf5", ".h5ad", ".zarr")
"""Formats of files that hold several arrays."""
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
_SHEET = "Save the sheet as CSV, or read it with pandas.read_excel and pass the DataFrame."
_REMEDIES = {
    ".xlsx": f"An Excel file is not read. {_SHEET}",
    ".xls": f"An Excel file is not read. {_SHEET}",
    ".ods": f"A spreadsheet is not read. {_SHEET}",
    ".zip": "Unpack the archive first.",
    ".tar": "Unpack the archive first.",
    ".zst": "Unpack it first: zstd -d.",
    ".rds": "In R, write it as CSV: write.csv(x, 'x.csv').",
    ".rdata": "In R, write it as CSV: write.csv(x, 'x.csv').",
    ".pkl": "A pickle can run code, and is not read. Load it yourself and pass the rows.",
    ".pickle": "A pickle can run code, and is not read. Load it yourself and pass the rows.",
}
_PACKED = (".gz", ".bz2", ".xz")
"""Suffixes of files that are unpacked first."""


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    weights: str | None = None,
    keep: Sequence[str] = (),
    optional: Sequence[str] = (),
    id: str | None = None,
    drop: Sequence[str] = (),
    na: Sequence[str] = (),
    missing: str = "refuse",
    remarks: bool = False,
    format: str | None = None,
) -> Table:
    r"""Read rows of numbers, or strings, from a file of any format that is known.

    The columns that are numbers are the features; of text, those where every entry is a number,
    or true or false. Rows that do not fit into a quarter of the memory budget are read where they
    lie if parts of the file can be read alone (row groups, chunks); else they go to a temporary
    file, which goes away with the source.

    Parameters
    ----------
    path : str or path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``, ``.feather``, ``.npy``, ``.npz``,
        ``.mtx``, ``.h5ad``, ``.h5``, ``.hdf5`` or ``.txt`` file (strings, one a line); a
        ``.zarr`` folder; a folder of Parquet, Arrow or Feather files, which are one table, in
        the order of their names. ``"rows.h5::name"`` is one of several arrays of a file.
        ``"-"`` is the standard input.
    columns : sequence of str, optional
        The features, in this order: names, or patterns such as ``"gene*"``. Columns of a file
        without names go by their number, ``"0"``, or by a range, ``"3-7"``.
    label, weights : str, optional
        Column of labels, and of weights of the rows. They are not features. Of an ``.h5ad``
        file these are columns of obs.
    keep : sequence of str
        Further columns that are wanted beside the rows, or patterns; features only if `columns`
        names them.
    optional : sequence of str
        As `keep`, for columns that the file may lack.
    id : str, optional
        Column of the names of the rows; no feature unless `columns` names it. By default the
        index that pandas or R wrote, the index of obs of an ``.h5ad`` file, or the first column
        that has the name of an identifier (id, sample_id, barcode, ...) and a different whole
        number or text in every row where it has an entry; one with fewer gaps is preferred. Such
        a column is a feature only if `columns` names it.
    drop : sequence of str
        Columns to leave out: names, or patterns.
    na : sequence of str
        Texts that stand for a missing value in a ``.csv`` or ``.tsv`` file, besides the usual
        ones: ``"?"``, ``"n.d."``.
    missing : {"refuse", "keep"}
        Whether missing values raise `MissingValues`, or are NaN in the rows.
    remarks : bool
        Whether to look for features that are constant, number the rows, or have nearly all of
        the variance; that takes a pass over the rows.
    format : str, optional
        The suffix that tells the format, where the path does not: ``"csv"``. The standard input
        is looked at, and taken for CSV where its first bytes say nothing else.

    Returns
    -------
    Table
        With ``source``, ``extra``, ``id``, ``dropped`` and ``missing``. `transform` of the source
        writes ``extra`` beside the scores.

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
    >>> from mercer.data.files import read_table
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
        id=None if id is None else str(id),
        optional=_texts(optional),
        drop=_texts(drop),
        na=_texts(na),
        look=remarks,
    )
    return _table(path, ask, format)


def _table(path: str | os.PathLike[str], ask: Ask, format: str | None) -> Table:
    if not os.fspath(path):
        raise FileError("the path of the file is empty.")
    if is_url(path):
        raise FileError(download(path))
    with progress.session():
        if os.fspath(path) == "-" or Path(path).is_fifo():
            return _read_stream(path, ask, format)
        file, part = split(path)
        return _read(file, replace(ask, part=part), format)


def split(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return the path of a file, and the name of the array in it that follows ``::``."""
    file, mark, part = os.fspath(path).rpartition("::")
    return (Path(file), part) if mark and not Path(path).exists() else (Path(path), "")


def read_source(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, quiet: bool = False
) -> Source:
    """Return the rows of a file; says which columns are not used.

    What is missing in a file that is read where it lies is not looked for, which would take a
    pass: whoever fits the rows refuses it, and names its place.
    """
    if Path(path).suffix.lower() == ".npy" and not is_url(path) and not Path(path).is_fifo():
        return NpySource(path)
    known = None if columns is None else _texts(columns)
    ask = Ask(str(path), columns=known, count=False, direct=True)
    table = _table(path, ask, None)
    if quiet:
        return table.source
    if table.id is not None and split(path)[0].suffix.lower() != ".h5ad":
        option = ask.option("columns", [table.id, "*"])
        warn(f"{os.fspath(path)}: {table.naming(option)}")
    if table.reasons:
        left = len(table.reasons)
        what = "1 column is" if left == 1 else f"{left} columns are"
        warn(f"{os.fspath(path)}: {what} not used: {table.left_out}.")
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
    _hold(table.source, folder)
    return table


def _hold(source: Source, folder: Folder) -> None:
    """Let a temporary folder live as long as rows that are read from it."""
    while isinstance(source, Mapped):
        source = source.source
    if source.waits and source.folder is None:
        source.folder = folder


def _read_packed(path: Path, ask: Ask, format: str) -> Table:
    """Read a compressed file by way of a temporary one."""
    folder = Folder()
    plain = folder.path / "rows"
    with (
        decoding(ask.path, "a compressed file"),
        folder.room(),
        _unpacked(path) as packed,
        plain.open("wb") as file,
    ):
        shutil.copyfileobj(packed, file, 2**20)
    table = _read(plain, ask, format)
    _hold(table.source, folder)
    return table


def _unpacked(path: Path) -> Any:
    """Open a compressed file, or return None where it is not compressed."""
    with path.open("rb") as file:
        start = file.read(16)
    for magic, name in (
        (rb"\x1f\x8b", "gzip"),
        (rb"BZh[1-9]1AY&SY", "bz2"),
        (rb"\xfd7zXZ\x00", "lzma"),
    ):
        if re.match(magic, start):
            return importlib.import_module(name).open(path, "rb")
    return None


def _read(path: Path, ask: Ask, format: str | None) -> Table:
    if path.is_file() and (packed := _unpacked(path)) is not None:
        packed.close()
        inner = path.with_suffix("") if path.suffix.lower() in _PACKED else path
        return _read_packed(path, ask, format or inner.suffix or ".csv")
    reader, suffix = _reader(path, ask, format)
    if ask.part and suffix not in PARTED:
        raise FileError(
            f"{ask.path}: a name after '::' is for files of several arrays ({', '.join(PARTED)})."
        )
    if path.is_dir():
        if suffix not in FOLDERS:
            raise FileError(_folder(path, suffix, ask))
        return _unchanged(reader, path, ask)
    start = _by_start(path)
    if suffix in (".csv", ".tsv", ".txt") and start is not None and start != ".mtx":
        remedy = f"Read it with {ask.option('format', start[1:])}."
        if start == ".npz" and zipfile.is_zipfile(path):
            inside = zipfile.ZipFile(path).namelist()
            if "[Content_Types].xml" in inside or "mimetype" in inside:
                start, remedy = ".xlsx", _REMEDIES[".xlsx"]
            elif not any(name.endswith(".npy") for name in inside):
                start, remedy = ".zip", _REMEDIES[".zip"]
        raise FileError(f"{ask.path} is not text: it begins as a {start} file does. {remedy}")
    return _unchanged(reader, path, ask)


def _unchanged(reader: Reader, path: Path, ask: Ask) -> Table:
    """Read, and refuse files that were written to meanwhile: whoever reads in place looks again."""
    stamp = Stamp(files(path) if path.is_dir() else [path])
    try:
        with progress.task("read", stamp.size) as tick:
            table = reader(path, ask, tick)
    except (FileError, OSError):
        stamp.check_all()  # what changed is not what is wrong with the file
        raise
    stamp.check_all()
    return table


def _reader(path: Path, ask: Ask, format: str | None) -> tuple[Reader, str]:
    suffix = path.suffix.lower() if format is None else "." + format.lower().removeprefix(".")
    if format is None and path.is_dir():
        if any((path / mark).exists() for mark in zarrs.MARKS):
            suffix = ".zarr"
        elif suffix not in FOLDERS:  # else it says so itself, whatever else lies in it
            suffix = _inside(path, ask)
    if suffix not in READERS:
        named = format_parameter("format", format) if format else f"the suffix {suffix!r}"
        what = f"{named} is not known"
        if not path.exists():
            what = "there is no file or folder of that name"
        elif format is None and suffix in _REMEDIES:
            raise FileError(f"{ask.path}: {_REMEDIES[suffix]}")
        raise FileError(f"{ask.path}: {what}. What can be read: {', '.join(READERS)}.")
    return READERS[suffix], suffix


def _inside(path: Path, ask: Ask) -> str:
    """Return the one suffix of the files in a folder."""
    found = sorted({file.suffix.lower() for file in files(path)})
    if not found:
        raise FileError(f"{path} is a folder with no files. Of folders, these are read: {_LISTED}.")
    if len(found) != 1:
        raise FileError(
            f"{path} is a folder with files of {len(found)} kinds ({', '.join(found)}), and the "
            f"files of a table are of one: {_LISTED}. Rename the folder to end in "
            f"{_able(found)[0]}, name one file in it, or say which to read: {_formats(found, ask)}."
        )
    return found[0]


def _folder(path: Path, suffix: str, ask: Ask) -> str:
    """Say that a folder of files of this suffix is not read as one table, and what to do."""
    own = [file for file in files(path) if file.suffix.lower() == suffix]
    said = f"{ask.path} is a folder. Of folders, these are read as one table: {_LISTED}."
    if not own:
        return f"{said} Name a file instead."
    if suffix not in (".csv", ".tsv") or len(own) == 1:
        return f"{said} Name a file in it: {own[0]}."
    read = "pandas.read_csv" if suffix == ".csv" else "pandas.read_table"
    every = f"map({read}, sorted(glob.glob({str(path / ('*' + suffix))!r})))"
    return (
        f"{said} Name one file in it, such as {own[0]}, or join them into one: import glob, pandas;"
        f" pandas.concat({every}).to_csv('rows.csv', index=False)"
    )


def _able(found: Sequence[str]) -> list[str]:
    return [suffix for suffix in found if suffix in FOLDERS] or [".parquet"]


def _formats(found: Sequence[str], ask: Ask) -> str:
    able = [suffix[1:] for suffix in _able(found)]
    return " or ".join(ask.option("format", name) for name in (able[:1] if ask.direct else able))


def _by_start(path: Path) -> str | None:
    with path.open("rb") as file:
        start = file.read(16)
    return next((suffix for magic, suffix in _STARTS.items() if start.startswith(magic)), None)


def _texts(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)
