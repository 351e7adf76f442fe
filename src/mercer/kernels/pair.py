"""Pairs of rows, in which kernels write their formulas.

`Pair` names what kernels of two rows share: dot products, squared distances, sums over columns.
`TilePair` computes them for a tile of the kernel matrix that fits the cache; the matrix products
are those of the whole `GramBlock`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, device, namespace
from mercer.kernels.gram_block import GramBlock
from mercer.kernels.points import Points, lazy_property, slice_rows


@dataclass(frozen=True)
class ColumnSum:
    """A sum over columns, Σ_l f(x_l, y_l), that is not a matrix product.

    Attributes
    ----------
    term : callable
        f(xp, x, y) for arrays of the namespace xp that broadcast.
    loop : str or None
        Name of the compiled loop in `mercer.kernels.loops` that sums NumPy rows; None to sum
        them column by column.
    """

    term: Callable[[Any, Array, Array], Array]
    loop: str | None = None


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
        """Return the derivatives multiplied by a factor."""
        return Slopes(
            self.dot * factor, self.sqdist * factor, self.norm * factor, columns=self.columns
        )


class Pair(ABC):
    """Rows x and y, given by what kernels need to know of them."""

    groups: tuple[Points, ...] = ()
    """The points that the rows are taken from, where they are in memory."""

    @property
    @abstractmethod
    def sides(self) -> tuple[Any, Any]:
        """The rows x and the rows y themselves."""

    @property
    @abstractmethod
    def dot(self) -> Any:
        """Dot products xᵀy; must not be written to."""

    @property
    @abstractmethod
    def sqdist(self) -> Any:
        """Squared distances: never negative, zero between equal rows, accurate for close rows."""

    @property
    @abstractmethod
    def norms(self) -> tuple[Any, Any]:
        """Squared norms of x and of y, which broadcast to the shape of the values."""

    @abstractmethod
    def column_sum(self, f: ColumnSum, owner: Any) -> Any:
        """Return Σ_l f(x_l, y_l) over the columns l, for the kernel `owner`."""

    @abstractmethod
    def diagonals(self, kernel: Any) -> tuple[Any, Any]:
        """Return k(x, x) and k(y, y), which broadcast to the shape of the values."""

    @property
    @abstractmethod
    def diagonal(self) -> Pair:
        """Every row x paired with itself."""

    @abstractmethod
    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> Pair:
        """Return the pair of f(x) and f(y), computed once per key."""


class TilePair(Pair):
    """Some rows of a block against some others."""

    def __init__(self, block: GramBlock, rows: slice, columns: slice) -> None:
        self.block, self.rows, self.columns = block, rows, columns
        self.groups = block.x, block.y

    @classmethod
    def between(cls, x: Points, y: Points) -> TilePair:
        """Return the pair of all rows of x and all rows of y."""
        return cls(GramBlock(x, y), slice(0, len(x)), slice(0, len(y)))

    @classmethod
    def tiles(cls, x: Points, y: Points, out: list[Array] | None = None) -> Iterator[TilePair]:
        """Yield the tiles of the block of x and y; its first product may be written to `out`."""
        block = GramBlock(x, y, out)
        for rows, columns in block.tiles():
            yield cls(block, rows, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the kernel values."""
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    @property
    def sides(self) -> tuple[Any, Any]:
        x, y = self.groups
        return slice_rows(x.rows, self.rows), slice_rows(y.rows, self.columns)

    @property
    def dot(self) -> Array:
        return self.block.dot[self.rows, self.columns]

    @lazy_property
    def sqdist(self) -> Array:
        return self.block.sqdist(self.rows, self.columns)

    @property
    def norms(self) -> tuple[Array, Array]:
        return self._broadcast(*(points.norms for points in self.groups))

    def column_sum(self, f: ColumnSum, owner: Any) -> Array:
        for points in self.groups:
            require_dense(owner, points.rows)
        x, y = self.sides
        if isinstance(x, np.ndarray) and f.loop is not None:
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
        return TilePair(self.block.mapped(key, f), self.rows, self.columns)

    def _broadcast(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return values of all rows as those of this tile: a column and a row."""
        return x[self.rows][:, None], y[self.columns][None, :]


class DiagonalPair(Pair):
    """Every row paired with itself: a formula of it gives the diagonal of the kernel matrix."""

    def __init__(self, points: Points) -> None:
        self.points, self.groups = points, (points,)

    @property
    def sides(self) -> tuple[Any, Any]:
        return self.points.rows, self.points.rows

    @property
    def dot(self) -> Array:
        return self.points.norms

    @property
    def sqdist(self) -> Array:
        return ones(self.points.norms) - 1.0

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


def ones(norms: Array) -> Array:
    """Return 1 for every squared norm, also where it overflows; NaN where it is NaN."""
    xp = namespace(norms)
    return xp.where(norms == norms, xp.ones_like(norms), norms)


def require_dense(kernel: Any, rows: Any) -> None:
    """Refuse sparse rows, for kernels that are not functions of dot products."""
    if hasattr(rows, "tocsr"):
        raise ValueError(f"{kernel!r} needs dense rows. Pass X.toarray().")
