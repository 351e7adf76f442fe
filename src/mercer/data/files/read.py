"""Tables read from files: the suffix of a path chooses the reader."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from numbers import Integral
from pathlib import Path
from typing import Any

from mercer import progress
from mercer.data.containers import is_stream
from mercer.data.errors import FileError, FileGuard, file_errors
from mercer.data.files.anndata import read_h5ad
from mercer.data.files.arrays import read_hdf5, read_mtx, read_npy, read_npz, read_zarr
from mercer.data.files.columnar import read_columnar
from mercer.data.files.images import IMAGES, read_images
from mercer.data.files.sql import DATABASES, read_query, redacted
from mercer.data.files.storage import TemporaryFolder
from mercer.data.files.streams import frames, read_frames
from mercer.data.files.table import Request, Table
from mercer.data.files.text import Delimited, read_text, unpack
from mercer.data.files.text_formats import JSONLines, Spreadsheet, read_strings
from mercer.data.source import Source
from mercer.messages import counted, format_parameter, warn

Reader = Callable[[Sequence[Path], Path, Request, progress.Tick], Table]

READERS: dict[str, Reader] = {
    ".csv": partial(read_text, Delimited),
    ".tsv": partial(read_text, partial(Delimited, delimiter="\t")),
    **dict.fromkeys([".ndjson", ".jsonl"], partial(read_text, JSONLines)),
    **dict.fromkeys([".parquet", ".arrow", ".feather"], read_columnar),
    **dict.fromkeys([".xlsx", ".xls", ".ods"], partial(read_text, Spreadsheet)),
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".h5ad": read_h5ad,
    **dict.fromkeys([".h5", ".hdf5"], read_hdf5),
    ".zarr": read_zarr,
    ".txt": read_strings,
    **dict.fromkeys(IMAGES, read_images),
}
NAMELESS = (".npy", ".npz", ".mtx", ".txt", ".h5", ".hdf5", ".zarr", *IMAGES)
"""Formats without names of columns."""
_TEXT = (".csv", ".tsv", ".ndjson", ".jsonl", ".txt")
_FOLDERS = (".csv", ".tsv", ".ndjson", ".jsonl", ".parquet", ".arrow", ".feather", *IMAGES)
"""Formats whose tables may be folders of files."""
_ALIKE = ((".arrow", ".feather"), IMAGES)
"""Formats that may be in one folder."""
_PARTS = (".h5", ".hdf5", ".h5ad", ".zarr", ".xlsx", ".xls", ".ods")
"""Formats of files that hold several tables."""
_ZARR = ("zarr.json", ".zarray", ".zgroup")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",
    b"FEA1": ".feather",
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"%%MatrixMarket": ".mtx",
    b"\x89HDF\r\n\x1a\n": ".h5ad",
}
_CONTENT = "[Content_Types].xml"
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def read_table(
    path: Any,
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
    resize: Sequence[int] | None = None,
    query: str | None = None,
) -> Table:
    r"""Read a table of numbers, or strings, from a file or a stream.

    Numeric columns are the features; in text files, columns where every entry is a number, true or
    false. Rows that do not fit in a quarter of the memory budget are read from the file as needed
    if it can be read in parts; otherwise they are copied to a temporary file.

    Parameters
    ----------
    path : str, path or stream
        A ``.csv``, ``.tsv``, ``.ndjson``, ``.parquet``, ``.arrow``, ``.feather``, ``.xlsx``,
        ``.xls``, ``.ods``, ``.npy``, ``.npz``, ``.mtx``, ``.h5ad``, ``.h5``, ``.hdf5`` or ``.txt``
        file (one string per line), which may be compressed (``.gz``, ``.bz2``, ``.xz``,
        ``.zst``); a ``.zarr`` folder; a folder or a pattern (``"part-*.csv"``) of CSV, NDJSON,
        Parquet or Arrow files, which are one table, in the order of their names (with the keys of
        Hive folders, ``year=2024``, as columns of Parquet and Arrow). ``"rows.h5::name"`` is one
        of several arrays or sheets of a file. ``"-"`` is the standard input.

        A folder or a pattern (``"faces/*.png"``) of images, each of which is a row; in color if any
        of them is. Or a stream of tables: any object with the Arrow C stream interface, such as a
        DuckDB relation, a data set of Hugging Face or a polars LazyFrame. With `query`, the URI of
        a database: ``"sqlite:///rows.db"``, ``"duckdb:///rows.db"`` (an absolute path has one more
        slash) or ``"postgresql://user@host/database"``.
    columns : sequence of str, optional
        The features, in this order: names, or patterns such as ``"gene*"``. Columns without
        names are selected by index, ``"0"``, or by a range, ``"3-7"``.
    label, weights : str, optional
        Column of labels, and of weights of the rows. They are not features. In an ``.h5ad`` file
        these are columns of obs.
    keep : sequence of str
        Extra columns to return with the rows, names or patterns; features only if `columns`
        names them.
    optional : sequence of str
        Like `keep`, for columns that the file may lack.
    id : str, optional
        Column of the row names; a feature only if `columns` names it. By default the index that
        pandas or R wrote, the index of obs of an ``.h5ad`` file, or the first column that has the
        name of an identifier (id, sample_id, barcode, ...) and a different integer or text
        in every row where it has an entry. Such a column is a feature only if `columns` names it.
    drop : sequence of str
        Columns to exclude: names, or patterns.
    na : sequence of str
        Strings that mark a missing value in text files, besides the usual ones: ``"?"``,
        ``"n.d."``.
    missing : {"refuse", "keep"}
        Whether missing values raise `MissingValues`, or are NaN in the rows.
    remarks : bool
        Whether to look for features that may number the rows or be identifiers, that are constant
        or true and false, or that have nearly all of the variance: in ``remarks`` and ``dominant``.
    format : str, optional
        The file format, such as ``"csv"``, if the path has no suffix. Standard input is read as
        CSV unless its first bytes indicate another format.
    resize : (height, width) or (height, width, 3), optional
        Resize images to this size; with 3 they are in color, and with 1 in gray.
    query : str, optional
        The SQL query whose result is the table. Its columns have types: those that are not numeric
        are no features. SQLite and DuckDB files are opened read-only.

    Returns
    -------
    Table
        With ``source``, ``extra``, ``id``, ``dropped`` and ``missing``. `transform` of the source
        writes ``extra`` next to the scores.

    Raises
    ------
    FileError
        The file is invalid or lacks a requested column; a `ValueError`.
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
    label, weights, id = (None if name is None else str(name) for name in (label, weights, id))
    stream = is_stream(path)
    name = type(path).__name__ if stream else str(path) if query is None else redacted(str(path))
    request = Request(
        "standard input" if name == "-" else name,
        None if columns is None else _names(columns),
        *(label, weights, id),
        *(_names(keep), _names(optional), _names(drop), _names(na)),
        refuse=missing == "refuse",
        remarks=remarks,
        resize=None if resize is None else _image_size(resize),
        arguments="X" if stream else "" if query is None else f"{name!r}, query={query!r}",
    )
    if resize is not None and (stream or query is not None):
        raise FileError(f"{name}: only images can be resized.")
    if query is not None:
        return read_query(str(path), query, request)
    return read_frames(frames(path), request) if stream else _table(path, request, format)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def _image_size(resize: Sequence[int]) -> tuple[int, ...]:
    size = tuple(resize)
    valid = all(isinstance(side, Integral) and side > 0 for side in size)
    if not valid or len(size) not in (2, 3) or size[2:] not in ((), (1,), (3,)):
        raise ValueError(f"resize={resize!r} must be (height, width) or (height, width, 3).")
    return tuple(map(int, size))


