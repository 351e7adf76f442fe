"""Tables of text, and delimited text.

A column is numbers if every entry of the file is a number, true, false or missing: how the file is
cut into blocks makes no difference.
"""

from __future__ import annotations

import codecs
import csv
import importlib.util
import io
import re
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mercer.config import format_bytes, get_config
from mercer.data.errors import FileError, file_errors, format_names
from mercer.data.files.storage import RowBuffer
from mercer.data.files.table import (
    FALSE,
    MISSING,
    TRUE,
    Request,
    Table,
    Text,
    assign_roles,
    choose_features,
    identifies_rows,
    import_format,
    make_table,
    polars,
)
from mercer.messages import format_parameter, warn
from mercer.progress import Tick

NUMBER = re.compile(
    r"\s*[+-]?((\d+\.?\d*|\.\d+|\d+,\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*"
)
# 1,234 may be a thousand or a decimal number; these are not thousands.
_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
# Bytes of a piece: little compared to the budget, and enough to keep Polars busy.
_PIECE = 4 * 2**20
# Records in a piece of a wide file, where every column takes some time.
_PIECE_ROWS = 64
# Of two delimiters that fit, the first is chosen.
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
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF32_LE: "utf-32",  # begins as that of UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
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
    """Some rows of text, and their entries as numbers; columns may have been parsed already.

    `line` returns the line that a row is in; `end` is how far the file has been read.
    """

    def __init__(
        self,
        frame: Any,
        line: Callable[[int], int],
        end: int,
        na: Sequence[str],
        decimal: bool = False,
    ) -> None:
        self.frame, self.line, self.end = frame, line, end
        pl = polars()
        text = pl.all()
        if na:
            text = pl.when(~text.is_in(list(na))).then(text)
        if decimal:  # a point would separate thousands
            text = text.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
        self.number = text.cast(pl.Float64, strict=False)
        """Expression for numbers: null where text is something else, or missing."""
        self.numbers = frame.select(self.number)
        self.unread = [
            i
            for i, (column, number) in enumerate(zip(frame, self.numbers, strict=True))
            if column.dtype == pl.String and number.null_count()
            if (number.is_null() & (column != "")).any()
        ]
        """Columns with entries that are neither numbers nor empty."""


