"""Rows, wherever they live."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer.arrays import is_dask, is_foreign
from mercer.data.array import ArraySource
from mercer.data.containers import collected, is_lazy
from mercer.data.device import (
    Resident,
    at_home,
    at_work,
    in_place_of,
    placed,
    resident,
)
from mercer.data.entrywise import Levelled, ScaledSource, Stored
from mercer.data.feature_map import FeatureMap
from mercer.data.fingerprint import fingerprint, joint_fingerprint
from mercer.data.finite import (
    Search,
    not_finite,
    require_finite_entries,
    require_finite_rows,
    require_present,
)
from mercer.data.fold import Block, Collect, Fold
from mercer.data.npy import NpySource, write_npy
from mercer.data.source import Mapped, Source
from mercer.data.sparse import SparseSource
from mercer.data.stream import Seen
from mercer.data.strings import StringSource
from mercer.data.weights import check_weights

__all__ = [
    "ArraySource",
    "Block",
    "Collect",
    "FeatureMap",
    "Fold",
    "Levelled",
    "Mapped",
    "NpySource",
    "Resident",
    "ScaledSource",
    "Search",
    "Seen",
    "Source",
    "SparseSource",
    "Stored",
    "StringSource",
    "as_source",
    "at_home",
    "at_work",
    "check_weights",
    "collected",
    "fingerprint",
    "in_place_of",
    "is_lazy",
    "joint_fingerprint",
    "lazily",
    "not_finite",
    "placed",
    "require_finite_entries",
    "require_finite_rows",
    "require_present",
    "resident",
    "write_npy",
]


def as_source(X: Any) -> Source:
    """Make a source of rows of what a user has.

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
    X = collected(X)
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
    if _are_strings(X):
        return StringSource(X)
    return ArraySource(np.asarray(X))


def lazily(rows: Source, like: Any = None) -> Any:
    """Return rows as a Dask array, which computes them when it is computed.

    Rows that are in memory are cut as those of `like`, a source or another Dask array, are.

    Examples
    --------
    >>> import dask.array
    >>> from mercer.data import as_source, lazily
    >>> rows = as_source(dask.array.ones((4, 2), chunks=(2, 2)))
    >>> lazily(rows.map(lambda block: 2 * block.rows, 2)).sum().compute()
    np.float64(16.0)
    """
    from mercer.data.dask import lazy

    return lazy(rows, like)


def _are_strings(X: Any) -> bool:
    """Tell whether X is a list or an array of strings: the first entry says."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind in "UTS" or (len(X) > 0 and _is_text(X[0])))
    return isinstance(X, (list, tuple)) and len(X) > 0 and _is_text(X[0])


def _is_text(entry: Any) -> bool:
    return isinstance(entry, (str, bytes))
