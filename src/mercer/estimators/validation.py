"""Validation of input: rows as sources, kernel matrices, strings, images."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from mercer.arrays import (
    Array,
    dense_remedy,
    is_dask,
    is_foreign,
    is_sparse,
    namespace,
    reference_of,
    to_numpy,
)
from mercer.config import get_config
from mercer.data import (
    ArraySource,
    Block,
    ScaledSource,
    Source,
    SparseSource,
    StringSource,
    as_source,
    check_features,
    frame_source,
    index_columns,
    is_anndata,
    is_frame,
    is_lazy,
    match_names,
    materialize,
    require_finite_entries,
    require_present,
    select_variables,
    source_like,
    to_configured_device,
)
from mercer.data.files import NAMELESS, Request, id_names, read_source, split_path
from mercer.messages import format_parameter
from mercer.problem import Problem

# Exponents of two beyond which squares of the working precision, or sums of them, come
# near overflow or underflow.
_SAFE = {np.dtype(np.float32): 40, np.dtype(np.float64): 100}


def check_rows(estimator: Any, X: Any, *, reset: bool, least: int = 1) -> Source:
    """Return X as a source of at least `least` rows; the first pass checks for NaN.

    With `reset` X sets the features of the estimator, else it must have those of the fit.
    """
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in _SAFE and X.size > 0
    file, known = isinstance(X, (str, os.PathLike)), isinstance(X, Source)
    if not (plain or file or known):
        X = materialize(X if reset else columns_of_fit(estimator, X))
        shape: Any = getattr(X, "shape", None)
        if isinstance(shape, tuple) and len(shape) > 2:
            raise ValueError(
                f"X has shape {tuple(shape)}, but {type(estimator).__name__} takes a 2D array, "
                f"with one row per image: found array with dim {len(shape)}, expected <= 2. Pass "
                f"X.reshape({shape[0]}, -1)."
            )
        if isinstance(X, np.ma.MaskedArray) and takes_missing(estimator):
            X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
        require_present(X)
        known = isinstance(X, Source)
    if plain and (reset or "feature_names_in_" not in vars(estimator)):
        source: Source = ArraySource(X)  # what validate_data would return, at a tenth of its cost
        check_features(estimator, source, reset)
    elif file or known:
        source = X if known else _file_rows(estimator, X, reset=reset)
        if isinstance(source, StringSource):
            request = Request(str(X), direct=not isinstance(X, Source))
            raise ValueError(
                f"X contains strings, but {type(estimator).__name__} needs numbers. KernelPCA "
                f"takes strings with {format_parameter('kernel', 'substring')}. If its lines are "
                f"a table, read it with {request.option('format', 'csv')}."
            )
        check_features(estimator, source, reset)
    elif is_dask(X) or is_foreign(reference_of(X)):
        source = as_source(X)
        check_features(estimator, source, reset)
    else:
        source = (_frame if is_frame(X) else _host)(estimator, X, reset)
    if source.shape[0] < least:
        raise ValueError(
            f"{type(estimator).__name__} needs at least {least} rows, but got "
            f"n_samples={source.shape[0]} of shape {source.shape}: one row has no variance."
        )
    return source if get_config().device is None else to_configured_device(source)


def takes_missing(estimator: Any) -> bool:
    """Return whether rows may lack entries, which are NaN in the source."""
    return bool(getattr(estimator, "missing", "error") != "error")


def columns_of_fit(estimator: Any, X: Any) -> Any:
    """Return the rows of a file or an AnnData object with the columns of the fit, by name.

    Anything else is returned as it is, and so is an AnnData object without all of them.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and is_anndata(X):
        at, missing = match_names(X.var_names, [str(name) for name in names])
        return X if missing else select_variables(X, at=at, quiet=True)
    if not isinstance(X, (os.PathLike, str)):
        return X
    return _file_rows(estimator, X, reset=False)


def _file_rows(estimator: Any, path: Any, *, reset: bool) -> Source:
    incomplete = takes_missing(estimator)
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    if names is None or split_path(path)[0].suffix.lower() in NAMELESS:
        return read_source(path, incomplete=incomplete)
    columns = [str(name) for name in names]
    return read_source(path, columns, quiet=True, incomplete=incomplete)


