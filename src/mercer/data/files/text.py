"""Tables of text, and delimited text.

A column is numbers if every entry of the file is a number, or true or false, or missing: how the
file is cut into blocks makes no difference.
"""

from __future__ import annotations

import codecs
import csv
import importlib.util
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mercer import progress, threads
from mercer.config import format_bytes, get_config
from mercer.data.errors import FileError, file_errors, format_names
from mercer.data.files.storage import TemporaryFolder, write_header
from mercer.data.files.table import (
    FALSE,
    MISSING,
    TRUE,
    Request,
    Table,
    Text,
    assign_roles,
    count_ids,
    import_format,
    make_table,
    memory_share,
    no_features,
    polars,
    rank_ids,
)
from mercer.data.in_memory import ArraySource
from mercer.data.npy import NpySource, write_npy
from mercer.data.source import Source
from mercer.messages import format_parameter, warn
from mercer.progress import Tick

NUMBER = re.compile(
    r"\s*[+-]?((\d+\.?\d*|\.\d+|\d+,\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*"
)
# 1,234 may be a thousand or a decimal number; these are not thousands.
_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
_THOUSANDS_AND_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
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
# Byte order marks, and the first character of a file without one, if it is an ASCII character.
_ENCODINGS = {
    rb"\xef\xbb\xbf": "utf-8-sig",
    rb"\xff\xfe\x00\x00|\x00\x00\xfe\xff": "utf-32",
    rb"\xff\xfe|\xfe\xff": "utf-16",
    rb"\x00...": "utf-16-be",
    rb".\x00..": "utf-16-le",
}


def unpack(file: BinaryIO) -> Any:
    """Return a file that unpacks an open one; the same if that is not compressed."""
    start = file.read(16)
    file.seek(0)
    for magic, modules in _COMPRESSION.items():
        if re.match(magic, start):
            known = [name for name in modules if importlib.util.find_spec(name.split(".")[0])]
            return import_format((known or modules)[0], "Compressed").open(file, "rb")
    return file


class TextBlock:
    """Some rows of text, and their entries as numbers.

    `frame` has a column of text for every column, or one with all entries, row by row; `line`
    returns the line that a row is in; `end` is how far the file has been read.
    """

    def __init__(
        self,
        frame: Any,
        width: int,
        line: Callable[[int], int],
        end: int,
        na: Sequence[str],
        *,
        decimal: bool = False,
    ) -> None:
        self.frame, self.width, self.line, self.end = frame, width, line, end
        pl = polars()
        text = pl.all()
        if na:
            text = pl.when(text.is_in(list(na))).then(None).otherwise(text)
        if decimal:  # a point would separate thousands
            text = text.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
        self.number = text.cast(pl.Float64, strict=False)
        """Expression for numbers: null where text is something else, or missing."""
        numbers = frame.select(self.number)
        self.rows: npt.NDArray[Any] = numbers.to_numpy().reshape(-1, width)
        self.unread = np.zeros(width, bool)
        """Columns with entries that are neither numbers nor empty."""
        if numbers.null_count().sum_horizontal()[0]:
            unread = self.number.is_null() & (pl.all() != "")
            flags = frame.select(unread.fill_null(False)).to_numpy()
            self.unread = flags.reshape(-1, width).any(axis=0)

    def text(self, column: int) -> Any:
        """Return a column as it is written."""
        if self.frame.width == self.width:
            return self.frame.to_series(column)
        return self.frame.to_series(0).gather_every(self.width, column)


