"""Rows in objects of other libraries that are neither arrays nor data frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import is_dask
from mercer.data.errors import format_names
from mercer.data.in_memory import ArraySource, SparseSource
from mercer.data.source import Source


def is_lazy(X: Any) -> bool:
    """Return whether `materialize` would read or unwrap X; reads nothing."""
    return _reader(X) is not None


def is_stream(X: Any) -> bool:
    """Return whether X is a stream of tables, such as an Arrow stream."""
    return _reader(X) is _stream


def materialize(X: Any) -> Any:
    """Return the rows of an object of another library as a source; everything else as it is."""
    if f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}" == "mercer.Table":
        raise TypeError("X is a Table, as returned by read_table. Pass table.source.")
    reader = _reader(X)
    return X if reader is None else reader(X)


def _reader(X: Any) -> Callable[[Any], Source] | None:
    """Return the function that reads an object; None if it is none of these."""
    for base in type(X).__mro__:
        reader = READERS.get(f"{base.__module__.partition('.')[0]}.{base.__name__}")
        if reader is not None:
            return reader
    if hasattr(X, "__arrow_c_stream__") and not (hasattr(X, "to_numpy") or is_dask(X)):
        return _stream
    return None


def _anndata(X: Any) -> Source:
    """Return X with the names of var as columns and those of obs beside the rows."""
    if X.X is None or getattr(X, "isbacked", False):
        raise ValueError(
            "X is an AnnData object whose matrix X is not in memory. Pass the path of its .h5ad "
            "file, which is read block by block, or data.to_memory()."
        )
    names = [str(name) for name in X.var_names]
    sparse = hasattr(X.X, "tocsr")
    source = SparseSource(X.X.tocsr(), names) if sparse else ArraySource(np.asarray(X.X), names)
    source.id = "obs_names"
    source.extra_columns = {source.id: np.asarray(X.obs_names, dtype=object)}
    return source


def _data_array(X: Any) -> Source:
    """Return a DataArray of two dimensions: samples, and columns with the names they have."""
    from mercer.data.xarray import Stack

    if X.ndim != 2:
        dims = tuple(map(str, X.dims))
        raise ValueError(
            f"X is a DataArray with the dimensions {dims}. Pass mercer.from_xarray(X, "
            f"dim={dims[0] if dims else 'time'!r}), where dim is the dimension of the samples."
        )
    stack = Stack(X, X.dims[0])
    source = stack.source(np.arange(X.shape[1]))
    if X.dims[1] not in X.coords:
        source.names = None
    return source


def _variables(X: Any) -> Source:
    """Refuse a Dataset, whose samples are not known."""
    raise ValueError(
        f"X is a Dataset of xarray with the dimensions {tuple(map(str, X.sizes))}. Pass "
        f"mercer.from_xarray(X, dim='time'), where dim is the dimension of the samples."
    )


def _stream(X: Any) -> Source:
    from mercer.data.files.streams import read_object

    return read_object(X)


def _splits(X: Any) -> Source:
    """Refuse a data set of several splits."""
    names = format_names(map(str, X))
    raise TypeError(f"X is a {type(X).__name__} with the splits {names}. Pass one of them.")


READERS: dict[str, Callable[[Any], Source]] = {
    "anndata.AnnData": _anndata,
    "xarray.DataArray": _data_array,
    "xarray.Dataset": _variables,
    **dict.fromkeys(["polars.LazyFrame", "pyarrow.Dataset", "pyarrow.Scanner"], _stream),
    **dict.fromkeys(["datasets.Dataset", "datasets.IterableDataset"], _stream),
    **dict.fromkeys(["datasets.DatasetDict", "datasets.IterableDatasetDict"], _splits),
}
"""Functions that read objects, by the library and the name of a class."""
