"""Files with rows of text: delimited text, NDJSON, spreadsheets; and lines of strings."""

from __future__ import annotations

import codecs
import csv
import importlib.util
import io
import json
import operator
import re
import zipfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mercer import threads
from mercer.config import format_bytes, get_config
from mercer.data.errors import FileError
from mercer.data.files.columns import MISSING, Request, import_format, polars
from mercer.data.files.table import Table, check_file_memory
from mercer.data.files.text import TextBlock
from mercer.data.in_memory import StringSource
from mercer.messages import format_parameter, warn
from mercer.progress import Tick

_NUMBER = re.compile(
    r"\s*[+-]?((\d+\.?\d*|\.\d+|\d+,\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*"
)
# 1,234 may be a thousand or a decimal number; these are not thousands.
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)([eE][+-]?\d+)?")
# Bytes of a piece: little compared to the budget, and enough to keep a thread busy.
_PIECE = 4 * 2**20
# Records in a piece of a wide file, where every column takes some time.
_PIECE_ROWS = 64
# Of two delimiters that fit, the first is chosen; a blank only if no other fits.
_DELIMITERS = ("\t", ";", "|", ",", " ")
# Records that show the delimiter and decimal commas.
_SAMPLE = 20
_COMPRESSION = {
    rb"\x1f\x8b": ("gzip",),
    rb"BZh[1-9]1AY&SY": ("bz2",),
    rb"\xfd7zXZ\x00": ("lzma",),
    rb"\x28\xb5\x2f\xfd": ("compression.zstd", "backports.zstd"),
}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def unpack(file: Any) -> Any:
    """Return a file that unpacks an open one; the same if that is not compressed."""
    start = file.read(16)
    file.seek(0)
    for magic, modules in _COMPRESSION.items():
        if re.match(magic, start):
            known = [name for name in modules if importlib.util.find_spec(name.split(".")[0])]
            return import_format((known or modules)[0], "Compressed").open(file, "rb")
    return file