class TextFile:
    """A text file, unpacked and decoded, with a buffer of unused text.

    `names` are those of the columns, or their numbers if they are not `named`; columns of the
    `index` have row names.
    """

    names: list[str]
    named = True
    index: Sequence[int] = ()
    delimiter = ""

    def __init__(self, raw: BinaryIO, name: str, request: Request) -> None:
        self.name, self.request, self.text, self.line, self.ended = name, request, "", 1, False
        self.size = max(2**16, min(_PIECE, get_config().budget // 48))
        start, encoding = unpack(raw).read(4), request.encoding
        raw.seek(0)
        self.raw, self.file = raw, unpack(raw)
        for mark, unicode in _ENCODINGS.items():
            if re.match(mark, start, re.DOTALL):
                encoding = unicode
                break
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

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows."""
        raise NotImplementedError


class Delimited(TextFile):
    """Delimited text; without a delimiter, it is found."""

    def __init__(self, raw: BinaryIO, name: str, request: Request, delimiter: str = "") -> None:
        super().__init__(raw, name, request)
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
        end = self._mask()[0].find("\n") + 1 or len(self.text)
        # A header that is a comment begins with #.
        head = self.text[:end].lstrip("# ") if self.comments else self.text[:end]
        try:
            fields, *_ = csv.reader(io.StringIO(head, newline=""), delimiter=self.delimiter)
            below = csv.reader(io.StringIO(self.text[end:], newline=""), delimiter=self.delimiter)
            rows = list(filter(None, islice(below, _SAMPLE)))
        except (csv.Error, ValueError) as error:
            raise FileError(f"{name}: the header cannot be read ({error}).") from None
        names = column_names(fields, name)
        if names is not None:
            if rows and len(rows[0]) == len(fields) + 1:  # R does not name its row names
                fields, names = ["", *fields], ["Unnamed: 0", *names]
            self.index = [] if fields[0].strip() else [0]
            self.size = max(self.size, min(get_config().budget // 32, _PIECE_ROWS * len(head)))
            self.take(end)
        self.named, self.names = names is not None, names or list(map(str, range(len(fields))))
        entries = list(map(str.strip, chain.from_iterable(rows or [fields])))
        commas = self.delimiter != "," and any(map(_COMMA.fullmatch, entries))
        self.decimal = commas and not any(map(_POINT.fullmatch, entries))

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
                    f"{self.name}, line {line}: a quoted field is never closed. Close it, or "
                    f"double the quotes inside a field."
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
        """Read more of an incomplete record; raise if it takes too much memory."""
        limit = max(self.size, get_config().budget // 8)
        if len(self.text) > limit:
            quote = self._mask()[1]
            line = self.line + self.text.count("\n", 0, max(0, quote))
            why = "" if quote < 0 else ": a quoted field is never closed"
            raise FileError(
                f"{self.name}: the record at line {line} exceeds {format_bytes(limit)}"
                f"{why}. Correct it, or raise the budget with {format_parameter('memory')}."
            )
        self.read(max(self.size, len(self.text)))

    def _convert(self, text: str, masked: str, line: int, end: int) -> TextBlock:
        """Convert whole records."""
        pl, width, frame = polars(), len(self.names), None
        schema = dict.fromkeys(map(str, range(width)), pl.String)
        text = text if text.endswith("\n") else text + "\n"
        if _is_rectangular(masked.encode(), self.delimiter, width):
            if '"' not in text:
                frame = pl.read_lines(text.replace(self.delimiter, "\n").encode())
            else:
                with suppress(pl.exceptions.PolarsError):  # a quote in the middle of a field
                    frame = pl.read_csv(
                        text.encode(), has_header=False, schema=schema, separator=self.delimiter
                    )
        if frame is None:
            rows = []
            for number, record in self._records(text, line):
                if len(record) != width:
                    raise FileError(
                        f"{self.name}, line {number}: {len(record)} fields, but the first line "
                        f"has {width} (delimiter {self.delimiter!r})."
                    )
                rows.append(record)
            frame = pl.DataFrame(rows, schema, orient="row")

        def line_of(row: int) -> int:
            return next(islice(self._records(text, line), row, None))[0]

        return TextBlock(frame, width, line_of, end, self.request.na, decimal=self.decimal)

    def _records(self, text: str, first: int) -> Iterator[tuple[int, list[str]]]:
        """Yield line and fields of every record that is not blank."""
        line, reader = first, csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        for record in reader:
            if record:
                yield line, record
            line = first + reader.line_num


def _is_rectangular(masked: bytes, delimiter: str, width: int) -> bool:
    """Return whether every line has this number of fields, and none is blank."""
    data = np.frombuffer(masked if masked.endswith(b"\n") else masked + b"\n", np.uint8)
    ends = np.flatnonzero((data == ord(delimiter)) | (data == 10))
    lines = data[ends] == 10
    if np.count_nonzero(lines) * width != len(lines) or not lines[width - 1 :: width].all():
        return False
    return width > 1 or bool(ends[0] > 0 and (np.diff(ends) > 1).all())


def column_names(fields: Sequence[str], path: str) -> list[str] | None:
    """Return the names in the first record, or None if it is a row.

    It is a row if every field is a number or missing, except for the header 0, 1, 2, ... that
    pandas writes for columns without names. A field without text is named as in pandas.
    """
    texts = list(map(str.strip, fields))
    known = list(filterfalse(MISSING.__contains__, texts))
    if known and all(map(NUMBER.fullmatch, known)):
        counting = len(known) > 1 and known == list(map(str, range(len(known))))
        if not counting or "" in texts[1:]:
            warn(
                f"{path}: the first line contains only numbers and was read as data, not as "
                f"column names. To name the columns, add a header line."
            )
            return None
        warn(f"{path}: the first line, 0 to {len(known) - 1}, was read as column names.")
    for i, text in enumerate(texts):
        texts[i] = text or f"Unnamed: {i}"
    return texts


def find_delimiter(text: str) -> str:
    """Return the delimiter that gives every line as many fields as the first; else a comma."""
    lines = list(filter(None, text[:_PIECE].split("\n")[: _SAMPLE + 1]))
    lines = lines[:-1] if len(lines) > _SAMPLE else lines
    lines = list(filterfalse(re.compile("#").match, lines)) or lines
    best, most = ",", 0.0
    for delimiter in _DELIMITERS:
        try:
            counts = list(filter(None, map(len, csv.reader(lines, delimiter=delimiter))))
        except csv.Error:
            continue
        if not counts or counts[0] < 2:
            continue
        if delimiter == " " and (most or len(counts) < 2 or len(set(counts[1:])) > 1):
            continue
        share = counts.count(counts[0]) / len(counts)
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
    numbers = any(NUMBER.fullmatch(field.strip('"')) for field in row)
    return last if numbers and len(names) == len(row) > 1 else comments.end()


def read_text(
    opener: Callable[[BinaryIO, str, Request], TextFile],
    paths: Sequence[Path],
    root: Path,
    request: Request,
    tick: Tick,
) -> Table:
    """Read files of text as one table; text that is not Unicode is taken for Windows-1252."""
    columns: TextColumns | None = None
    with file_errors(request.path, getattr(opener, "kind", "text")), ExitStack() as stack:
        try:
            for path in paths:
                raw = stack.enter_context(path.open("rb"))
                file = opener(raw, request.path if path == root else str(path), request)
                if columns is None:
                    columns = TextColumns(file, request, sum(map(os.path.getsize, paths)))
                elif file.names != list(columns.roles.names):
                    odd = sorted({*file.names} ^ {*columns.roles.names}) or file.names
                    raise FileError(
                        f"{request.path}: {paths[0].name} and {path.name} have different columns "
                        f"({format_names(odd)}). All files of a table must have the same columns "
                        f"in the same order."
                    )
                end = 0
                for block in file.blocks():
                    columns.add(block)
                    tick(block.end - end)
                    end = block.end
            assert columns is not None
            return columns.table()
        except UnicodeDecodeError as error:
            warn(
                f"{request.path} is not UTF-8 (byte 0x{error.object[error.start]:02x}) and was "
                f"read as Windows-1252. If names or labels look wrong, save the file as UTF-8."
            )
            columns = None  # of the first try
            return read_text(opener, paths, root, replace(request, encoding="cp1252"), tick)


class TextColumns:
    """Collects blocks of text as rows of numbers, and finds out which columns are numbers.

    Rows stay in memory while they take a quarter of the budget, and go to a temporary file else.
    """

    def __init__(self, file: TextFile, request: Request, total: int) -> None:
        roles = assign_roles(file.names, request, named=file.named, index=file.index)
        self.roles, self.request, self.total = roles, request, total
        self.named, self.delimiter = file.named, file.delimiter
        # "empty", "number" or "flag"; columns of text are removed.
        self.types = dict.fromkeys([*roles.features, *roles.weights], "empty")
        self.reasons: dict[int, str] = {}
        # As text, identifiers keep every digit.
        self.texts: dict[int, tuple[Any, ...]] = dict.fromkeys(roles.extra + roles.candidates, ())
        self.weights: list[npt.NDArray[Any]] = []
        self.stored: list[int] = []
        """Columns that are stored: features that were not text in the first block."""
        self.missing: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.rows: list[npt.NDArray[Any]] = []
        self.count = 0
        self.folder: TemporaryFolder | None = None

    def add(self, block: TextBlock) -> None:
        """Append a block."""
        for i, known in list(self.types.items()):
            if block.unread[i] or known == "flag":
                self._examine(i, block)
            elif known == "empty" and not np.isnan(block.rows[:, i]).all():
                self.types[i] = "number"
        expected = 0
        if not self.count:
            self.stored = list(filter(self.types.__contains__, self.roles.features))
            self.missing = np.zeros(len(self.stored), np.int64)
            size = 8 * len(block.rows) * len(self.stored)
            expected = size * self.total // max(1, block.end)
        every = self.stored == list(range(block.width))
        rows = np.ascontiguousarray(block.rows if every else block.rows[:, self.stored])
        self.count += len(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isnan(rows.sum()):  # or infinities of both signs
                self.missing += np.isnan(rows).sum(axis=0)
        self.rows.append(rows)
        if self.folder or max(expected, 8 * self.count * len(self.stored)) > memory_share():
            self._spill()
        for i in self.roles.weights:
            self.weights.append(block.rows[:, i].copy())
        for i, parts in list(self.texts.items()):
            text = block.text(i)
            self.texts[i] = (*parts, text)
            if i not in self.roles.extra and self._count_ids(i, text) is None:
                del self.texts[i]

    def _spill(self) -> None:
        """Write rows to a temporary file."""
        self.folder = self.folder or TemporaryFolder()
        with self.folder.writing(), (self.folder.path / "rows.npy").open("ab") as file:
            if not file.tell():
                write_header(file, (0, len(self.stored)), np.float64)
            for rows in self.rows:
                file.write(rows.data)
        self.rows.clear()

    def _count_ids(self, i: int, text: Any) -> int | None:
        return count_ids(text, self.request.na, integers=i in self.types)

    def _examine(self, i: int, block: TextBlock) -> None:
        """Convert a column that contains text to numbers, or exclude it."""
        known = Text(block.text(i).str.strip_chars(), self.request.na).known()
        numbers = known.to_frame().select(block.number).to_series()
        content = "number" if known.count() else "empty"
        if numbers.count() < known.count():
            content = "flag" if known.is_in([*TRUE, *FALSE]).all() else "text"
        values = known.is_in(TRUE).cast(numbers.dtype) if content == "flag" else numbers
        block.rows = np.require(block.rows, requirements="W")
        block.rows[:, i] = values.to_numpy()
        if content != "text" and {self.types[i], content} != {"number", "flag"}:
            self.types[i] = content if content != "empty" else self.types[i]
            return
        # The column is left out; say so if it looked like numbers.
        numeric, odd = self.types.pop(i) == "number", known.is_not_null() & numbers.is_null()
        first = int((odd if odd.any() else known.is_not_null()).arg_true()[0])
        if odd.any():
            numeric |= bool(numbers[:first].count()) or 2 * numbers.count() >= known.count()
        text, name = str(known[first])[:60], self.roles.names[i]
        here = f"{self.request.path}, line {block.line(first)}: column {name!r} holds {text!r}"
        if self.delimiter not in ("", ",") and _THOUSANDS_AND_COMMA.fullmatch(text):
            raise FileError(
                f"{here}, with a decimal comma. Write numbers with a decimal point, for example "
                f"with pandas: read_csv(..., decimal=',') and to_csv."
            )
        option = self.request.option("na", [text], missing="keep")
        remedy = f"If it marks a missing value, pass {option}." if numeric else ""
        if i in (*self.roles.exact, *self.roles.weights):
            raise FileError(
                f"{here}, which is not a number; this column must be numeric. {remedy}".rstrip()
            )
        if numeric:
            warn(f"{here}, but other entries are numbers: the column is not used. {remedy}")
        self.reasons[i] = "dates" if _DATE.match(text) else "text"

    def table(self) -> Table:
        """Return the table of all blocks."""
        roles, request, pl = self.roles, self.request, polars()
        if not self.count:
            raise FileError(f"{request.path} has a header, but no rows.")
        columns, counts, at = dict[int, Text](), dict[int, int | None](), list[int]()
        for i, parts in self.texts.items():
            columns[i] = Text(pl.concat(parts), request.na)
            if i in roles.candidates:
                counts[i] = self._count_ids(i, columns[i].series)
        ids, flags = rank_ids(counts) if counts else [], list[int]()
        unnamed = "no name" if request.columns is None else ""
        reasons = {
            **self.reasons,
            **dict.fromkeys({*roles.candidates} - {*roles.features}, unnamed),
        }
        for j, i in enumerate(self.stored):
            if self.missing[j] == self.count and i not in roles.exact:
                reasons[i] = "no values"
            elif i in self.types and i not in ids:
                at.append(j)
                flags += [i] if self.types[i] == "flag" else []
        if not at:
            raise no_features(request, roles.names, ids, self.delimiter)
        return make_table(
            request,
            roles,
            self._source(at),
            self.missing[at],
            features=list(map(self.stored.__getitem__, at)),
            ids=ids,
            columns=columns,
            weights=np.concatenate(self.weights) if self.weights else None,
            reasons=reasons,
            flags=flags,
            named=self.named,
        )

    def _source(self, columns: list[int]) -> Source:
        """Return these of the stored columns as a source."""
        every = columns == list(range(len(self.stored)))
        if self.folder is None:
            out, start = np.empty((self.count, len(columns))), 0
            for k, rows in enumerate(self.rows):
                out[start : start + len(rows)] = rows if every else rows[:, columns]
                start += len(rows)
                self.rows[k] = rows[:0]
            return ArraySource(out)
        path = self.folder.path / "rows.npy"
        with self.folder.writing(), progress.quiet():
            with path.open("r+b") as file:
                write_header(file, (self.count, len(self.stored)), np.float64)
            source = NpySource(path)
            if not every:
                chosen = source.map(lambda block: block.rows[:, columns], len(columns))
                source = write_npy(chosen, self.folder.path / "chosen.npy")
                path.unlink()
        source.folder = self.folder
        return source
