"""From what a user passes to a source of rows, or to an error that says what is wrong."""

from __future__ import annotations

import copy
import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from mercer.arrays import Array, is_dask, is_foreign, namespace, to_numpy
from mercer.data import (
    ArraySource,
    Block,
    Fold,
    Resident,
    ScaledSource,
    Source,
    SparseSource,
    StringSource,
    as_source,
    collected,
    in_place_of,
    is_lazy,
    lazily,
    placed,
    require_finite_entries,
    require_present,
)
from mercer.data.files import (
    NAMELESS,
    Request,
    id_names,
    read_source,
    split_path,
    table_advice,
)
from mercer.messages import format_parameter

# Exponents of two beyond which squares of the working precision, or sums of them, come
# near overflow or underflow.
_SAFE = {np.dtype(np.float32): 40, np.dtype(np.float64): 100}


def check_rows(estimator: Any, X: Any, *, reset: bool, least: int = 1) -> Source:
    """Return the rows of X as a source; does not look for NaN, which the first pass finds.

    Parameters
    ----------
    estimator : estimator
        Whose features X must have.
    X : array-like, sparse matrix, DataFrame, array of another library, path or Source
        Rows.
    reset : bool
        Whether X sets the features, or must have those of the fit.
    least : int
        The fewest rows that will do.
    """
    X = collected(X)
    require_present(X)
    if isinstance(X, (Source, os.PathLike, str)):
        source = as_source(X if reset else from_file(estimator, X))
        if isinstance(source, StringSource):
            request = Request(str(X), direct=not isinstance(X, Source))
            raise ValueError(
                f"X holds strings, and {type(estimator).__name__} takes rows of numbers. KernelPCA "
                f"takes strings with {format_parameter('kernel', 'substring')}."
                f"{table_advice(source.strings, request)}"
            )
        _check_features(estimator, source, reset)
    elif is_dask(X) or (is_foreign(X) and not hasattr(X, "tocsr")):
        source = _foreign(estimator, X, reset)
    else:
        source = _host(estimator, X, reset)
    if source.shape[0] < least:
        raise ValueError(
            f"{type(estimator).__name__} needs at least {least} rows, and got "
            f"n_samples={source.shape[0]} of shape {source.shape}: one row has no variance."
        )
    return placed(source)


