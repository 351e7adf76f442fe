"""Where the first entry is that is not finite."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import Array, is_dask, is_finite, to_numpy
from mercer.data.fold import Block, Fold
from mercer.data.source import Source
from mercer.messages import format_parameter

# What the indices of an array of so many dimensions count.
_PLACES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("row",),
    2: ("row", "column"),
    3: ("row", "line", "column"),
    4: ("row", "line", "column", "channel"),
}


def not_finite(
    found: tuple[int, int, float] | None, source: Source, called: str = "X"
) -> ValueError:
    """Return the error that names the first entry that is not finite."""
    if found is None:
        return ValueError(
            f"Input X contains a value too large for dtype('{source.dtype}'): sums of squares "
            f"overflow. Divide X by its largest entry."
        )
    row, column, value = found
    what = "NaN" if np.isnan(value) else f"infinity ({value})"
    # No imputer takes infinity for a value that is missing.
    remedy = "fill them in" if np.isnan(value) else "make such entries NaN and fill them in"
    name = "" if source.names is None else f" ({source.names[column]!r})"
    return ValueError(
        f"Input {called} contains {what}: the first is in row {row}, column {column}{name}. "
        f"Drop such rows or {remedy}, for example with {format_parameter('impute', 'mean')}."
    )


def require_finite_entries(source: Source, called: str = "X") -> None:
    """Refuse rows with NaN or infinity; one pass."""
    found = source.fold(Search()).found
    if found is not None:
        raise not_finite(found, source, called)


def require_present(X: Any, called: str = "X") -> None:
    """Refuse masked entries, and dates that are missing, which NumPy would make numbers of."""
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack(X)
    if isinstance(X, np.ma.MaskedArray):
        missing, what = np.ma.getmaskarray(X), ("masked entry", "masked entries")
        remedy = (
            f"Fill them in, for example with {called}.filled(numpy.nan) and "
            f"sklearn.impute.SimpleImputer, or drop those rows."
        )
    else:
        dates = X if isinstance(X, np.ndarray) else _dates(X)
        if dates is None or dates.dtype.kind not in "mMO":
            return
        missing, what = _not_a_time(dates), ("missing date (NaT)", "missing dates (NaT)")
        remedy = "Convert the dates to numbers (NaT becomes NaN) and impute, or drop those rows."
    at = np.argwhere(missing)
    if not len(at):
        return
    one = len(at) == 1
    names = _PLACES.get(at.shape[1], ("row", *(f"index {i}" for i in range(1, at.shape[1]))))
    places = ", ".join(f"{name} {i}" for name, i in zip(names, at[0], strict=True))
    raise ValueError(
        f"{called} has {len(at)} {what[not one]}, {'' if one else 'the first '}in {places}. "
        f"{remedy}"
    )


def _dates(X: Any) -> np.ndarray[Any, Any] | None:
    """Return a table without a column of numbers, which may hold dates; None of others.

    Dates beside numbers are refused, whether they are missing or not.
    """
    if is_dask(X) or not all(hasattr(X, name) for name in ("columns", "dtypes", "to_numpy")):
        return None
    for kind in X.dtypes:
        if getattr(kind, "kind", "M") in "fiub" or getattr(kind, "is_numeric", lambda: False)():
            return None
    return np.asarray(X)


def _not_a_time(dates: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if dates.dtype.kind != "O":
        return np.asarray(np.isnat(dates))
    times = (np.datetime64, np.timedelta64)
    flat = [isinstance(entry, times) and bool(np.isnat(entry)) for entry in dates.ravel()]
    return np.reshape(np.array(flat, bool), dates.shape)


class Search(Fold):
    """Finds the first entry that is not finite."""

    label = "looking for NaN"

    def __init__(self) -> None:
        self.found: tuple[int, int, float] | None = None

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
        found = [place for place in (self.found, other.found) if place is not None]
        self.found = min(found, default=None)

    def spawn(self) -> Self:
        return type(self)()

    def arrays(self) -> dict[str, Array]:
        return {"found": np.array(self.found or (), dtype=np.float64)}

    def restore(self, arrays: dict[str, Array]) -> None:
        found = arrays["found"]
        self.found = (int(found[0]), int(found[1]), float(found[2])) if len(found) else None


def require_finite_rows(block: Block, source: Source) -> None:
    """Refuse rows with NaN or infinity: a kernel may make a number of them."""
    search = Search()
    if not isinstance(block.rows, list):
        search.add(block)
    if search.found is not None:
        raise not_finite(search.found, source)
