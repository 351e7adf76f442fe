"""Sources of rows: in memory, in files, or on a cluster."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer.arrays import is_dask, is_foreign, is_sparse
from mercer.data.anndata import from_anndata as from_anndata
from mercer.data.anndata import match_names as match_names
from mercer.data.anndata import select_variables as select_variables
from mercer.data.checks import NonFiniteSearch as NonFiniteSearch
from mercer.data.checks import check_features as check_features
from mercer.data.checks import check_weights as check_weights
from mercer.data.checks import finite_rows as finite_rows
from mercer.data.checks import not_finite as not_finite
from mercer.data.checks import require_finite_entries as require_finite_entries
from mercer.data.checks import require_finite_rows as require_finite_rows
from mercer.data.checks import require_finite_sums as require_finite_sums
from mercer.data.checks import require_present as require_present
from mercer.data.containers import is_anndata as is_anndata
from mercer.data.containers import is_lazy as is_lazy
from mercer.data.containers import materialize as materialize
from mercer.data.derived import FilledSource as FilledSource
from mercer.data.derived import PastRows as PastRows
from mercer.data.derived import ScaledSource as ScaledSource
from mercer.data.derived import ShiftedSource as ShiftedSource
from mercer.data.derived import column_means as column_means
from mercer.data.derived import count_missing as count_missing
from mercer.data.derived import count_stored as count_stored
from mercer.data.device import cache_on_device as cache_on_device
from mercer.data.device import device_context as device_context
from mercer.data.device import source_like as source_like
from mercer.data.device import to_configured_device as to_configured_device
from mercer.data.device import to_output_device as to_output_device
from mercer.data.fold import Block as Block
from mercer.data.fold import Collect as Collect
from mercer.data.fold import Fold as Fold
from mercer.data.fold import SumFold as SumFold
from mercer.data.frames import frame_source as frame_source
from mercer.data.frames import index_columns as index_columns
from mercer.data.frames import is_frame as is_frame
from mercer.data.in_memory import ArraySource as ArraySource
from mercer.data.in_memory import SparseSource as SparseSource
from mercer.data.in_memory import StringSource as StringSource
from mercer.data.npy import NpySource as NpySource
from mercer.data.npy import write_npy as write_npy
from mercer.data.source import Source as Source


def as_source(X: Any) -> Source:
    """Return rows of any kind as a source.

    Parameters
    ----------
    X : ndarray, sparse matrix, DataFrame, array of another library, path or Source
        Rows of numbers. In memory: a NumPy array, a sparse matrix or array of SciPy or CuPy, a
        sparse tensor of torch, an array that follows the array API standard, a pandas, polars or
        cuDF DataFrame, an AnnData object, or an xarray DataArray of two dimensions (`from_xarray`
        takes any). Read once, into a temporary
        file if they take more than a quarter of the memory budget: any object with the Arrow C
        stream interface, such as a pyarrow table or reader, a DuckDB relation or the result of an
        ADBC driver; a polars LazyFrame, a pyarrow dataset, a data set of Hugging Face. Read when
        needed: a data set or a loader of torch, whose items, or their first entries, are the rows;
        a Dask array or DataFrame; the path of a file that `mercer.data.files.read_table` reads;
        a `Source`. Columns that are not numeric are refused by name. A list or array of `str` gives
        rows of strings; a lone `str` is a path.

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
    if is_sparse(X):
        return SparseSource(X)
    if is_frame(X):
        return frame_source(X)
    if hasattr(X, "to_numpy"):  # a pandas or polars Series, or an Index
        X = X.to_numpy()
    if is_foreign(X):
        return ArraySource(X)
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.ndim == 1):
        strings = isinstance(X, np.ndarray) and X.dtype.kind in "UTS"
        if strings or (len(X) and isinstance(X[0], (str, bytes))):  # the first entry decides
            return StringSource(X)
    return ArraySource(np.asarray(X))
