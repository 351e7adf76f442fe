"""One side of a block of a kernel matrix: rows, with their squared norms cached."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from mercer.arrays import Array, cast, like, namespace, numpy_dtype, to_numpy

# Rows that are sampled to find where all of them lie.
_SAMPLE = 64
# Squared norms in this range leave float32 room for products.
_SMALL, _LARGE = 1e-30, 1e30

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801 (a decorator)
    """A property that is computed once per object.

    Unlike `functools.cached_property` it takes no lock: before Python 3.12 that lock is shared
    by all objects, which would make threads wait for each other.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self.compute.__name__] = self.compute(instance)
        return value


class Points:
    """Rows, with what is computed from them alone: squared norms, a shift, mapped rows.

    Distances do not change when both sides are shifted, but their rounding errors do. Rows whose
    median is far from zero for their spread are shifted by it before they are squared.

    Parameters
    ----------
    rows : array, sparse matrix or list of str
    start : int
        Number of the first row, for error messages.
    """

    def __init__(self, rows: Any, start: int = 0) -> None:
        self.rows, self.start = rows, start
        self.sparse = hasattr(rows, "tocsr")
        self._cache: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])

    @property
    def width(self) -> int:
        """Number of columns; 1 for strings."""
        return 1 if isinstance(self.rows, list) else int(self.rows.shape[1])

    @lazy_property
    def norms(self) -> Array:
        """Squared norm of every row."""
        if self.sparse:
            return np.asarray(self.rows.multiply(self.rows).sum(axis=1)).reshape(-1)
        if isinstance(self.rows, np.ndarray):
            with np.errstate(over="ignore"):  # see `is_extreme`
                # In float64: rounding errors of equal terms add up in float32.
                squares = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)
                return squares.astype(self.rows.dtype, copy=False)
        return namespace(self.rows).sum(self.rows * self.rows, axis=1)

    @lazy_property
    def is_extreme(self) -> bool:
        """Whether these are float32 rows whose squares overflow or vanish in float32."""
        if isinstance(self.rows, list) or numpy_dtype(self.rows) != np.float32 or not len(self):
            return False
        xp = namespace(self.norms)
        with np.errstate(over="ignore"):
            largest = float(xp.max(self.norms))
        if _SMALL < largest < _LARGE:
            return False
        return bool(self.rows.count_nonzero()) if self.sparse else bool(xp.any(self.rows != 0))

    @property
    def double(self) -> Points:
        """The same rows in float64."""
        return self.mapped("double", lambda rows: cast_rows(rows, np.float64))

    @lazy_property
    def shift(self) -> Array | None:
        """The vector that distances to these rows are shifted by; None where it would not help."""
        if self.sparse or not len(self):
            return None
        at = np.unique(np.linspace(0, len(self) - 1, _SAMPLE).astype(np.int64))
        sample = to_numpy(take_rows(self.rows, like(at, self.rows))).astype(np.float64)
        sample = sample[np.isfinite(sample).all(axis=1)]
        if not len(sample):
            return None
        median = np.median(sample, axis=0)  # robust to outliers
        with np.errstate(over="ignore"):
            offset, typical = median @ median, np.median(np.einsum("ij,ij->i", sample, sample))
        return like(median, self.rows, numpy_dtype(self.rows)) if offset > 0.9 * typical else None

    def shifted(self, shift: Array | None) -> Points:
        """Return the rows minus a shift."""
        return self if shift is None else self.mapped(("shift", id(shift)), lambda x: x - shift)

    def full(self, value: float) -> Array:
        """Return an array of one value per row, on the device of the rows."""
        host = np.full(len(self), value)
        if self.sparse or isinstance(self.rows, list):
            return host
        return like(host, self.rows, numpy_dtype(self.rows))

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> Points:
        """Return f of the rows as points; computed once per key."""
        points: Points = self.cached(key, lambda points: Points(f(points.rows), points.start))
        return points

    def cached(self, key: Hashable, f: Callable[[Points], Any]) -> Any:
        """Return f of these points; computed once per key."""
        if key not in self._cache:
            self._cache[key] = f(self)
        return self._cache[key]

    def part(self, rows: slice) -> Points:
        """Return a slice of the rows, which shares what is computed from all of them."""
        return _Part(self, rows)


class _Part(Points):
    """A slice of other points: norms, shift and mapped rows are those of the whole."""

    def __init__(self, whole: Points, at: slice) -> None:
        super().__init__(slice_rows(whole.rows, at), whole.start + at.start)
        self._whole, self._at = whole, at

    @lazy_property
    def norms(self) -> Array:
        return self._whole.norms[self._at]

    @lazy_property
    def is_extreme(self) -> bool:
        return self._whole.is_extreme

    @lazy_property
    def shift(self) -> Array | None:
        return self._whole.shift

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> Points:
        return self._whole.mapped(key, f).part(self._at)


def cast_rows(rows: Any, dtype: Any) -> Any:
    """Return dense or sparse rows in another dtype; strings as they are."""
    if isinstance(rows, list):
        return rows
    return rows.astype(dtype, copy=False) if hasattr(rows, "tocsr") else cast(rows, dtype)


def slice_rows(rows: Any, at: slice | int) -> Any:
    """Return a slice of the rows, or one row."""
    return rows[at] if isinstance(rows, list) else rows[at, :]


def take_rows(rows: Any, at: Array) -> Any:
    """Return the rows with these numbers."""
    if isinstance(rows, list):
        return [rows[i] for i in at]
    if isinstance(rows, np.ndarray) or hasattr(rows, "tocsr"):
        return rows[at]
    return namespace(rows).take(rows, at, axis=0)


def column_map(columns: Sequence[int]) -> tuple[Hashable, Callable[[Any], Any]]:
    """Return the key and the function of a map of rows that selects columns."""
    chosen = [int(column) for column in columns]

    def select(rows: Any) -> Any:
        xp = namespace(rows)
        return rows[:, chosen] if xp is np else xp.take(rows, like(chosen, rows), axis=1)

    return ("columns", tuple(chosen)), select


def inverse_sqrt(squares: Any) -> Any:
    """Return 1/√s, and 0 where s is not positive."""
    xp = namespace(squares)
    positive = squares > 0
    return xp.where(positive, 1.0 / xp.sqrt(xp.where(positive, squares, 1.0)), 0.0 * squares)


def normalize_rows(rows: Any) -> Any:
    """Return rows divided by their norms; zero rows stay zero."""
    if rows.shape[1] == 0:
        return rows
    norms = Points(rows).norms
    xp, tiny = namespace(norms), float(np.finfo(numpy_dtype(norms)).tiny)
    # Squares may overflow or vanish where the entries do not: divide by the largest first.
    extreme = ~((norms > tiny**0.75) & (norms < tiny**-0.75))
    if bool(xp.any(extreme)):
        largest = _largest_entries(rows)
        one = 1.0 + 0.0 * largest
        rows = _scale_rows(rows, 1.0 / xp.where(extreme & (largest > 0), largest, one))
        norms = Points(rows).norms
    return _scale_rows(rows, inverse_sqrt(norms))


def _largest_entries(rows: Any) -> Any:
    """Return the largest absolute value of every row."""
    if hasattr(rows, "tocsr"):
        return abs(rows).max(axis=1).toarray().reshape(-1)
    xp = namespace(rows)
    return xp.max(xp.abs(rows), axis=1)


def _scale_rows(rows: Any, factors: Any) -> Any:
    if hasattr(rows, "tocsr"):
        scaled = rows.tocsr().copy()
        scaled.data *= np.repeat(factors, np.diff(scaled.indptr))
        return scaled
    return rows * factors[:, None]