class TextReader:
    """Text of a file, unpacked and decoded: as far as it is read, and not yet used."""

    delimiter = ""

    def __init__(self, path: Path, name: str, request: Request) -> None:
        self.name, self.request, self.text, self.line, self.ended = name, request, "", 1, False
        self.size = max(2**16, min(_PIECE, get_config().budget // 32))
        self.raw = path.open("rb")
        start = unpack(self.raw).read(4)
        self.raw.seek(0)
        self.file = unpack(self.raw)
        marks = (encoding for mark, encoding in _BYTE_ORDER_MARKS.items() if start.startswith(mark))
        encoding = next(marks, request.encoding)
        if len(start) == 4 and 0 in start[:2]:
            encoding = "utf-16-be" if start[0] == 0 else "utf-16-le"
        errors = "replace" if encoding == "cp1252" else "strict"
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        self.decoder = io.IncrementalNewlineDecoder(decoder, translate=True)

    def read(self, size: int) -> None:
        """Read more text."""
        data = b"" if self.ended else self.file.read(size)
        self.text += self.decoder.decode(data, not data)
        self.ended = not data

    def take(self, size: int) -> str:
        """Return the next characters, and go on after them."""
        text, self.text = self.text[:size], self.text[size:]
        self.line += text.count("\n")
        return text

    def close(self) -> None:
        """Close the file."""
        self.raw.close()


class Delimited(TextReader):
    """Delimited text; without a delimiter, it is found."""

    def __init__(self, path: Path, name: str, request: Request, delimiter: str = "") -> None:
        super().__init__(path, name, request)
        self.read(self.size)
        self.take(len(self.text) - len(self.text.lstrip("\n")))
        self.comments = self.text.startswith("#")
        if self.comments:
            self.take(_comment_length(self.text))
        if not self.text:
            raise FileError(f"{name} is empty: it has neither a header nor rows.")
        self.delimiter = delimiter or find_delimiter(self.text)
        mark = re.escape(self.delimiter)
        self.quoted = re.compile(rf'"(?:(?<=\A")|(?<=[\n{mark}]"))[^"]*(?:""[^"]*)*("|\Z)')
        while not self.ended and self._mask()[0].count("\n") < 2:
            self._grow()
        self._read_header()

    def _read_header(self) -> None:
        end = self._mask()[0].find("\n") + 1 or len(self.text)
        # A header that is a comment begins with #.
        head = self.text[:end].lstrip("# ") if self.comments else self.text[:end]
        try:
            fields, *_ = csv.reader(io.StringIO(head, newline=""), delimiter=self.delimiter)
            below = csv.reader(io.StringIO(self.text[end:], newline=""), delimiter=self.delimiter)
            rows = [row for row in islice(below, _SAMPLE) if row]
        except (csv.Error, ValueError) as error:
            raise FileError(f"{self.name}: the header cannot be read ({error}).") from None
        names = column_names(fields, self.name)
        self.named, self.index = names is not None, list[int]()
        if names is not None:
            if rows and len(rows[0]) == len(fields) + 1:  # R does not name its row names
                fields, names = ["", *fields], ["Unnamed: 0", *names]
            self.index = [] if fields[0].strip() else [0]
            self.size = max(self.size, min(get_config().budget // 32, _PIECE_ROWS * len(head)))
            self.take(end)
        self.names = names or [str(i) for i in range(len(fields))]
        entries = [entry.strip() for row in rows or [fields] for entry in row]
        points = any("." in entry and _NUMBER.fullmatch(entry) for entry in entries)
        commas = self.delimiter != "," and any(map(_DECIMAL_COMMA.fullmatch, entries))
        self.decimal = commas and not points

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows in order; threads convert the next ones meanwhile."""
        # A piece takes about eight times its size while it is converted.
        workers = min(threads.workers(), max(1, get_config().budget // 64 // self.size))
        pending = deque[Future[TextBlock]]()
        with ThreadPoolExecutor(workers) as pool:
            for piece in self._pieces():
                if self.ended and not self.text and not pending:  # it is the only one
                    yield self._convert(*piece)
                    return
                pending.append(pool.submit(self._convert, *piece))
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def _pieces(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield whole records, the same with quoted fields masked, their line and their end."""
        while self.text or not self.ended:
            if len(self.text) < self.size:
                self.read(self.size)
            masked, quote = self._mask()
            if self.ended and quote >= 0:
                line = self.line + self.text.count("\n", 0, quote)
                raise FileError(
                    f"{self.name}, line {line}: a quoted field is opened and never closed. Close "
                    f"it, or double the quotes inside a field."
                )
            end = len(masked) if self.ended else masked.rfind("\n") + 1
            if not end:
                self._grow()
                continue
            masked, line = masked[:end], self.line
            text = self.take(end)
            for comment in reversed([*re.finditer("(?m)^#.*", masked)] if self.comments else []):
                text = text[: comment.start()] + text[comment.end() :]
                masked = masked[: comment.start()] + masked[comment.end() :]
            if text.strip("\n"):
                yield text, masked, line, self.raw.tell()

    def _mask(self) -> tuple[str, int]:
        """Return the text with quoted fields masked, and where one is open at its end, or -1."""
        quote = -1

        def mask(match: re.Match[str]) -> str:
            nonlocal quote
            quote = -1 if match[1] else match.start()
            return "." * len(match[0])

        return (self.quoted.sub(mask, self.text) if '"' in self.text else self.text), quote

    def _grow(self) -> None:
        """Read more of a record that does not fit; refuse one that takes too much memory."""
        limit = max(self.size, get_config().budget // 8)
        if len(self.text) > limit:
            quote = self._mask()[1]
            line = self.line + self.text.count("\n", 0, max(0, quote))
            why = "one record" if quote < 0 else "a quote that is opened there is not closed"
            raise FileError(
                f"{self.name}: line {line} and what follows take more than {format_bytes(limit)}: "
                f"{why}. Correct it, or raise the budget with {format_parameter('memory')}."
            )
        self.read(max(self.size, len(self.text)))

    def _convert(self, text: str, masked: str, line: int, end: int) -> TextBlock:
        def line_of(row: int) -> int:
            return next(islice(_records(text, self.delimiter, line), row, None))[0]

        width, na = len(self.names), self.request.na
        frame = self._frame(text, masked, line)
        return TextBlock(frame, width, line_of, end, na, decimal=self.decimal)

    def _frame(self, text: str, masked: str, line: int) -> Any:
        """Return the fields: a column of text for each, or one column with all, row by row."""
        pl, width = polars(), len(self.names)
        schema = {str(i): pl.String for i in range(width)}
        text = text if text.endswith("\n") else text + "\n"
        if _is_rectangular(masked.encode(), self.delimiter.encode(), width):
            if '"' not in text:
                return pl.read_lines(text.replace(self.delimiter, "\n").encode())
            try:
                return pl.read_csv(
                    text.encode(), has_header=False, schema=schema, separator=self.delimiter
                )
            except pl.exceptions.PolarsError:
                pass  # a quote in the middle of a field
        rows = []
        for number, record in _records(text, self.delimiter, line):
            if len(record) != width:
                raise FileError(
                    f"{self.name}, line {number}: {len(record)} fields, where the first line has "
                    f"{width} (between them {self.delimiter!r})."
                )
            rows.append(record)
        return pl.DataFrame(rows, schema, orient="row")


def _records(text: str, delimiter: str, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of every record that is not blank."""
    reader, line = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), first
    for record in reader:
        if record:
            yield line, record
        line = first + reader.line_num


def _is_rectangular(masked: bytes, mark: bytes, width: int) -> bool:
    """Tell whether every line has this number of fields, and none is blank."""
    data = np.frombuffer(masked if masked.endswith(b"\n") else masked + b"\n", np.uint8)
    ends = np.flatnonzero((data == mark[0]) | (data == 10))
    lines = data[ends] == 10
    last = int(np.count_nonzero(lines[width - 1 :: width]))
    blank = width == 1 and (ends[0] == 0 or bool((np.diff(ends) == 1).any()))
    return len(ends) == last * width and last == np.count_nonzero(lines) and not blank


def column_names(fields: Sequence[str], path: str) -> list[str] | None:
    """Return the names in the first record, or None if it is a row.

    It is a row if every field is a number or missing, except for the header 0, 1, 2, ... that
    pandas writes for columns without names. A field without text is named as in pandas.
    """
    known = [field.strip() for field in fields if field.strip() not in MISSING]
    if known and all(map(_NUMBER.fullmatch, known)):
        counting = len(known) > 1 and known == [str(i) for i in range(len(known))]
        if not counting or any(not field.strip() for field in fields[1:]):
            warn(
                f"{path}: the first line holds numbers only and was taken for a row, not for "
                f"names of columns. Put a line with names above it to say what they are."
            )
            return None
        warn(f"{path}: the first line, 0 to {len(known) - 1}, was taken for names of columns.")
    return [field.strip() or f"Unnamed: {i}" for i, field in enumerate(fields)]


def find_delimiter(text: str) -> str:
    """Return the delimiter that gives every line as many fields as the first; else a comma."""
    lines = [line for line in text[:_PIECE].split("\n")[: _SAMPLE + 1] if line]
    lines = lines[:-1] if len(lines) > _SAMPLE else lines
    lines = [line for line in lines if not line.startswith("#")] or lines
    best, most = ",", 0.0
    for delimiter in _DELIMITERS:
        try:
            counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if not counts or counts[0] < 2:
            continue
        if delimiter == " " and (most or len(counts) < 2 or len(set(counts[1:])) > 1):
            continue
        share = sum(count == counts[0] for count in counts) / len(counts)
        if set(counts[1:]) == {counts[0] + 1}:  # R does not name its row names
            share = 1.0
        if share > most:
            best, most = delimiter, share
    return best


def _comment_length(text: str) -> int:
    """Return the length of the comments that text begins with.

    The last of them is the header if it has as many fields as the line below, which is a row: it
    holds a number.
    """
    comments = re.match(r"(#.*\n*)+", text)
    assert comments is not None
    rest = text[comments.end() :]
    last = comments[0].rstrip().rfind("\n") + 1
    delimiter = find_delimiter(rest)
    names, row = comments[0][last:].split(delimiter), rest.split("\n", 1)[0].split(delimiter)
    numbers = any(_NUMBER.fullmatch(field.strip('"')) for field in row)
    return last if numbers and len(names) == len(row) > 1 else comments.end()


class JSONLines(TextReader):
    """JSON objects, one a line; the keys in the first piece are the columns."""

    named = True

    def __init__(self, path: Path, name: str, request: Request) -> None:
        super().__init__(path, name, request)
        self.index: list[int] = []
        self.read(self.size)
        self.names = self._parse(self._piece(), infer_schema_length=None).columns

    def _piece(self) -> str:
        while not (end := self.text.rfind("\n") + 1) and not self.ended:
            self.read(self.size)
        return self.text if self.ended else self.text[:end]

    def _parse(self, text: str, **options: Any) -> Any:
        pl = polars()
        try:
            return pl.read_ndjson(text.encode(), **options)
        except pl.exceptions.PolarsError:
            for number, line in enumerate(text.split("\n"), self.line):
                try:
                    if line.strip() and not isinstance(json.loads(line), dict):
                        raise ValueError("not an object in braces")
                except ValueError as error:
                    raise FileError(f"{self.name}, line {number}: {error}.") from None
            raise

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows."""
        schema = dict.fromkeys(self.names, polars().String)
        while self.text or not self.ended:
            frame = self._parse(piece := self._piece(), schema=schema)
            line, end = partial(operator.add, self.line), self.raw.tell()
            if len(frame):
                yield TextBlock(frame, len(schema), line, end, self.request.na)
            self.take(len(piece))
            self.read(self.size)


class Spreadsheet:
    """A sheet of an Excel or OpenDocument file: the first, or the one after ``::``."""

    kind = "a spreadsheet"
    delimiter = ""

    def __init__(self, path: Path, name: str, request: Request) -> None:
        import_format("fastexcel", "Spreadsheet")
        self.request, self.size = request, path.stat().st_size
        with zipfile.ZipFile(path) if zipfile.is_zipfile(path) else path.open("rb") as file:
            members = file.infolist() if isinstance(file, zipfile.ZipFile) else ()
        check_file_memory(name, 4 * max(self.size, sum(member.file_size for member in members)))
        sheet = {"sheet_name": request.part} if request.part else {"sheet_id": 1}
        rows = polars().read_excel(
            path, **sheet, has_header=False, infer_schema_length=0, raise_if_empty=False
        )
        if not len(rows):
            raise FileError(f"{name} is empty: it has neither a header nor rows.")
        fields = ["" if field is None else str(field) for field in rows.row(0)]
        names = column_names(fields, name)
        self.named, self.names = names is not None, names or [str(i) for i in range(len(fields))]
        self.index = [0] if self.named and not fields[0].strip() else []
        self.rows = rows[1:] if self.named else rows

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows."""
        if len(self.rows):
            line = partial(operator.add, 2 if self.named else 1)
            yield TextBlock(self.rows, self.rows.width, line, self.size, self.request.na)

    def close(self) -> None:
        """Do nothing: the sheet is in memory."""


def read_strings(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read strings, one a line. A blank line is an empty string, except at the end."""
    size = root.stat().st_size
    check_file_memory(request.path, 2 * size)
    reader = TextReader(root, request.path, request)
    try:
        reader.read(-1)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise FileError(
            f"{request.path}: a line is not UTF-8 (byte 0x{byte:02x}); it may be latin-1 or "
            f"windows-1252. Save the file as UTF-8, for example: iconv -f latin1 -t utf-8."
        ) from None
    finally:
        reader.close()
    # Not `splitlines`, which also splits at form feeds and the like.
    strings = reader.text.rstrip("\n").split("\n")
    tick(size)
    if strings == [""]:
        raise FileError(f"{request.path} is empty: it holds no strings.")
    if not replace(request, optional=()).all_columns:
        raise FileError(
            f"{request.path}: strings, one a line, have no columns to choose from. Leave columns, "
            f"drop, id, label, weights and keep out.{table_advice(strings, request)}"
        )
    return Table(StringSource(strings))


def table_advice(strings: Sequence[str], request: Request) -> str:
    """Say how to read lines as a table if they look like one: numbers in most fields."""
    rows = [re.split(r"[,;\t]| +", line.strip()) for line in strings[1:_SAMPLE]]
    fields = [field for row in rows for field in row]
    numbers = sum(_NUMBER.fullmatch(field) is not None for field in fields)
    if not rows or min(map(len, rows)) < 2 or 2 * numbers < len(fields):
        return ""
    option = request.option("format", "csv")
    return f" Its lines look like a table of numbers: read it with {option}."
