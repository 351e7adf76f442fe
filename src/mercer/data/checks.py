"""Checks of rows and weights, and fingerprints of rows."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Vector, is_dask, is_finite, to_numpy
from mercer.data.fold import Block, Fold
from mercer.data.in_memory import StringSource
from mercer.data.source import Source
from mercer.messages import counted, format_parameter

# Rows and entries of a fingerprint, at most; letters of a string.
_ROWS, _ENTRIES, _LETTERS = 256, 2**20, 1024
# Entries of a fingerprint that are in memory at a time, or a row.
_AT_ONCE = 2**16
# Shares that sum to one may do so from above: the variance would be divided by rounding.
_ROUNDING = 1e-6


class NonFiniteSearch(Fold):
    """Finds the first entry that is not finite."""

    label = "looking for NaN"

    found: tuple[int, int, float] | None = None

    def add(self, block: Block) -> None:
        rows = block.rows
        if self.found is not None:
            return
        if hasattr(rows, "tocoo"):
            coo = rows.tocoo()
            bad = ~np.isfinite(coo.data)
            at = np.stack([coo.row[bad], coo.col[bad]], axis=1)
            at = at[np.lexsort(at.T[::-1])]
            rows = rows.toarray() if len(at) else rows
        else:
            if is_finite(rows):
                return
            rows = to_numpy(rows)
            at = np.argwhere(~np.isfinite(rows))
        if len(at):
            i, j = at[0]
            self.found = (block.start + int(i), int(j), float(rows[i, j]))

    def merge(self, other: Self) -> None:
        places = [place for place in (self.found, other.found) if place is not None]
        self.found = min(places, default=None)

    def spawn(self) -> Self:
        return type(self)()

    def arrays(self) -> dict[str, Array]:
        return {"found": np.array(self.found or (), dtype=np.float64)}

    def restore(self, arrays: dict[str, Array]) -> None:
        place = arrays["found"]
        self.found = (int(place[0]), int(place[1]), float(place[2])) if len(place) else None


def not_finite(
    place: tuple[int, int, float] | None, source: Source, called: str = "X"
) -> ValueError:
    """Return the error about the first entry that is not finite: row, column and value."""
    if place is None:
        return ValueError(
            f"Input X contains a value too large for dtype('{source.dtype}'): sums of squares "
            f"overflow. Divide X by its largest entry."
        )
    row, column, value = place
    what = "NaN" if np.isnan(value) else f"infinity ({value})"
    # Imputers do not treat infinity as missing.
    remedy = "impute" if np.isnan(value) else "first replace infinity by NaN, then impute"
    name = "" if source.names is None else f" ({source.names[column]!r})"
    return ValueError(
        f"Input {called} contains {what}: the first is in row {row}, column {column}{name}. "
        f"Drop those rows, or {remedy}, for example with {format_parameter('impute', 'mean')}."
    )


def require_finite_entries(source: Source, called: str = "X") -> None:
    """Raise if rows contain NaN or infinity, in one pass."""
    place = source.fold(NonFiniteSearch()).found
    if place is not None:
        raise not_finite(place, source, called)


def require_finite_sums(source: Source, *sums: Array) -> None:
    """Raise if sums are not finite, and report the first such entry of the rows."""
    for array in sums:
        if not is_finite(array):
            raise not_finite(source.fold(NonFiniteSearch()).found, source)


def require_finite_rows(block: Block, source: Source) -> None:
    """Raise if a block has NaN or infinity: a kernel may map them to numbers."""
    if isinstance(block.rows, list):
        return
    search = NonFiniteSearch()
    search.add(block)
    if search.found is not None:
        raise not_finite(search.found, source)


def require_present(X: Any, called: str = "X") -> None:
    """Raise on masked entries and missing dates, which NumPy would convert to numbers."""
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack(X)
    if isinstance(X, np.ma.MaskedArray):
        missing, what = np.ma.getmaskarray(X), ("masked entry", "masked entries")
        remedy = f"Impute them, for example after {called}.filled(numpy.nan)"
    else:
        dates = X if isinstance(X, np.ndarray) else _dates(X)
        if dates is None or dates.dtype.kind not in "mMO":
            return
        entries = dates.ravel().tolist() if dates.dtype.kind == "O" else dates.ravel()
        times = (np.datetime64, np.timedelta64)
        missing = np.array([isinstance(x, times) and bool(np.isnat(x)) for x in entries])
        missing = missing.reshape(dates.shape)
        what = ("missing date (NaT)", "missing dates (NaT)")
        remedy = "Convert the dates to numbers (NaT becomes NaN) and impute"
    at = np.argwhere(missing)
    if len(at):
        row, *column = at[0].tolist()
        place = f", column {', '.join(map(str, column))}" if column else ""
        raise ValueError(
            f"{called} has {counted(len(at), *what)}, the first in row {row}{place}. {remedy}, or "
            f"drop those rows."
        )


def _dates(X: Any) -> np.ndarray[Any, Any] | None:
    """Return a table if it may contain only dates: tables with numbers are rejected anyway."""
    if is_dask(X) or not all(hasattr(X, name) for name in ("columns", "dtypes", "to_numpy")):
        return None
    for dtype in X.dtypes:
        if getattr(dtype, "kind", "M") in "fiub" or getattr(dtype, "is_numeric", lambda: False)():
            return None
    return np.asarray(X)


def check_weights(weights: Any, source: Source, least: float = 1.0) -> Vector | None:
    """Return weights as float64, one per row; they must sum to more than `least`."""
    if weights is None:
        weights = source.weights
    elif source.weights is not None:
        raise ValueError("Both sample_weight and the Source have weights: pass only one.")
    if weights is None:
        return None
    n, name = source.shape[0], format_parameter("sample_weight")
    require_present(weights, name)
    try:
        w = np.asarray(to_numpy(weights), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one for each of {n} rows: {error}.") from None
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(n,)}: one per row.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(
            f"{name}[{bad[0]}] is {w[bad[0]]}; weights are row counts: finite, not negative."
        )
    if not np.any(w):
        raise ValueError(f"All entries of {name} are zero. Pass a positive weight, or none.")
    if not w.sum() > least * (1.0 + _ROUNDING):
        raise ValueError(
            f"{name} sums to {w.sum():g}, but weights are row counts, and a variance needs "
            f"more than one row. Multiply them by the number of rows they represent."
        )
    return w


def fingerprint(source: Source) -> str:
    """Return the fingerprint of a dataset: shape, precision, and a hash of some rows.

    The same for the same numbers in memory, dense or sparse, in a table or in a file. A few
    hundred rows, spread evenly from the first to the last, are hashed: a change of others
    goes unnoticed. Weights and names do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data import as_source, fingerprint
    >>> fingerprint(as_source(np.arange(6.0).reshape(3, 2)))
    '3x2 float64 84a6e8b7afdd286a48ab0aab'
    """
    n, *columns = source.shape
    text = isinstance(source, StringSource)
    d = 1 if text else max(1, *columns)
    rows = min(_ROWS, max(2, _ENTRIES // d))
    at = np.arange(n) if n <= rows else np.unique(np.linspace(0, n - 1, rows).astype(np.int64))
    digest = hashlib.sha256()
    if text:
        for entry in source.take(at):
            digest.update(f"{len(entry)} {entry[:_LETTERS]}\n".encode("utf-8", "surrogatepass"))
        return f"{n} strings {digest.hexdigest()[:24]}"
    count = -(-len(at) * d // _AT_ONCE)
    for part in np.array_split(at, count) if count > 1 else [at]:
        values = to_numpy(source.take(part)).astype(source.dtype, copy=False)
        # Zero and minus zero are equal, and so are all NaN.
        values = np.where(np.isnan(values), np.nan, values + 0.0)
        digest.update(np.ascontiguousarray(values, source.dtype.newbyteorder("<")).data)
    return f"{n}x{columns[0]} float{8 * source.dtype.itemsize} {digest.hexdigest()[:24]}"


def joint_fingerprint(before: str | None, batch: Source) -> str:
    """Return the fingerprint of batches: those before, and another; their order counts."""
    own = fingerprint(batch)
    if before is None:
        return own
    return f"batches {hashlib.sha256(before.encode() + own.encode()).hexdigest()[:24]}"
