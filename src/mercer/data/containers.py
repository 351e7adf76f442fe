"""Rows in objects of other libraries that are neither arrays nor data frames."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mercer.arrays import is_dask

_STREAM = "files.streams.read_stream"
READERS = {
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


def is_anndata(X: Any) -> bool:
    """Return whether X is an AnnData object; imports nothing, and reads no matrix of it."""
    named = any(base.__name__ == "AnnData" for base in type(X).__mro__)
    return named and hasattr(X, "obs_names") and hasattr(X, "var_names")


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
    if is_anndata(X):
        return "anndata.from_anndata"
    for base in type(X).__mro__:
        if _name(base) in READERS:
            return READERS[_name(base)]
    other = hasattr(X, "to_numpy") or is_dask(X)  # data frames and their columns
    return _STREAM if hasattr(X, "__arrow_c_stream__") and not other else ""


def _name(base: type) -> str:
    return f"{base.__module__.partition('.')[0]}.{base.__name__}"
