"""Pairs of rows, in which kernels write their formulas.

`Pair` names what kernels of two rows share: dot products, squared distances, sums over columns.
`TilePair` computes them for a tile of the kernel matrix that fits the cache.

Squared distances are ‖x‖² + ‖y‖² − 2xᵀy, after a shift that makes the norms small; where that
still cancels, the differences of the rows are squared and summed. The end of the module bounds
the rounding errors of both, in unit roundoffs, for `Kernel.roundings`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import (
    CSR,
    FEW,
    Array,
    Vector,
    dense_remedy,
    device,
    namespace,
    numpy_dtype,
    on_accelerator,
    put,
    reference_of,
    row_products,
    summed,
    to_numpy,
)
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


@dataclass(frozen=True)
class ColumnSum:
    """A sum over columns, Σ_l f(x_l, y_l), that is not a matrix product."""

    term: Callable[[Any, Array, Array], Array]
    """f(xp, x, y) for arrays of the namespace xp that broadcast."""
    loop: str
    """The compiled loop of `loops.py` for NumPy rows."""


@dataclass(frozen=True)
class Slopes:
    """Derivatives of a kernel by what a pair holds: dot product, squared distance, norm of x.

    Attributes
    ----------
    dot, sqdist, norm : array or float
        ∂k/∂(xᵀy), ∂k/∂‖x−y‖² and ∂k/∂‖x‖².
    columns : tuple of int or None
        The columns of x and y that they refer to; None for all.

    Examples
    --------
    >>> from mercer.kernels import Slopes
    >>> Slopes(dot=2.0).times(3.0)
    Slopes(dot=6.0, sqdist=0.0, norm=0.0, columns=None)
    """

    dot: Any = 0.0
    sqdist: Any = 0.0
    norm: Any = 0.0
    columns: tuple[Any, ...] | None = None

    def times(self, factor: Any) -> Slopes:
        return Slopes(self.dot * factor, self.sqdist * factor, self.norm * factor, self.columns)


class Pair:
    """Rows x and y, with the quantities that kernels use."""

    groups: tuple[Points, ...] = ()
    """The points that the rows are taken from, where they are in memory."""
    sides: Any
    """The rows x and the rows y themselves."""
    dot: Any
    """Dot products xᵀy; must not be written to."""
    sqdist: Any
    """Squared distances: never negative, zero between equal rows, accurate for close rows."""
    norms: Any
    """Squared norms of x and of y, which broadcast to the shape of the values."""
    diagonal: Any
    """Every row x paired with itself: a pair."""
    column_sum: Callable[[ColumnSum, Any], Any]
    """Returns Σ_l f(x_l, y_l) over the columns l, for f and the kernel that asks."""
    diagonals: Callable[[Any], tuple[Any, Any]]
    """Returns k(x, x) and k(y, y) of a kernel, which broadcast to the shape of the values."""
    mapped: Callable[[Hashable, Callable[[Any], Any]], Pair]
    """Returns the pair of f(x) and f(y) for a key and f, computed once per key."""


class TilePair(Pair):
    """Some rows of x against some rows of y, which are the columns of the tile.

    Tiles of the same x and y share the matrix products of all rows: `shared` has them by name,
    and the dictionaries of mapped rows. Its "out" lists at most one array, for the first product.
    """

    def __init__(
        self, x: Points, y: Points, rows: slice, columns: slice, shared: dict[Hashable, Any]
    ) -> None:
        self.groups, self.rows, self.columns, self.shared = (x, y), rows, columns, shared

    @classmethod
    def between(cls, x: Points, y: Points) -> TilePair:
        """Return the pair of all rows of x and all rows of y."""
        return cls(x, y, slice(0, len(x)), slice(0, len(y)), {"out": []})

    @classmethod
    def tiles(cls, x: Points, y: Points, out: list[Array] | None = None) -> Iterator[TilePair]:
        """Yield tiles of x and y that fit the cache; the first product may be written to `out`."""
        n, m = len(x), len(y)
        shared: dict[Hashable, Any] = {"out": [] if out is None else out}
        itemsize = 8 if isinstance(x.rows, list) else numpy_dtype(x.rows).itemsize
        width = max(1, min(m, _TILE_COLUMNS))
        height = max(1, _TILE_BYTES // (itemsize * width))
        for i in range(0, n, height):
            for j in range(0, m, width):
                rows, columns = slice(i, min(i + height, n)), slice(j, min(j + width, m))
                yield cls(x, y, rows, columns, shared)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    @property
    def sides(self) -> tuple[Any, Any]:
        x, y = self.groups
        return slice_rows(x.rows, self.rows), slice_rows(y.rows, self.columns)

    @property
    def dot(self) -> Array:
        return self._product("dot", *self.groups)[self.rows, self.columns]

    def _product(self, name: str, x: Points, y: Points) -> Array:
        """Return the dot products of all rows of x and y; computed once for all tiles."""
        if name in self.shared:
            return self.shared[name]
        out = self.shared["out"].pop() if self.shared["out"] else None
        if x.sparse and y.sparse and isinstance(x.rows.data, np.ndarray):
            from mercer.kernels.loops import sparse_product

            if x.width != y.width:  # the compiled loop would read beyond an end
                raise ValueError(f"rows of {x.width} and {y.width} columns")
            if out is None:
                out = np.empty((len(x), len(y)), np.result_type(x.rows.dtype, y.rows.dtype))
            a, b = x.rows.tocsr(), y.cached("columns", lambda y: y.rows.tocsc())
            sparse_product((a.indptr, a.indices, a.data), (b.indptr, b.indices, b.data), out)
        elif x.sparse or y.sparse:
            out = row_products(x.rows, y.rows)
        else:
            out = x.rows @ y.rows.T if out is None else np.matmul(x.rows, y.rows.T, out=out)
        self.shared[name] = out
        return out

    @lazy_property
    def sqdist(self) -> Array:
        x, y = self.groups
        shift = y.shift
        if shift is not None:
            x, y = x.shifted(shift), y.shifted(shift)
        left, right = x.norms[self.rows], y.norms[self.columns]
        on_device = on_accelerator(x.rows)
        if on_device and not (x.sparse or y.sparse):
            return self._repair_parts(self._extended_product(x, y), left, right)
        product = self._product("dot" if shift is None else "shifted dot", x, y)
        sqdist = product[self.rows, self.columns] * -2.0
        sqdist += left[:, None]
        sqdist += right[None, :]
        if on_device:
            return self._repair_parts(sqdist, left, right)
        return self._repair(sqdist, left, right, self.columns)

    def _extended_product(self, x: Points, y: Points) -> Array:
        """Return squared distances on a device, by one product of rows extended by squared norms.

        A pass over the result would cost more than two columns.
        """
        if "device" not in self.shared:
            a = x.mapped("left", functools.partial(_extend, left=True)).rows
            b = y.mapped("right", functools.partial(_extend, left=False)).rows
            self.shared["device"] = a @ b.T
        return self.shared["device"][self.rows, self.columns]

    def _repair_parts(self, sqdist: Array, left: Array, right: Array) -> Array:
        """Repair a block on a device; parts without close rows are read once."""
        (n, m), xp = sqdist.shape, namespace(sqdist)
        width = max(1, _DEVICE_TILE // max(1, n))
        parts = [slice(j, min(j + width, m)) for j in range(0, m if n else 0, width)]
        if not parts:
            return sqdist
        # One synchronisation for all parts.
        least = to_numpy(xp.stack([xp.min(sqdist[:, part]) for part in parts]))
        most = to_numpy(xp.stack([xp.max(right[part]) for part in parts]))
        largest, first = float(xp.max(left)) + most, self.columns.start
        for i in np.flatnonzero(~(least > _CLOSE[numpy_dtype(sqdist)] * largest)):
            columns = slice(first + parts[i].start, first + parts[i].stop)
            self._repair(sqdist[:, parts[i]], left, right[parts[i]], columns)
        return sqdist

    def _repair(self, sqdist: Array, left: Array, right: Array, columns: slice) -> Array:
        """Sum the squared distances of close rows again from their differences, in place.

        `left` and `right` are the squared norms of the rows and of these columns.
        """
        if 0 in sqdist.shape:
            return sqdist
        xp, fraction = namespace(sqdist), _CLOSE[numpy_dtype(sqdist)]
        # Most tiles have no close rows, and their smallest entry tells.
        least = float(xp.min(sqdist))
        if least > fraction * float(xp.max(left) + xp.max(right)):
            return sqdist
        both = left[:, None] + right[None, :]
        close = sqdist <= fraction * both
        if least != least:  # overflows are summed again; rows with a NaN stay NaN
            close |= (sqdist != sqdist) & (both == both)
        # Ten times as fast as nonzero of two axes.
        (flat,) = xp.nonzero(xp.reshape(close, (-1,)))
        count = int(flat.shape[0])
        if not count:
            return sqdist
        # Of the rows before the shift: it rounds every row, by more than close rows may differ.
        x, y = self.groups[0].rows[self.rows, :], self.groups[1].rows[columns, :]
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and count > _MANY:
            from mercer.kernels.loops import sqdist_where

            sqdist_where(close, np.ascontiguousarray(x), np.ascontiguousarray(y), sqdist)
            return sqdist
        chunk = _DEVICE_CHUNK if on_accelerator(sqdist) else _CHUNK
        sparse = hasattr(x, "tocsr") and hasattr(y, "tocsr") and not isinstance(x, CSR)
        entries = x.nnz // x.shape[0] + y.nnz // y.shape[0] if sparse else int(x.shape[1])
        step = max(1, chunk // max(1, entries))
        for start in range(0, count, step):
            at = flat[start : min(start + step, count)]
            i, j = at // close.shape[1], at % close.shape[1]
            a, b = take_rows(x, i), take_rows(y, j)
            if sparse:
                # In float64: rounding errors of equal terms add up in float32.
                square = (a - b).astype(np.float64).power(2)
                sqdist[i, j] = np.asarray(square.sum(axis=1)).reshape(-1)
                continue
            a = a.toarray() if hasattr(a, "tocsr") else a
            b = b.toarray() if hasattr(b, "tocsr") else b
            sqdist = put(sqdist, i, j, xp.sum((a - b) ** 2, axis=1))
        return sqdist

    @property
    def norms(self) -> tuple[Array, Array]:
        return self._broadcast(*(points.norms for points in self.groups))

    def column_sum(self, f: ColumnSum, owner: Any) -> Array:
        for points in self.groups:
            require_dense(owner, points.rows)
        x, y = self.sides
        if isinstance(x, np.ndarray):
            from mercer.kernels import loops

            out = np.empty(self.shape, x.dtype)
            loops.column_sum(f.loop, x, y, out)
            return out
        xp = namespace(x)
        out = xp.zeros(self.shape, dtype=x.dtype, device=device(x))
        for column in range(int(x.shape[1])):
            out = out + f.term(xp, x[:, column][:, None], y[:, column][None, :])
        return out

    def diagonals(self, kernel: Any) -> tuple[Array, Array]:
        values = (points.cached(kernel, kernel.on_diagonal) for points in self.groups)
        return self._broadcast(*values)

    @property
    def diagonal(self) -> DiagonalPair:
        return DiagonalPair(Points(self.sides[0]))

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> TilePair:
        x, y = (points.mapped(key, f) for points in self.groups)
        shared = self.shared.setdefault(("mapped", key), {"out": self.shared["out"]})
        return TilePair(x, y, self.rows, self.columns, shared)

    def _broadcast(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return values of all rows as those of this tile: a column and a row."""
        return x[self.rows][:, None], y[self.columns][None, :]


