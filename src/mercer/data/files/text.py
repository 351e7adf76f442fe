"""Delimited text as bytes: its encoding, delimiter and header, and pieces of whole records."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mercer.config import format_bytes
from mercer.data.errors import FileError
from mercer.messages import format_parameter

DELIMITERS = ("\t", ";", "|", ",")
"""Those that are looked for; of two that fit, the earlier."""
MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-NaN", "-nan", "null", "NULL", "Null"),
    *("None", "<NA>", "#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""What stands for a value that is missing: what pandas takes for one."""
NUMBER = re.compile(
    r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*"
)
DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?\s*")

_SAMPLE_LINES = 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of whole records."""

    start: int
    data: memoryview
    quoted: bool
    pieces: Pieces

    @property
    def line(self) -> int:
        """The line of the file that the first record begins in; counted when it is asked for."""
        return self.pieces.line_at(self.start)

    def records(self, delimiter: str) -> Iterator[tuple[int, list[str]]]:
        """Yield line and fields of every record that is not blank."""
        text = io.StringIO(str(self.data, "utf-8", "replace"), newline="")
        reader = csv.reader(text, delimiter=delimiter)
        line = first = self.line
        for record in reader:
            if record:
                yield line, record
            line = first + reader.line_num


class Pieces:
    """A file of delimited text: the header first, then the rest piece by piece.

    Parameters
    ----------
    file : binary file
        Read from where it is.
    path : str
        What messages call it.
    size : int
        Bytes of a piece.
    limit : int
        Most bytes that one record may take.
    delimiter : str or None
        None looks for it.
    """

    def __init__(self, file: Any, path: str, size: int, limit: int, delimiter: str | None) -> None:
        self.file, self.path, self.size, self.limit = file, path, size, max(size, limit)
        start = file.read(size)
        self.ended = len(start) < size
        text = _without_mark(start, path).lstrip(b"\r\n")
        self.rest = _without_comments(text)
        self.comments = self.rest != text
        self.at = len(start) - len(self.rest)  # where in the file the rest begins
        if not self.rest:
            raise FileError(f"{path} is empty: it has neither a header nor rows.")
        self.newline = b"\n" if b"\n" in self.rest or b"\r" not in self.rest else b"\r"
        self.delimiter = delimiter or find_delimiter(self.rest)
        self.quoted = re.compile(
            rb'"(?:(?<=\A")|(?<=[\r\n'
            + re.escape(self.delimiter).encode()
            + rb']"))[^"]*(?:""[^"]*)*("|\Z)'
        )

    def header(self) -> list[str]:
        """Return the fields of the first record; they may be names or numbers."""
        end = self._cut(first=True)
        while end == 0 and not self.ended:
            self._more()
            end = self._cut(first=True)
        head = self._piece(end or len(self.rest))
        try:
            str(head.data, "utf-8")
            _, fields = next(head.records(self.delimiter))
        except UnicodeDecodeError as error:
            raise FileError(not_utf8(self.path, "its header", error)) from None
        except (csv.Error, StopIteration) as error:
            raise FileError(f"{self.path}: the header cannot be read ({error}).") from None
        self.head = head
        return fields

    def row_width(self) -> int:
        """Return the number of fields of the first record below the header; 0 where none is."""
        while not self.ended and self.newline not in self.rest[len(self.head.data) :].lstrip():
            self._more()
        below = bytes(self.rest[len(self.head.data) :])[: self.size].decode("utf-8", "replace")
        rows = csv.reader(io.StringIO(below, newline=""), delimiter=self.delimiter)
        try:
            return next((len(row) for row in rows if row), 0)
        except csv.Error:
            return 0

    def drop_header(self) -> None:
        """Leave the header out of the pieces."""
        self._take(len(self.head.data))

    def __iter__(self) -> Iterator[Piece]:
        while True:
            while not self.ended and len(self.rest) < self.size:
                self._more()
            end = len(self.rest) if self.ended else self._cut()
            if end:
                self._check_closed(end)
                yield self._take(end)
            elif self.ended:
                return
            else:
                self._more()

    def _more(self) -> None:
        if len(self.rest) > self.limit:
            quote = self._open_quote()
            where = f"line {self.line_at(self.at)} and what follows it"
            why = f"a quote that is opened in line {quote} is not closed" if quote else "one record"
            raise FileError(
                f"{self.path}: {where} take more than {format_bytes(self.limit)}: {why}. "
                f"Mend it, or raise the budget with {format_parameter('memory')}."
            )
        more = self.file.read(max(self.size - len(self.rest), len(self.rest), 1))
        self.ended = not more
        self.rest += more

    def _take(self, end: int) -> Piece:
        piece, self.rest = self._piece(end), self.rest[end:]
        if self.comments and b"#" in bytes(piece.data):
            piece = replace(piece, data=memoryview(self._uncommented(bytes(piece.data))))
        self.at += end
        return piece

    def _uncommented(self, data: bytes) -> bytes:
        """Return records with lines that begin with # left blank, unless a quote spans them."""
        spans = [match.span() for match in self.quoted.finditer(data)]

        def blank(match: re.Match[bytes]) -> bytes:
            inside = any(start < match.start() < stop for start, stop in spans)
            return match[0] if inside else b""

        return re.sub(rb"(?m)^#[^\r\n]*", blank, data)

    def _piece(self, end: int) -> Piece:
        return Piece(self.at, memoryview(self.rest)[:end], self.rest.find(b'"', 0, end) >= 0, self)

    def line_at(self, place: int) -> int:
        """Return the line that a place of the file is in."""
        before, lines = self.file.tell(), 1
        self.file.seek(0)
        for start in range(0, place, self.size):
            lines += self.file.read(min(self.size, place - start)).count(self.newline)
        self.file.seek(before)
        return lines

    def _cut(self, first: bool = False) -> int:
        """Return where the last record that is whole ends, or the first; 0 where none does."""
        spans = self._spans()
        if first:
            end = self.rest.find(self.newline)
            for start, stop in spans:
                if start <= end < stop:
                    end = self.rest.find(self.newline, stop)
            return end + 1
        end = self.rest.rfind(self.newline)
        for start, stop in reversed(spans):
            if stop <= end:
                break
            end = min(end, self.rest.rfind(self.newline, 0, start))
        return end + 1

    def _spans(self) -> list[tuple[int, int]]:
        """Return where the quoted fields are: a newline inside one ends no record."""
        if b'"' not in self.rest:
            return []
        return [match.span() for match in self.quoted.finditer(self.rest)]

    def _unclosed(self, span: tuple[int, int]) -> bool:
        match = self.quoted.match(self.rest, span[0])
        return match is not None and not match[1]

    def _open_quote(self) -> int:
        """Return the line of a quote that is not closed; 0 if there is none."""
        spans = self._spans()
        if not spans or not self._unclosed(spans[-1]):
            return 0
        return self.line_at(self.at + spans[-1][0])

    def _check_closed(self, end: int) -> None:
        line = self._open_quote() if end == len(self.rest) and self.ended else 0
        if line:
            raise FileError(
                f"{self.path}, line {line}: a quoted field is opened and never closed. "
                f"Close it, or double the quotes inside a field."
            )


