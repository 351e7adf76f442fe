"""Objects of other libraries that are not rows yet: lazy frames, readers, AnnData."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.array import ArraySource
from mercer.data.sparse import SparseSource


def collected(X: Any) -> Any:
    """Return what X stands for: a polars LazyFrame is collected, a pyarrow reader or dataset read.

    An AnnData object gives its X, with the names of var as columns and those of obs beside the
    rows. Everything else is returned as it is.
    """
    library, kind = type(X).__module__.split(".")[0], type(X).__name__
    if library == "mercer" and kind == "Table":
        raise TypeError("X is a Table, as read_table returns it. Pass its rows: table.source.")
    if library == "polars" and kind == "LazyFrame":
        return X.collect()
    if library == "pyarrow" and hasattr(X, "read_all"):
        return X.read_all()
    if library == "pyarrow" and hasattr(X, "to_table"):
        return X.to_table()
    if kind == "AnnData" and hasattr(X, "obs_names") and hasattr(X, "X"):
        return _anndata(X)
    return X


def is_lazy(X: Any) -> bool:
    """Tell whether X is an object that `collected` makes rows of; reads nothing."""
    library, kind = type(X).__module__.split(".")[0], type(X).__name__
    if library == "pyarrow":
        return hasattr(X, "read_all") or hasattr(X, "to_table")
    return (library == "polars" and kind == "LazyFrame") or kind == "AnnData"


def _anndata(data: Any) -> ArraySource | SparseSource:
    if data.X is None or getattr(data, "isbacked", False):
        raise ValueError(
            "X is an AnnData object whose matrix X is not in memory. Pass the path of its .h5ad "
            "file, which is read block by block, or data.to_memory()."
        )
    names = [str(name) for name in data.var_names]
    rows = data.X
    source = (
        SparseSource(rows.tocsr(), names)
        if hasattr(rows, "tocsr")
        else ArraySource(np.asarray(rows), names)
    )
    source.id = "obs_names"
    source.extra_columns = {source.id: np.asarray(data.obs_names, dtype=object)}
    return source