class DiagonalPair(Pair):
    """Every row paired with itself: a formula of it gives the diagonal of the kernel matrix."""

    def __init__(self, points: Points) -> None:
        self.points, self.groups, self.sides = points, (points,), (points.rows, points.rows)

    @property
    def dot(self) -> Array:
        return self.points.norms

    @property
    def sqdist(self) -> Array:
        """Zero, also where the norm overflows; NaN where it is NaN."""
        norms = self.points.norms
        xp = namespace(norms)
        return xp.where(norms == norms, xp.zeros_like(norms), norms)

    @property
    def norms(self) -> tuple[Array, Array]:
        return self.points.norms, self.points.norms

    def column_sum(self, f: ColumnSum, owner: Any) -> Array:
        require_dense(owner, self.points.rows)
        xp, rows = namespace(self.points.rows), self.points.rows
        return xp.sum(f.term(xp, rows, rows), axis=1)

    def diagonals(self, kernel: Any) -> tuple[Array, Array]:
        values = self.points.cached(kernel, kernel.on_diagonal)
        return values, values

    @property
    def diagonal(self) -> DiagonalPair:
        return self

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> DiagonalPair:
        return DiagonalPair(self.points.mapped(key, f))


def require_dense(kernel: Any, rows: Any) -> None:
    """Raise if rows are sparse, for kernels that are not functions of dot products."""
    if hasattr(rows, "tocsr"):
        raise ValueError(f"{kernel!r} needs dense rows. {dense_remedy(rows)}")


