"""Columns of text tables: which of them are numbers.

A column is numbers if every entry of the file is a number, or true or false, or missing: how the
file is cut into blocks makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mercer.data.errors import FileError, file_errors, format_names
from mercer.data.files.columns import (
    FALSE,
    TRUE,
    Request,
    Text,
    assign_roles,
    count_ids,
    no_features,
    polars,
    rank_ids,
)
from mercer.data.files.storage import RowBuffer
from mercer.data.files.table import Table, make_named_table
from mercer.messages import warn
from mercer.progress import Tick

Rows = npt.NDArray[Any]

_DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")


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
        self.na, self.decimal = list(na), decimal
        numbers = frame.select(self.number())
        self.rows: Rows = numbers.to_numpy().reshape(-1, width)
        self.unread = np.zeros(width, bool)
        """Columns with entries that are neither numbers nor empty."""
        if numbers.null_count().sum_horizontal()[0]:
            unread = self.number().is_null() & (polars().all() != "")
            flags = frame.select(unread.fill_null(False)).to_numpy()
            self.unread = flags.reshape(-1, width).any(axis=0)

    def number(self) -> Any:
        """Return an expression for numbers: null where text is something else, or missing."""
        pl = polars()
        text = pl.all()
        if self.na:
            text = pl.when(text.is_in(self.na)).then(None).otherwise(text)
        if self.decimal:  # a point would separate thousands
            text = text.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
        return text.cast(pl.Float64, strict=False)

    def text(self, column: int) -> Any:
        """Return a column as it is written."""
        if self.frame.width == self.width:
            return self.frame.to_series(column)
        return self.frame.to_series(0).gather_every(self.width, column)


class TextFile(Protocol):
    """A file with rows of text; `index` are columns with row names."""

    names: list[str]
    named: bool
    index: list[int]
    delimiter: str

    def blocks(self) -> Iterator[TextBlock]:
        """Yield all rows."""

    def close(self) -> None:
        """Close the file."""


Opener = Callable[[Path, str, Request], TextFile]


def read_text(
    opener: Opener, paths: Sequence[Path], root: Path, request: Request, tick: Tick
) -> Table:
    """Read files of text as one table; text that is not Unicode is taken for Windows-1252."""
    with file_errors(request.path, getattr(opener, "kind", "text")):
        try:
            return _read_files(opener, paths, root, request, tick)
        except UnicodeDecodeError as error:
            warn(
                f"{request.path} is not UTF-8 (byte 0x{error.object[error.start]:02x}), and was "
                f"read as Windows-1252. If names or labels look wrong, save the file as UTF-8."
            )
            request = replace(request, encoding="cp1252")
            return _read_files(opener, paths, root, request, tick)


def _read_files(
    opener: Opener, paths: Sequence[Path], root: Path, request: Request, tick: Tick
) -> Table:
    columns: TextColumns | None = None
    total = sum(path.stat().st_size for path in paths)
    with ExitStack() as stack:
        for path in paths:
            file = opener(path, request.path if path == root else str(path), request)
            stack.callback(file.close)
            if columns is None:
                columns = TextColumns(file, request)
                stack.callback(columns.close)
            elif file.names != list(columns.roles.names):
                odd = sorted({*file.names} ^ {*columns.roles.names}) or file.names
                raise FileError(
                    f"{request.path}: {paths[0].name} and {path.name} have other columns "
                    f"({format_names(odd)}). Files of one table have the same, in the same order."
                )
            end = 0
            for block in file.blocks():
                columns.add(block, total)
                tick(block.end - end)
                end = block.end
        assert columns is not None
        return columns.table()


class TextColumns:
    """Collects blocks of text as rows, and finds out which columns are numbers."""

    def __init__(self, file: TextFile, request: Request) -> None:
        roles = assign_roles(file.names, request, named=file.named, index=file.index)
        self.roles, self.request = roles, request
        self.named, self.delimiter = file.named, file.delimiter
        # "empty", "number" or "flag"; columns of text are removed.
        self.kinds = dict.fromkeys([*roles.features, *roles.weights], "empty")
        self.reasons: dict[int, str] = {}
        # As text, identifiers keep every digit.
        self.texts: dict[int, list[Any]] = {i: [] for i in (*roles.extra, *roles.candidates)}
        self.weights: list[Rows] = []
        self.buffer: RowBuffer | None = None
        self.placed: list[int] = []

    def add(self, block: TextBlock, total: int) -> None:
        """Append a block of files of so many bytes."""
        for i in [i for i, kind in self.kinds.items() if block.unread[i] or kind != "number"]:
            self._examine(i, block)
        if self.buffer is None:
            self.placed = [i for i in self.roles.features if i in self.kinds]
            size = 8 * len(block.rows) * len(self.placed)
            self.buffer = RowBuffer(len(self.placed), expected=size * total // max(1, block.end))
        every = self.placed == list(range(block.width))
        self.buffer.add(block.rows if every else block.rows[:, self.placed])
        self.weights += [block.rows[:, i].copy() for i in self.roles.weights]
        for i, parts in list(self.texts.items()):
            parts.append(block.text(i))
            if i not in self.roles.extra and self._count_ids(i, parts[-1]) is None:
                del self.texts[i]

    def _count_ids(self, i: int, text: Any) -> int | None:
        return count_ids(text, self.request.na, whole=i in self.kinds)

    def _examine(self, i: int, block: TextBlock) -> None:
        """Find out what a column is; complete its numbers."""
        if not block.unread[i]:
            if np.isnan(block.rows[:, i]).all():
                return
            kind, numbers = "number", None
        else:
            known = Text(block.text(i).str.strip_chars(), self.request.na).known()
            numbers = known.to_frame().select(block.number()).to_series()
            kind = "number" if known.count() else "empty"
            if numbers.count() < known.count():
                kind = "flag" if known.is_in([*TRUE, *FALSE]).all() else "text"
            block.rows = np.require(block.rows, requirements="W")
            values = known.is_in(TRUE).cast(numbers.dtype) if kind == "flag" else numbers
            block.rows[:, i] = values.to_numpy()
        if kind == "text" or {self.kinds[i], kind} == {"number", "flag"}:
            self._remove(i, block, numbers)
        elif kind != "empty":
            self.kinds[i] = kind

    def _remove(self, i: int, block: TextBlock, numbers: Any) -> None:
        """Leave a column out, and say so if it looked like numbers."""
        known = Text(block.text(i).str.strip_chars(), self.request.na).known()
        odd = known.is_not_null() if numbers is None else known.is_not_null() & numbers.is_null()
        first, numeric = int(odd.arg_true()[0]), self.kinds.pop(i) == "number"
        if numbers is not None:
            numeric |= bool(numbers[:first].count()) or 2 * numbers.count() >= known.count()
        text, name = str(known[first])[:60], self.roles.names[i]
        here = f"{self.request.path}, line {block.line(first)}: column {name!r} holds {text!r}"
        if self.delimiter not in ("", ",") and _DECIMAL_COMMA.fullmatch(text):
            raise FileError(
                f"{here}, with a decimal comma. Write numbers with a decimal point, for example "
                f"with pandas: read_csv(..., decimal=',') and to_csv."
            )
        option = self.request.option("na", [text], missing="keep")
        remedy = f"If that stands for a missing value, pass {option}." if numeric else ""
        if i in (*self.roles.exact, *self.roles.weights):
            raise FileError(
                f"{here}, which is not a number, and every entry must be one. {remedy}".rstrip()
            )
        if numeric:
            warn(f"{here}, where other entries are numbers: the column is not used. {remedy}")
        self.reasons[i] = "dates" if _DATE.match(text) else "text"

    def table(self) -> Table:
        """Return the table of all blocks."""
        roles, buffer, placed = self.roles, self.buffer, self.placed
        if buffer is None:
            raise FileError(f"{self.request.path} has a header, and no rows below it.")
        empty = {i for i, n in zip(placed, buffer.missing, strict=True) if n == buffer.count}
        texts = {i: polars().concat(parts) for i, parts in self.texts.items()}
        ids = rank_ids({i: self._count_ids(i, texts[i]) for i in roles.candidates if i in texts})
        used = [i for i in placed if i in self.kinds and i not in ids]
        features = [i for i in used if i in roles.exact or i not in empty]
        if not features:
            raise no_features(self.request, roles.names, ids, self.delimiter)
        place = {i: j for j, i in enumerate(placed)}
        at = [place[i] for i in features]
        unnamed = "no name" if self.request.columns is None else ""
        skipped = dict.fromkeys(set(roles.candidates) - set(roles.features), unnamed)
        return make_named_table(
            self.request,
            roles,
            features,
            ids,
            buffer.finish(at),
            buffer.missing[at],
            columns={i: Text(text, self.request.na) for i, text in texts.items()},
            weights=np.concatenate(self.weights) if self.weights else None,
            reasons={**self.reasons, **skipped, **dict.fromkeys(empty, "no values")},
            flags=[i for i in features if self.kinds[i] == "flag"],
            named=self.named,
        )

    def close(self) -> None:
        """Release memory and file if reading ends early."""
        if self.buffer is not None:
            self.buffer.close()