def from_file(estimator: Any, X: Any) -> Any:
    """Return the rows of a file with the columns of the fit, by name; X where it is no path.

    Columns that the fit did not have are not read, save those that name the rows.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if not isinstance(X, (os.PathLike, str)):
        return X
    if names is None or split_path(X)[0].suffix.lower() in NAMELESS:
        return as_source(X)
    return read_source(X, columns=[str(name) for name in names], quiet=True)


def row_names(X: Any) -> dict[str, Any]:
    """Return the columns that name rows: those beside a Source, or the index of a DataFrame."""
    if isinstance(X, Source):
        return dict(X.extra_columns or {})
    index = getattr(X, "index", None)
    if not hasattr(X, "columns") or index is None or not hasattr(index, "names"):
        return {}
    plain = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    if plain and index.name is None:
        return {}
    if len(index.names) == 1:
        return {str(index.names[0] or "index"): index.to_numpy()}
    levels = enumerate(index.names)
    return {str(name or f"level{i}"): index.get_level_values(i).to_numpy() for i, name in levels}


def default_ids(X: Any) -> Any:
    """Return the names of rows that a Source or the index of a DataFrame has; else None."""
    if isinstance(X, Source):
        known = (X.extra_columns or {}).get(X.id) if X.id is not None else None
        return None if known is None else id_names(known)
    named = row_names(X)
    return next(iter(named.values())) if len(named) == 1 else None


def rows_of_model(source: Source, *, copy_rows: bool) -> Source:
    """Return rows in memory that do not change when X does."""
    if isinstance(source, StringSource):
        return source
    rows = source.whole()
    ours = isinstance(source, Resident) or not isinstance(source, (ArraySource, SparseSource))
    if ours:  # read, computed or copied just now
        return in_place_of(rows, source).weighted(source.weights)
    if not copy_rows:
        return source
    if isinstance(source, SparseSource):
        return SparseSource(rows.copy(), source.names).weighted(source.weights)
    copied = (
        rows.copy() if isinstance(rows, np.ndarray) else namespace(rows).asarray(rows, copy=True)
    )
    return ArraySource(copied, source.names).weighted(source.weights)


def drop_zero_weights(source: Source) -> Source:
    """Return the rows whose weight is not zero."""
    if source.weights is None or np.all(source.weights > 0):
        return source
    return select_rows(source, np.flatnonzero(source.weights > 0))


def select_rows(source: Source, at: np.ndarray[Any, Any]) -> Source:
    """Return the named rows with their weights: where they lie, or in memory."""
    if source.remote is None:
        return load_rows(source, at)
    named = as_source(lazily(source.weighted(None))[at])
    named.names = source.names
    return named.weighted(None if source.weights is None else source.weights[at])


def load_rows(source: Source, at: np.ndarray[Any, Any]) -> Source:
    """Return the named rows, in memory, with their weights."""
    weights = None if source.weights is None else source.weights[at]
    if source.sparse:  # rows that are taken would be dense
        return SparseSource(source.whole()[at], source.names).weighted(weights)
    rows = source.take(at)
    if isinstance(source, StringSource):
        return StringSource(rows).weighted(weights)
    return in_place_of(rows, source).weighted(weights)


def check_strings(estimator: Any, X: Any, *, reset: bool, least: int) -> Source | None:
    """Return strings as a source; None where X holds something else."""
    if is_lazy(X):
        return None
    if isinstance(X, (os.PathLike, str)) and os.fspath(X).lower().endswith(".txt"):
        X = as_source(X)
    if isinstance(X, (os.PathLike, str)) or getattr(X, "ndim", 1) != 1:
        return None
    if not isinstance(X, StringSource):
        first = next(iter(X), None) if hasattr(X, "__iter__") else None
        if isinstance(X, Source) or not isinstance(first, (str, bytes)):
            return None
    source = X if isinstance(X, StringSource) else StringSource(list(X))
    if source.shape[0] < least:
        raise ValueError(
            f"{type(estimator).__name__} needs at least {least} strings, and got "
            f"n_samples={source.shape[0]}: one has no variance."
        )
    if reset:  # strings have no columns
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    return placed(source)


def check_matrix(estimator: Any, X: Any, *, reset: bool, least: int) -> Source:
    """Return a kernel matrix as a source: square and symmetric where it is to be fitted."""
    if hasattr(X, "tocsr"):
        raise TypeError("Sparse data was passed for X, and kernel='precomputed' takes X.toarray().")
    source = check_rows(estimator, X, reset=reset, least=least)
    if not reset:
        return source
    n, d = source.shape
    if n != d:
        require_finite_entries(source)
        raise ValueError(
            f"Precomputed metric requires shape (n_queries, n_indexed): the kernel matrix of a fit "
            f"is square, and X has shape {source.shape}."
        )
    source.fold(Mirrored(source))
    return source


class Mirrored(Fold):
    """Refuses a matrix that is not symmetric."""

    label = "symmetry"
    here = True

    def __init__(self, source: Source) -> None:
        self.matrix = source.whole()

    def add(self, block: Block) -> None:
        xp = namespace(self.matrix)
        here, rows = slice(block.start, block.stop), block.rows
        apart = xp.abs(rows - self.matrix[:, here].T)
        largest = float(xp.max(xp.abs(rows)))
        if not float(xp.max(apart)) > 1e-5 * largest:
            return
        i, j = np.unravel_index(int(np.argmax(to_numpy(apart))), apart.shape)
        a, b = float(rows[int(i), int(j)]), float(self.matrix[int(j), block.start + int(i)])
        raise ValueError(
            f"kernel='precomputed': X is not symmetric: entry ({block.start + i}, {j}) is {a:g} "
            f"and entry ({j}, {block.start + i}) is {b:g}. Pass (X + X.T) / 2 if that is meant."
        )

    def merge(self, other: Self) -> None:
        pass

    def spawn(self) -> Self:
        return copy.copy(self)

    def arrays(self) -> dict[str, Any]:
        return {}

    def restore(self, arrays: dict[str, Any]) -> None:
        pass


def rescale_rows(source: Source, *, center: bool) -> tuple[Source, int]:
    """Return rows whose squares are safe, and the exponent they were divided by 2 to.

    Judged by a few rows spread over the data, by all where those are extreme; almost always it is
    0 and the rows as they are.
    """
    n, d = source.shape
    few = np.arange(0, n, -(-n // max(4, min(32, 2**17 // d))))
    rows = to_numpy(source.take(few)).astype(np.float64)
    # Apart from a row: from the mean, a constant column would be apart by rounding.
    first = rows[0] if center else 0.0 * rows[0]

    def spread(block: Block) -> Array:
        apart = np.abs(to_numpy(block.dense(np.float64)) - first)
        return apart.max(axis=1, initial=0.0)[:, None]

    with np.errstate(all="ignore"):
        largest = float(np.abs(rows - first).max(initial=0.0))
        if _exponent(largest, source) == 0:
            return source, 0
        largest = float(source.map(spread, 1, np.float64).collect(label="scale").max())
    exponent = _exponent(largest, source)
    return (
        ScaledSource(source, exponent).weighted(source.weights) if exponent else source
    ), exponent


def _exponent(largest: float, source: Source) -> int:
    """Return the exponent of two that rows with this spread are divided by: 0 of most."""
    exponent = int(np.frexp(largest)[1]) if 0.0 < largest < np.inf else 0
    return exponent if abs(exponent) > _SAFE[source.dtype] else 0


def _host(estimator: Any, X: Any, reset: bool) -> Source:
    kind = np.dtype(getattr(X, "dtype", float)).kind if _plain(X) else "f"
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: X has dtype {X.dtype}. Pass X.real, X.imag or abs(X)."
        )
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            dtype="numeric",
            accept_sparse=("csr", "csc"),
            ensure_all_finite=False,
        )
        if not hasattr(checked, "tocsr") and checked.dtype.kind not in "fiub":
            checked = checked.astype(np.float64)
    except (ValueError, TypeError) as error:
        place = _not_a_number(X)
        if place is None:
            raise
        kind_of = TypeError if isinstance(error, TypeError) else ValueError
        # That dates and numbers have no common dtype says nothing that the place does not.
        more = "" if isinstance(error, np.exceptions.DTypePromotionError) else f" ({error})"
        raise kind_of(
            f"{place}, which is not a number. Encode such columns as numbers, or drop them.{more}"
        ) from None
    names = getattr(estimator, "feature_names_in_", None)
    if hasattr(checked, "tocsr"):
        return SparseSource(checked, names)
    return ArraySource(checked, names)


def _plain(X: Any) -> bool:
    """Tell whether X has one dtype that NumPy knows."""
    return isinstance(X, np.ndarray) or hasattr(X, "tocsr")


def _not_a_number(X: Any) -> str | None:
    """Say where the first entry is that is not a number."""
    table = np.asarray(X, dtype=object) if not hasattr(X, "tocsr") else None
    if table is None or table.ndim != 2:
        return None
    for (i, j), entry in np.ndenumerate(table):
        try:
            float(entry)
        except (TypeError, ValueError):
            names = getattr(X, "columns", None)
            name = "" if names is None else f" ({names[j]!r})"
            return f"X holds {entry!r} in row {i}, column {j}{name}"
    return None


def _foreign(estimator: Any, X: Any, reset: bool) -> Source:
    if not is_dask(X) and "strided" not in str(getattr(X, "layout", "strided")):
        raise TypeError(f"X is a sparse tensor ({X.layout}). Pass X.to_dense(), or a SciPy matrix.")
    source = as_source(X)
    _check_features(estimator, source, reset)
    return source


def _check_features(estimator: Any, source: Source, reset: bool) -> None:
    d = source.shape[1]
    if 0 in source.shape:
        raise ValueError(
            f"Found array with 0 sample(s) or 0 feature(s) (shape={source.shape}) while a minimum "
            f"of 1 is required."
        )
    if reset:
        estimator.n_features_in_ = d
        estimator.__dict__.pop("feature_names_in_", None)
        if source.names is not None:
            estimator.feature_names_in_ = np.asarray(source.names, dtype=object)
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is not None and source.names is not None and list(fitted) != list(source.names):
        raise ValueError(
            f"The feature names should match those that were passed during fit: {list(fitted)}, "
            f"and are {list(source.names)}."
        )
    if d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
