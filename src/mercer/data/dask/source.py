"""Rows of Dask arrays and DataFrames as a source."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import dask.array
import numpy as np

from mercer.arrays import Array, like, numpy_dtype, to_numpy, working_dtype
from mercer.config import get_config
from mercer.data.dask.chunks import Chunks, join_small, pair_sums
from mercer.data.dask.scheduler import compute, constant, no_size_warning
from mercer.data.fold import Block
from mercer.data.in_memory import real_matrix_dtype
from mercer.data.remote import PairTask
from mercer.data.source import BLOCK_BYTES, Source
from mercer.messages import warn

# Pairs of a chunk that are summed at a time.
_FAN = 16


# Chunks whose rows are mixed, and parts that chunks are cut into, at most.
_GROUP, _PARTS = 64, 8192


class DaskSource(Source):
    """Rows of a Dask array or DataFrame.

    Every pass computes the chunks again; `persist` keeps them on the workers.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        Rows of numbers. Chunks that are split along columns are rechunked, with a warning. Chunks
        of unknown sizes are computed once to count their rows.
    first : int
        Number of the first row, if the rows are a part of others.

    Examples
    --------
    >>> import dask.array
    >>> from mercer import PCA
    >>> X = dask.array.random.default_rng(0).normal(size=(1000, 5), chunks=(300, 5))
    >>> PCA(2).fit(X).transform(X)
    dask.array<mercer..., shape=(1000, 2), dtype=float64, chunksize=(300, 2), ...>
    """

    parallel = False  # the scheduler has its own threads or processes

    def __init__(self, collection: Any, first: int = 0) -> None:
        array, self.names = _array(collection)
        # On a worker `remote` is None, and the chunks read the rows that the task received.
        self.chunks = self.remote = Chunks(_whole_rows(array), first)
        self.origin = first
        rows, width = self.chunks.array.shape
        self.shape, self.dtype = (int(rows), int(width)), working_dtype(numpy_dtype(array))

    def read(self, start: int, stop: int) -> Any:
        return self.chunks.read(start, stop).astype(self.dtype, copy=False)


def as_dask_array(rows: Source, template: Any = None) -> Any:
    """Return rows as a Dask array; remote rows are computed when the array is.

    Local rows get the chunks of `template`, a source or a Dask array, if their sizes are known.
    """
    if rows.remote is not None:
        return rows.remote.as_array(rows)
    if isinstance(template, Source):
        template = getattr(template.remote, "array", None)
    sizes = getattr(template, "chunks", ((),))[0]
    known = sizes and not any(math.isnan(size) for size in sizes)
    return dask.array.from_array(rows.collect(), chunks=(sizes if known else "auto", -1))


def shuffle_chunks(source: Source, rows: int, rng: np.random.Generator) -> Source:
    """Return remote rows in chunks of about `rows` rows, each with rows of many chunks at random.

    Chunks are dealt in groups, and every new chunk takes an equal part of each chunk of its group.
    """
    assert source.remote is not None
    array, n = source.remote.as_array(source), source.shape[0]
    edges = np.cumsum([0, *array.chunks[0]])
    size = int(min(_GROUP, max(2, _PARTS * rows // n)))
    parts, sizes, order = [], [], []
    chunks = rng.permutation(np.flatnonzero(np.diff(edges)))
    for group in np.array_split(chunks, max(1, round(len(chunks) / size))):
        numbers = [rng.permutation(np.arange(edges[i], edges[i + 1])) for i in group]
        count = max(1, round(sum(map(len, numbers)) / rows))
        for dealt in zip(*(np.array_split(each, count) for each in numbers), strict=True):
            for i, at in zip(group, dealt, strict=True):
                parts.append(array.blocks[int(i)][at - edges[i]])
            order += dealt
            sizes.append(sum(map(len, dealt)))
    other = DaskSource(dask.array.concatenate(parts).rechunk((tuple(filter(None, sizes)), -1)))
    weights = source.weights
    return other if weights is None else other.weighted(weights[np.concatenate(order)])


def sum_over_points(
    source: Source,
    points: Any,
    make: PairTask,
    operand: Callable[[int, int], Any],
    n_sums: int,
    after: Callable[[Block], Array],
    width: int,
) -> Source:
    """Return `after` of the `n_sums` sums of every row over remote points; computed when read.

    `make` makes the fold of a pair of chunks. The operand of points is `operand(start, stop)`, and
    that of rows their start and stop. `after` returns `width` columns for a block.
    """
    dtype, over = source.dtype, DaskSource(points)

    def sums(view: Source, chunks: Chunks) -> list[Any]:
        rows = [(x, x.span) for x in chunks.nonempty]
        joined = join_small(over.chunks, over.row_bytes)
        others = [(y, constant(operand(*y.span))) for y in joined]
        tasks = constant(chunks.task(view)), constant(over.chunks.task(over, make))
        return [each["result"] for each in pair_sums(rows, others, *tasks, fan=_FAN)[0].values()]

    def local_sums(block: Block) -> Array:
        rows = np.ascontiguousarray(to_numpy(block.rows))
        cut = max(1, BLOCK_BYTES // max(1, rows.shape[1] * rows.itemsize))
        view = DaskSource(dask.array.from_array(rows, chunks=(cut, -1), name=False), block.start)
        parts = compute(sums(view, view.chunks))
        result = after(Block(block.start, np.concatenate(parts), None))
        return like(result, source.reference, dtype)

    if source.remote is None:
        local = source.map(local_sums, width, dtype, 2 * n_sums * dtype.itemsize)
        # Every block computes the points again, unless they are persisted.
        local.block_bytes, local.parallel = max(BLOCK_BYTES, get_config().budget // 8), False
        return local
    arrays = [
        dask.array.from_delayed(part, (x.length, n_sums), dtype)
        for part, x in zip(sums(source, source.remote), source.remote.nonempty, strict=True)
    ]
    array = dask.array.concatenate(arrays or [dask.array.zeros((0, n_sums), dtype)])
    result = DaskSource(array, source.remote.first).weighted(source.weights)
    return result.map(after, width, dtype)


def _array(collection: Any) -> tuple[Any, Sequence[str] | None]:
    """Return the Dask array of a collection, and the names of its columns."""
    names = None
    if hasattr(type(collection), "to_dask_array") and collection.ndim == 2:
        columns = list(collection.columns)
        for name, dtype in zip(columns, collection.dtypes, strict=True):
            if getattr(dtype, "kind", "O") not in "fiub":
                raise ValueError(
                    f"Column {name!r} of X has dtype {dtype}, which is not numeric. Encode it as "
                    f"numbers, or drop it."
                )
        names = columns if all(isinstance(name, str) for name in columns) else None
        collection = _numeric(collection).to_dask_array(lengths=True)
    if not isinstance(collection, dask.array.Array):
        raise TypeError(
            f"X is a {type(collection).__module__}.{type(collection).__name__}. Only Dask "
            f"arrays and Dask DataFrames are supported."
        )
    meta = collection._meta
    if hasattr(meta, "todense"):
        raise TypeError(
            f"The chunks of X are sparse ({type(meta).__name__}), but must be dense. Use "
            f"X.map_blocks(lambda b: b.toarray())."
        )
    real_matrix_dtype(collection)
    return collection, names


def _numeric(table: Any) -> Any:
    """Return a table in dtypes whose rows are no arrays of objects; missing values are NaN.

    The dtype is that of the same table in memory, where pandas' own dtypes become float64.
    """
    dtypes = list(table.dtypes)
    if not all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return table.astype("float64")
    if len({dtype.kind == "b" for dtype in dtypes}) > 1:
        return table.astype(np.result_type(*dtypes))
    return table


def _whole_rows(array: Any) -> Any:
    """Return the array in chunks of known sizes that hold whole rows."""
    if any(math.isnan(size) for sizes in array.chunks for size in sizes):
        array = array.copy()  # sizes are set in place, and X is the user's
        with no_size_warning():
            array.compute_chunk_sizes()
    if len(array.chunks[1]) > 1:
        warn(
            f"X is split along its columns into {len(array.chunks[1])} chunks, but passes need "
            f"whole rows: every pass rechunks X and moves data between workers. "
            f"Pass X.rechunk({{0: 'auto', 1: -1}}).persist() to move it only once."
        )
        array = array.rechunk({0: "auto", 1: -1})
    return array
