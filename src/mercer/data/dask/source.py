"""Rows of Dask arrays and DataFrames as a source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dask.array
import numpy as np

from mercer.arrays import numpy_dtype, working_dtype
from mercer.data.dask.chunks import Chunks
from mercer.data.dask.tasks import quiet
from mercer.data.source import Source
from mercer.messages import warn


class DaskSource(Source):
    """Rows of a Dask array or DataFrame.

    Every pass computes the chunks anew unless they are kept: `persist` keeps them on the workers.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        Rows and columns, of numbers. Chunks split along columns are joined, with a warning;
        chunks of unknown sizes are counted first, which computes them.
    first : int
        Number of the first row, where they are a part of others.

    Examples
    --------
    >>> import dask.array
    >>> from mercer import PCA
    >>> X = dask.array.random.default_rng(0).normal(size=(1000, 5), chunks=(300, 5))
    >>> PCA(2).fit(X).transform(X)
    dask.array<mercer..., shape=(1000, 2), dtype=float64, chunksize=(300, 2), ...>
    """

    parallel = False  # its scheduler has threads, or processes, of its own

    def __init__(self, collection: Any, first: int = 0) -> None:
        array, self.names = _array(collection)
        self.chunks = Chunks(_whole_rows(array), first)
        self.elsewhere, self.origin = self.chunks, first
        self.shape = (int(self.chunks.array.shape[0]), int(self.chunks.array.shape[1]))
        self.dtype = working_dtype(numpy_dtype(array))

    def read(self, start: int, stop: int) -> Any:
        return self.chunks.read(start, stop).astype(self.dtype, copy=False)


def lazy(rows: Source, like: Any = None) -> Any:
    """Return rows as a Dask array: computed when it is, where they come from a Dask collection.

    Others are cut as those of `like` are, a source or a Dask array, where that is known.
    """
    if isinstance(rows.elsewhere, Chunks):
        return rows.elsewhere.lazy(rows)
    if isinstance(like, Source):
        sizes: tuple[float, ...] = ()
        if isinstance(like.elsewhere, Chunks):
            sizes = tuple(size for _, size in like.elsewhere.places)
    else:
        sizes = getattr(like, "chunks", ((),))[0]
    cut = sizes if sizes and all(_known(size) for size in sizes) else "auto"
    return dask.array.from_array(rows.collect(), chunks=(cut, -1))


def _array(collection: Any) -> tuple[Any, Sequence[str] | None]:
    """Return the Dask array of a collection, and the names of its columns."""
    names = None
    if hasattr(type(collection), "to_dask_array") and collection.ndim == 2:
        columns = list(collection.columns)
        for name, kind in zip(columns, collection.dtypes, strict=True):
            if getattr(kind, "kind", "O") not in "fiub":
                raise ValueError(
                    f"Column {name!r} of X has dtype {kind}, which is not of numbers. Encode it as "
                    f"numbers, or drop it."
                )
        names = columns if all(isinstance(name, str) for name in columns) else None
        collection = _of_one_kind(collection).to_dask_array(lengths=True)
    if not isinstance(collection, dask.array.Array):
        raise TypeError(
            f"X is a {type(collection).__module__}.{type(collection).__name__}; of Dask's "
            f"collections arrays and DataFrames are read."
        )
    return _checked(collection), names


def _of_one_kind(table: Any) -> Any:
    """Return a table of numbers whose rows are not arrays of objects; what is missing is NaN.

    In the precision that the same table has in memory: pandas' own dtypes are float64 there.
    """
    kinds = list(table.dtypes)
    if not all(isinstance(kind, np.dtype) for kind in kinds):
        return table.astype("float64")
    if len({kind.kind == "b" for kind in kinds}) > 1:
        return table.astype(np.result_type(*kinds))
    return table


def _checked(array: Any) -> Any:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: shape {tuple(array.shape)}. "
            f"Reshape it to rows and columns."
        )
    kind = numpy_dtype(array).kind
    if kind not in "fiub":
        what = "Complex data not supported" if kind == "c" else "Not numbers"
        raise ValueError(f"{what}: the Dask array has dtype {array.dtype}. Convert it to float64.")
    if hasattr(array._meta, "tocsr") or hasattr(array._meta, "todense"):
        raise TypeError(
            f"The chunks of X are sparse ({type(array._meta).__name__}), and must be dense arrays: "
            f"X.map_blocks(lambda chunk: chunk.toarray()), or X.compute() where it fits memory."
        )
    return array


def _whole_rows(array: Any) -> Any:
    """Return the array in chunks of known sizes that hold whole rows."""
    if not all(_known(size) for sizes in array.chunks for size in sizes):
        array = array.copy()  # sizes are set in place, and X is the user's
        with quiet():
            array.compute_chunk_sizes()
    if len(array.chunks[1]) > 1:
        warn(
            f"X is split along its columns into {len(array.chunks[1])} chunks, and every pass "
            f"needs whole rows: it is rechunked, which moves entries between workers every time. "
            f"Pass X.rechunk({{0: 'auto', 1: -1}}).persist() to move them once."
        )
        array = array.rechunk({0: "auto", 1: -1})
    return array


def _known(size: float) -> bool:
    return not math.isnan(size)