def _extend(rows: Array, *, left: bool) -> Array:
    """Return (x, ‖x‖², 1), or (−2y, 1, ‖y‖²): the factors of all squared distances.

    Columns are padded with zeros to an aligned width.
    """
    xp = namespace(rows)
    norms = xp.sum(rows * rows, axis=1)[:, None]
    one = 0.0 * norms + 1.0
    parts = [rows, norms, one] if left else [-2.0 * rows, one, norms]
    parts += [0.0 * norms] * (-(int(rows.shape[1]) + 2) % _ALIGNMENT)
    return xp.concat(parts, axis=1)


# Error bounds in unit roundoffs u of a dtype, for `Kernel.roundings`.


def dot_error(x: Points, dtype: Any) -> float:
    """Return C with |error of xᵀy| ≤ C u ‖x‖‖y‖."""
    reference = None if isinstance(x.rows, list) else reference_of(x.rows)
    return summed(x.width, dtype, reference) + FEW


def sqdist_errors(x: Points, y: Points, dtype: Any) -> tuple[float, Vector]:
    """Return C and, for each row of x, D with |error of ‖x−y‖²| ≤ min(C u ‖x−y‖², D u).

    D: the dot product and the squared norms that make a distance are at most ‖x‖² + ‖y‖². C: a
    squared distance below the fraction `_CLOSE` of that sum is summed from the differences.
    """
    per_norm, shift = 2.0 * dot_error(x, dtype), y.shift
    if shift is not None:
        x, y = x.shifted(shift), y.shifted(shift)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(namespace(y.norms).max(y.norms)) if len(y) else 0.0
        norms = to_numpy(x.norms).astype(np.float64) + largest
    norms = np.where(np.isnan(norms), np.inf, norms)
    return per_norm / _CLOSE[np.dtype(dtype)], per_norm * norms


def power_error(error: Any, power: int, dtype: Any) -> Any:
    """Return the relative error of a power, given that of its base."""
    u = float(np.finfo(dtype).eps) / 2
    with np.errstate(over="ignore"):
        return np.expm1(power * np.log1p(error * u)) / u
