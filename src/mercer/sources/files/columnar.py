"""Rows of numbers in typed columns: Parquet, Arrow and Feather files, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mercer import threads
from mercer.config import get_config
from mercer.sources.errors import FileError, decoding, listed
from mercer.sources.files.extra import extra
from mercer.sources.files.gather import Gather, Rows
from mercer.sources.files.labels import from_arrow, is_number
from mercer.sources.files.roles import Ask, Roles, assign
from mercer.sources.files.table import Table, finished

# Bytes of the rows of a batch.
_BATCH = 8 * 2**20

Batches = Callable[[list[str], int], Iterator[Any]]
"""Record batches of the named columns, of at most so many rows where the format can."""


def read_parquet(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read a Parquet file."""
    with decoding(ask.path, "Parquet"), _parquet(path) as (schema, batches, rows):
        return _read(schema, batches, rows, ask, _Share(path, rows, tick))


def read_arrow(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read an Arrow file, a Feather file (version 2) or a file of an Arrow stream."""
    with decoding(ask.path, "Arrow"), _arrow(path) as (schema, batches):
        return _read(schema, batches, None, ask, tick)


class _Share:
    """Ticks bytes of a file whose rows, and not its bytes, go by."""

    def __init__(self, path: Path, rows: int, tick: Callable[[int], None]) -> None:
        self.bytes, self.rows, self.tick, self.seen = path.stat().st_size, max(1, rows), tick, 0

    def __call__(self, rows: int) -> None:
        before = self.bytes * self.seen // self.rows
        self.seen += rows
        self.tick(self.bytes * self.seen // self.rows - before)


@contextmanager
def _parquet(path: Path) -> Iterator[tuple[Any, Batches, int]]:
    parquet = extra("pyarrow.parquet", "Parquet")
    # Pages are read through a buffer: a row group may be as large as the file.
    with path.open("rb") as opened, parquet.ParquetFile(opened, buffer_size=2**20) as file:

        def batches(names: list[str], rows: int) -> Iterator[Any]:
            return iter(
                file.iter_batches(batch_size=rows, columns=names, use_threads=threads.workers() > 1)
            )

        yield file.schema_arrow, batches, file.metadata.num_rows


@contextmanager
def _arrow(path: Path) -> Iterator[tuple[Any, Batches]]:
    pa = extra("pyarrow", "Arrow")
    ipc = extra("pyarrow.ipc", "Arrow")
    with path.open("rb") as file:
        start = file.read(6)
    if start[:4] == b"FEA1":
        raise FileError(f"{path} is a Feather file of version 1. Write it again as version 2.")
    with pa.OSFile(str(path)) as plain:
        stream = start != b"ARROW1"
        reader = ipc.open_stream(plain) if stream else ipc.open_file(plain)
        schema = reader.schema
    large = not stream and path.stat().st_size > get_config().budget // 8 * max(
        1, reader.num_record_batches
    )

    def batches(names: list[str], rows: int) -> Iterator[Any]:
        options = ipc.IpcReadOptions(
            included_fields=[schema.get_field_index(name) for name in names]
        )
        # A batch too large to be read at once is mapped: its pages can be given back.
        with pa.memory_map(str(path)) if large else pa.OSFile(str(path)) as file:
            if stream:
                yield from _slices(iter(ipc.open_stream(file, options=options)), rows)
            else:
                opened = ipc.open_file(file, options=options)
                every = (opened.get_batch(i) for i in range(opened.num_record_batches))
                yield from _slices(every, rows)

    yield schema, batches


def _slices(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    for batch in batches:
        # Offsets that point outside their buffer would be followed: check before use.
        batch.validate(full=True)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _read(schema: Any, batches: Batches, rows: int | None, ask: Ask, tick: Any) -> Table:
    pa = extra("pyarrow", "Parquet")
    names = [str(name) for name in schema.names]
    if not names:
        raise FileError(f"{ask.path} has no columns.")
    index = [i for i, name in enumerate(names) if name.startswith("__index_level_")]
    roles = assign(names, ask, skipped=index)
    numbers = [i for i in roles.features if is_number(schema.field(i).type)]
    _check_types(schema, roles, ask)
    if not numbers:
        raise FileError(f"{ask.path} has no column of numbers. Its columns are {listed(names)}.")
    single = all(schema.field(i).type == pa.float32() for i in numbers)
    gather = Gather(len(numbers), np.float32 if single else np.float64)
    beside: dict[int, list[Any]] = {i: [] for i in roles.beside}
    weights: list[Rows] = []
    wanted = list(dict.fromkeys([*numbers, *beside, *_some(roles.weights)]))
    length = max(1, _BATCH // (8 * len(wanted)))
    try:
        for batch in batches([names[i] for i in wanted], length):
            gather.add(_rows(batch, [names[i] for i in numbers], gather.dtype))
            for i, parts in beside.items():
                parts.append(_one(batch, names[i]))
            if roles.weights is not None:
                weights.append(_values(_one(batch, names[roles.weights]), np.float64))
            tick(batch.num_rows if rows is not None else batch.nbytes)
        if not gather.count:
            raise FileError(f"{ask.path} has columns, and no rows.")
        return finished(
            ask,
            gather.finish(range(len(numbers))),
            [names[i] for i in numbers],
            gather.missing,
            extra={names[i]: from_arrow(parts) for i, parts in beside.items()},
            weights=np.concatenate(weights) if weights else None,
            dropped=[name for i, name in enumerate(names) if i not in wanted],
        )
    finally:
        gather.close()
        pa.default_memory_pool().release_unused()


def _check_types(schema: Any, roles: Roles, ask: Ask) -> None:
    for i in roles.required:
        kind = schema.field(i).type
        if not is_number(kind):
            raise FileError(
                f"{ask.path}: column {roles.names[i]!r} is of type {kind}, not numbers."
            )


def _rows(batch: Any, names: Sequence[str], dtype: Any) -> Rows:
    rows = np.empty((batch.num_rows, len(names)), dtype)
    for j, name in enumerate(names):
        rows[:, j] = _values(_one(batch, name), dtype)
    return rows


def _one(batch: Any, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(name))


def _values(column: Any, dtype: Any) -> Rows:
    """Return numbers of any kind as floats, NaN where they are missing."""
    kind = "float32" if dtype == np.float32 else "float64"
    if str(column.type) not in ("float", "double"):
        column = column.cast(kind, safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype)


def _some(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)