def read_source(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    quiet: bool = False,
    *,
    incomplete: bool = False,
) -> Source:
    """Return the rows of a file; warn about columns that are not used.

    `incomplete` rows keep their missing values, as NaN. Missing values in rows that stay in the
    file are not counted, which would take a pass: the fit refuses them, and says where the first
    is.
    """
    names = None if columns is None else _names(columns)
    request = Request(str(path), names, direct=True, refuse=not incomplete)
    table = _table(path, request, None)
    if quiet:
        return table.source
    named = table.source.names is not None and split_path(path)[0].suffix.lower() != ".h5ad"
    if table.id is not None and named:
        option = request.option("columns", [table.id, "*"])
        warn(f"{os.fspath(path)}: {table.naming(option)}")
    if table.reasons:
        count = counted(len(table.reasons), "column is", "columns are")
        warn(f"{os.fspath(path)}: {count} not used: {table.left_out}.")
    return table.source


def split_path(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return the path of a file, and the name of the array or sheet that follows ``::``."""
    whole = Path(path).expanduser()
    file, mark, part = str(whole).rpartition("::")
    return (Path(file), part) if mark and not whole.exists() else (whole, "")


def _table(path: str | os.PathLike[str], request: Request, format: str | None) -> Table:
    if not os.fspath(path):
        raise FileError("The file path is empty.")
    if _URL.match(str(path)):
        request = replace(request, path=redacted(str(path)))
        if request.path.partition(":")[0].lower() in DATABASES:
            option = request.option("query", "SELECT ...")
            raise FileError(f"{request.path} is a database. Query it with {option}.")
        raise FileError(
            f"{request.path} is a URL. Download it first, and pass the path of the file."
        )
    with progress.session():
        if os.fspath(path) == "-":
            return _read_copy(sys.stdin.buffer, request, format)
        if Path(path).is_fifo():
            with Path(path).open("rb") as stream:
                return _read_copy(stream, request, format or _suffix(Path(path)))
        file, part = split_path(path)
        return _read(file, replace(request, part=part), format)


def _read_copy(stream: Any, request: Request, format: str | None) -> Table:
    """Read a stream through a temporary file, deleted with the source."""
    folder = TemporaryFolder()
    copy = folder.path / "rows"
    with folder.writing(), copy.open("wb") as file:
        shutil.copyfileobj(stream, file, 2**20)
    table = _read(copy, request, format or _format_of(copy) or ".csv")
    source, _ = table.source.unmapped()
    if source.waits and source.folder is None:
        source.folder = folder
    return table


def _read(path: Path, request: Request, format: str | None) -> Table:
    """Find the files of a table and their format, and read them."""
    suffix = "" if format is None else "." + format.lower().removeprefix(".")
    root, paths, packed = path, [path], False
    if path.is_file():
        with path.open("rb") as file:
            packed = unpack(file) is not file
    elif path.is_dir() and not suffix:
        zarr = any((path / mark).exists() for mark in _ZARR)
        suffix = ".zarr" if zarr else _suffix(path) if _suffix(path) in _FOLDERS else ""
    if suffix != ".zarr" and (path.is_dir() or (not path.exists() and glob.has_magic(str(path)))):
        root, suffix, paths = _find_files(path, suffix, request)
    suffix = suffix or _suffix(path) or (".csv" if packed else "")
    if suffix not in READERS:
        what = f"{format_parameter('format', format) if format else f'the suffix {suffix!r}'} is"
        what = f"{what} not known" if path.exists() else "there is no such file or folder"
        raise FileError(f"{request.path}: {what}. Supported formats: {', '.join(READERS)}.")
    if request.resize is not None and suffix not in IMAGES:
        raise FileError(f"{request.path}: only images can be resized.")
    if request.part and suffix not in _PARTS:
        raise FileError(
            f"{request.path}: only files with several tables ({', '.join(_PARTS)}) accept a "
            f"name after '::'."
        )
    if packed and suffix not in _TEXT:
        with file_errors(request.path, "a compressed file"), path.open("rb") as file:
            return _read_copy(unpack(file), request, suffix)
    content = _format_of(path) if suffix in _TEXT and path.is_file() else None
    if content not in (None, ".mtx"):
        raise FileError(
            f"{request.path} is not text: it looks like a {content} file. Read it with "
            f"{request.option('format', content[1:])}."
        )
    guard = FileGuard(paths)
    try:
        with progress.task("read", guard.size) as tick:
            table = READERS[suffix](paths, root, request, tick)
    except (FileError, OSError):
        guard.check()  # what changed is not what is wrong with the file
        raise
    guard.check()
    return table


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() in _PACKED else path).suffix.lower()


def _find_files(path: Path, suffix: str, request: Request) -> tuple[Path, str, list[Path]]:
    """Return the folder of a folder or pattern, and the format and files of the table in it.

    Files are in the order of their names. Names that begin with a dot or an underscore are notes
    of who wrote the folder.
    """
    root, pattern = path, f"{glob.escape(str(path))}/**"
    if not path.is_dir():
        pattern = str(path)
        root = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    files = [
        file
        for file in sorted(map(Path, glob.glob(pattern, recursive=True)))
        if file.is_file() and not re.search(r"(^|/)[._]", file.relative_to(root).as_posix())
    ]
    suffixes = sorted(set(map(_suffix, files)))
    suffix = suffix or (suffixes[0] if suffixes and {*suffixes} <= {*_alike(suffixes[0])} else "")
    alike = _alike(suffix)
    chosen = [file for file in files if _suffix(file) in alike]
    if chosen and suffix in _FOLDERS:
        return root, suffix, chosen
    if not files and not path.is_dir():
        raise FileError(f"No file matches the pattern {path}. Supported: {', '.join(_FOLDERS)}.")
    if not files:
        raise FileError(f"{path} contains no data files. Supported: {', '.join(_FOLDERS)}.")
    options = [request.option("format", each[1:]) for each in suffixes if each in _FOLDERS]
    options = options[:1] if request.direct else options  # a whole call each
    choice = f", or choose a format: {' or '.join(options)}" if options else ""
    raise FileError(
        f"{path} is a folder with files of {counted(len(suffixes), 'format')} "
        f"({', '.join(suffixes)}), but a table in a folder has one of: {', '.join(_FOLDERS)}. "
        f"Pass one of its files{choice}."
    )


def _alike(suffix: str) -> tuple[str, ...]:
    """Return the formats that files beside one of this format may have."""
    return next((group for group in _ALIKE if suffix in group), (suffix,))


def _format_of(path: Path) -> str | None:
    """Return the format detected from the first bytes of a file, or None."""
    with path.open("rb") as file:
        start = file.read(16)
    if not start.startswith(tuple(_MAGIC)):
        return None
    suffix = next(suffix for magic, suffix in _MAGIC.items() if start.startswith(magic))
    if suffix == ".npz" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        return ".ods" if "mimetype" in names else ".xlsx" if _CONTENT in names else suffix
    return suffix
