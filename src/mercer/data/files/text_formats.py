"""Other text formats: NDJSON, spreadsheets, and strings, one per line."""

from __future__ import annotations

import json
import operator
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mercer.config import require_budget
from mercer.data.errors import FileError, file_errors, format_names
from mercer.data.files.table import Request, Table, import_format, polars
from mercer.data.files.text import TextBlock, TextFile, column_names
from mercer.data.in_memory import StringSource
from mercer.messages import warn
from mercer.progress import Tick

Lines = npt.NDArray[np.int64]


class JSONLines(TextFile):
    """JSON objects, one per line; the keys in the first piece are the columns."""

    def __init__(self, raw: BinaryIO, name: str, request: Request) -> None:
        super().__init__(raw, name, request)
        self.read(self.size)
        self.names = self._parse(self._piece(), infer_schema_length=None).columns

    def _piece(self) -> bytes:
        while not (end := self.text.rfind(b"\n") + 1) and not self.ended:
            self.read(self.size)
        return self.text if self.ended else self.text[:end]

    def _parse(self, text: bytes, **options: Any) -> Any:
        pl = polars()
        try:
            return pl.read_ndjson(text, **options)
        except pl.exceptions.PolarsError:
            for number, line in enumerate(text.decode().split("\n"), self.line):
                try:
                    if line.strip() and not isinstance(json.loads(line), dict):
                        raise ValueError("not a JSON object")
                except ValueError as error:
                    raise FileError(f"{self.name}, line {number}: {error}.") from None
            raise

    def blocks(self) -> Iterator[TextBlock]:
        schema = dict.fromkeys(self.names, polars().String)
        while self.text or not self.ended:
            frame = self._parse(piece := self._piece(), schema=schema)
            line, end = partial(operator.add, self.line), self.raw.tell()
            if len(frame):
                yield TextBlock(frame, line, end, self.request.na)
            self.take(len(piece))
            self.read(self.size)


class Spreadsheet(TextFile):
    """A sheet of an Excel or OpenDocument file: the first, or the one after ``::``."""

    kind = "a spreadsheet"

    def __init__(self, raw: BinaryIO, name: str, request: Request) -> None:
        reader = import_format("fastexcel", "Spreadsheet").read_excel(raw.name)
        self.request, self.size = request, os.fstat(raw.fileno()).st_size
        if request.part and request.part not in reader.sheet_names:
            there = format_names(reader.sheet_names)
            raise FileError(f"{name}: there is no sheet {request.part!r}. Its sheets are {there}.")
        unpacked = 0
        if zipfile.is_zipfile(raw):
            with zipfile.ZipFile(raw) as archive:
                unpacked = sum(member.file_size for member in archive.infolist())
        require_budget(6 * max(self.size, unpacked), f"{name}: reading it")
        rows, self.lines = _without_title(*_read_sheet(raw.name, request.part), name)
        if not len(rows):
            raise FileError(f"{name} is empty: it has neither a header nor rows.")
        fields = ["" if field is None else str(field) for field in rows.row(0)]
        names = column_names(fields, name)
        self.named, self.names = names is not None, names or list(map(str, range(len(fields))))
        self.index = [0] if self.named and not fields[0].strip() else []
        if self.named:
            rows, self.lines = rows[1:], self.lines[1:]
        self.rows = rows

    def blocks(self) -> Iterator[TextBlock]:
        if len(self.rows):
            yield TextBlock(self.rows, self.lines.__getitem__, self.size, self.request.na)


def _read_sheet(path: str, part: str) -> tuple[Any, Lines]:
    """Return the rows of a sheet as text, and how many of their cells are filled.

    As text, numbers have nine decimals: where these are not the number, all digits are written.
    """
    pl, options = polars(), dict[str, Any](sheet_name=part) if part else dict[str, Any](sheet_id=1)
    options |= {"has_header": False, "raise_if_empty": False}
    options |= {"drop_empty_rows": False, "drop_empty_cols": False}
    texts = pl.read_excel(path, infer_schema_length=0, **options)
    numbers = pl.read_excel(path, read_options={"dtypes": "float"}, **options)
    columns, filled = [], np.zeros(len(texts), np.int64)
    for text, number in zip(texts, numbers.cast(pl.Float64), strict=True):
        rounded = (text.cast(pl.Float64, strict=False) != number).fill_null(False)
        columns.append(number.cast(pl.String).zip_with(rounded, text))
        filled += text.is_not_null().to_numpy()
    return pl.DataFrame(columns), filled


def _without_title(rows: Any, filled: Lines, name: str) -> tuple[Any, Lines]:
    """Return the rows that are not blank, and their lines, without a title above a blank row.

    A title has one filled cell in every row.
    """
    blank, start = np.flatnonzero(filled == 0), 0
    if rows.width > 1 and len(blank) and (filled[: blank[0]] == 1).all():
        start = int(blank[0])
        title = next(filter(None, rows.row(0)))
        warn(f"{name}: the rows above the first blank row ({title!r}) were skipped as a title.")
    at = start + np.flatnonzero(filled[start:])
    rows = rows[at]
    return rows[[column.name for column in rows if column.null_count() < len(rows)]], at + 1


def read_strings(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read strings, one per line. A blank line is an empty string, except at the end."""
    size = root.stat().st_size
    require_budget(2 * size, f"{request.path}: reading it")
    with file_errors(request.path, "UTF-8 text"), root.open("rb") as raw:
        file = TextFile(raw, request.path, request)
        file.read(-1)
    # Not `splitlines`, which also splits at form feeds and the like.
    strings = file.text.decode().rstrip("\n").split("\n")
    tick(size)
    if strings == [""]:
        raise FileError(f"{request.path} is empty: it contains no strings.")
    if not replace(request, optional=()).all_columns:
        raise FileError(
            f"{request.path}: a file of strings, one per line, has no columns. Omit columns, "
            f"drop, id, label, weights and keep. If it is a table, read it with "
            f"{request.option('format', 'csv')}."
        )
    return Table(StringSource(strings))
