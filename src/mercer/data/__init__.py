"""Sources of rows: in memory, in files, or on a cluster."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer.arrays import is_dask, is_foreign
from mercer.data.checks import (
    NonFiniteSearch,
    check_weights,
    fingerprint,
    joint_fingerprint,
    not_finite,
    require_finite_entries,
    require_finite_rows,
    require_finite_sums,
    require_present,
)
from mercer.data.derived import PastRows, ScaledSource, ShiftedSource, count_stored
from mercer.data.device import (
    DeviceRows,
    array_source_like,
    cache_on_device,
    device_context,
    to_configured_device,
    to_output_device,
)
from mercer.data.fold import Block, Collect, FeatureMap, Fold
from mercer.data.in_memory import ArraySource, SparseSource, StringSource, is_lazy, materialize
from mercer.data.npy import NpySource, write_npy
from mercer.data.source import Mapped, Source

__all__ = [
    "ArraySource",
    "Block",
    "Collect",
    "DeviceRows",
    "FeatureMap",
    "Fold",
    "Mapped",
    "NonFiniteSearch",
    "NpySource",
    "PastRows",
    "ScaledSource",
    "ShiftedSource",
    "Source",
    "SparseSource",
    "StringSource",
    "array_source_like",
    "as_source",
    "cache_on_device",
    "check_weights",
    "count_stored",
    "device_context",
    "fingerprint",
    "is_lazy",
    "joint_fingerprint",
    "materialize",
    "not_finite",
    "require_finite_entries",
    "require_finite_rows",
    "require_finite_sums",
    "require_present",
    "to_configured_device",
    "to_dask",
    "to_output_device",
    "write_npy",
]


def as_source(X: Any) -> Source:
    """Return rows of any kind as a source.

    Parameters
    ----------
    X : ndarray, sparse matrix, DataFrame, array of another library, path or Source
        Rows of numbers: a NumPy array, a SciPy sparse matrix or array, a pandas or
        polars DataFrame or LazyFrame, a pyarrow table, dataset or reader, an AnnData object, an
        array that follows the array API standard, a Dask array or DataFrame, the path of a file
        that `mercer.data.files.read_table` reads, or a `Source`. A list or array of `str`
        gives rows of strings; a lone `str` is a path.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data import as_source
    >>> as_source(np.ones((3, 2))).shape
    (3, 2)
    """
    X = materialize(X)
    if isinstance(X, Source):
        return X
    require_present(X)
    if isinstance(X, (str, os.PathLike)):
        from mercer.data.files import read_source

        return read_source(X)
    if is_dask(X):
        from mercer.data.dask import DaskSource

        return DaskSource(X)
    if hasattr(X, "tocsr"):
        return SparseSource(X)
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return ArraySource(X.to_numpy(), names=[str(name) for name in X.columns])
    if hasattr(X, "to_numpy"):  # a pandas or polars Series, or an Index
        X = X.to_numpy()
    if is_foreign(X):
        return ArraySource(X)
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.ndim == 1):
        strings = isinstance(X, np.ndarray) and X.dtype.kind in "UTS"
        if strings or (len(X) and isinstance(X[0], (str, bytes))):  # the first entry decides
            return StringSource(X)
    return ArraySource(np.asarray(X))


def to_dask(rows: Source, like: Any = None) -> Any:
    """Return rows as a Dask array; remote rows are computed when the array is.

    Rows in memory get the chunks of `like`, a source or another Dask array.
    """
    from mercer.data.dask import as_dask_array

    return as_dask_array(rows, like)
