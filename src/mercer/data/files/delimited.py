"""Rows of numbers in delimited text: `.csv` and `.tsv`.

pyarrow converts piece after piece of the file. A column is numbers where every entry of the
file is one, or true and false, or missing: it makes no difference how the pieces fall.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer import threads
from mercer.config import get_config
from mercer.data.errors import FileError, decoding, listed
from mercer.data.files.extra import extra
from mercer.data.files.gather import Gather, Rows
from mercer.data.files.labels import Column, identifies, present
from mercer.data.files.roles import Ask, Roles, assign, only_ids
from mercer.data.files.table import Table, finished
from mercer.data.files.text import DECIMAL_COMMA, MISSING, NUMBER, Piece, Pieces, not_utf8
from mercer.messages import warn

# Bytes of a piece: enough for pyarrow's threads, little beside any budget.
_PIECE = 8 * 2**20
_PIECE_ROWS = 512
_BLOCK = 2 * 2**20
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]


def read(path: Path, ask: Ask, tick: Callable[[int], None], delimiter: str | None) -> Table:
    """Read delimited text; None looks for the delimiter."""
    extra("pyarrow", "CSV")
    budget = get_config().budget
    size = max(2**16, min(_PIECE, budget // 32))
    with path.open("rb") as file:
        pieces = Pieces(file, ask.path, size, budget // 8, delimiter)
        fields = pieces.header()
        # Of a wide file more at once: pyarrow takes some time for every column of a piece.
        pieces.size = max(size, min(budget // 32, _PIECE_ROWS * len(pieces.head.data)))
        names = header_names(fields, ask.path)
        if names is not None:
            if pieces.row_width() == len(fields) + 1:  # R: the first column has the row names
                fields, names = ["", *fields], ["Unnamed: 0", *names]
            pieces.drop_header()
        known = names or [str(i) for i in range(len(fields))]
        unnamed = [0] if names and not fields[0].strip() else []
        roles = assign(known, ask, named=names is not None, skipped=unnamed)
        columns = Columns(roles, ask, pieces.delimiter)
        try:
            for piece in pieces:
                columns.add(piece)
                tick(len(piece.data))
            return columns.table(names is not None)
        finally:
            columns.close()


def header_names(fields: Sequence[str], path: str) -> list[str] | None:
    """Return the names in the first record, or None where it is a row already.

    It is a row where every field is a number or missing, save for the header 0, 1, 2, ... that
    pandas writes where columns have no names. A field without text is named as pandas does.
    """
    present = [field.strip() for field in fields if field.strip() not in MISSING]
    if present and all(NUMBER.fullmatch(field) for field in present):
        counted = len(present) > 1 and present == [str(i) for i in range(len(present))]
        if not counted or any(not field.strip() for field in fields[1:]):
            warn(
                f"{path}: the first line holds numbers only and was taken for a row, not for "
                f"names of columns. Put a line with names above it to say what they are."
            )
            return None
        warn(f"{path}: the first line, 0 to {len(present) - 1}, was taken for names of columns.")
    return [field.strip() or f"Unnamed: {i}" for i, field in enumerate(fields)]


class Columns:
    """Converts pieces of text to rows, and finds out which columns are numbers."""

    def __init__(self, roles: Roles, ask: Ask, delimiter: str) -> None:
        self.roles, self.ask, self.delimiter = roles, ask, delimiter
        self.width = len(roles.names)
        numbers = dict.fromkeys(
            [*roles.features, *([] if roles.weights is None else [roles.weights])]
        )
        self.kinds: dict[int, str] = dict.fromkeys(numbers, "empty")
        self.missing = [*MISSING, *ask.na]
        self.reasons: dict[int, str] = {}
        # Whatever comes beside the rows is read as text, which keeps every digit.
        self.beside: dict[int, list[Any]] = {i: [] for i in (*roles.beside, *roles.candidates)}
        self.weights: list[Rows] = []
        self.gather: Gather | None = None
        self.placed: list[int] = []
        self.count = 0

    def add(self, piece: Piece) -> None:
        """Take the records of a piece in."""
        found = self._converted(piece)
        if found is None:
            return
        for i in self.kinds:
            if self.kinds[i] == "empty" and found[str(i)].null_count < len(found):
                self.kinds[i] = "number"
        if self.gather is None:
            self.placed = [i for i in self.roles.features if i in self.kinds]
            self.gather = Gather(len(self.placed))
        rows = np.empty((len(found), len(self.placed)))
        for j, i in enumerate(self.placed):
            if i in self.kinds:
                self._fill(rows[:, j], found, i)
            else:
                rows[:, j] = np.nan
        if self.placed:
            self.gather.add(rows)
        if self.roles.weights is not None:
            self.weights.append(self._numbers(found, self.roles.weights))
        self._add_beside(found)
        self.count += len(found)

    def _add_beside(self, found: Any) -> None:
        """Keep the text of columns beside the rows; of those that may name them, while they do."""
        for i in list(self.beside):
            column = found[f"text {i}" if i in self.kinds else str(i)]
            known = present(column, self.ask.na)
            if i in self.roles.beside or identifies(known, whole=i in self.kinds):
                self.beside[i].append(column)
            else:
                del self.beside[i]

    def table(self, named: bool) -> Table:
        """Return what all pieces hold."""
        if not self.count:
            raise FileError(f"{self.ask.path} has a header, and no rows below it.")
        gather, placed = self.gather or Gather(0), self.placed
        empty = {i for j, i in enumerate(placed) if gather.missing[j] == self.count}
        ids = self._identifiers()
        used = [
            j
            for j, i in enumerate(placed)
            if i in self.kinds and (i in self.roles.named or i not in empty) and i not in ids
        ]
        names = self.roles.names
        if not used:
            alone = self.delimiter == "\t" and self.width == 1
            other = self.ask.option("format", "csv")
            remedy = f" If fields are separated otherwise, read it with {other}."
            raise FileError(
                f"{self.ask.path} has no column of numbers, read with {self.delimiter!r} between "
                f"fields. Its columns are {listed(list(names))}.{only_ids(ids, names, self.ask)}"
                f"{remedy if alone else ''}"
            )
        own = self.roles.id if self.roles.id is not None else next(iter(ids), None)
        shown = dict.fromkeys([*_some(own), *self.roles.beside])
        spoken = {placed[j] for j in used} | set(shown) | {self.roles.weights}
        dropped = [i for i in range(self.width) if i not in spoken]
        return finished(
            self.ask,
            gather.finish(used),
            [names[placed[j]] for j in used] if named else None,
            gather.missing[used],
            beside={names[i]: Column.of_text(self.beside[i], self.ask.na) for i in shown},
            weights=np.concatenate(self.weights) if self.weights else None,
            dropped=[names[i] for i in dropped],
            reasons={names[i]: why for i in dropped if (why := self._reason(i, ids, empty))},
            id=None if own is None else names[own],
            flags=[names[placed[j]] for j in used if self.kinds[placed[j]] == "flag"],
        )

    def _identifiers(self) -> list[int]:
        """Return the candidates that name rows: first those that name the most."""
        pa = extra("pyarrow", "CSV")
        found: dict[int, int] = {}
        for i in self.roles.candidates:
            chunks = [chunk for part in self.beside.get(i, ()) for chunk in part.chunks]
            known = present(pa.chunked_array(chunks, pa.string()), self.ask.na)
            if len(known) and identifies(known, whole=i in self.kinds):
                found[i] = len(known)
        return sorted(found, key=lambda i: -found[i])

    def _reason(self, i: int, ids: Sequence[int], empty: set[int]) -> str | None:
        """Say why a column is left out; None where the user wanted that."""
        if i in ids and i in self.roles.features:
            return "identifier"
        if i in empty:
            return "no values"
        if i in self.roles.candidates and i not in self.roles.features:
            return "no name" if self.ask.columns is None else None
        return self.reasons.get(i)

    def close(self) -> None:
        """Let go of everything."""
        if self.gather is not None:
            self.gather.close()
        extra("pyarrow", "CSV").default_memory_pool().release_unused()

    def _numbers(self, found: Any, i: int) -> Rows:
        out = np.empty(len(found))
        self._fill(out, found, i)
        return out

    def _fill(self, out: Rows, found: Any, i: int) -> None:
        """Write the numbers of a column, NaN where they are missing; chunk by chunk."""
        column, at = found[str(i)], 0
        if self.kinds[i] == "flag":
            column = column.cast("float64")
        for chunk in column.chunks:
            out[at : at + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
            at += len(chunk)

    def _converted(self, piece: Piece) -> Any:
        """Return a piece as a pyarrow table; columns that turn out to be text are let go."""
        if not bytes(piece.data[:64]).strip() and not bytes(piece.data).strip(b"\r\n"):
            return None
        pa = extra("pyarrow", "CSV")
        try:
            return self._both(piece)
        except pa.ArrowInvalid:
            self._check_lengths(piece)
        self._judge(piece)
        try:
            return self._both(piece)
        except pa.ArrowInvalid as error:
            if "UTF8" not in str(error):
                raise FileError(f"{self.ask.path}, from line {piece.line}: {error}") from error
        # Nobody asked for the columns that may name the rows.
        self.beside = {i: parts for i, parts in self.beside.items() if i in self.roles.beside}
        try:
            return self._both(piece)
        except pa.ArrowInvalid:
            beside = listed([self.roles.names[i] for i in self.beside])
            raise FileError(not_utf8(self.ask.path, f"one of the columns {beside}")) from None

    def _both(self, piece: Piece) -> Any:
        """Parse numbers and texts; of a column that is both, the text is named so."""
        types = self._types()
        both = [i for i in self.beside if i in self.kinds]
        found = self._parsed(piece, types | dict.fromkeys(both, "string"))
        for i in both:
            text = found[str(i)]
            number = self._converted_text(text, types[i])
            at = found.schema.get_field_index(str(i))
            found = found.set_column(at, str(i), number).append_column(f"text {i}", text)
        return found

    def _converted_text(self, text: Any, kind: str) -> Any:
        """Return text as numbers or flags, as reading it as such would."""
        pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
        text = pc.utf8_trim_whitespace(text)
        lacking = pc.is_in(text, value_set=pa.array(self.missing, pa.string()))
        known = pc.if_else(lacking, pa.scalar(None, pa.string()), text)
        if kind == "bool":
            flags = pa.array([*_TRUE, *_FALSE], pa.string())
            if not pc.all(pc.is_in(known.drop_null(), value_set=flags)).as_py():
                raise pa.ArrowInvalid("not true or false")
        return known.cast(kind)

    def _types(self) -> dict[int, str]:
        texts = dict.fromkeys(self.beside, "string")
        return texts | {
            i: "bool" if kind == "flag" else "float64" for i, kind in self.kinds.items()
        }

    def _parsed(self, piece: Piece, types: Mapping[int, str | None]) -> Any:
        """Parse the named columns of a piece; a type of None is inferred."""
        pa, pa_csv = extra("pyarrow", "CSV"), extra("pyarrow.csv", "CSV")
        known = {str(i): pa.type_for_alias(kind) for i, kind in types.items() if kind}
        return pa_csv.read_csv(
            pa.py_buffer(piece.data),
            read_options=pa_csv.ReadOptions(
                column_names=[str(i) for i in range(self.width)],
                block_size=max(_BLOCK, len(piece.data) // 4),
                use_threads=threads.workers() > 1,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=piece.quoted
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[str(i) for i in types],
                column_types=known,
                null_values=self.missing,
                true_values=_TRUE,
                false_values=_FALSE,
            ),
        )

    def _check_lengths(self, piece: Piece) -> None:
        """Refuse a record that has more or fewer fields than the first."""
        with decoding(self.ask.path, "CSV"):
            for line, record in piece.records(self.delimiter):
                if len(record) != self.width:
                    raise FileError(
                        f"{self.ask.path}, line {line}: {len(record)} fields, where the first "
                        f"line has {self.width} (between them {self.delimiter!r})."
                    )

    def _judge(self, piece: Piece) -> None:
        """Let the columns go that hold something else than numbers in this piece."""
        inferred = self._parsed(piece, dict.fromkeys(self.kinds, None))
        for i in list(self.kinds):
            self._turn(i, str(inferred[str(i)].type), piece)
        if not self._fits(piece, list(self.kinds)):  # a number to infer, not to convert: 0x1F
            for i in list(self.kinds):
                if not self._fits(piece, [i]):
                    self._turn(i, "string", piece)

    def _turn(self, i: int, kind: str, piece: Piece) -> None:
        before = self.kinds[i]
        if kind == "null" or (kind in ("int64", "double") and before != "flag"):
            return
        if kind == "bool" and before != "number":
            self.kinds[i] = "flag"
            return
        self.reasons[i] = "dates" if kind.startswith(("date", "timestamp")) else "text"
        self._let_go(i, piece)

    def _fits(self, piece: Piece, columns: list[int]) -> bool:
        types = self._types()
        try:
            self._parsed(piece, {i: types[i] for i in columns})
        except extra("pyarrow", "CSV").ArrowInvalid:
            return False
        return True

    def _let_go(self, i: int, piece: Piece) -> None:
        """Leave a column out, and say so where it looked like numbers at first."""
        line, text, above = self._first_text(i, piece)
        numbers = above or self._mostly_numbers(i, piece)
        name = self.roles.names[i]
        here = f"{self.ask.path}, line {line}: column {name!r} holds {text!r}"
        if self.delimiter != "," and DECIMAL_COMMA.fullmatch(text):
            raise FileError(
                f"{here}, with a decimal comma. Write numbers with a decimal point, for example "
                f"with pandas: read_csv(..., decimal=',') and to_csv."
            )
        option = self.ask.option("na", [text], missing="keep")
        remedy = f"If that stands for a missing value, pass {option}." if numbers else ""
        if i in self.roles.required:
            raise FileError(
                f"{here}, which is not a number, and every entry must be one. {remedy}".rstrip()
            )
        if numbers:
            warn(f"{here}, where other entries are numbers: the column is not used. {remedy}")
        del self.kinds[i]

    def _mostly_numbers(self, i: int, piece: Piece) -> bool:
        """Tell whether at least half of the entries of a column in this piece are numbers."""
        pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
        try:
            column = self._parsed(piece, {i: "string"})[str(i)]
        except pa.ArrowInvalid:
            return False
        there = pc.invert(pc.is_in(column, value_set=pa.array(self.missing, pa.string())))
        numbers = pc.match_substring_regex(column.filter(there), f"^({NUMBER.pattern})$")
        return bool(2 * (pc.sum(numbers).as_py() or 0) >= max(1, len(numbers)))

    def _first_text(self, i: int, piece: Piece) -> tuple[int, str, bool]:
        """Return line and text of the first entry that is no number, and if numbers are above."""
        above = self.kinds[i] == "number"
        try:
            for line, record in piece.records(self.delimiter):
                if record[i] not in self.missing:
                    if not NUMBER.fullmatch(record[i]):
                        return line, record[i][:60], above
                    above = True
        except (csv.Error, IndexError):
            pass
        return piece.line, "something else", above


def _some(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)
