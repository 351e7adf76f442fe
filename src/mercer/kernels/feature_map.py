"""The kernel between rows and a basis, as a map of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, like, moved, to_numpy
from mercer.data import Block, Mapped, Source, require_finite_rows
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import evaluate, value_dtype
from mercer.kernels.points import Points, cast_rows


@dataclass(frozen=True)
class KernelMap:
    """The kernel between rows and a basis, h(x).

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None where rows are h(x) already.
    basis : rows or None
        The points that the kernel is taken to.
    shift : ndarray of shape (d,) or None
        What is subtracted from rows first; the basis is shifted already.
    """

    kernel: Kernel | None
    basis: Any
    shift: Vector | None = None

    def of(self, source: Source, dtype: Any = None) -> Mapped:
        """Return h(x) of every row, computed when it is read."""
        kind = source.dtype if dtype is None else np.dtype(dtype)
        if self.kernel is None:
            return Mapped(
                source, lambda block: _dense(block, source, kind), source.shape[1], kind, 0
            )
        kernel, basis = self.kernel, Points(cast_rows(self.near(source), kind))

        def between(block: Block) -> Array:
            require_finite_rows(block, source)
            return evaluate(kernel.on, self.points(block, kind), basis, source.reference, kind)

        return Mapped(source, between, len(basis), kind, 0)

    def points(self, block: Block, kind: Any) -> Points:
        """Return rows as the kernel takes them."""
        rows = cast_rows(block.rows, kind)
        if self.shift is not None:
            rows = rows.toarray() if hasattr(rows, "tocsr") else rows
            shift, rest = rounded_mean(self.shift, rows, kind)
            rows = rows - shift - rest
        return Points(rows, block.start)

    def precision(self, source: Source, kind: np.dtype[Any]) -> np.dtype[Any]:
        """Return the precision of h(x): float32, too, where it holds the basis's values."""
        if self.kernel is None or kind == np.float64:
            return kind
        with np.errstate(over="ignore", invalid="ignore"):
            own = self.kernel.on_diagonal(Points(cast_rows(self.near(source), np.float64)))
        return value_dtype(own, kind)

    def near(self, source: Source) -> Any:
        """Return the basis where the rows live."""
        if isinstance(self.basis, list) or hasattr(self.basis, "tocsr"):
            return self.basis
        return moved(self.basis, source.reference)


def rounded_mean(mean: Vector, reference: Array, kind: Any) -> tuple[Array, Array]:
    """Return a mean in some precision, and what it lost there, to be taken off after it.

    A mean of 1e4 loses 5e-4 in float32, which rows that are near it and given in float32 do not.
    """
    near = like(mean, reference, kind)
    return near, like(mean - to_numpy(near).astype(np.float64), reference, kind)


def _dense(block: Block, source: Source, kind: Any) -> Array:
    require_finite_rows(block, source)
    return block.dense(kind)
