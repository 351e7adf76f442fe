"""Data frames of pandas, polars and cuDF as rows of numbers."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from mercer.data.errors import not_numeric
from mercer.data.in_memory import ArraySource, SparseSource
from mercer.data.source import Source

# What pandas infers of columns that can be converted to numbers without a choice, and the rest.
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")
_KINDS = {
    **dict.fromkeys(["string", "bytes"], "text"),
    "categorical": "categories",
    **dict.fromkeys(["datetime64", "datetime", "date", "period"], "dates"),
    **dict.fromkeys(["timedelta64", "timedelta"], "durations"),
}

# Columns that a call lists by name, at most.
_LISTED = 10


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame in memory."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy") and not hasattr(X, "__dask_graph__")


def frame_source(X: Any) -> Source:
    """Return the rows of a data frame, with its names; raise unless every column is numbers.

    NaN stands for missing values. Rows are copied once, or not at all if the frame stores them as
    one array.
    """
    if hasattr(X, "to_cupy"):
        source = _of_cudf(X)
    elif hasattr(X, "iloc"):
        source = _of_pandas(X)
    elif type(X).__module__.startswith("polars"):
        source = _of_polars(X)
    else:
        source = ArraySource(X.to_numpy())
    names = list(X.columns)
    source.names = names if all(isinstance(name, str) for name in names) else None
    source.extra_columns = index_columns(X)
    source.id = next(iter(source.extra_columns)) if len(source.extra_columns) == 1 else None
    return source


def index_columns(X: Any) -> dict[str, Any]:
    """Return the levels of the index of a data frame, unless they are row numbers."""
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "names"):
        return {}
    if getattr(index, "step", 0) == 1 and index.start == 0 and index.name is None:
        return {}
    default = "index" if len(index.names) == 1 else "level{}"
    return {
        str(name or default.format(i)): index.get_level_values(i).to_numpy()
        for i, name in enumerate(index.names)
    }


def _refuse(kinds: dict[Any, str], drop: str, numeric: str) -> ValueError:
    """Return the error about columns that are not numbers, with the call that leaves them out."""
    call = drop.format(list(kinds)) if len(kinds) <= _LISTED else numeric
    text = not_numeric("X", {str(name): kind for name, kind in kinds.items()})
    return ValueError(f"{text} Encode them as numbers, or leave them out: {call}.")


def _of_pandas(X: Any) -> Source:
    dtypes = list(X.dtypes)
    if dtypes and all(type(dtype).__name__ == "SparseDtype" for dtype in dtypes):
        return SparseSource(X.sparse.to_coo())
    odd = [j for j, dtype in enumerate(dtypes) if getattr(dtype, "kind", "O") not in "fiub"]
    kinds = {X.columns[j]: kind for j in odd if (kind := _pandas_kind(X.iloc[:, j]))}
    if kinds:
        raise _refuse(kinds, "X.drop(columns={})", "X.select_dtypes(['number', 'bool'])")
    if dtypes and not odd and all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return ArraySource(X.to_numpy(dtype=np.result_type(*set(dtypes))))
    rows = np.empty(X.shape, order="F")
    for j in range(X.shape[1]):
        rows[:, j] = X.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
    return ArraySource(rows)


def _pandas_kind(column: Any) -> str:
    """Return what a column holds; "" if it is numbers, such as objects that are integers."""
    import pandas

    kind = pandas.api.types.infer_dtype(column, skipna=True)
    if kind in _NUMBERS:
        return ""
    missing = column.isna().to_numpy()
    entries = (i for i, x in enumerate(column) if not (missing[i] or isinstance(x, Number)))
    row = next(entries, None)
    kind = _KINDS.get(kind, "mixed" if column.dtype == object else str(column.dtype))
    return kind if row is None else f"{kind}, {column.iloc[row]!r} in row {row}"


def _of_polars(X: Any) -> Source:
    from mercer.data.files.table import column_kind

    kinds = {name: kind for name, dtype in X.schema.items() if (kind := column_kind(dtype))}
    if kinds:
        raise _refuse(kinds, "X.drop({})", "X.select(polars.selectors.numeric())")
    rows = X.to_numpy()
    return ArraySource(rows.astype(np.float64) if rows.dtype == object else rows)


def _of_cudf(X: Any) -> Source:
    odd = {name: dtype for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") in "OMm"}
    if odd:
        kinds = {name: str(dtype) for name, dtype in odd.items()}
        raise _refuse(kinds, "X.drop(columns={})", "X.select_dtypes(['number', 'bool'])")
    return ArraySource(X.to_cupy(dtype=None, na_value=np.nan))
