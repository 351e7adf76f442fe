"""Two groups of rows beside each other, and what kernels on them share.

A kernel writes its formula once, on a `Pair`, in the dot products and squared distances that
the pair hands out. Pairs are tiles of a block that fit the caches; the matrix products behind
them are made once for the block, in the memory that the result will take.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    device,
    namespace,
    numpy_dtype,
    on_accelerator,
    put,
    to_numpy,
)
from mercer.kernels.points import Points, lazy, left_side, right_side, rows_at, these

# Squared distances below this share of the squared lengths have lost digits to cancellation:
# they are summed again, entry by entry.
CLOSE = {np.dtype(np.float32): 2e-2, np.dtype(np.float64): 1e-3}
_AGAIN, _DEVICE_AGAIN = 2**20, 2**26
# More of them in a tile are worth a compiled loop; fewer are not worth importing numba.
_MANY = 4096
# Tiles are this many columns wide at most, and as tall as fills so many bytes.
_ACROSS = 1024
_TILE_BYTES = 2**19
# Entries of a part of a block, on a device, that is searched for rows that are close.
_DEVICE_TILE = 2**25


class Beside:
    """All rows of one group beside all rows of another: a block of a kernel matrix.

    `room` holds a NumPy array that the first matrix product may be written to.
    """

    def __init__(self, x: Points, y: Points, room: list[Array] | None = None) -> None:
        self.x, self.y = x, y
        self.room = [] if room is None else room
        self._made: dict[Hashable, Beside] = {}

    @lazy
    def dot(self) -> Array:
        """Dot products."""
        return self._product(self.x, self.y)

    @lazy
    def centred(self) -> tuple[Points, Points, Array]:
        """Both groups, shifted where that keeps digits, and their dot products."""
        shift = self.y.shift
        if shift is None:
            return self.x, self.y, self.dot
        x, y = self.x.shifted(shift), self.y.shifted(shift)
        return x, y, self._product(x, y)

    @lazy
    def apart(self) -> Array:
        """Squared distances, not checked for rows that are close; of rows on a device.

        One product of rows with their squared lengths beside them: there a pass over the result
        costs more than two columns.
        """
        shift = self.y.shift
        x, y = self.x.shifted(shift), self.y.shifted(shift)
        return x.through("left", left_side).rows @ y.through("right", right_side).rows.T

    def through(self, key: Hashable, f: Callable[[Any], Any]) -> Beside:
        """Return both groups through a map."""
        if key not in self._made:
            x, y = self.x.through(key, f), self.y.through(key, f)
            self._made[key] = Beside(x, y, self.room)
        return self._made[key]

    def tiles(self, whole: bool = False) -> Iterator[Pair]:
        """Yield pairs that fit the caches; or all of it at once."""
        n, m = len(self.x), len(self.y)
        if whole:
            yield Pair(self, slice(0, n), slice(0, m))
            return
        item = 8 if isinstance(self.x.rows, list) else numpy_dtype(self.x.rows).itemsize
        across = max(1, min(m, _ACROSS))
        down = max(1, _TILE_BYTES // (item * across))
        for i in range(0, n, down):
            for j in range(0, m, across):
                yield Pair(self, slice(i, min(i + down, n)), slice(j, min(j + across, m)))

    def _product(self, x: Points, y: Points) -> Array:
        if x.sparse and y.sparse:
            from mercer.kernels.compressed import product

            if x.rows.shape[1] != y.rows.shape[1]:  # the compiled loop would read beyond an end
                raise ValueError(f"rows of {x.rows.shape[1]} and {y.rows.shape[1]} columns")
            dtype = np.result_type(x.rows.dtype, y.rows.dtype)
            out = self.room.pop() if self.room else np.empty((len(x), len(y)), dtype)
            product(x.rows.tocsr(), y.once("columns", lambda y: y.rows.tocsc()), out)
            return out
        if x.sparse or y.sparse:
            return np.asarray(x.rows @ y.rows.T)
        if not self.room:
            return x.rows @ y.rows.T
        return np.matmul(x.rows, y.rows.T, out=self.room.pop())


class Pair:
    """Some rows of one group beside some of another: what a kernel's formula is written in."""

    def __init__(self, block: Beside, rows: slice, columns: slice) -> None:
        self.block, self.rows, self.columns = block, rows, columns

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what a kernel makes of it."""
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    @property
    def left(self) -> Points:
        """The rows of the one group."""
        return Points(these(self.block.x.rows, self.rows))

    @property
    def dot(self) -> Array:
        """Dot products; not to be written to."""
        return self.block.dot[self.rows, self.columns]

    @property
    def lengths(self) -> tuple[Array, Array]:
        """Squared lengths of the one and of the other, to broadcast."""
        return self.block.x.norms[self.rows][:, None], self.block.y.norms[self.columns][None, :]

    @lazy
    def sqdist(self) -> Array:
        """Squared distances; never negative, and zero between equal rows."""
        if on_accelerator(self.block.x.rows):
            shift = self.block.y.shift
            x, y = self.block.x.shifted(shift), self.block.y.shifted(shift)
            return self._checked_there(x, y, self.block.apart[self.rows, self.columns])
        x, y, dot = self.block.centred
        if x.sparse and y.sparse:
            return self._apart_sparse(x, y, dot)
        apart = dot[self.rows, self.columns] * -2.0
        apart += x.norms[self.rows][:, None]
        apart += y.norms[self.columns][None, :]
        return self._checked(x, y, apart)

    def _checked(self, x: Points, y: Points, apart: Array) -> Array:
        """Return squared distances, those between close rows summed again; in place."""
        left, right = x.norms[self.rows][:, None], y.norms[self.columns][None, :]
        if 0 in apart.shape:
            return apart
        xp, share = namespace(apart), CLOSE[numpy_dtype(apart)]
        # Most tiles have no rows that are close, and need no more than their least entry.
        least = float(xp.min(apart))
        if least > share * float(xp.max(left) + xp.max(right)):
            return apart
        both = left + right
        close = apart <= share * both
        if least != least:  # what overflowed is summed again; rows with a NaN stay NaN
            close |= (apart != apart) & (both == both)
        return self._again(apart, close) if bool(xp.any(close)) else apart

    def _checked_there(self, x: Points, y: Points, apart: Array) -> Array:
        """Return the same on a device: only the parts with close rows are looked at twice."""
        n, m = self.shape
        xp, wide = namespace(apart), max(1, _DEVICE_TILE // max(1, n))
        parts = [slice(j, min(j + wide, m)) for j in range(0, m if n else 0, wide)]
        if not parts:
            return apart
        # One wait for all of them.
        least = to_numpy(xp.stack([xp.min(apart[:, part]) for part in parts]))
        right = y.norms[self.columns]
        most = to_numpy(xp.stack([xp.max(right[part]) for part in parts]))
        far = float(xp.max(x.norms[self.rows])) + most
        share = CLOSE[numpy_dtype(apart)]
        for at in np.flatnonzero(~(least > share * far)):
            columns, first = parts[at], self.columns.start
            tile = Pair(self.block, self.rows, slice(first + columns.start, first + columns.stop))
            tile._checked(x, y, apart[:, columns])
        return apart

    def _apart_sparse(self, x: Points, y: Points, dot: Array) -> Array:
        from mercer.kernels.compressed import apart

        part = dot[self.rows, self.columns]
        norms = x.norms[self.rows], y.norms[self.columns]
        left, right = (x.rows.tocsr(), self.rows), (y.rows.tocsr(), self.columns)
        return apart(part, norms, CLOSE[part.dtype], left, right)

    def _again(self, apart: Array, close: Array) -> Array:
        """Sum the squared distances that are marked from the differences themselves.

        Of the rows as they were given: a shift rounds each of them, and the distance of two that
        are close may be less than that.
        """
        x, y = self.block.x, self.block.y
        here, there = these(x.rows, self.rows), these(y.rows, self.columns)
        dense = isinstance(here, np.ndarray) and isinstance(there, np.ndarray)
        if dense and np.count_nonzero(close) > _MANY:
            from mercer.kernels import loops

            loops.apart_where(close, here, there, apart)
            return apart
        xp = namespace(apart)
        # Ten times as fast as the nonzero entries of two axes.
        (flat,) = xp.nonzero(xp.reshape(close, (-1,)))
        at, beside = flat // close.shape[1], flat % close.shape[1]
        once = _DEVICE_AGAIN if on_accelerator(apart) else _AGAIN
        many, some = int(at.shape[0]), max(1, once // max(1, int(x.rows.shape[1])))
        for start in range(0, many, some):
            part = slice(start, min(start + some, many))
            i, j = at[part], beside[part]
            apart = put(apart, i, j, xp.sum((rows_at(here, i) - rows_at(there, j)) ** 2, axis=1))
        return apart

    def entrywise(self, kernel: Any) -> Array:
        """Return Σ_l of a kernel's `entries` over the columns l of both."""
        for points in (self.block.x, self.block.y):
            require_dense(kernel, points.rows)
        x, y = self.block.x.rows[self.rows, :], self.block.y.rows[self.columns, :]
        if isinstance(x, np.ndarray):
            out = np.empty(self.shape, x.dtype)
            kernel.loop(x, y, out)
            return out
        xp = namespace(x)
        out = xp.zeros(self.shape, dtype=x.dtype, device=device(x))
        for column in range(int(x.shape[1])):
            out = out + kernel.entries(xp, x[:, column][:, None], y[:, column][None, :])
        return out

    def through(self, key: Hashable, f: Callable[[Any], Any]) -> Pair:
        """Return both groups through a map."""
        return Pair(self.block.through(key, f), self.rows, self.columns)

    def diagonals(self, kernel: Any) -> tuple[Array, Array]:
        """Return k(x, x) and k(y, y), to broadcast."""
        x, y = (points.once(kernel, kernel.on_itself) for points in (self.block.x, self.block.y))
        return x[self.rows][:, None], y[self.columns][None, :]


