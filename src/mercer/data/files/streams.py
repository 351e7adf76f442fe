"""Streams of tables: Arrow streams of any library, and what is read as one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any

from mercer.config import get_config
from mercer.data.errors import FileError, format_names
from mercer.data.files.storage import RowBuffer
from mercer.data.files.table import Request, Table, polars
from mercer.data.files.typed import Rows, TypedColumns, floats
from mercer.data.source import Source
from mercer.extras import extra

# Bytes of rows that are converted at a time.
_PIECE = 4 * 2**20
# Rows that a Hugging Face data set decodes at a time.
_BATCH = 1000


def read_stream(X: Any) -> Source:
    """Return the rows of a stream whose columns are all numbers; missing values are NaN."""
    request = Request(type(X).__name__, direct=True, arguments="X")
    return read_frames(frames(X), request, every=True).source


def refuse_splits(X: Any) -> Source:
    """Refuse a dictionary of data sets."""
    names = format_names(map(str, X))
    raise TypeError(f"X is a {type(X).__name__} with the splits {names}. Pass one of them.")


def frames(X: Any) -> Generator[Any]:
    """Yield the rows of a stream as frames of Polars; the first may be empty, but has the types."""
    pl = polars()
    if hasattr(X, "collect_batches"):  # a LazyFrame of Polars
        yield pl.DataFrame(schema=X.collect_schema())
        yield from X.collect_batches()
    elif hasattr(X, "with_format"):  # a data set of Hugging Face
        chosen = {"columns": X.format["columns"]} if hasattr(X, "format") else {}
        yield from map(pl.from_arrow, X.with_format("arrow", **chosen).iter(_BATCH))
    else:
        with batches(X) as reader:
            yield pl.from_arrow(reader.schema.empty_table())
            yield from map(pl.from_arrow, reader)


def batches(X: Any) -> AbstractContextManager[Any]:
    """Return a reader of record batches, which is closed in the end unless it is the user's."""
    if hasattr(X, "scanner"):  # a pyarrow Dataset
        X = X.scanner()
    if hasattr(X, "to_reader"):
        X = X.to_reader()
    if hasattr(X, "read_next_batch"):  # to export it would end it, even if it cannot be used
        return nullcontext(X)
    pyarrow = extra("pyarrow", "arrow", "Arrow streams require")
    reader: AbstractContextManager[Any] = pyarrow.RecordBatchReader.from_stream(X)
    return reader


def read_frames(stream: Generator[Any], request: Request, *, every: bool = False) -> Table:
    """Read frames of the same columns as one table, each frame once, and close the stream.

    With `every`, all columns are features, and must be numbers.
    """
    with closing(stream):
        first = next(stream, None)
        if first is None:
            raise FileError(f"{request.path} has no rows.")
        if every:
            request = replace(request, columns=tuple(first.columns))
        columns = TypedColumns(first.schema, request)
        numeric = columns.numeric
        names, others = columns.names_of(numeric), columns.names_of(columns.beside)
        length, buffer, beside = 0, RowBuffer(len(names), columns.dtype(numeric)), []
        piece = min(_PIECE, get_config().budget // 48)
        step = max(1, piece // (8 * max(1, len(names))))
        for frame in chain([first], stream):
            length += len(frame)
            beside.append(frame.select(others))
            for rows in frame.select(names).iter_slices(step):
                buffer.append(floats(rows, buffer.dtype))
    if not length:
        raise FileError(
            f"{request.path} has columns, but no rows. A stream that was read before is empty."
        )

    def source(features: list[int]) -> tuple[Source, Rows]:
        at = [numeric.index(i) for i in features]
        missing = buffer.missing[at]
        # The fit finds missing values, and names the first.
        return buffer.source(at), 0 * missing if request.direct else missing

    return columns.table(polars().concat(beside), source)
