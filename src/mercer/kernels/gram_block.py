"""A block of a kernel matrix: dot products, and squared distances that keep their digits.

Squared distances are ‖x‖² + ‖y‖² − 2xᵀy, after a shift that makes the norms small; where that
still cancels, the differences of the rows are squared and summed. The end of the module bounds
the rounding errors of both, in unit roundoffs, for `Kernel.roundings`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, namespace, numpy_dtype, on_accelerator, put, to_numpy
from mercer.arrays.rounding import FEW, summed
from mercer.kernels.points import Points, lazy_property, slice_rows, take_rows

# Tiles have at most this many columns, and as many rows as fill this many bytes.
_TILE_COLUMNS = 1024
_TILE_BYTES = 2**19
# Squared distances below this fraction of the squared norms have lost digits to cancellation:
# they are summed again from the differences.
_CLOSE = {np.dtype(np.float32): 2e-2, np.dtype(np.float64): 1e-3}
# Entries of the differences that are in memory at once, on the host and on a device.
_CHUNK, _DEVICE_CHUNK = 2**20, 2**26
# More close pairs in a tile are worth a compiled loop; fewer are not worth importing numba.
_MANY = 4096
# Entries of a part of a block, on a device, that is searched for close rows.
_DEVICE_TILE = 2**25
# Columns of a matrix product on a device are a multiple of this, for aligned loads.
_ALIGNMENT = 8


class GramBlock:
    """All rows of x against all rows of y; what is computed once is kept.

    Parameters
    ----------
    x, y : Points
    out : list of ndarray
        At most one NumPy array that the first matrix product may be written to.
    """

    def __init__(self, x: Points, y: Points, out: list[Array] | None = None) -> None:
        self.x, self.y = x, y
        self._out = [] if out is None else out
        self._cache: dict[Hashable, GramBlock] = {}

    def tiles(self) -> Iterator[tuple[slice, slice]]:
        """Yield the rows and columns of tiles that fit the cache."""
        n, m = len(self.x), len(self.y)
        itemsize = 8 if isinstance(self.x.rows, list) else numpy_dtype(self.x.rows).itemsize
        width = max(1, min(m, _TILE_COLUMNS))
        height = max(1, _TILE_BYTES // (itemsize * width))
        for i in range(0, n, height):
            for j in range(0, m, width):
                yield slice(i, min(i + height, n)), slice(j, min(j + width, m))

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> GramBlock:
        """Return the block of f(x) and f(y); computed once per key."""
        if key not in self._cache:
            x, y = self.x.mapped(key, f), self.y.mapped(key, f)
            self._cache[key] = GramBlock(x, y, self._out)
        return self._cache[key]

    @lazy_property
    def dot(self) -> Array:
        """Dot products."""
        return self._product(self.x, self.y)

    def _product(self, x: Points, y: Points) -> Array:
        if x.sparse and y.sparse:
            from mercer.kernels.loops import sparse_product

            if x.rows.shape[1] != y.rows.shape[1]:  # the compiled loop would read beyond an end
                raise ValueError(f"rows of {x.rows.shape[1]} and {y.rows.shape[1]} columns")
            dtype = np.result_type(x.rows.dtype, y.rows.dtype)
            out = self._out.pop() if self._out else np.empty((len(x), len(y)), dtype)
            sparse_product(x.rows.tocsr(), y.cached("columns", lambda y: y.rows.tocsc()), out)
            return out
        if x.sparse or y.sparse:
            return np.asarray(x.rows @ y.rows.T)
        if not self._out:
            return x.rows @ y.rows.T
        return np.matmul(x.rows, y.rows.T, out=self._out.pop())

    def sqdist(self, rows: slice, columns: slice) -> Array:
        """Return the squared distances of a tile."""
        if on_accelerator(self.x.rows):
            return self._repair_on_device(self._device_sqdist[rows, columns], rows, columns)
        x, y = self._shifted
        dot = self._shifted_dot[rows, columns]
        if x.sparse and y.sparse:
            from mercer.kernels.loops import sparse_sqdist

            norms = x.norms[rows], y.norms[columns]
            return sparse_sqdist(dot, norms, _CLOSE[dot.dtype], (x.rows, rows), (y.rows, columns))
        sqdist = dot * -2.0
        sqdist += x.norms[rows][:, None]
        sqdist += y.norms[columns][None, :]
        return self._repair(sqdist, rows, columns)

    @lazy_property
    def _shifted(self) -> tuple[Points, Points]:
        shift = self.y.shift
        return self.x.shifted(shift), self.y.shifted(shift)

    @lazy_property
    def _shifted_dot(self) -> Array:
        return self.dot if self.y.shift is None else self._product(*self._shifted)

    @lazy_property
    def _device_sqdist(self) -> Array:
        """Squared distances on a device, cancellation not yet repaired.

        One product of rows extended by their squared norms: on a device a pass over the result
        costs more than two columns.
        """
        x, y = self._shifted
        return x.mapped("left", _extend_left).rows @ y.mapped("right", _extend_right).rows.T

    def _repair(self, sqdist: Array, rows: slice, columns: slice) -> Array:
        """Sum the squared distances of close rows again, in place."""
        if 0 in sqdist.shape:
            return sqdist
        x, y = self._shifted
        left, right = x.norms[rows][:, None], y.norms[columns][None, :]
        xp, fraction = namespace(sqdist), _CLOSE[numpy_dtype(sqdist)]
        # Most tiles have no close rows, and their smallest entry tells.
        least = float(xp.min(sqdist))
        if least > fraction * float(xp.max(left) + xp.max(right)):
            return sqdist
        both = left + right
        close = sqdist <= fraction * both
        if least != least:  # overflows are summed again; rows with a NaN stay NaN
            close |= (sqdist != sqdist) & (both == both)
        if not bool(xp.any(close)):
            return sqdist
        # Of the rows before the shift: it rounds every row, by more than close rows may differ.
        return _sum_where(
            close, slice_rows(self.x.rows, rows), slice_rows(self.y.rows, columns), sqdist
        )

    def _repair_on_device(self, sqdist: Array, rows: slice, columns: slice) -> Array:
        """Do the same on a device, reading only the parts that contain close rows twice."""
        n, m = sqdist.shape
        xp, width = namespace(sqdist), max(1, _DEVICE_TILE // max(1, n))
        parts = [slice(j, min(j + width, m)) for j in range(0, m if n else 0, width)]
        if not parts:
            return sqdist
        x, y = self._shifted
        # One synchronisation for all parts.
        least = to_numpy(xp.stack([xp.min(sqdist[:, part]) for part in parts]))
        right = y.norms[columns]
        most = to_numpy(xp.stack([xp.max(right[part]) for part in parts]))
        largest = float(xp.max(x.norms[rows])) + most
        for at in np.flatnonzero(~(least > _CLOSE[numpy_dtype(sqdist)] * largest)):
            part, first = parts[at], columns.start
            there = slice(first + part.start, first + part.stop)
            self._repair(sqdist[:, part], rows, there)
        return sqdist


def _sum_where(close: Array, x: Any, y: Any, sqdist: Array) -> Array:
    """Sum the marked squared distances from the differences of the rows."""
    dense = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    if dense and np.count_nonzero(close) > _MANY:
        from mercer.kernels.loops import sqdist_where

        sqdist_where(close, x, y, sqdist)
        return sqdist
    xp = namespace(sqdist)
    # Ten times as fast as nonzero of two axes.
    (flat,) = xp.nonzero(xp.reshape(close, (-1,)))
    rows, columns = flat // close.shape[1], flat % close.shape[1]
    chunk = _DEVICE_CHUNK if on_accelerator(sqdist) else _CHUNK
    count, step = int(rows.shape[0]), max(1, chunk // max(1, int(x.shape[1])))
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        i, j = rows[part], columns[part]
        difference = _dense(take_rows(x, i)) - _dense(take_rows(y, j))
        sqdist = put(sqdist, i, j, xp.sum(difference**2, axis=1))
    return sqdist


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "tocsr") else rows


def _extend_left(rows: Array) -> Array:
    """Return (x, ‖x‖², 1): one factor of all squared distances."""
    norms = namespace(rows).sum(rows * rows, axis=1)[:, None]
    return _concatenate([rows, norms, 0.0 * norms + 1.0])


def _extend_right(rows: Array) -> Array:
    """Return (−2y, 1, ‖y‖²): the other factor."""
    norms = namespace(rows).sum(rows * rows, axis=1)[:, None]
    return _concatenate([-2.0 * rows, 0.0 * norms + 1.0, norms])


def _concatenate(parts: list[Array]) -> Array:
    """Concatenate columns, padded with zeros to an aligned width."""
    width = sum(int(part.shape[1]) for part in parts)
    parts += [0.0 * parts[-1]] * (-width % _ALIGNMENT)
    return namespace(parts[0]).concat(parts, axis=1)


# Error bounds in unit roundoffs u of a dtype, for `Kernel.roundings`.


def dot_error(x: Points, dtype: Any) -> float:
    """Return C with |error of xᵀy| ≤ C u ‖x‖‖y‖."""
    reference = None if isinstance(x.rows, list) or x.sparse else x.rows
    return summed(x.width, dtype, reference) + FEW


def sqdist_errors(x: Points, y: Points, dtype: Any) -> tuple[float, Vector]:
    """Return C and, for each row of x, D with |error of ‖x−y‖²| ≤ min(C u ‖x−y‖², D u).

    D: the dot product and the squared norms that make a distance are at most ‖x‖² + ‖y‖². C: a
    squared distance below the fraction `_CLOSE` of that sum is summed from the differences.
    """
    per_norm = 2.0 * dot_error(x, dtype)
    shift = y.shift
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = x.shifted(shift).norms, y.shifted(shift).norms
        largest = float(namespace(right).max(right)) if len(y) else 0.0
        norms = to_numpy(left).astype(np.float64) + largest
    norms = np.where(np.isnan(norms), np.inf, norms)
    return per_norm / _CLOSE[np.dtype(dtype)], per_norm * norms


def power_error(error: Any, power: int, dtype: Any) -> Any:
    """Return the relative error of a power, given that of its base."""
    u = float(np.finfo(dtype).eps) / 2
    with np.errstate(over="ignore"):
        return np.expm1(power * np.log1p(error * u)) / u