def row_names(X: Any) -> dict[str, Any]:
    """Return the columns that name rows: those beside a Source, or the index of a DataFrame."""
    if isinstance(X, Source):
        return dict(X.extra_columns or {})
    return index_columns(X) if is_frame(X) else {}


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
    rows = source.load()
    if source.output is not None or not isinstance(source, (ArraySource, SparseSource)):
        return source_like(rows, source).weighted(source.weights)  # just read or computed
    if not copy_rows:
        return source
    rows = rows.copy() if hasattr(rows, "copy") else namespace(rows).asarray(rows, copy=True)
    return type(source)(rows, source.names).weighted(source.weights)


def select_rows(source: Source, at: np.ndarray[Any, Any]) -> Source:
    """Return some rows with their weights: as Dask has them, or in memory."""
    if source.remote is None:
        return load_rows(source, at)
    rows = as_source(source.remote.as_array(source)[at])
    rows.names = source.names
    return rows.weighted(None if source.weights is None else source.weights[at])


def load_rows(source: Source, at: np.ndarray[Any, Any]) -> Source:
    """Return some rows, in memory, with their weights."""
    weights = None if source.weights is None else source.weights[at]
    if source.sparse:  # take would return dense rows
        return source_like(source.gather(at), source).weighted(weights)
    rows = source.take(at)
    if isinstance(source, StringSource):
        return StringSource(rows).weighted(weights)
    return source_like(rows, source).weighted(weights)


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
            f"{type(estimator).__name__} needs at least {least} strings, but got "
            f"n_samples={source.shape[0]}: one string has no variance."
        )
    if reset:  # strings have no columns
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    return to_configured_device(source)


def check_matrix(estimator: Any, X: Any, *, reset: bool, least: int) -> Source:
    """Return a kernel matrix as a source: square and symmetric where it is to be fitted."""
    if is_sparse(X):
        raise TypeError(
            f"Sparse data was passed for X, but kernel='precomputed' needs a dense matrix. "
            f"{dense_remedy(X)}"
        )
    source = check_rows(estimator, X, reset=reset, least=least)
    if not reset:
        return source
    n, d = source.shape
    if n != d:
        require_finite_entries(source)
        raise ValueError(
            f"Precomputed metric requires shape (n_queries, n_indexed): the kernel matrix of a fit "
            f"must be square, but X has shape {source.shape}."
        )
    K = source.load()
    xp = namespace(K)

    def require_symmetric(block: Block) -> Array:
        rows = block.rows
        difference = xp.abs(rows - K[:, block.start : block.stop].T)
        if float(xp.max(difference)) > 1e-5 * float(xp.max(xp.abs(rows))):
            i, j = map(int, np.unravel_index(int(xp.argmax(difference)), difference.shape))
            at = block.start + i
            raise ValueError(
                f"kernel='precomputed': X is not symmetric: entry ({at}, {j}) is "
                f"{float(K[at, j]):g} and entry ({j}, {at}) is {float(K[j, at]):g}. Pass "
                f"(X + X.T) / 2 if intended."
            )
        return rows[:, :0]

    ArraySource(K).map(require_symmetric, 0).collect(label="symmetry")
    return source


