"""One side of a block of a kernel matrix: rows, with their squared norms cached."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from mercer.arrays import Array, cast, like, namespace, numpy_dtype, squared_norms, to_numpy

# Rows that are sampled to find where all of them lie.
_SAMPLE = 64
# Squared norms in this range leave float32 room for products.
_SMALL, _LARGE = 1e-30, 1e30

T = TypeVar("T")


class lazy_property(Generic[T]):  # noqa: N801 (a decorator)
    """A `functools.cached_property` without a lock, which all threads share before Python 3.12."""

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
    """

    def __init__(self, rows: Any, start: int = 0) -> None:
        # An array, a sparse matrix or a list of str; the number of the first row, for errors.
        self.rows, self.start = rows, start
        self.sparse = hasattr(rows, "tocsr")
        # Strings have one column.
        self.width = 1 if isinstance(rows, list) else int(rows.shape[1])
        self._cache: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])

    @lazy_property
    def norms(self) -> Array:
        if self.sparse:
            return squared_norms(self.rows)
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
        return self.mapped("double", lambda rows: cast_rows(rows, np.float64))

    @lazy_property
    def shift(self) -> Array | None:
        """The vector that distances to these rows are shifted by; None where it would not help."""
        if self.sparse or not len(self):
            return None
        at = np.linspace(0, len(self) - 1, min(_SAMPLE, len(self))).astype(np.int64)
        sample = to_numpy(take_rows(self.rows, like(at, self.rows))).astype(np.float64)
        sample = sample[np.isfinite(sample).all(axis=1)]
        if not len(sample):
            return None
        with np.errstate(over="ignore"):
            norms, sample = np.sort((sample * sample).sum(axis=1)), np.sort(sample, axis=0)
            # Medians, which are robust to outliers; np.median is slow on few rows.
            low, high = (len(sample) - 1) // 2, len(sample) // 2
            median, typical = 0.5 * (sample[low] + sample[high]), 0.5 * (norms[low] + norms[high])
            helps = median @ median > 0.9 * typical
        return like(median, self.rows, numpy_dtype(self.rows)) if helps else None

    def shifted(self, shift: Array) -> Points:
        def move(rows: Any) -> Any:
            return (rows.toarray() if self.sparse else rows) - shift

        return self.mapped(("shift", id(shift)), move)

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


def inverse_sqrt(squares: Any) -> Any:
    """Return 1/√s, and 0 where s is not positive."""
    xp = namespace(squares)
    positive = squares > 0
    return xp.where(positive, 1.0 / xp.sqrt(xp.where(positive, squares, 1.0)), 0.0 * squares)
