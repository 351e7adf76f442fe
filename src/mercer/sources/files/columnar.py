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
from mercer.sources.files.gather import Gather, Rows, side_by_side
from mercer.sources.files.labels import from_arrow, is_number
from mercer.sources.files.roles import Ask, Roles, assign
from mercer.sources.files.table import Table, finished

# Bytes of the rows of a batch.
_BATCH = 2 * 2**20
# Bytes that pyarrow holds of a column of Parquet while it goes through it: a page as it is
# stored, unpacked, its dictionary, and what its allocator keeps.
_COLUMN = 4 * 2**20

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
    """Ticks bytes of a file whose rows, and not its bytes, go by; more than once they count 0."""

    def __init__(self, path: Path, rows: int, tick: Callable[[int], None]) -> None:
        self.bytes, self.rows, self.tick = path.stat().st_size, max(1, rows), tick
        self.seen = 0

    def __call__(self, rows: int) -> None:
        before = self._bytes()
        self.seen += rows
        self.tick(self._bytes() - before)

    def _bytes(self) -> int:
        return self.bytes * min(self.seen, self.rows) // self.rows


@contextmanager
def _parquet(path: Path) -> Iterator[tuple[Any, Batches, int]]:
    parquet = extra("pyarrow.parquet", "Parquet")
    # Pages are read through a buffer: a row group may be as large as the file.
    with path.open("rb") as opened, parquet.ParquetFile(opened, buffer_size=2**16) as file:

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
    names = [str(name) for name in schema.names]
    if not names:
        raise FileError(f"{ask.path} has no columns.")
    index = [i for i, name in enumerate(names) if name.startswith("__index_level_")]
    roles = assign(names, ask, skipped=index)
    _check_types(schema, roles, ask)
    numbers = [i for i in roles.features if is_number(schema.field(i).type)]
    if not numbers:
        raise FileError(f"{ask.path} has no column of numbers. Its columns are {listed(names)}.")
    single = all(str(schema.field(i).type) == "float" for i in numbers)
    beside: dict[int, list[Any]] = {i: [] for i in (*roles.beside, *_some(roles.weights))}
    # A wide Parquet file is gone through several times, some columns at a time.
    step = len(numbers) if rows is None else max(8, get_config().budget // 4 // _COLUMN)
    groups = [numbers[at : at + step] for at in range(0, len(numbers), step)]
    dtype = np.float32 if single else np.float64
    gathers = [Gather(len(group), dtype, share=len(groups)) for group in groups]
    pool = extra("pyarrow", "Parquet").default_memory_pool()
    try:
        for group, gather in zip(groups, gathers, strict=True):
            _pass(batches, names, group, gather, beside if group is groups[0] else {}, tick)
            pool.release_unused()  # which keeps more than it was ever asked for
        if not gathers[0].count:
            raise FileError(f"{ask.path} has columns, and no rows.")
        source = side_by_side([gather.finish(range(gather.width)) for gather in gathers])
    finally:
        for gather in gathers:
            gather.close()
        pool.release_unused()
    weights = None
    if roles.weights is not None:
        weights = np.concatenate([_values(part, np.float64) for part in beside[roles.weights]])
    spoken = {*numbers, *beside}
    return finished(
        ask,
        source,
        [names[i] for i in numbers],
        np.concatenate([gather.missing for gather in gathers]),
        extra={names[i]: from_arrow(beside[i]) for i in roles.beside},
        weights=weights,
        dropped=[name for i, name in enumerate(names) if i not in spoken],
    )


def _pass(
    batches: Batches,
    names: Sequence[str],
    group: Sequence[int],
    gather: Gather,
    beside: dict[int, list[Any]],
    tick: Any,
) -> None:
    """Go through all batches once: the columns of a group, and those beside the rows."""
    wanted = list(dict.fromkeys([*group, *beside]))
    for batch in batches([names[i] for i in wanted], _length(wanted)):
        gather.add(_rows(batch, [names[i] for i in group], gather.dtype))
        for i, parts in beside.items():
            parts.append(_one(batch, names[i]))
        tick(batch.num_rows if isinstance(tick, _Share) else batch.nbytes)


def _length(wanted: Sequence[int]) -> int:
    """Rows of a batch of these columns."""
    return max(1, min(_BATCH, get_config().budget // 64) // (8 * len(wanted)))


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
