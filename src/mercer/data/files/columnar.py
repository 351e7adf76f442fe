"""Rows of numbers in typed columns: Parquet, Arrow and Feather files, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer import threads
from mercer.config import get_config
from mercer.data.errors import FileError, decoding, listed
from mercer.data.files.banded import in_place
from mercer.data.files.extra import extra
from mercer.data.files.gather import Gather, Rows, side_by_side
from mercer.data.files.groups import ArrowRows, Grouped, ParquetRows, open_batches, values
from mercer.data.files.labels import Column, identifies, is_name, is_number, joined, present
from mercer.data.files.roles import Ask, Roles, assign, only_ids
from mercer.data.files.table import Table, finished
from mercer.data.source import Source

# Bytes of the rows of a batch.
_BATCH = 2 * 2**20
# Bytes that pyarrow holds of a column of Parquet while it goes through it: a page as it is
# stored, unpacked, its dictionary, and what its allocator keeps.
_COLUMN = 4 * 2**20

Batches = Callable[[list[str], int], Iterator[Any]]
"""Record batches of the named columns, of at most so many rows where the format can."""


def read_parquet(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read a Parquet file, or a folder of them."""
    with decoding(ask.path, "Parquet"):
        parts = _parquet(files(path, ".parquet"))
        return _read(parts, ask, _Share(parts, tick))


