"""Rows on one side of a kernel matrix, and what is known of them alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from mercer.arrays import Array, cast, like, namespace, numpy_dtype, to_numpy

# As many rows tell where all lie, and how far they spread.
_SAMPLE = 64
# Columns of a matrix product on a device are a multiple of this, or its loads are not aligned.
_SUITS = 8

# Squared lengths between these leave float32 room for products.
_SMALL, _LARGE = 1e-30, 1e30

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 (a decorator)
    """A property that is computed once.

    Without the lock of `functools.cached_property`, which before Python 3.12 lets one thread
    at a time compute it, in all objects together.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self.compute.__name__] = self.compute(instance)
        return value


class Points:
    """Rows, with what is known of them alone: squared lengths, a shift, what maps make of them.

    Distances do not change when both sides are shifted; digits do. Rows whose middle is far
    from zero for their spread are shifted by it before they are squared.
    """

    def __init__(self, rows: Any, start: int = 0) -> None:
        self.rows, self.start = rows, start
        self.sparse = hasattr(rows, "tocsr")
        self._made: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])

    @lazy
    def norms(self) -> Array:
        """Squared length of every row."""
        if self.sparse:
            return np.asarray(self.rows.multiply(self.rows).sum(axis=1)).reshape(-1)
        if isinstance(self.rows, np.ndarray):  # summed in float64: sums of equal terms drift
            with np.errstate(over="ignore"):  # `extreme` tells
                squares = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)
                return squares.astype(self.rows.dtype, copy=False)
        return namespace(self.rows).sum(self.rows * self.rows, axis=1)

    @lazy
    def extreme(self) -> bool:
        """Whether these are float32 rows whose squares are too large, or too small, for float32."""
        if isinstance(self.rows, list) or numpy_dtype(self.rows) != np.float32 or not len(self):
            return False
        xp = namespace(self.norms)
        with np.errstate(over="ignore"):
            largest = float(xp.max(self.norms))
        if _SMALL < largest < _LARGE:
            return False
        return bool(self.rows.count_nonzero()) if self.sparse else bool(xp.any(self.rows != 0))

    @lazy
    def double(self) -> Points:
        """The same rows in float64."""
        return self.through("double", lambda rows: _as_double(rows))

    @lazy
    def shift(self) -> Array | None:
        """What distances to these rows are shifted by; None where it would gain nothing."""
        if self.sparse or not len(self):
            return None
        at = np.unique(np.linspace(0, len(self) - 1, _SAMPLE).astype(np.int64))
        some = to_numpy(rows_at(self.rows, like(at, self.rows))).astype(np.float64)
        some = some[np.isfinite(some).all(axis=1)]
        if not len(some):
            return None
        # Medians: a few rows that lie elsewhere do not move them.
        middle = np.median(some, axis=0)
        with np.errstate(over="ignore"):
            far, usual = middle @ middle, np.median(np.einsum("ij,ij->i", some, some))
        return like(middle, self.rows, numpy_dtype(self.rows)) if far > 0.9 * usual else None

    def shifted(self, shift: Array | None) -> Points:
        """Return the rows less a shift."""
        return self if shift is None else self.through(("shift", id(shift)), lambda x: x - shift)

    def full(self, value: float) -> Array:
        """Return the same number for every row, where the rows live."""
        host = np.full(len(self), value)
        if self.sparse or isinstance(self.rows, list):
            return host
        return like(host, self.rows, numpy_dtype(self.rows))

    def through(self, key: Hashable, f: Callable[[Any], Any]) -> Points:
        """Return what a map makes of the rows; made once for every key."""
        if key not in self._made:
            self._made[key] = Points(f(self.rows), self.start)
        made: Points = self._made[key]
        return made

    def once(self, key: Hashable, f: Callable[[Points], Any]) -> Any:
        """Return f of these points; computed once for every key."""
        if key not in self._made:
            self._made[key] = f(self)
        return self._made[key]

    def part(self, rows: slice) -> Points:
        """Return some of the rows, which share what is known of all."""
        return Part(self, rows)


class Part(Points):
    """Some of the rows of a group: lengths, shift and maps are those of the group."""

    def __init__(self, whole: Points, rows: slice) -> None:
        super().__init__(these(whole.rows, rows), whole.start + rows.start)
        self._whole, self._at = whole, rows

    @lazy
    def norms(self) -> Array:
        """Squared length of every row."""
        return self._whole.norms[self._at]

    @lazy
    def extreme(self) -> bool:
        """Whether the group's squares are too large, or too small, for float32."""
        return self._whole.extreme

    @lazy
    def shift(self) -> Array | None:
        """What distances to these rows are shifted by."""
        return self._whole.shift

    def through(self, key: Hashable, f: Callable[[Any], Any]) -> Points:
        """Return what a map makes of the rows; made once, of the whole group."""
        return self._whole.through(key, f).part(self._at)


def _as_double(rows: Any) -> Any:
    return rows.astype(np.float64) if hasattr(rows, "tocsr") else cast(rows, np.float64)


def these(rows: Any, at: slice | int) -> Any:
    """Return some rows, or one: of strings, or of an array of any library."""
    return rows[at] if isinstance(rows, list) else rows[at, :]


def rows_at(rows: Any, at: Array) -> Any:
    """Return the named rows, dense."""
    if hasattr(rows, "tocsr"):
        return rows[at].toarray()
    return rows[at] if isinstance(rows, np.ndarray) else namespace(rows).take(rows, at, axis=0)


def left_side(rows: Array) -> Array:
    """Return rows, their squared lengths and ones: one side of all squared distances."""
    norms, one = _beside(rows)
    return _wide([rows, norms, one])


def right_side(rows: Array) -> Array:
    """Return −2 times the rows, ones and their squared lengths: the other side."""
    norms, one = _beside(rows)
    return _wide([-2.0 * rows, one, norms])


def _beside(rows: Array) -> tuple[Array, Array]:
    norms = namespace(rows).sum(rows * rows, axis=1)[:, None]
    return norms, 0.0 * norms + 1.0


def _wide(parts: list[Array]) -> Array:
    """Put columns beside each other, and zeros, so that their number suits a matrix product."""
    width = sum(int(part.shape[1]) for part in parts)
    parts += [0.0 * parts[-1]] * (-width % _SUITS)
    return namespace(parts[0]).concat(parts, axis=1)