def find_delimiter(sample: bytes) -> str:
    """Return the delimiter that gives every line as many fields as the first; else a comma."""
    lines = sample.decode("utf-8", "replace").splitlines()[: _SAMPLE_LINES + 1]
    if len(lines) > 1:
        lines = lines[:-1] if len(lines) > _SAMPLE_LINES else lines
    lines = [line for line in lines if not line.startswith("#")] or lines
    best, most = ",", 0.0
    for delimiter in (*DELIMITERS, " "):
        try:
            found = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if most == 0 and delimiter == " " and (len(found) < 2 or len(set(found[1:])) > 1):
            continue  # a blank is a delimiter only where nothing else is, in every line
        if found and found[0] > 1 and (most == 0 or delimiter != " "):
            alike = sum(count == found[0] for count in found) / len(found)
            # R writes no name for its column of row names.
            below = [count == found[0] + 1 for count in found[1:]]
            alike = 1.0 if below and all(below) else alike
            if alike > most:
                best, most = delimiter, alike
    return best


def not_utf8(path: str, what: str, error: UnicodeDecodeError | None = None) -> str:
    """Say that text is in another encoding, and what to do."""
    byte = "" if error is None else f" (byte 0x{error.object[error.start]:02x})"
    return (
        f"{path}: {what} is not UTF-8{byte}; it may be latin-1 or windows-1252. Save the file as "
        f"UTF-8, for example: iconv -f latin1 -t utf-8."
    )


def _without_comments(text: bytes) -> bytes:
    """Return text after the lines at its start that begin with #.

    The last of them is the header where it has as many fields as the line below, which is a row:
    it holds a number.
    """
    if not text.startswith(b"#"):
        return text
    lines = re.match(rb"(?:#[^\r\n]*[\r\n]*)+", text)
    assert lines is not None
    rest = text[lines.end() :]
    last = lines[0].rstrip(b"\r\n").replace(b"\r", b"\n").rsplit(b"\n", 1)[-1]
    row = re.match(rb"[^\r\n]*", rest)
    first = (row[0] if row else b"").decode("utf-8", "replace")
    delimiter = find_delimiter(rest) if rest else ","
    fields, names = first.split(delimiter), last.decode("utf-8", "replace").split(delimiter)
    row_below = any(NUMBER.fullmatch(field.strip('"')) for field in fields)
    if row_below and len(names) == len(fields) > 1:
        at = lines[0].rstrip(b"\r\n").rfind(last)
        return text[at:].lstrip(b"#").lstrip()
    return rest


def _without_mark(start: bytes, path: str) -> bytes:
    """Return the bytes after a byte order mark; refuse encodings that are not UTF-8."""
    if start.startswith(b"\xef\xbb\xbf"):
        return start[3:]
    wide = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if wide or (len(start) > 3 and 0 in (start[0], start[1])):
        raise FileError(
            f"{path} looks like UTF-16 or UTF-32, not UTF-8. Save it as UTF-8, for example: "
            f"iconv -f utf-16 -t utf-8."
        )
    return start