def read_arrow(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read an Arrow file, a Feather file (version 2), a file of an Arrow stream; or a folder."""
    with decoding(ask.path, "Arrow"):
        return _read(_arrow(files(path, ".arrow", ".feather")), ask, tick)


def files(path: Path, *suffixes: str) -> list[Path]:
    """Return the files of a table in the order of their names: in a folder, of these suffixes.

    Those whose names begin with a dot or an underscore are notes of who wrote the folder.
    """
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        and (not suffixes or file.suffix.lower() in suffixes)
        and file.is_file()
    )


@dataclass(frozen=True)
class Parts:
    """Files of one table.

    Attributes
    ----------
    paths : list of Path
        In order.
    schemas : list
        Of every file.
    batches : callable
        What goes through all of them.
    rows : int or None
        Their number, where the files say so at once.
    place : callable
        Rows of named columns read where they lie, or None where that is not possible.
    """

    paths: list[Path]
    schemas: list[Any]
    batches: Batches
    rows: int | None
    place: Callable[[list[str], Any, Ask], Grouped | None]

    def check(self, ask: Ask) -> None:
        """Refuse files that are not parts of one table."""
        if not self.paths:
            raise FileError(f"{ask.path} is a folder without files.")
        first = self.schemas[0]
        for path, schema in zip(self.paths, self.schemas, strict=True):
            odd = sorted(set(first.names) ^ set(schema.names))
            if odd:
                raise FileError(
                    f"{ask.path}: {self.paths[0].name} and {path.name} have other columns "
                    f"({listed(odd)}). Files of one table have the same."
                )
            for name in first.names:
                kinds = first.field(name).type, schema.field(name).type
                if kinds[0] != kinds[1] and not all(map(is_number, kinds)):
                    raise FileError(
                        f"{ask.path}: column {name!r} is of type {kinds[0]} in "
                        f"{self.paths[0].name}, and {kinds[1]} in {path.name}."
                    )


class _Share:
    """Ticks bytes of files whose rows, and not their bytes, go by; more than once they count 0."""

    def __init__(self, parts: Parts, tick: Callable[[int], None]) -> None:
        self.bytes = sum(path.stat().st_size for path in parts.paths)
        self.rows, self.tick = max(1, parts.rows or 0), tick
        self.seen = 0

    def __call__(self, rows: int) -> None:
        before = self._bytes()
        self.seen += rows
        self.tick(self._bytes() - before)

    def _bytes(self) -> int:
        return self.bytes * min(self.seen, self.rows) // self.rows


def _parquet(paths: list[Path]) -> Parts:
    parquet = extra("pyarrow.parquet", "Parquet")
    metadata, schemas = [], []
    for path in paths:
        with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            metadata.append(file.metadata)
            schemas.append(file.schema_arrow)

    def batches(names: list[str], rows: int) -> Iterator[Any]:
        for path, known in zip(paths, metadata, strict=True):
            # Pages are read through a buffer: a row group may be as large as the file.
            with (
                path.open("rb") as opened,
                parquet.ParquetFile(opened, metadata=known, buffer_size=2**16) as file,
            ):
                yield from file.iter_batches(
                    batch_size=rows, columns=names, use_threads=threads.workers() > 1
                )

    def place(names: list[str], dtype: Any, ask: Ask) -> Grouped:
        groups = [[m.row_group(i).num_rows for i in range(m.num_row_groups)] for m in metadata]
        found = ParquetRows(paths, groups, names, dtype, ask)
        found.metadata = metadata
        first = next((m for m in metadata if m.num_row_groups), None)
        found.slow = first is not None and first.row_group(0).column(0).compression == "GZIP"
        return found

    return Parts(paths, schemas, batches, sum(m.num_rows for m in metadata), place)


def _arrow(paths: list[Path]) -> Parts:
    every = [_one_arrow(path) for path in paths]

    def batches(names: list[str], rows: int) -> Iterator[Any]:
        for _, _, own in every:
            yield from own(names, rows)

    def place(names: list[str], dtype: Any, ask: Ask) -> Grouped | None:
        size = sum(path.stat().st_size for path in paths)
        if any(stream for _, stream, _ in every) or size <= get_config().budget // 32:
            return None  # what is gathered while they are few, and streams, which cannot be cut
        groups = []
        for path in paths:
            with ExitStack() as stack:  # a batch says its length with any of its columns
                opened = open_batches(path, names[:1], stack)
                count = range(opened.num_record_batches)
                groups.append([opened.get_batch(i).num_rows for i in count])
        return ArrowRows(paths, groups, names, dtype, ask)

    return Parts(paths, [schema for schema, _, _ in every], batches, None, place)


def _one_arrow(path: Path) -> tuple[Any, bool, Batches]:
    """Return the schema of a file, whether it is a stream, and what goes through it."""
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

    return schema, stream, batches


def _slices(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    for batch in batches:
        # Offsets that point outside their buffer would be followed: check before use.
        batch.validate(full=True)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _read(parts: Parts, ask: Ask, tick: Any) -> Table:
    parts.check(ask)
    schema = parts.schemas[0]
    names = [str(name) for name in schema.names]
    if not names:
        raise FileError(f"{ask.path} has no columns.")
    roles = assign(names, ask, skipped=_index(schema))
    _check_types(schema, roles, ask)
    ids = _identifiers(parts, roles)
    numbers = [i for i in roles.features if is_number(schema.field(i).type) and i not in ids]
    if not numbers:
        there = f"Its columns are {listed(names)}.{only_ids(ids, names, ask)}"
        raise FileError(f"{ask.path} has no column of numbers. {there}")
    single = all(str(s.field(names[i]).type) == "float" for s in parts.schemas for i in numbers)
    dtype = np.dtype(np.float32 if single else np.float64)
    own = roles.id if roles.id is not None else next(iter(ids), None)
    shown = dict.fromkeys([*_some(own), *roles.beside])
    beside: dict[int, list[Any]] = {i: [] for i in (*shown, *_some(roles.weights))}
    placed = _place(parts, [names[i] for i in numbers], dtype, ask)
    source: Source
    if placed is None:
        source, missing = _gather(parts, names, numbers, dtype, beside, ask, tick)
    else:
        source, missing = placed, None
        if beside:
            _pass(parts.batches, names, [], None, beside, tick)
    weights = None
    if roles.weights is not None:
        weights = np.concatenate([values(part, np.float64) for part in beside[roles.weights]])
    dropped = [i for i in range(len(names)) if i not in {*numbers, *beside}]
    return finished(
        ask,
        source,
        [names[i] for i in numbers],
        missing,
        beside={names[i]: Column.of_arrow(beside[i]) for i in shown},
        weights=weights,
        dropped=[names[i] for i in dropped],
        reasons={names[i]: why for i in dropped if (why := _reason(i, schema, roles, ids, ask))},
        id=None if own is None else names[own],
        flags=[names[i] for i in numbers if str(schema.field(i).type) == "bool"],
    )


def _index(schema: Any) -> list[int]:
    """Return the columns that were the index of a pandas DataFrame."""
    found = [i for i, name in enumerate(schema.names) if name.startswith("__index_level_")]
    about = (schema.metadata or {}).get(b"pandas")
    try:
        known = json.loads(about)["index_columns"] if about else []
    except (ValueError, KeyError, TypeError):
        known = []
    named = [name for name in known if isinstance(name, str)] if isinstance(known, list) else []
    found += [schema.get_field_index(name) for name in named]
    return sorted({i for i in found if i >= 0})


def _identifiers(parts: Parts, roles: Roles) -> list[int]:
    """Return the candidates that name rows: first those that name the most.

    Of the file, only their columns are read.
    """
    schema = parts.schemas[0]
    kept: dict[int, list[Any]] = {i: [] for i in roles.candidates if is_name(schema.field(i).type)}
    if not kept:
        return []
    _pass(parts.batches, roles.names, [], None, kept, lambda _: None)
    known = {i: present(joined(chunks)) for i, chunks in kept.items() if chunks}
    found = [i for i in known if len(known[i]) and identifies(known[i], whole=False)]
    return sorted(found, key=lambda i: -len(known[i]))


def _reason(i: int, schema: Any, roles: Roles, ids: Sequence[int], ask: Ask) -> str | None:
    """Say why a column is left out; None where the user wanted that."""
    kind = schema.field(i).type
    if i in ids and i in roles.features:
        return "identifier"
    if i not in roles.features:
        return "an index" if i in roles.candidates and ask.columns is None else None
    text = is_name(kind) or str(kind) in ("string", "large_string")
    return "text" if text else "dates" if str(kind).startswith(("date", "time")) else str(kind)


def _place(parts: Parts, names: list[str], dtype: np.dtype[Any], ask: Ask) -> Grouped | None:
    """Return rows where they lie, if they are too many for memory and their groups are not."""
    budget = get_config().budget
    if parts.rows is not None and parts.rows * len(names) * dtype.itemsize <= budget // 4:
        return None
    found = parts.place(names, dtype, ask)
    if found is None or found.shape[0] * len(names) * dtype.itemsize <= budget // 4:
        return None
    return found if in_place(found) else None


def _gather(
    parts: Parts,
    names: Sequence[str],
    numbers: Sequence[int],
    dtype: Any,
    beside: dict[int, list[Any]],
    ask: Ask,
    tick: Any,
) -> tuple[Source, Any]:
    """Return rows in memory or in a temporary file, and what is missing of their columns."""
    # A wide Parquet file is gone through several times, some columns at a time.
    step = len(numbers) if parts.rows is None else max(8, get_config().budget // 4 // _COLUMN)
    groups = [numbers[at : at + step] for at in range(0, len(numbers), step)]
    gathers = [Gather(len(group), dtype, share=len(groups)) for group in groups]
    pool = extra("pyarrow", "Parquet").default_memory_pool()
    try:
        for group, gather in zip(groups, gathers, strict=True):
            own = beside if group is groups[0] else {}
            _pass(parts.batches, names, group, gather, own, tick)
            pool.release_unused()  # which keeps more than it was ever asked for
        if not gathers[0].count:
            raise FileError(f"{ask.path} has columns, and no rows.")
        source = side_by_side([gather.finish(range(gather.width)) for gather in gathers])
    finally:
        for gather in gathers:
            gather.close()
        pool.release_unused()
    return source, np.concatenate([gather.missing for gather in gathers])


def _pass(
    batches: Batches,
    names: Sequence[str],
    group: Sequence[int],
    gather: Gather | None,
    beside: dict[int, list[Any]],
    tick: Any,
) -> None:
    """Go through all batches once: the columns of a group, and those beside the rows."""
    wanted = list(dict.fromkeys([*group, *beside]))
    for batch in batches([names[i] for i in wanted], _length(wanted)):
        if gather is not None:
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
        rows[:, j] = values(_one(batch, name), dtype)
    return rows


def _one(batch: Any, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(name))


def _some(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)
