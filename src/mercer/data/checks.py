"""Checks of rows and weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Vector, first_entry, is_finite, to_numpy
from mercer.data.errors import format_names
from mercer.data.fold import Block, Fold
from mercer.data.source import Source
from mercer.messages import counted, format_parameter

# Shares that sum to one may do so from above: the variance would be divided by rounding.
_ROUNDING = 1e-6


class NonFiniteSearch(Fold):
    """Finds the first entry that is not finite; with `missing`, NaN is no such entry."""

    label = "looking for NaN"

    found: tuple[int, int, float] | None = None

    def __init__(self, *, missing: bool = False) -> None:
        self.missing = missing

    def add(self, block: Block) -> None:
        rows = block.rows
        if self.found is not None:
            return
        sparse = hasattr(rows, "tocsr")
        if is_finite(rows.data if sparse else rows):
            return
        if sparse:
            place = first_entry(rows, self._bad(to_numpy(rows.data)))
        else:
            rows = to_numpy(rows)
            at = np.argwhere(self._bad(rows))
            place = (int(at[0, 0]), int(at[0, 1]), float(rows[tuple(at[0])])) if len(at) else None
        if place is not None:
            self.found = (block.start + place[0], *place[1:])

    def _bad(self, values: Any) -> Any:
        return np.isinf(values) if self.missing else ~np.isfinite(values)

    def merge(self, other: Self) -> None:
        places = [place for place in (self.found, other.found) if place is not None]
        self.found = min(places, default=None)

    def spawn(self) -> Self:
        return type(self)(missing=self.missing)

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


def check_features(estimator: Any, source: Source, reset: bool) -> None:
    """Set the columns of an estimator, or raise unless rows have those of its fit."""
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
        unseen = [name for name in source.names if name not in fitted]
        missing = [name for name in fitted if name not in source.names]
        raise ValueError(
            f"The feature names should match those that were passed during fit, in the same order. "
            f"Unseen at fit time: {format_names(unseen) or 'none'}; missing: "
            f"{format_names(missing) or 'none'}."
        )
    if d != getattr(estimator, "n_features_in_", d):  # strings have no features
        raise ValueError(
            f"X has {d} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
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


def finite_rows(result: Array, block: Block, source: Source, unread: bool = False) -> Array:
    """Return the result for a block; raise if it is not finite, with the entry of the rows.

    A result without columns, or `unread`, does not depend on every entry of the rows.
    """
    if not result.shape[1] or unread:
        require_finite_rows(block, source)
    if is_finite(result):
        return result
    require_finite_rows(block, source)
    raise not_finite(None, source)


def require_present(X: Any, called: str = "X") -> None:
    """Raise on masked entries, and on dates among objects: NumPy would convert them to numbers."""
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack(X)
    if isinstance(X, np.ma.MaskedArray):
        missing, what = np.ma.getmaskarray(X), ("masked entry", "masked entries")
        remedy = f"Impute them, for example after {called}.filled(numpy.nan)"
    elif isinstance(X, np.ndarray) and X.dtype.kind == "O":
        dates = (np.datetime64, np.timedelta64)
        missing = np.array([isinstance(x, dates) for x in X.ravel()]).reshape(X.shape)
        what, remedy = ("date", "dates"), "Convert them to numbers"
    else:
        return
    at = np.argwhere(missing)
    if len(at):
        row, *column = at[0].tolist()
        place = f", column {', '.join(map(str, column))}" if column else ""
        raise ValueError(
            f"{called} has {counted(len(at), *what)}, the first in row {row}{place}. {remedy}, or "
            f"drop those rows."
        )


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