def rescale_rows(problem: Problem) -> Problem:
    """Return the problem with rows divided by a power of two so that their squares are safe.

    Judged by a few rows spread over the data, and by all where those are extreme. Almost always
    the rows stay as they are.
    """
    source = problem.source
    n, d = source.shape
    share = 1.0 if problem.metric is None else 1.0 * (problem.metric > 0)
    some = np.arange(0, n, -(-n // max(4, min(32, 2**17 // d))))
    rows = to_numpy(source.take(some)).astype(np.float64) * share
    # Differences from a row: those of a constant column from its mean would be rounding.
    first = rows[0] if problem.center else 0.0 * rows[0]

    def spread(block: Block) -> Array:
        differences = np.abs(to_numpy(block.dense(np.float64)) * share - first)
        return differences.max(axis=1, initial=0.0)[:, None]

    largest, safe = float(np.abs(rows - first).max(initial=0.0)), _SAFE[source.dtype]
    if not 0.0 < largest < np.inf or abs(math.frexp(largest)[1]) <= safe:
        return problem
    extra = 24 * d if source.sparse else 0  # a block becomes dense
    largest = float(source.map(spread, 1, np.float64, extra).collect(label="scale").max())
    exponent = math.frexp(largest)[1] if 0.0 < largest < np.inf else 0
    if abs(exponent) <= safe:
        return problem
    scaled = ScaledSource(source, exponent).weighted(source.weights)
    return replace(problem, source=scaled, exponent=exponent)


def _frame(estimator: Any, X: Any, reset: bool) -> Source:
    source = frame_source(X)
    # Compares the names of columns, and warns if there were none or are none now.
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    # scikit-learn 1.8 does not know the frames of Polars 2.
    check_features(estimator, source, reset)
    return source


def _host(estimator: Any, X: Any, reset: bool) -> Source:
    one_dtype = isinstance(X, np.ndarray) or hasattr(X, "tocsr")
    if one_dtype and np.dtype(X.dtype).kind == "c":
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
    except (ValueError, TypeError) as error:
        place = _not_a_number(X)
        if place is None:
            raise
        # The place says all that a DTypePromotionError of dates and numbers does.
        more = "" if isinstance(error, np.exceptions.DTypePromotionError) else f" ({error})"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"{place}, which is not a number. Encode those columns as numbers, or drop them.{more}"
        ) from None
    names = getattr(estimator, "feature_names_in_", None)
    return (SparseSource if hasattr(checked, "tocsr") else ArraySource)(checked, names)


def _not_a_number(X: Any) -> str | None:
    """Return the place of the first entry that is not a number."""
    table = np.asarray(X, dtype=object) if not hasattr(X, "tocsr") else None
    if table is None or table.ndim != 2:
        return None
    for (i, j), entry in np.ndenumerate(table):
        try:
            float(entry)
        except (TypeError, ValueError):
            return f"X holds {entry!r} in row {i}, column {j}"
    return None


def array_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of an array-like; () for a path, or rows that would have to be read."""
    if isinstance(X, (str, os.PathLike)) or is_lazy(X):
        return ()
    return tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)


def flatten_images(X: Any, image_shape: Any) -> Any:
    """Return images of a shape as rows, and rows as they are."""
    shape = array_shape(X)
    if image_shape is None:
        if len(shape) <= 2:
            return X
        raise ValueError(
            f"Found array with dim {len(shape)}, expected 2: X has shape {shape}. For images, "
            f"set image_shape={shape[1:]}."
        )
    image, d = tuple(image_shape), math.prod(image_shape)
    if len(shape) < 2 or shape[1:] == (d,):
        return X
    if shape[1:] != image:
        raise ValueError(
            f"X has shape {shape}, a single image. Pass X[None]."
            if shape == image
            else f"X has shape {shape}, but images have shape {image}: pass images of that shape, "
            f"or rows of {d} columns."
        )
    require_present(X)
    return (X if is_foreign(X) else np.asarray(X)).reshape((shape[0], d))


def image_sides(image_shape: Any, d: int) -> tuple[int, ...]:
    """Return (height, width) or (height, width, 3) of images with d numbers; None: a square."""
    if image_shape is None:
        side = math.isqrt(d)
        if side * side != d:
            raise ValueError(
                f"A row of {d} numbers is not a square image: pass image_shape, such as (28, 28)."
            )
        return side, side
    sides = tuple(int(side) for side in image_shape)
    valid = len(sides) == 2 or (len(sides) == 3 and sides[2] in (1, 3))
    if not valid or min(sides) < 1 or math.prod(sides) != d:
        raise ValueError(
            f"image_shape={image_shape!r} has {math.prod(sides)} pixels, but a row has {d} "
            f"numbers: pass (height, width), or (height, width, 3) for color images."
        )
    return sides