class TextFile:
    """A text file, unpacked, with a buffer of unused text in UTF-8.

    `names` are those of the columns, or their numbers if they are not `named`; columns of the
    `index` have row names. Columns `as_text` are not parsed as numbers.
    """

    names: list[str]
    named = True
    index: Sequence[int] = ()
    as_text: Set[int] = frozenset()
    delimiter = ""

    def __init__(self, raw: BinaryIO, name: str, request: Request) -> None:
        self.name, self.request, self.text, self.line, self.ended = name, request, b"", 1, False
        self.size = max(2**16, min(_PIECE, get_config().budget // 48))
        start, encoding = unpack(raw).read(4), request.encoding
        for mark, unicode in _BYTE_ORDER_MARKS.items():
            encoding = unicode if start.startswith(mark) else encoding
        raw.seek(0)
        self.raw, self.file = raw, unpack(raw)
        errors = "replace" if encoding == "cp1252" else "strict"
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        self.decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self.plain = encoding in ("utf-8", "cp1252")
        """Whether all text so far was ASCII without carriage returns, which needs no decoding."""

    def read(self, size: int) -> None:
        """Read more text, to the end of a line if that is near."""
        data = b"" if self.ended else self.file.read(size) + self.file.readline(size)
        self.plain = self.plain and data.isascii() and b"\r" not in data
        self.text += data if self.plain else self.decoder.decode(data, not data).encode()
        self.ended = not data

    def take(self, size: int) -> bytes:
        """Return the next bytes, and go on after them."""
        text, self.text = self.text[:size], self.text[size:]
        self.line += int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
        return text

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows."""
        raise NotImplementedError


class Delimited(TextFile):
    """Delimited text; without a delimiter, it is found.

    If the first line is a comment with #, other lines that begin with # are comments, too.
    """

    def __init__(self, raw: BinaryIO, name: str, request: Request, delimiter: str = "") -> None:
        super().__init__(raw, name, request)
        self.read(self.size)
        self.take(len(self.text) - len(self.text.lstrip(b"\n")))
        self.comments = self.text.startswith(b"#")
        if self.comments:
            self.take(_comment_length(self.text))
        if not self.text:
            raise FileError(f"{name} is empty: it has neither a header nor rows.")
        self.delimiter = delimiter or find_delimiter(self.text.decode())
        mark = re.escape(self.delimiter)
        quoted = rf'"(?:(?<=\A")|(?<=[\n{mark}]"))[^"]*(?:""[^"]*)*("|\Z)'
        self.quoted = re.compile(quoted.encode())
        while not self.ended and self._mask()[0].count(b"\n") < 2:
            self._grow()
        end = self._mask()[0].find(b"\n") + 1 or len(self.text)
        sample = self.text
        if self.comments:  # a header that is a comment begins with #
            sample = re.sub(rb"(?m)^#.*", b"", sample.lstrip(b"# "))
        try:
            _, (fields, *rows) = zip(*islice(self._records(sample, 1), _SAMPLE), strict=True)
        except (csv.Error, ValueError) as error:
            raise FileError(f"{name}: the header cannot be read ({error}).") from None
        names = column_names(fields, name)
        if names is not None:
            if rows and len(rows[0]) == len(fields) + 1:  # R does not name its row names
                fields, names = ["", *fields], ["Unnamed: 0", *names]
            self.index = [] if fields[0].strip() else [0]
            self.size = max(self.size, min(get_config().budget // 32, _PIECE_ROWS * end))
            self.take(end)
        self.named, self.names = names is not None, names or list(map(str, range(len(fields))))
        entries = list(map(str.strip, chain.from_iterable(rows or [fields])))
        commas = self.delimiter != "," and any(map(_COMMA.fullmatch, entries))
        self.decimal = commas and not any(map(_POINT.fullmatch, entries))

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows in order, whole records at a time."""
        while self.text or not self.ended:
            if len(self.text) < self.size:
                self.read(self.size)
            masked, quote = self._mask()
            if self.ended and quote >= 0:
                line = self.line + self.text.count(b"\n", 0, quote)
                raise FileError(
                    f"{self.name}, line {line}: a quoted field is never closed. Close it, or "
                    f"double the quotes inside a field."
                )
            end = len(masked) if self.ended else masked.rfind(b"\n") + 1
            if not end:
                self._grow()
                continue
            line, text, masked = self.line, self.take(end), masked[:end]
            for comment in reversed([*re.finditer(rb"(?m)^#.*", masked)] if self.comments else []):
                text = text[: comment.start()] + text[comment.end() :]
                masked = masked[: comment.start()] + masked[comment.end() :]
            if text.lstrip(b"\n"):
                yield self._convert(text, masked, line)

    def _mask(self) -> tuple[bytes, int]:
        """Return the text with quoted fields masked, and where one is open at its end, or -1."""
        quote = -1

        def mask(match: re.Match[bytes]) -> bytes:
            nonlocal quote
            quote = -1 if match[1] else match.start()
            return b"." * len(match[0])

        return (self.quoted.sub(mask, self.text) if b'"' in self.text else self.text), quote

    def _grow(self) -> None:
        """Read more of an incomplete record; raise if it takes too much memory."""
        limit = max(self.size, get_config().budget // 8)
        if len(self.text) > limit:
            line = self.line + self.text.count(b"\n", 0, max(0, self._mask()[1]))
            raise FileError(
                f"{self.name}: the record at line {line} exceeds {format_bytes(limit)}; maybe a "
                f"quoted field is never closed. Correct it, or raise the budget with "
                f"{format_parameter('memory')}."
            )
        self.read(max(self.size, len(self.text)))

    def _convert(self, text: bytes, masked: bytes, line: int) -> TextBlock:
        """Convert whole records: by Polars, or one by one if some are blank, short or malformed.

        Columns are numbers, or all of them text if some are not.
        """
        pl, width, frame = polars(), len(self.names), None
        schema = dict.fromkeys(map(str, range(width)), pl.String)
        options = {"separator": self.delimiter, "empty_string_is_null": False}
        exact = self.decimal or self.request.na
        numbers = () if exact else filterfalse(self.as_text.__contains__, range(width))
        for types in (schema | dict.fromkeys(map(str, numbers), pl.Float64), schema):
            with suppress(pl.exceptions.PolarsError):
                frame = pl.read_csv(text, has_header=False, schema=types, **options)
                last = frame.to_series(-1)
                # Polars fills up short and blank records, and a file may end in a delimiter.
                filled = last.dtype == pl.String or last.null_count()
                if filled or masked is not text or not text.endswith(b"\n"):
                    blank = masked.startswith(b"\n") or b"\n\n" in masked
                    count = masked.count(self.delimiter.encode())
                    frame = None if blank or count != (width - 1) * len(frame) else frame
                break
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

        return TextBlock(frame, line_of, self.raw.tell(), self.request.na, self.decimal)

    def _records(self, text: bytes, first: int) -> Iterator[tuple[int, list[str]]]:
        """Yield line and fields of every record that is not blank."""
        lines = io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="")
        line, reader = first, csv.reader(lines, delimiter=self.delimiter)
        for record in reader:
            if record:
                yield line, record
            line = first + reader.line_num


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
    """Return the delimiter that gives most lines as many fields as the first; else a comma."""
    lines = list(filter(None, text[:_PIECE].split("\n")))[:_SAMPLE]
    lines = list(filterfalse(re.compile("#").match, lines)) or lines

    def share(delimiter: str) -> float:
        try:
            counts = list(filter(None, map(len, csv.reader(lines, delimiter=delimiter))))
        except csv.Error:
            return 0.0
        if not counts or counts[0] < 2:
            return 0.0
        below = set(counts[1:])
        if len(below) == 1 and below <= {counts[0], counts[0] + 1}:  # R does not name row names
            return 1.0
        return 0.0 if delimiter == " " else counts.count(counts[0]) / len(counts)

    best = max(_DELIMITERS, key=share)
    return best if share(best) else ","


def _comment_length(text: bytes) -> int:
    """Return the length of the comments that text begins with.

    The last of them is the header if it has as many fields as the line below, which is a row: it
    holds a number.
    """
    end = len(text) - len(re.sub(rb"\A(#.*\n*)+", b"", text))
    last = text[:end].rstrip().rfind(b"\n") + 1
    parts = (text[last:].decode(), text[end:].decode())
    delimiter = find_delimiter(parts[1])
    names, row = (part.split("\n")[0].split(delimiter) for part in parts)
    numbers = any(NUMBER.fullmatch(field.strip('"')) for field in row)
    return last if numbers and len(names) == len(row) > 1 else end


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
                    columns = TextColumns(file, request)
                elif file.names != list(columns.roles.names):
                    odd = sorted({*file.names} ^ {*columns.roles.names}) or file.names
                    raise FileError(
                        f"{request.path}: {paths[0].name} and {path.name} have different columns "
                        f"({format_names(odd)}). All files of a table must have the same columns "
                        f"in the same order."
                    )
                end, file.as_text = 0, columns.as_text
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
    """Collects blocks of text as rows of numbers, and finds out which columns are numbers."""

    def __init__(self, file: TextFile, request: Request) -> None:
        roles = assign_roles(file.names, request, named=file.named, index=file.index)
        self.roles, self.request = roles, request
        self.named, self.delimiter = file.named, file.delimiter
        self.numeric = {*roles.features, *roles.weights}
        self.reasons: dict[int, str] = {}
        self.flags: set[int] = set()
        """Columns with entries that are true or false."""
        # As text, identifiers keep every digit.
        self.texts: dict[int, tuple[Any, ...]] = dict.fromkeys(roles.extra + roles.candidates, ())
        self.as_text = {*range(len(file.names))} - self.numeric | {*self.texts}
        """Columns that are read as text, because something in them is."""
        self.weights: list[npt.NDArray[Any]] = []
        self.stored: list[int] = []
        """Columns that are stored: features that were not text in the first block."""
        self.rows, self.count = RowBuffer(0), 0

    def add(self, block: TextBlock) -> None:
        """Append a block."""
        self.as_text |= {*block.unread}
        for i in self.numeric.intersection(block.unread):
            self._examine(i, block)
        if not self.count:
            self.stored = list(filter(self.numeric.__contains__, self.roles.features))
            self.rows = RowBuffer(len(self.stored))
        self.count += len(block.numbers)  # rows without columns have no length
        self.rows.append(block.numbers[:, self.stored].to_numpy())
        for i in self.roles.weights:
            self.weights.append(block.numbers.to_series(i).to_numpy())
        for i, parts in list(self.texts.items()):
            self.texts[i] = (*parts, text := block.frame.to_series(i))
            if i not in self.roles.extra and not self._identifies(i, text):
                del self.texts[i]

    def _identifies(self, i: int, text: Any) -> bool:
        return identifies_rows(Text(text, self.request.na).known(), integers=i in self.numeric)

    def _examine(self, i: int, block: TextBlock) -> None:
        """Convert a column with entries that are not numbers, or exclude it."""
        pl = polars()
        known = Text(block.frame.to_series(i).str.strip_chars(), self.request.na).known()
        numbers = known.to_frame().select(block.number).to_series()
        flags = known.is_in([*TRUE, *FALSE])
        odd = known.is_not_null() & numbers.is_null() & ~flags.fill_null(True)
        if not odd.any():
            self.flags |= {i} if flags.any() else set()
            numbers = numbers.fill_null(known.is_in(TRUE).cast(pl.Float64))
            block.numbers.replace_column(i, numbers)
            return
        self.numeric.remove(i)
        first = odd.arg_true()[0]
        text, name = str(known[first])[:60], self.roles.names[i]
        # The column is left out; say so if it looked like numbers.
        empty = self.rows.missing == self.count
        before = i in self.stored and not empty[self.stored.index(i)]
        looks_numeric = before or 2 * numbers.count() >= known.count()
        here = f"{self.request.path}, line {block.line(first)}: column {name!r} holds {text!r}"
        option = self.request.option("na", [text], missing="keep")
        remedy = f"If it marks a missing value, pass {option}." if looks_numeric else ""
        if i in (*self.roles.exact, *self.roles.weights):
            raise FileError(
                f"{here}, which is not a number; this column must be numeric. {remedy}".rstrip()
            )
        if looks_numeric:
            warn(f"{here}, but other entries are numbers: the column is not used. {remedy}")
        self.reasons[i] = "dates" if _DATE.match(text) else "text"

    def table(self) -> Table:
        """Return the table of all blocks."""
        roles, request = self.roles, self.request
        if not self.count:
            raise FileError(f"{request.path} has a header, but no rows.")
        columns = {i: Text(polars().concat(x), request.na) for i, x in self.texts.items()}
        ids = [
            i for i in roles.candidates if i in columns and self._identifies(i, columns[i].series)
        ]
        missing = self.rows.missing
        empty = {*np.array(self.stored, int)[missing == self.count].tolist()} - {*roles.exact}
        numeric = [i for i in self.stored if i in self.numeric and i not in empty]
        features = choose_features(request, roles, numeric, ids, self.delimiter)
        at = list(map(self.stored.index, features))
        return make_table(
            request,
            roles,
            self.rows.source(at),
            missing[at],
            features=features,
            ids=ids,
            columns=columns,
            weights=np.concatenate(self.weights) if self.weights else None,
            reasons={**self.reasons, **dict.fromkeys(empty, "no values")},
            flags=list(self.flags),
            named=self.named,
        )