class Diagonal:
    """Every row beside itself: the same formula gives the diagonal."""

    def __init__(self, points: Points) -> None:
        self.points = points

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what a kernel makes of it."""
        return (len(self.points),)

    @property
    def dot(self) -> Array:
        """Squared lengths."""
        return self.points.norms

    @property
    def lengths(self) -> tuple[Array, Array]:
        """Squared lengths, twice."""
        return self.points.norms, self.points.norms

    @property
    def sqdist(self) -> Array:
        """Zeros; NaN for rows with a NaN."""
        return ones(self.points.norms) - 1.0

    def entrywise(self, kernel: Any) -> Array:
        """Return Σ_l of a kernel's `entries` over the columns l."""
        require_dense(kernel, self.points.rows)
        xp, rows = namespace(self.points.rows), self.points.rows
        return xp.sum(kernel.entries(xp, rows, rows), axis=1)

    def through(self, key: Hashable, f: Callable[[Any], Any]) -> Diagonal:
        """Return the rows through a map."""
        return Diagonal(self.points.through(key, f))

    def diagonals(self, kernel: Any) -> tuple[Array, Array]:
        """Return k(x, x), twice."""
        own = self.points.once(kernel, kernel.on_itself)
        return own, own


def ones(norms: Array) -> Array:
    """Return a 1 for every row; NaN where the squared length is NaN, and 1 where it overflows."""
    xp = namespace(norms)
    return xp.where(norms == norms, xp.ones_like(norms), norms)


def require_dense(kernel: Any, rows: Any) -> None:
    """Refuse sparse rows: for kernels that are not made of dot products."""
    if hasattr(rows, "tocsr"):
        raise ValueError(f"{kernel!r} needs dense rows. Pass X.toarray().")
