"""Rows in objects of other libraries that are neither arrays nor data frames."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from mercer.arrays import is_dask
from mercer.data.in_memory import ArraySource, SparseSource
from mercer.data.source import Source

_STREAM = "files.streams.read_stream"
READERS = {
    "anndata.AnnData": "containers.read_anndata",
    "xarray.DataArray": "xarray.read_data_array",
    "xarray.Dataset": "xarray.refuse_dataset",
    "polars.LazyFrame": _STREAM,
    "pyarrow.Dataset": _STREAM,
    "pyarrow.Scanner": _STREAM,
    "datasets.Dataset": _STREAM,
    "datasets.IterableDataset": _STREAM,
    "datasets.DatasetDict": "files.streams.refuse_splits",
    "datasets.IterableDatasetDict": "files.streams.refuse_splits",
    "torch.Dataset": "datasets.read_dataset",
    "torch.DataLoader": "datasets.read_loader",
    "torch.IterableDataset": "datasets.refuse_iterable",
}
"""Functions of `mercer.data` that read objects, by the library and the name of a class."""


def is_lazy(X: Any) -> bool:
    """Return whether `materialize` would read or unwrap X; reads nothing."""
    return bool(_reader(X))


def is_stream(X: Any) -> bool:
    """Return whether X is a stream of tables, such as an Arrow stream."""
    return _reader(X) == _STREAM


def materialize(X: Any) -> Any:
    """Return the rows of an object of another library as a source; everything else as it is."""
    if _name(type(X)) == "mercer.Table":
        raise TypeError("X is a Table, as returned by read_table. Pass table.source.")
    module, _, function = _reader(X).rpartition(".")
    return getattr(import_module(f"mercer.data.{module}"), function)(X) if function else X


def _reader(X: Any) -> str:
    """Return the name of the function that reads an object; "" if it is none of these."""
    for base in type(X).__mro__:
        if _name(base) in READERS:
            return READERS[_name(base)]
    other = hasattr(X, "to_numpy") or is_dask(X)  # data frames and their columns
    return _STREAM if hasattr(X, "__arrow_c_stream__") and not other else ""


def _name(base: type) -> str:
    return f"{base.__module__.partition('.')[0]}.{base.__name__}"


def read_anndata(X: Any) -> Source:
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
